"""The backoff of a definition, or of a version of one."""

from collections.abc import Mapping
from dataclasses import fields
from datetime import timedelta
from typing import Any

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
