"""Parts of a definition, or of a version of one: its backoff, its schemas."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import timedelta
from typing import Any, NamedTuple

import orjson

from mainspring.domain.jobs.backoff import Backoff

BACKOFF_COLUMNS = {field.name: f"backoff_{field.name}" for field in fields(Backoff)}
_BACKOFF = Backoff()


def read_backoff(facts: Mapping[str, Any]) -> Backoff:
    """From the columns of a definition or of a version; durations are seconds."""
    given: dict[str, Any] = {}
    for name, column in BACKOFF_COLUMNS.items():
        is_duration = isinstance(getattr(_BACKOFF, name), timedelta)
        given[name] = timedelta(seconds=facts[column]) if is_duration else facts[column]
    return Backoff(**given)


class Schemas(NamedTuple):
    """What a definition says of its payloads."""

    arg_schema: dict[str, Any] | None
    schema_key: str
    """Stands for the schema, or for none."""
    others: list[dict[str, Any]]
    """The other ones that live workers have."""
    is_new: bool
    """Whether the definition changed a short while ago."""


def read_schemas(row: Sequence[Any]) -> Schemas:
    arg_schema, schema_key, others, is_new = row
    return Schemas(
        orjson.loads(arg_schema or "null"), schema_key, orjson.loads(others or "[]"), is_new
    )
