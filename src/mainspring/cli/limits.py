"""`mainspring limits`: Manage shared limits on concurrency and rate."""

from typing import Annotated

import typer
from rich.text import Text

from mainspring.api.models.limits import LimitModel
from mainspring.cli.columns import Columns
from mainspring.cli.connection import connected
from mainspring.cli.examples import example
from mainspring.cli.listings import Cell, Listing, Shown
from mainspring.cli.options import Sure
from mainspring.cli.output import Out, confirm, console
from mainspring.client import Client
from mainspring.domain.errors import InvalidOption

app = typer.Typer()
limits = typer.Typer(help="Manage shared limits on concurrency and rate.", no_args_is_help=True)
app.add_typer(limits, name="limits")

Name = Annotated[str, typer.Argument(help="The limit's name.")]


@limits.command("list", epilog=example("mainspring limits list"))
@connected
def list_limits(client: Client, out: Out) -> None:
    """List limits by name, with their running and waiting jobs."""
    nothing = "No limits; set one with `mainspring limits set`."
    out.rows(list(client.limits.list()), LIMITS, nothing=nothing)


@limits.command("show", epilog=example("mainspring limits show openai"))
@connected
def show(client: Client, out: Out, name: Name) -> None:
    """Show a limit."""
    out.show(client.limits.get(name), lambda found: console.print(LIMITS([found])))


@limits.command(
    "set", epilog=example("mainspring limits set openai --rate 60/minute --concurrency 2")
)
@connected
def set_limit(
    client: Client,
    out: Out,
    name: Name,
    concurrency: Annotated[
        int | None, typer.Option(help="Maximum number of jobs running at once.")
    ] = None,
    key_concurrency: Annotated[
        int | None, typer.Option(help="Maximum number of jobs per key running at once.")
    ] = None,
    rate: Annotated[
        str | None, typer.Option(help="Maximum rate of starts per key, e.g. 100/minute.")
    ] = None,
    burst: Annotated[int, typer.Option(help="Starts allowed in a burst.")] = 1,
) -> None:
    """Create or replace a shared limit; what you leave out is not limited."""
    if concurrency is None and key_concurrency is None and rate is None:
        raise InvalidOption("set", "needs --concurrency, --key-concurrency or --rate")
    made = client.limits.set(
        name, concurrency=concurrency, key_concurrency=key_concurrency, rate=rate, burst=burst
    )
    out.say(made, f"Limit {name} is set: {_says(made)}.")


@limits.command("remove", epilog=example("mainspring limits remove openai --yes"))
@connected
def remove(client: Client, out: Out, name: Name, is_sure: Sure = False) -> None:
    """Remove a limit and release the jobs that wait for it."""
    known = client.limits.get(name)
    waits = f", for which {known.waiting:,} wait" if known.waiting else ""
    confirm(f"Remove the limit {name} ({_says(known)}){waits}?", is_sure=is_sure)
    client.limits.remove(name)
    out.say({"name": name, "removed": True}, f"Limit {name} is removed.")


def _says(limit: LimitModel) -> str:
    parts = []
    if limit.concurrency is not None:
        parts.append(f"{limit.concurrency} at once")
    if limit.key_concurrency is not None:
        parts.append(f"{limit.key_concurrency} at once per key")
    if limit.rate is not None:
        burst = f" in bursts of {limit.burst}" if limit.burst > 1 else ""
        parts.append(f"{limit.rate} per key{burst}")
    return ", ".join(parts) or "everything"


def _cells(limit: LimitModel) -> list[Cell]:
    waiting = Text(f"{limit.waiting:,}", style="yellow" if limit.waiting else "")
    return [limit.name, limit.running, Shown(waiting, str(limit.waiting)), _says(limit)]


LIMITS = Listing(
    Columns(names=("NAME", "RUNNING", "WAITING", "ALLOWS"), text=("ALLOWS",)),
    _cells,
)
