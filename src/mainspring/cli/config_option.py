"""--config, which every command takes."""

import os
from pathlib import Path
from typing import Annotated

import typer


def _use_file(path: Path | None) -> Path | None:
    """As if the environment named it, so that your app and processes of ours read it too."""
    if path is not None:
        os.environ["MAINSPRING_CONFIG"] = str(path)
    return path


ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        is_eager=True,
        callback=_use_file,
        help="Settings file; ./mainspring.toml by default.",
    ),
]
