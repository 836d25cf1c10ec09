"""JSON Schemas of payloads, from the annotations of a handler's parameters.

A handler gets the values of its payload as JSON has them, never converted. So a schema says which
JSON value an annotation stands for, and no more than that: a `datetime` is a text or a number in
whatever form the handler reads it, a dataclass an object with its fields. What has no such value
is not constrained. A schema refuses nothing that a handler written to its annotations takes.
"""

import collections
import inspect
import json
import types
import typing
from collections import abc
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, Flag
from pathlib import PurePath
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin
from uuid import UUID

from mainspring.domain.handlers import HandlerSignature

Document = dict[str, Any]
Other = Callable[[str, Any], Document | None]
"""Describes the annotation of a parameter that is not understood here; None if it cannot either."""

_NULL: Document = {"type": "null"}
_TEXT_OR_NUMBER: Document = {"type": ["string", "number"]}
_SCALARS: Mapping[object, Document] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    NoneType: {"type": "null"},
    None: {"type": "null"},
    UUID: {"type": "string"},
    bytes: {"type": "string"},
    datetime: _TEXT_OR_NUMBER,
    date: _TEXT_OR_NUMBER,
    time: _TEXT_OR_NUMBER,
    timedelta: _TEXT_OR_NUMBER,
    Decimal: _TEXT_OR_NUMBER,
}
_ANYTHING = (Any, object, inspect.Parameter.empty)
_ARRAYS = frozenset(
    (
        *(list, tuple, set, frozenset, collections.deque),
        *(abc.Sequence, abc.MutableSequence, abc.Collection, abc.Iterable, abc.Set),
        abc.MutableSet,
    )
)
_OBJECTS = frozenset(
    (dict, collections.OrderedDict, collections.defaultdict, abc.Mapping, abc.MutableMapping)
)
_WRAPPERS = (typing.Required, typing.NotRequired, typing.Final)
# Metadata of these has a meaning that is theirs.
_SPEAKING_MODULES = ("pydantic", "annotated_types")
_MARKS_SECRETS = "Secret"  # Of pydantic: SecretStr, SecretBytes, Secret[...].
_LARGEST_DEFAULT = 1000
_JSON_TYPES: Mapping[type, tuple[str, ...]] = {
    bool: ("boolean",),
    int: ("integer", "number"),
    float: ("number",),
    str: ("string",),
    list: ("array",),
    dict: ("object",),
}


class _NotUnderstood(Exception):
    """The annotation means something that is not known here."""


def describe_arguments(
    signature: HandlerSignature, function: Callable[..., Any], other: Other
) -> Document | None:
    """The JSON Schema of the payloads that a function takes; None if it takes any."""
    parameters = signature.signature.parameters.values()
    named = [each for each in parameters if each.kind is not each.VAR_KEYWORD]
    if signature.takes_any and not named:
        return None
    definitions: Document = {}
    properties = {
        each.name: _with_default(
            _hoisted(_describe_parameter(each, function, other), definitions), each.default
        )
        for each in named
    }
    document: Document = {"type": "object", "properties": properties}
    if required := [each.name for each in named if each.name in signature.required]:
        document["required"] = required
    if not signature.takes_any:
        document["additionalProperties"] = False
    return {**document, "$defs": definitions} if definitions else document


def _describe_parameter(
    parameter: inspect.Parameter, function: Callable[..., Any], other: Other
) -> Document:
    try:
        annotation = _resolved(parameter.annotation, function)
    except Exception:  # noqa: BLE001 - evaluating an annotation may raise anything
        return _unconstrained(parameter.annotation)
    try:
        return dict(_describe(annotation, ()))
    except (_NotUnderstood, RecursionError):
        return other(parameter.name, annotation) or _unconstrained(annotation)


def _unconstrained(annotation: object) -> Document:
    """What can be said of an annotation that nobody understands: that it is a secret."""
    return {"writeOnly": True} if _MARKS_SECRETS in str(annotation) else {}


def _resolved(annotation: Any, function: Callable[..., Any]) -> Any:
    """The annotation with types in place of their names; raises for one that is not known yet."""
    if isinstance(annotation, type):
        return annotation
    holder = types.SimpleNamespace(__annotations__={"value": annotation})
    known = getattr(inspect.unwrap(function), "__globals__", {})
    return typing.get_type_hints(holder, known, include_extras=True)["value"]


def _hoisted(fragment: Document, definitions: Document) -> Document:
    """The fragment without what it defines for all to refer to."""
    definitions.update(fragment.pop("$defs", {}))
    return fragment


def _with_default(fragment: Document, default: object) -> Document:
    """The same with a default value, which a payload may say too."""
    if default is inspect.Parameter.empty or fragment.get("writeOnly"):
        return fragment
    value = default.value if isinstance(default, Enum) else default
    return {**_admitting(fragment, value), "default": value} if _is_json(value) else fragment


def _admitting(fragment: Document, value: object) -> Document:
    """The same, and the value besides where its type is another: `x: int = None`."""
    if value is None:
        return fragment if _NULL in fragment.get("anyOf", ()) else _any_of([fragment, _NULL])
    allowed = fragment.get("type")
    if allowed is None or not {*_JSON_TYPES[type(value)]}.isdisjoint(_listed(allowed)):
        return fragment
    return {"anyOf": [fragment, {"const": value}]}


def _is_json(value: object) -> bool:
    if value is not None and type(value) not in _JSON_TYPES:
        return False
    try:
        return len(json.dumps(value, allow_nan=False)) <= _LARGEST_DEFAULT
    except (TypeError, ValueError):
        return False


# Annotations


def _describe(annotation: Any, around: tuple[Any, ...]) -> Document:
    """Its JSON Schema; `around` are the types it stands in. Raises _NotUnderstood."""
    annotation = _underlying(annotation)
    if any(annotation is each for each in _ANYTHING) or isinstance(annotation, typing.TypeVar):
        return {}
    if isinstance(annotation, abc.Hashable) and annotation in _SCALARS:
        return dict(_SCALARS[annotation])
    origin, args = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        return _any_of([_describe(each, around) for each in args])
    if origin is Literal:
        return _one_of([each.value if isinstance(each, Enum) else each for each in args])
    return _describe_class(origin or annotation, args, around)


def _underlying(annotation: Any) -> Any:
    """What a NewType, `type Name = ...`, Annotated, Required and the like stand for."""
    while True:
        origin = get_origin(annotation)
        if type(annotation).__name__ == "TypeAliasType":
            annotation = annotation.__value__
        elif hasattr(annotation, "__supertype__"):
            annotation = annotation.__supertype__
        elif origin is Annotated:
            annotation = _without_metadata(annotation)
        elif origin in _WRAPPERS:
            (annotation,) = get_args(annotation)
        else:
            return annotation


def _without_metadata(annotation: Any) -> Any:
    inner, *metadata = get_args(annotation)
    modules = (type(each).__module__.partition(".")[0] for each in metadata)
    if any(module in _SPEAKING_MODULES for module in modules):
        raise _NotUnderstood
    return inner


def _describe_class(kind: Any, args: tuple[Any, ...], around: tuple[Any, ...]) -> Document:
    if not isinstance(kind, type):
        raise _NotUnderstood
    if kind in _ARRAYS:
        return _describe_array(kind, args, around)
    if kind in _OBJECTS:
        values = _describe(args[1], around) if len(args) == len(("key", "value")) else {}
        return {"type": "object", **({"additionalProperties": values} if values else {})}
    if typing.is_typeddict(kind) or _is_plain_dataclass(kind):
        # One that holds itself is described once.
        return {} if kind in around else _describe_record(kind, (*around, kind))
    return _describe_value(kind)


def _describe_value(kind: type) -> Document:
    if issubclass(kind, Enum):
        return _describe_enum(kind)
    if issubclass(kind, PurePath):
        return {"type": "string"}
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return {"type": ["array", "object"]}
    raise _NotUnderstood


def _describe_array(kind: type, args: tuple[Any, ...], around: tuple[Any, ...]) -> Document:
    if kind is tuple and args[-1:] != (...,):
        members = [_describe(each, around) for each in args]
        bounds = {"minItems": len(args), "maxItems": len(args)} if args else {}
        return {"type": "array", **({"prefixItems": members} if members else {}), **bounds}
    items = _describe(args[0], around) if args else {}
    return {"type": "array", **({"items": items} if items else {})}


def _describe_enum(kind: type[Enum]) -> Document:
    if issubclass(kind, Flag) or kind._missing_.__func__ is not Enum._missing_.__func__:  # type: ignore[attr-defined]
        return {}  # Other values than those that it lists are taken too.
    return _one_of([member.value for member in kind])


def _describe_record(kind: type, around: tuple[Any, ...]) -> Document:
    try:
        hints = typing.get_type_hints(kind, include_extras=True)
    except Exception:  # noqa: BLE001 - evaluating an annotation may raise anything
        return {"type": "object"}
    names = dict(_members(kind))
    properties = {name: _describe(hints[name], around) for name in names}
    required = [name for name, is_required in names.items() if is_required]
    return {
        "type": "object",
        "properties": properties,
        **({"required": required} if required else {}),
    }


def _members(kind: Any) -> Iterator[tuple[str, bool]]:
    """The names of a record, and whether each must be given."""
    if typing.is_typeddict(kind):
        yield from ((name, name in kind.__required_keys__) for name in kind.__annotations__)
        return
    for each in fields(kind):
        if each.init:
            yield each.name, each.default is MISSING and each.default_factory is MISSING


def _is_plain_dataclass(kind: type) -> bool:
    return is_dataclass(kind) and not hasattr(kind, "__pydantic_validator__")


# Fragments


def _any_of(fragments: list[Document]) -> Document:
    if any(not fragment for fragment in fragments):
        return {}
    if all(fragment.keys() == {"type"} for fragment in fragments):
        kinds = list(dict.fromkeys(kind for each in fragments for kind in _listed(each["type"])))
        return {"type": kinds[0] if len(kinds) == 1 else kinds}
    return {"anyOf": fragments}


def _one_of(values: list[object]) -> Document:
    if not all(isinstance(each, str | int | float | bool | None) for each in values):
        raise _NotUnderstood
    return {"enum": values}


def _listed(kinds: str | list[str]) -> list[str]:
    return [kinds] if isinstance(kinds, str) else kinds
