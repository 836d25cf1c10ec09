"""The options by which a command finds its database, and the settings that they make."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from mainspring.settings import Settings

DatabaseUrl = Annotated[
    str | None,
    typer.Option(help="PostgreSQL URL; the embedded server by default."),
]
DataDir = Annotated[Path | None, typer.Option(help="Data directory of the embedded server.")]


def make_settings(
    database_url: str | None, data_dir: Path | None, *, base: "Settings | None" = None, **flags: Any
) -> "Settings":
    """Flags first, then what `base` was made with, then the environment, the file, the defaults."""
    from mainspring import settings

    flags |= {"database_url": database_url, "data_dir": data_dir}
    given = {name: value for name, value in flags.items() if value is not None}
    return settings.load(**{**(base.given_values() if base else {}), **given})
