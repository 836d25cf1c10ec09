import time

import pytest

from mainspring.domain.errors import InvalidDefinition, InvalidPayload
from mainspring.domain.schemas import Schema, ensure_affordable

PHOTO = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {
        "tenant_id": {"type": "string", "pattern": "^[a-z]+$"},
        "size": {"type": "integer", "minimum": 1, "maximum": 5000},
        "tags": {"type": "array", "items": {"$ref": "#/$defs/tag"}},
        "token": {"type": "string", "maxLength": 3, "writeOnly": True},
    },
    "required": ["tenant_id"],
    "additionalProperties": False,
    "$defs": {"tag": {"type": "string"}},
}


def said(payload: object, document: object = None) -> str:
    with pytest.raises(InvalidPayload) as caught:
        Schema("resize", document or PHOTO).ensure(payload)  # type: ignore[arg-type]
    return str(caught.value)


def test_a_payload_that_fits_is_fine():
    Schema("resize", PHOTO).ensure({"tenant_id": "acme", "size": 800, "tags": ["a"]})


@pytest.mark.parametrize(
    ("payload", "path", "rule"),
    [
        ({}, "payload: ", "(rule required)"),
        ({"tenant_id": 7}, "payload/tenant_id: ", "(rule properties/tenant_id/type)"),
        ({"tenant_id": "ACME"}, "payload/tenant_id: ", "(rule properties/tenant_id/pattern)"),
        ({"tenant_id": "a", "size": 0}, "payload/size: ", "(rule properties/size/minimum)"),
        ({"tenant_id": "a", "tags": ["x", 7]}, "payload/tags/1: ", "type)"),
        ({"tenant_id": "a", "other": 1}, "payload: ", "(rule additionalProperties)"),
    ],
)
def test_what_is_wrong_is_named_by_its_place_and_rule(payload, path, rule):
    sentence = said(payload)

    assert sentence.startswith(path)
    assert sentence.endswith(rule)


def test_many_problems_are_counted():
    sentence = said({"tenant_id": 1, "size": 0, "tags": [1, 2, 3]})

    assert sentence.endswith("; and 2 more")


def test_the_value_itself_is_not_told():
    assert "hunter2" not in said({"tenant_id": "a", "token": "hunter2"})


@pytest.mark.parametrize(
    "document",
    [
        {"type": "nonsense"},
        {"properties": 7},
        {"type": "string", "pattern": "("},
        {"minimum": "three"},
        {"$ref": "#/$defs/gone"},
    ],
)
def test_what_is_no_schema_is_refused(document):
    with pytest.raises(InvalidDefinition, match="resize: arg_schema is not a valid JSON Schema: "):
        Schema("resize", document)


@pytest.mark.parametrize(
    "reference",
    ["http://127.0.0.1:1/x.json", "https://example.com/x", "file:///etc/passwd", "other.json"],
)
@pytest.mark.parametrize("keyword", ["$ref", "$dynamicRef", "$schema"])
def test_a_schema_that_is_elsewhere_is_not_fetched(reference, keyword):
    with pytest.raises(InvalidDefinition, match="must be self-contained"):
        Schema("resize", {"properties": {"a": {keyword: reference}}})


@pytest.mark.parametrize("pattern", ["^(a+)+$", "^(a|aa)+$", "^([a-z]+)*$"])
def test_no_pattern_can_hang(pattern):
    schema = Schema("resize", {"properties": {"a": {"type": "string", "pattern": pattern}}})
    began = time.process_time()

    with pytest.raises(InvalidPayload):
        schema.ensure({"a": "a" * 50_000 + "!"})

    assert time.process_time() - began < 5


@pytest.mark.parametrize("pattern", [r"(?=a)b", r"(a)\1"])
def test_a_pattern_that_could_hang_is_refused(pattern):
    with pytest.raises(InvalidDefinition, match="arg_schema is not a valid JSON Schema"):
        Schema("resize", {"properties": {"a": {"pattern": pattern}}})


def test_of_a_large_payload_the_first_problem_is_named_at_once():
    schema = Schema("resize", {"properties": {"a": {"items": {"type": "integer"}}}})
    began = time.process_time()

    with pytest.raises(InvalidPayload, match=r"^payload/a/0: .*; there may be more$"):
        schema.ensure({"a": ["x"] * 340_000})

    assert time.process_time() - began < 0.5


@pytest.mark.parametrize(("values", "ending"), [(98, "; and 95 more"), (99, "; there may be more")])
def test_all_problems_of_up_to_100_values_are_counted(values, ending):
    with pytest.raises(InvalidPayload) as caught:
        Schema("resize", {"properties": {"a": {"items": {"type": "integer"}}}}).ensure(
            {"a": ["x"] * values}
        )
    assert str(caught.value).endswith(ending)


def nested(levels: int) -> dict[str, object]:
    schema: dict[str, object] = {}
    for _ in range(levels - 1):
        schema = {"items": schema}
    return schema


@pytest.mark.parametrize(
    ("most", "more", "said"),
    [
        ({"title": "x" * 65_524}, {"title": "x" * 65_525}, "65,537 bytes; at most 65,536"),
        (nested(50), nested(51), "51 levels; at most 50"),
        (
            {"allOf": [{}] * 4_999},
            {"allOf": [{}] * 5_000},
            "5,001 subschemas; at most 5,000",
        ),
        (
            {"allOf": [{"pattern": "a"}] * 50},
            {"allOf": [{"pattern": "a"}] * 50, "patternProperties": {"b": {}}},
            "51 patterns; at most 50",
        ),
    ],
)
def test_a_schema_has_a_budget(most, more, said):
    ensure_affordable("resize", most)

    with pytest.raises(InvalidDefinition, match=f"resize: arg_schema has {said}"):
        ensure_affordable("resize", more)


@pytest.mark.parametrize(
    "document",
    [{"title": "x" * 6_553_600}, {"anyOf": [{} for _ in range(500_000)]}],
    ids=["long", "wide"],
)
def test_a_schema_a_hundred_times_too_large_is_refused_at_once(document):
    began = time.process_time()

    with pytest.raises(InvalidDefinition, match="at most 65,536"):
        ensure_affordable("resize", document)

    assert time.process_time() - began < 0.2
