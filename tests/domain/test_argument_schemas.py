"""JSON Schemas from signatures: what is refused is wrong, what a handler takes is not refused."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, Flag, IntEnum, StrEnum
from pathlib import Path
from typing import Any, Literal, NamedTuple, NewType, NotRequired, Optional, TypedDict, Union
from uuid import UUID

import pytest
from typing_extensions import TypeAliasType

from mainspring import Context
from mainspring.domain.argument_schemas import describe_arguments
from mainspring.domain.handlers import read_signature
from mainspring.domain.schemas import Schema


class Color(Enum):
    RED = "red"
    BLUE = "blue"


class Size(IntEnum):
    SMALL = 1
    LARGE = 2


class Mood(StrEnum):
    GOOD = "good"

    @classmethod
    def _missing_(cls, value: object) -> "Mood":
        return cls.GOOD


class Rights(Flag):
    READ = 1
    WRITE = 2


@dataclass
class Point:
    x: int
    y: int = 0
    tags: list[str] = field(default_factory=list)
    computed: int = field(init=False, default=0)


@dataclass
class Tree:
    name: str
    children: "list[Tree]" = field(default_factory=list)


class Address(TypedDict):
    street: str
    number: NotRequired[int]


class Pair(NamedTuple):
    left: int
    right: int


class Unknown:
    pass


UserId = NewType("UserId", int)
Ids = TypeAliasType("Ids", list[int])


def schema_of(function: Callable[..., Any]) -> dict[str, Any] | None:
    return describe_arguments(read_signature("k", function), function, lambda *_: None)


def takes(function: Callable[..., Any], payload: object) -> bool:
    return Schema("k", schema_of(function) or {}).fits(payload)


def annotated(annotation: Any) -> Callable[..., Any]:
    def handler(value): ...

    handler.__annotations__ = {"value": annotation}
    return handler


DAY = "2026-11-17"
CASES: dict[str, tuple[Any, list[Any], list[Any]]] = {
    "no annotation": (None, [1, "a", None, [], {}], []),
    "Any": (Any, [1, "a", None], []),
    "int": (int, [1, -(10**18), 2.0], ["1", 1.5, None, True, []]),
    "float": (float, [1, 1.5], ["1.5", None, True]),
    "str": (str, ["", "a"], [1, None, []]),
    "bool": (bool, [True], [1, "true", None]),
    "None": (type(None), [None], [0, ""]),
    "optional": (int | None, [1, None], ["a"]),
    "Optional": (Optional[int], [1, None], ["a"]),  # noqa: UP045
    "Union": (Union[int, list[str]], [1, ["a"]], ["a", [1]]),  # noqa: UP007
    "list": (list, [[], [1, "a"]], [{}, "a"]),
    "list of": (list[int], [[], [1]], [["a"], 1]),
    "Sequence": (Sequence[str], [["a"]], [[1], 1]),
    "Iterable": (Iterable[int], [[1]], [["a"]]),
    "set": (set[int], [[1, 1]], [["a"]]),
    "tuple of any length": (tuple[int, ...], [[], [1, 2]], [["a"]]),
    "tuple": (tuple[int, str], [[1, "a"]], [[1], [1, "a", 2], ["a", 1]]),
    "bare tuple": (tuple, [[], [1]], ["a"]),
    "dict": (dict, [{}, {"a": 1}], [[], "a"]),
    "dict of": (dict[str, int], [{}, {"a": 1}], [{"a": "b"}]),
    "Mapping": (Mapping[str, Any], [{"a": []}], [1]),
    "Literal": (Literal["a", 1], ["a", 1], ["b", 2]),
    "Literal of an enum": (Literal[Color.RED], ["red"], ["blue"]),
    "Enum": (Color, ["red", "blue"], ["RED", 1]),
    "IntEnum": (Size, [1, 2], [3, "1"]),
    "Enum with other values": (Mood, ["good", "bad"], []),
    "Flag": (Rights, [1, 3], []),
    # As the handler reads them: they come as they were sent.
    "datetime": (datetime, [f"{DAY}T10:00:00", f"{DAY}T10:00:00+01:00", DAY, 1.7e9], [[], None]),
    "date": (date, [DAY, "17.11.2026"], [[], None]),
    "time": (time, ["10:00", 36000], [None]),
    "timedelta": (timedelta, ["PT5M", "0:05:00", 300, 0.5], [None, {}]),
    "Decimal": (Decimal, ["1.50", "1e5", 1.5, 2], [None, []]),
    "UUID": (UUID, ["9f0c" * 8, "9f0c9f0c-9f0c-9f0c-9f0c-9f0c9f0c9f0c"], [1, None]),
    "bytes": (bytes, ["aGVsbG8="], [1]),
    "Path": (Path, ["/tmp/a"], [1]),
    "NewType": (UserId, [1], ["a"]),
    "alias": (Ids, [[1]], [["a"]]),
    "dataclass": (Point, [{"x": 1}, {"x": 1, "y": 2, "tags": ["a"]}], [{}, {"x": "a"}, 1]),
    "dataclass that holds itself": (Tree, [{"name": "a", "children": [{"name": "b"}]}], [{}]),
    "TypedDict": (Address, [{"street": "a"}, {"street": "a", "number": 1}], [{"number": 1}]),
    "NamedTuple": (Pair, [[1, 2], {"left": 1, "right": 2}], ["a"]),
    # Nothing is known of these.
    "class": (Unknown, [1, {}, None], []),
    "pattern": (re.Pattern, ["a"], []),
    "callable": (Callable[[], int], [1], []),
    "complex": (complex, [1, "1j"], []),
}


@pytest.mark.parametrize("name", CASES)
def test_an_annotation_says_which_values_a_payload_may_have(name):
    annotation, right, wrong = CASES[name]
    function = annotated(annotation)
    if name == "no annotation":
        del function.__annotations__["value"]

    assert [value for value in right if not takes(function, {"value": value})] == []
    assert [value for value in wrong if takes(function, {"value": value})] == []


@pytest.mark.parametrize("name", CASES)
def test_an_annotation_as_text_says_the_same(name):
    annotation, _, _ = CASES[name]
    if name == "no annotation":
        return
    function = annotated("kept")
    function.__globals__["kept"] = annotation

    assert schema_of(function) == schema_of(annotated(annotation))


def test_names_are_checked():
    def handler(a: int, b: int = 0, *, c: int) -> None: ...

    assert takes(handler, {"a": 1, "c": 1})
    assert not takes(handler, {"a": 1})
    assert not takes(handler, {"a": 1, "c": 1, "d": 1})


def test_a_handler_may_take_any_name_besides_its_own():
    def handler(a: int, **others: object) -> None: ...

    assert takes(handler, {"a": 1, "d": 1})
    assert not takes(handler, {"d": 1})


def test_a_handler_that_takes_anything_has_no_schema():
    def handler(ctx: Context, **payload: object) -> None: ...

    assert schema_of(handler) is None


def test_a_handler_without_parameters_takes_only_an_empty_payload():
    def handler() -> None: ...

    assert takes(handler, {})
    assert not takes(handler, {"a": 1})


def test_the_context_is_no_part_of_the_payload():
    def handler(ctx: Context, a: int) -> None: ...

    assert takes(handler, {"a": 1})
    assert not takes(handler, {"a": 1, "ctx": 1})


@pytest.mark.parametrize("default", [None, "all", [1], {"a": 1}, 1.5, True])
def test_a_default_can_be_said_whatever_the_annotation(default):
    def handler(a: int = default) -> None: ...

    assert takes(handler, {"a": default})
    assert takes(handler, {"a": 1})
    assert not takes(handler, {"a": "none"})


def test_defaults_are_shown():
    def handler(a: int = 3, b: Color = Color.RED, c: object = object()) -> None: ...

    properties = (schema_of(handler) or {})["properties"]

    assert (properties["a"]["default"], properties["b"]["default"]) == (3, "red")
    assert "default" not in properties["c"]


def test_a_type_that_is_not_there_yet_constrains_nothing_but_the_name():
    def handler(a: "NotThereYet", b: int) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    assert takes(handler, {"a": object, "b": 1} | {"a": [1]})
    assert not takes(handler, {"b": 1})


def test_a_secret_that_cannot_be_resolved_is_still_marked():
    def handler(a: "SecretStr", b: int) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    assert (schema_of(handler) or {})["properties"]["a"] == {"writeOnly": True}


def test_a_decorated_function_is_described_by_the_one_it_wraps():
    import functools

    def inner(a: int) -> None: ...

    @functools.wraps(inner)
    def handler(*args: object, **kwargs: object) -> None: ...

    assert takes(handler, {"a": 1})
    assert not takes(handler, {"a": "b"})
