"""`mainspring completion`: Print a shell completion script."""

from enum import StrEnum
from typing import Annotated

import typer
from typer.completion import show_callback

from mainspring.cli.examples import example


class Shell(StrEnum):
    """Shells that can complete."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


app = typer.Typer()


@app.command(epilog=example("mainspring completion bash >> ~/.bashrc", "mainspring completion zsh"))
def completion(
    context: typer.Context,
    shell: Annotated[Shell, typer.Argument(help="The shell to complete for.")],
) -> None:
    """Print a shell completion script."""
    show_callback(context, context.command.params[0], shell.value)
