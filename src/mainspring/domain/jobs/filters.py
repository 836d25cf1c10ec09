"""Which jobs a list, a count or a bulk operation is about."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, Self

from mainspring.domain.filters import numbers, texts, words
from mainspring.domain.jobs.options import ensure_instant
from mainspring.domain.types import JobState


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Which jobs are meant: those that have one of the values of each filter; no value is any.
    `error` is a part of the last error, `error_key` the key of its group."""

    state: tuple[JobState, ...] = ()
    queue: tuple[str, ...] = ()
    definition: tuple[str, ...] = ()
    source: tuple[str, ...] = ()
    tag: tuple[str, ...] = ()
    created_after: datetime | None = None
    created_before: datetime | None = None
    error: tuple[str, ...] = ()
    created_by: tuple[str, ...] = ()
    schedule: tuple[str, ...] = ()
    slot_at: datetime | None = None
    trigger: tuple[str, ...] = ()
    event_id: tuple[int, ...] = ()
    flow_id: tuple[int, ...] = ()
    parent_id: tuple[int, ...] = ()
    worker_id: tuple[int, ...] = ()
    definition_version: tuple[int, ...] = ()
    error_key: tuple[str, ...] = ()

    @property
    def is_search(self) -> bool:
        """Whether many jobs may have to be read to find a few."""
        return any(getattr(self, each.name) for each in fields(self) if each.name not in _INDEXED)

    @classmethod
    def of(cls, **given: Any) -> Self:
        """The filter of what someone wrote: a value, a list of values or None for each."""
        for name in _INSTANTS:
            ensure_instant(name, given.get(name))
        read = {name: _read(name, value) for name, value in given.items() if name not in _INSTANTS}
        return cls(**{**given, **read})


# A job list walks along an index of these.
_INDEXED = frozenset({"created_by", "schedule", "event_id", "flow_id", "parent_id", "worker_id"})
_INSTANTS = ("created_after", "created_before", "slot_at")
_NUMBERS = ("event_id", "flow_id", "parent_id", "worker_id", "definition_version")


def _read(name: str, given: Any) -> tuple[Any, ...]:
    if name == "state":
        return words(name, given, JobState)
    return numbers(name, given) if name in _NUMBERS else texts(name, given)


def write_filter(asked: JobFilter) -> dict[str, Any]:
    """As it is kept in a payload, with the names of the API. One value stands alone, as programs of
    the previous release read it."""
    found = {each.name: getattr(asked, each.name) for each in fields(asked)}
    return {name: _written(value) for name, value in found.items() if value not in (None, ())}


def read_filter(written: Mapping[str, Any]) -> JobFilter:
    """What `write_filter` has written, or a program of the previous release."""
    facts = dict(written)
    if "status" in facts:
        facts["state"] = facts.pop("status")
    for name in _INSTANTS:
        if name in facts:
            facts[name] = datetime.fromisoformat(facts[name])
    return JobFilter.of(**facts)


def _written(value: Any) -> Any:
    match value:
        case datetime():
            return value.isoformat()
        case (one,):
            return str(one)
    return [str(each) for each in value]
