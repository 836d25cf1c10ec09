"""JSON Schemas of payloads: what a definition asks for, and what a payload lacks.

A schema is all there is: one that refers to another place is refused, so nothing is ever fetched.
Patterns are matched by an engine without backtracking, so its time grows with the text and the
pattern and no faster. To find whether a payload fits takes milliseconds a megabyte, and the engine
lets other threads run meanwhile; a schema can make it take hours, so the steps are counted first
(see `schema_costs`). To find all that is wrong takes a hundred times longer, and nobody else runs:
that is done only where it takes few steps, and of other payloads the first problem is named.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

import jsonschema_rs

from mainspring.domain.errors import InvalidDefinition, InvalidPayload
from mainspring.domain.schema_costs import QUICK_STEPS, steps_of_a_value

LARGEST_SCHEMA = 64 * 1024
DEEPEST_SCHEMA = 50
MOST_SUBSCHEMAS = 5_000
MOST_PATTERNS = 50
_LARGEST_PATTERN = 5 * 1024 * 1024
_MOST_SHOWN = 3
_MOST_PARTS = 20
# Of a payload with more values, or that takes more steps, only the first problem is looked for.
_FEW_VALUES = 100
_FEW_STEPS = 10_000
_RULES_OF_NAMES = ("required", "additionalProperties")
_CONTAINERS = (Mapping, list, tuple)
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef", "$schema")
_DRAFTS = ("http://json-schema.org/", "https://json-schema.org/")


Place = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with a payload: where, by which rule, in words without the value."""

    path: str
    rule: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message} (rule {self.rule})"

    @property
    def part(self) -> tuple[str, str]:
        """For programs, with dots between the parts of the path."""
        return self.path.replace("/", "."), self.message


class Schema:
    """The schema of one definition, ready to check payloads."""

    def __init__(self, key: str, document: Mapping[str, Any]) -> None:
        _ensure_local(key, document)
        self._document = document
        try:
            self._validator = jsonschema_rs.validator_for(
                dict(document),
                validate_formats=True,
                # A value may be a secret, and a sentence goes to logs and screens.
                mask="the value",
                pattern_options=jsonschema_rs.RegexOptions(size_limit=_LARGEST_PATTERN),
                retriever=_fetch_nothing,
            )
        except (ValueError, jsonschema_rs.ValidationError) as error:
            problem = str(error).partition("\n")[0]
            raise InvalidDefinition(
                f"{key}: arg_schema is not a valid JSON Schema: {problem}", field="arg_schema"
            ) from None

        self.fits: Callable[[Any], bool] = self._validator.is_valid
        """Whether a payload, as JSON gives it, is what the definition asks for."""

    @cached_property
    def steps_of_a_value(self) -> int:
        """How many steps a check takes for each value of a payload, at most."""
        return steps_of_a_value(self._document)

    @cached_property
    def quick_length(self) -> int:
        """JSON of at most so many characters is checked in few steps."""
        # A value and what parts it from the next have two characters at the least.
        return 2 * (QUICK_STEPS // self.steps_of_a_value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and self._document == other._document

    __hash__ = None  # type: ignore[assignment]

    def fit(self, payloads: Iterable[Any]) -> bool:
        """Whether all of them are; false where one holds what only its JSON could be checked of."""
        try:
            return all(map(self.fits, payloads))
        except ValueError:
            return False

    def ensure(self, payload: object) -> None:
        """Raise InvalidPayload with what is wrong, by its place and rule."""
        if self.fits(payload):
            return
        if not self._has_few_steps(payload):
            first = self._first_problem(payload)
            raise _refusal(f"{first}; there may be more", [first])
        raise _invalid(list(self._validator.iter_errors(payload)))

    def ensure_draft(self, draft: object, is_open: Callable[[Any], bool]) -> None:
        """Raise InvalidPayload with what is wrong whatever the open values of the draft become. One
        that is large and has some is not looked at."""
        if self.fits(draft):
            return
        places = set(_open_places(draft, is_open))
        if not places:
            self.ensure(draft)
        if not self._has_few_steps(draft):
            return
        errors = [
            error
            for error in self._validator.iter_errors(draft)
            if not _is_open(error, tuple(error.instance_path), places)
        ]
        if errors:
            raise _invalid(errors)

    def _has_few_steps(self, payload: object) -> bool:
        count = sum(1 for _ in islice(_values(payload), _FEW_VALUES + 1))
        return count <= _FEW_VALUES and count * self.steps_of_a_value <= _FEW_STEPS

    def _first_problem(self, payload: object) -> Problem:
        try:
            self._validator.validate(payload)
        except jsonschema_rs.ValidationError as error:
            return _problem(error)
        return Problem("payload", "", "does not fit its JSON Schema")


def ensure_affordable(key: str, document: Mapping[str, Any]) -> None:
    """Refuse a schema that takes too much to read or to check payloads against."""
    # What has very many values or very long ones is refused before it is written.
    if _is_surely_larger(document, LARGEST_SCHEMA):
        raise InvalidDefinition(
            f"{key}: arg_schema has more than {LARGEST_SCHEMA:,} bytes; "
            f"at most {LARGEST_SCHEMA:,} are allowed",
            field="arg_schema",
        )
    size = len(
        json.dumps(document, ensure_ascii=False, separators=(",", ":"), default=str).encode()
    )
    counted = {
        "bytes": (size, LARGEST_SCHEMA),
        "levels": (_depth(document), DEEPEST_SCHEMA),
        "subschemas": (
            sum(isinstance(each, Mapping) for each in _values(document)),
            MOST_SUBSCHEMAS,
        ),
        "patterns": (sum(_count_patterns(each) for each in _values(document)), MOST_PATTERNS),
    }
    for what, (found, most) in counted.items():
        if found > most:
            raise InvalidDefinition(
                f"{key}: arg_schema has {found:,} {what}; at most {most:,} are allowed",
                field="arg_schema",
            )


def _is_surely_larger(document: object, limit: int) -> bool:
    """Each value takes two bytes at the least, and a string as many as it has characters."""
    size = 0
    for each in _values(document):
        size += 2 + (len(each) if isinstance(each, str) else 0)
        if size > limit:
            return True
    return False


def _invalid(errors: list[Any]) -> InvalidPayload:
    found = [_problem(error) for error in errors]
    problems = "; ".join(map(str, found[:_MOST_SHOWN]))
    more = len(found) - _MOST_SHOWN
    return _refusal(f"{problems}{f'; and {more} more' if more > 0 else ''}", found)


def _open_places(
    value: object, is_open: Callable[[Any], bool], place: Place = ()
) -> Iterator[Place]:
    if is_open(value):
        yield place
    elif isinstance(value, Mapping):
        for name, member in value.items():
            yield from _open_places(member, is_open, (*place, name))
    elif isinstance(value, list | tuple):
        for index, member in enumerate(value):
            yield from _open_places(member, is_open, (*place, index))


def _is_open(error: Any, place: Place, open_places: set[Place]) -> bool:
    """Whether the error may be gone once the open values are known: it is about one of them, or
    about what holds one, other than by its names."""
    if str(error.schema_path[-1] if error.schema_path else "") in _RULES_OF_NAMES:
        return False
    return any(each[: len(place)] == place for each in open_places)


def _refusal(said: str, problems: Sequence[Problem]) -> InvalidPayload:
    error = InvalidPayload(said)
    error.parts = [problem.part for problem in problems[:_MOST_PARTS]]
    return error


def _problem(error: Any) -> Problem:
    return Problem(
        "/".join(("payload", *map(str, error.instance_path))),
        "/".join(map(str, error.schema_path)),
        error.message,
    )


def _values(document: object) -> Iterator[object]:
    """Every value inside, and the document itself."""
    waiting = [document]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += _inside(node)


def _depth(document: object) -> int:
    """How many objects and arrays are inside each other; at most one over the limit."""
    depth, level = 0, [document]
    while depth <= DEEPEST_SCHEMA and any(isinstance(each, _CONTAINERS) for each in level):
        depth += 1
        level = [each for node in level for each in _inside(node)]
    return depth


def _inside(node: object) -> list[object]:
    if isinstance(node, Mapping):
        return list(node.values())
    return list(node) if isinstance(node, list | tuple) else []


def _count_patterns(node: object) -> int:
    if not isinstance(node, Mapping):
        return 0
    named = node.get("patternProperties")
    of_names = len(named) if isinstance(named, Mapping) else 0
    return of_names + isinstance(node.get("pattern"), str)


def _ensure_local(key: str, document: object) -> None:
    for name, target in _references(document):
        is_draft = name == "$schema" and target.startswith(_DRAFTS)
        if not is_draft and not target.startswith("#"):
            raise InvalidDefinition(
                f"{key}: arg_schema refers to {target!r}; a schema must be self-contained",
                field="arg_schema",
            )


def _references(document: object) -> Iterator[tuple[str, str]]:
    for node in _values(document):
        if isinstance(node, Mapping):
            for name in _REFERENCES:
                if isinstance(target := node.get(name), str):
                    yield name, target


def _fetch_nothing(uri: str) -> Any:
    raise ValueError(f"{uri} is external")
