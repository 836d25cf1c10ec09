"""`mainspring completion`: what a shell needs to complete commands and options."""

from enum import StrEnum
from typing import Annotated

import typer
from typer.completion import show_callback


class Shell(StrEnum):
    """Shells that can complete."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(
    context: typer.Context, shell: Annotated[Shell, typer.Argument(help="Which shell.")]
) -> None:
    """Print what lets a shell complete commands and options."""
    show_callback(context, context.command.params[0], shell.value)
