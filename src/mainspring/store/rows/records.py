"""Values whose fields are the columns of a view."""

from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Record = TypeVar("Record", bound="DataclassInstance")


def read_record(kind: type[Record], facts: Mapping[str, Any]) -> Record:
    """The columns that an upgrade has added meanwhile are left out."""
    return kind(**{name: facts[name] for name in _field_names(kind)})


@cache
def _field_names(kind: type[Any]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))
