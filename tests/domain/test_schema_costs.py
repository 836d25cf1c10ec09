"""How many steps a check of a payload takes at most, counted before it is checked."""

import time
from typing import Any

import orjson
import pytest

from mainspring.domain.errors import InvalidPayload
from mainspring.domain.schema_costs import count_values, steps_of_a_value
from mainspring.domain.schemas import Schema

WORD: dict[str, Any] = {"type": "string"}
ENDLESS = 1_000_000_000


def choices(count: int) -> dict[str, Any]:
    return {"anyOf": [{"const": number} for number in range(count)]}


def doubling(levels: int, reference: str = "#/$defs/a{}") -> dict[str, Any]:
    """Each definition refers to the one before twice."""
    defined: dict[str, Any] = {"a0": {"const": 1, "$anchor": "a0"}}
    for level in range(1, levels + 1):
        twice = [{"$ref": reference.format(level - 1)}] * 2
        defined[f"a{level}"] = {"$anchor": f"a{level}", "allOf": [dict(each) for each in twice]}
    return {"$defs": defined, "$ref": reference.format(levels)}


SCHEMAS = {
    "anything": ({}, 1),
    "a word": (WORD, 1),
    "true": (True, 1),
    "items": ({"items": WORD}, 2),
    "one of many properties": ({"properties": {str(name): WORD for name in range(100)}}, 2),
    "properties or others": ({"properties": {"a": WORD}, "additionalProperties": WORD}, 2),
    "patterns of names": ({"patternProperties": {"a": WORD, "b": WORD}}, 3),
    "choices": (choices(100), 101),
    "items with choices": ({"properties": {"a": {"items": choices(100)}}}, 103),
    "an enum of words": ({"enum": ["a"] * 100}, 1),
    "an enum of lists": ({"enum": [[1]] * 100}, 401),
    "conditions": ({"if": WORD, "then": WORD, "else": WORD}, 4),
    "unevaluated": ({"allOf": [WORD], "unevaluatedProperties": False}, 6),
    "references": (doubling(3), 30),
    "references to anchors": (doubling(3, "#a{}"), 30),
    "references that double": (doubling(50), ENDLESS),
    "itself": ({"properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}}}, 3),
    "nothing": ({"$ref": "#/$defs/missing"}, 2),
    "references below an id": (
        {"$defs": {"a": {"$id": "urn:a", "items": {"$ref": "#"}}}, "$ref": "#/$defs/a"},
        ENDLESS + 1,
    ),
    "an id among examples": ({"examples": [{"$id": "urn:a"}], "$ref": "#/$defs/a"}, 2),
}


@pytest.mark.parametrize(("document", "steps"), SCHEMAS.values(), ids=SCHEMAS)
def test_a_schema_says_how_many_subschemas_look_at_a_value(document: object, steps: int):
    assert steps_of_a_value(document) == min(steps, ENDLESS)


def test_a_chain_of_references_that_is_too_long_to_follow_is_endless():
    defined = {f"a{number}": {"$ref": f"#/$defs/a{number + 1}"} for number in range(4000)}

    assert steps_of_a_value({"$defs": defined, "$ref": "#/$defs/a0"}) == ENDLESS


@pytest.mark.parametrize(
    ("value", "count"),
    [({}, 2), ({"a": 1}, 2), ({"a": [1, 2, 3]}, 5), ([[1], [2]], 5), ({"a": "b, c"}, 3)],
)
def test_values_are_counted_by_what_parts_them(value: object, count: int):
    assert count_values(orjson.dumps(value)) == count


def test_of_a_payload_with_many_choices_only_the_first_problem_is_named():
    schema = Schema("sum", {"properties": {"a": {"items": choices(2000)}}})
    began = time.process_time()

    with pytest.raises(InvalidPayload, match="there may be more"):
        schema.ensure({"a": [-1] * 98})

    # All of them took two seconds, in which nothing else ran.
    assert time.process_time() - began < 0.5
