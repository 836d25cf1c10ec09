"""`mainspring version`: Print the version."""

import typer

from mainspring import __version__
from mainspring.cli.examples import example

app = typer.Typer()


@app.command(epilog=example("mainspring version"))
def version() -> None:
    """Print the version."""
    print(__version__)
