"""Jobs, and the options that every way to enqueue has."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from datetime import datetime
from operator import attrgetter
from typing import Any, TypeVar, get_type_hints

import orjson

from mainspring.domain.jobs.model import Job, JobSummary, Progress, WatchedJob
from mainspring.domain.jobs.options import EnqueueOptions
from mainspring.domain.types import Delivery, JobId, JobState, WaitsFor

AnyJob = TypeVar("AnyJob", bound=JobSummary)


def _columns(kind: type[JobSummary]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind) if field.name != "id")


_JOB_COLUMNS = _columns(Job)
_SUMMARY_COLUMNS = _columns(JobSummary)
_WATCHED_COLUMNS = _columns(WatchedJob)
_INSTANTS = tuple(name for name, hint in get_type_hints(Job).items() if "datetime" in str(hint))
# The fields that are not as the database has them.
_READ: Mapping[str, Callable[[Any], Any]] = {
    "state": JobState,
    "waits_for": lambda wait: WaitsFor(wait) if wait else None,
    "tags": lambda tags: tuple(tags or ()),
    "progress": lambda progress: Progress(**progress) if progress else None,
    "delivery": Delivery,
    "parent_ids": tuple,
}
_NO_RELATIONS = {"event_id": None, "flow_id": None, "parent_ids": (), "error_key": None}
_OPTIONS = tuple(field.name for field in fields(EnqueueOptions))
_values_of = attrgetter(*_OPTIONS)


def read_job(row: Mapping[str, Any]) -> Job:
    """The row has a column of its name for every field of a job but its id."""
    return _read(row, Job, _JOB_COLUMNS)


def read_job_text(text: str) -> Job:
    """The same of a row that is JSON text."""
    row = orjson.loads(text)
    for name in _INSTANTS:
        row[name] = None if row[name] is None else datetime.fromisoformat(row[name])
    return read_job(row)


def read_summary(row: Mapping[str, Any]) -> JobSummary:
    """The same of a list, whose column `error_line` is the beginning of the last error."""
    return _read(
        {**_NO_RELATIONS, **row, "last_error": row["error_line"]}, JobSummary, _SUMMARY_COLUMNS
    )


def read_watched(row: Mapping[str, Any]) -> WatchedJob:
    return _read(row, WatchedJob, _WATCHED_COLUMNS)


def _read(row: Mapping[str, Any], kind: type[AnyJob], columns: tuple[str, ...]) -> AnyJob:
    facts = {name: row[name] for name in columns}
    for name, read in _READ.items():
        facts[name] = read(facts[name])
    return kind(id=JobId(row["job_id"]), **facts)


def option_params(options: EnqueueOptions) -> dict[str, Any]:
    """Every option by its name, as statements take them; an empty list is null."""
    values = dict(zip(_OPTIONS, _values_of(options), strict=True))
    values["tags"], values["after"] = list(options.tags) or None, list(options.after) or None
    return values
