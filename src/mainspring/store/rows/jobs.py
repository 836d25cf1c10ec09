"""Jobs, and the options that every way to enqueue has."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from operator import attrgetter
from typing import Any

from mainspring.domain.jobs.model import Job, Progress
from mainspring.domain.jobs.options import EnqueueOptions
from mainspring.domain.types import JobId, JobSource, JobState, WaitsFor

_JOB_COLUMNS = tuple(field.name for field in fields(Job) if field.name != "id")
# The fields that are not as the database has them.
_READ: Mapping[str, Callable[[Any], Any]] = {
    "state": JobState,
    "waits_for": lambda wait: WaitsFor(wait) if wait else None,
    "tags": lambda tags: tuple(tags or ()),
    "progress": lambda progress: Progress(**progress) if progress else None,
    "source": JobSource,
}
_OPTIONS = tuple(field.name for field in fields(EnqueueOptions))
_values_of = attrgetter(*_OPTIONS)


def read_job(row: Mapping[str, Any]) -> Job:
    """The row has a column of its name for every field of a job but its id."""
    facts = {name: row[name] for name in _JOB_COLUMNS}
    for name, read in _READ.items():
        facts[name] = read(facts[name])
    return Job(id=JobId(row["job_id"]), **facts)


def option_params(options: EnqueueOptions) -> dict[str, Any]:
    """Every option by its name, as statements take them; an empty list is null."""
    values = dict(zip(_OPTIONS, _values_of(options), strict=True))
    values["tags"], values["after"] = list(options.tags) or None, list(options.after) or None
    return values
