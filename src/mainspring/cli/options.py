"""Options that several commands share."""

from collections.abc import Coroutine, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from mainspring import settings
from mainspring.cli.output import AsJson, Sure
from mainspring.settings import Settings

if TYPE_CHECKING:
    from mainspring.app import Mainspring

__all__ = [
    "PAGE",
    "AsJson",
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
    typer.Option(help="PostgreSQL URL; without one the embedded server is used."),
]
DataDir = Annotated[Path | None, typer.Option(help="Where the embedded server keeps its data.")]
JobNumber = Annotated[int, typer.Argument(help="The job's id.", min=1)]
Tenant = Annotated[str, typer.Option(help="Whose jobs and schedules.")]
Limit = Annotated[int, typer.Option(min=1, max=10_000, help="How many at the most.")]


# What a list asks for at a time.
PAGE = 200


def first(found: Iterator[T], limit: int) -> list[T]:
    """So many of a list at the most."""
    return list(islice(found, limit))


def make_settings(
    database_url: str | None, data_dir: Path | None, *, base: Settings | None = None, **flags: Any
) -> Settings:
    """Flags first, then what `base` was made with, then the environment and the defaults."""
    flags |= {"database_url": database_url, "data_dir": data_dir}
    given = {name: value for name, value in flags.items() if value is not None}
    return settings.load(**{**(base.model_dump(exclude_unset=True) if base else {}), **given})


def run(app: "Mainspring", coroutine: Coroutine[Any, Any, T]) -> T:
    try:
        return app.blocking(coroutine)
    finally:
        app.close()
