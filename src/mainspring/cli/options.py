"""Options that several commands share."""

from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from mainspring.cli.config_option import ConfigFile
from mainspring.cli.output import AsJson, Sure
from mainspring.domain.types import JobSource, JobState

if TYPE_CHECKING:
    from mainspring.settings import Settings

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


DatabaseUrl = Annotated[
    str | None,
    typer.Option(help="PostgreSQL URL; the embedded server by default."),
]
DataDir = Annotated[Path | None, typer.Option(help="Data directory of the embedded server.")]


def _job_number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text)):
        raise typer.BadParameter(
            f"{text!r} is not the id of a job; pass a number that `mainspring jobs list` shows"
        )
    return int(text)


JobNumber = Annotated[
    int, typer.Argument(help="The job's id.", parser=_job_number, metavar="job_id")
]
StateFilter = Annotated[JobState | None, typer.Option("--state", help="Only jobs in this state.")]
QueueFilter = Annotated[str | None, typer.Option("--queue", help="Only jobs in this queue.")]
DefinitionFilter = Annotated[
    str | None, typer.Option("--definition", help="Only jobs of this definition.")
]
SourceFilter = Annotated[
    JobSource | None, typer.Option("--source", help="Only jobs from this source.")
]
TagFilter = Annotated[str | None, typer.Option("--tag", help="Only jobs with this tag.")]
ErrorFilter = Annotated[
    str | None, typer.Option("--error", help="Only jobs whose error contains this text.")
]
CreatorFilter = Annotated[
    str | None, typer.Option("--created-by", help="Only jobs enqueued by this user or token.")
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
    return None if at is None else f"{at.isoformat()}Z"


def make_settings(
    database_url: str | None, data_dir: Path | None, *, base: "Settings | None" = None, **flags: Any
) -> "Settings":
    """Flags first, then what `base` was made with, then the environment, the file, the defaults."""
    from mainspring import settings

    flags |= {"database_url": database_url, "data_dir": data_dir}
    given = {name: value for name, value in flags.items() if value is not None}
    return settings.load(**{**(base.model_dump(exclude_unset=True) if base else {}), **given})
