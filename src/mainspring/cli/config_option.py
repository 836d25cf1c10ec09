"""--config, which every command takes, and the options in front of a command."""

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


def _use_profile(name: str | None) -> str | None:
    """As if the environment named it, and no server; options of the command come first."""
    if name is not None:
        os.environ["MAINSPRING_PROFILE"] = name
        os.environ.pop("MAINSPRING_SERVER", None)
    return name


def _print_version(is_asked: bool) -> None:
    if is_asked:
        from mainspring import __version__

        print(__version__)
        raise typer.Exit


FrontProfile = Annotated[
    str | None,
    typer.Option(
        "--profile", callback=_use_profile, help="Profile of a server you have logged in to."
    ),
]
Version = Annotated[
    bool,
    typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version."),
]
