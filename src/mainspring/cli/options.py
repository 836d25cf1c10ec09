"""Options that several commands share."""

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import Annotated, TypeVar

import typer

from mainspring.cli.config_option import ConfigFile
from mainspring.cli.output import AsJson, Sure
from mainspring.cli.settings_options import DatabaseUrl, DataDir, make_settings
from mainspring.domain.types import JobState

__all__ = [
    "PAGE",
    "AsJson",
    "ConfigFile",
    "DataDir",
    "DatabaseUrl",
    "JobNumber",
    "Limit",
    "Sure",
    "first",
    "make_settings",
]

T = TypeVar("T")


def _job_number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text)):
        raise typer.BadParameter(
            f"{text!r} is not the id of a job; pass a number that `mainspring jobs list` shows"
        )
    return int(text)


JobNumber = Annotated[
    int, typer.Argument(help="The job's id.", parser=_job_number, metavar="job_id")
]
StateFilter = Annotated[
    list[JobState] | None, typer.Option("--state", help="Only jobs in this state; repeatable.")
]
QueueFilter = Annotated[
    list[str] | None, typer.Option("--queue", help="Only jobs in this queue; repeatable.")
]
DefinitionFilter = Annotated[
    list[str] | None, typer.Option("--definition", help="Only jobs of this definition; repeatable.")
]
SourceFilter = Annotated[
    list[str] | None, typer.Option("--source", help="Only jobs from this source; repeatable.")
]
TagFilter = Annotated[
    list[str] | None, typer.Option("--tag", help="Only jobs with this tag; repeatable.")
]
ErrorFilter = Annotated[
    list[str] | None,
    typer.Option("--error", help="Only jobs whose error contains this text; repeatable."),
]
KeyFilter = Annotated[
    list[str] | None,
    typer.Option("--error-key", help="Only jobs whose last error has this key; repeatable."),
]
CreatorFilter = Annotated[
    list[str] | None,
    typer.Option("--created-by", help="Only jobs enqueued by this user or token; repeatable."),
]
ScheduleFilter = Annotated[
    list[str] | None, typer.Option("--schedule", help="Only jobs of this schedule; repeatable.")
]
SlotFilter = Annotated[
    datetime | None, typer.Option("--slot-at", help="Only jobs of this slot, in UTC.")
]
TriggerFilter = Annotated[
    list[str] | None, typer.Option("--trigger", help="Only jobs of this trigger; repeatable.")
]
EventFilter = Annotated[
    list[int] | None, typer.Option("--event-id", help="Only jobs of this event; repeatable.")
]
FlowFilter = Annotated[
    list[int] | None, typer.Option("--flow-id", help="Only jobs of this flow; repeatable.")
]
ParentFilter = Annotated[
    list[int] | None,
    typer.Option("--parent-id", help="Only jobs that waited for it or that it enqueued."),
]
WorkerFilter = Annotated[
    list[int] | None, typer.Option("--worker-id", help="Only jobs that this worker is running.")
]
VersionFilter = Annotated[
    list[int] | None,
    typer.Option("--definition-version", help="Only jobs of this version; repeatable."),
]
Instant = Annotated[datetime | None, typer.Option(help="Time in UTC.")]
Watch = Annotated[bool, typer.Option("--watch", "-w", help="Keep watching for changes.")]
Limit = Annotated[int, typer.Option(min=1, max=10_000, help="Maximum number to show.")]


# What a list asks for at a time.
PAGE = 200


def first(found: Iterator[T], limit: int) -> list[T]:
    """So many of a list at the most."""
    return list(islice(found, limit))


def utc(at: datetime | None) -> str | None:
    """A time as requests take it; one that names no zone is in UTC."""
    if at is None:
        return None
    aware = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    return aware.isoformat().replace("+00:00", "Z")
