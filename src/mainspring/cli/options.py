"""Options that several commands share."""

import os
from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from mainspring import settings
from mainspring.cli.output import AsJson, Sure
from mainspring.domain.types import JobSource, JobState
from mainspring.settings import Settings
from mainspring.settings.rules import PREFIX

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


def _use_file(path: Path | None) -> Path | None:
    """As if the environment named it, so that your app and processes of ours read it too."""
    if path is not None:
        os.environ[f"{PREFIX}CONFIG"] = str(path)
    return path


DatabaseUrl = Annotated[
    str | None,
    typer.Option(help="PostgreSQL URL; without one the embedded server is used."),
]
DataDir = Annotated[Path | None, typer.Option(help="Where the embedded server keeps its data.")]
ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config", is_eager=True, callback=_use_file, help="Settings file; mainspring.toml here."
    ),
]
JobNumber = Annotated[int, typer.Argument(help="The job's id.", min=1)]
StateFilter = Annotated[JobState | None, typer.Option("--state", help="Only jobs in this state.")]
QueueFilter = Annotated[str | None, typer.Option("--queue", help="Only jobs of this queue.")]
DefinitionFilter = Annotated[
    str | None, typer.Option("--definition", help="Only jobs of this definition.")
]
SourceFilter = Annotated[JobSource | None, typer.Option("--source", help="Only jobs from there.")]
TagFilter = Annotated[str | None, typer.Option("--tag", help="Only jobs with this tag.")]
ErrorFilter = Annotated[
    str | None, typer.Option("--error", help="Only jobs whose error has this in it.")
]
CreatorFilter = Annotated[
    str | None, typer.Option("--created-by", help="Only what this one enqueued.")
]
Instant = Annotated[datetime | None, typer.Option(help="UTC.")]
Limit = Annotated[int, typer.Option(min=1, max=10_000, help="How many at the most.")]


# What a list asks for at a time.
PAGE = 200


def first(found: Iterator[T], limit: int) -> list[T]:
    """So many of a list at the most."""
    return list(islice(found, limit))


def make_settings(
    database_url: str | None, data_dir: Path | None, *, base: Settings | None = None, **flags: Any
) -> Settings:
    """Flags first, then what `base` was made with, then the environment, the file, the defaults."""
    flags |= {"database_url": database_url, "data_dir": data_dir}
    given = {name: value for name, value in flags.items() if value is not None}
    return settings.load(**{**(base.model_dump(exclude_unset=True) if base else {}), **given})
