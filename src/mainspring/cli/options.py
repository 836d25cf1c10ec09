"""Options that several commands share."""

from pathlib import Path
from typing import Annotated, Any

import typer

from mainspring import settings
from mainspring.settings import Settings

DatabaseUrl = Annotated[
    str | None,
    typer.Option(help="PostgreSQL URL; without one the embedded server is used."),
]
DataDir = Annotated[Path | None, typer.Option(help="Where the embedded server keeps its data.")]
Tenant = Annotated[str, typer.Option(help="Whose jobs and schedules.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
JobNumber = Annotated[int, typer.Argument(help="The job's id.", min=1)]


def make_settings(
    database_url: str | None, data_dir: Path | None, *, base: Settings | None = None, **flags: Any
) -> Settings:
    """Flags first, then what `base` was made with, then the environment and the defaults."""
    flags |= {"database_url": database_url, "data_dir": data_dir}
    given = {name: value for name, value in flags.items() if value is not None}
    return settings.load(**{**(base.model_dump(exclude_unset=True) if base else {}), **given})
