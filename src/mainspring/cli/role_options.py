"""Options of the long-running commands."""

from typing import Annotated

import typer

Concurrency = Annotated[
    int | None, typer.Option(help="Maximum number of jobs one process runs at once.")
]
Host = Annotated[str | None, typer.Option(help="Address to listen on.")]
Port = Annotated[int | None, typer.Option(help="Port to listen on; 0 picks a free one.")]
Expose = Annotated[
    bool, typer.Option("--expose", help="Allow listening on an address other machines can reach.")
]
