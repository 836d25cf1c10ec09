"""`mainspring limits ...`: see and set what may run at once, and how often."""

from typing import Annotated, Any

import typer
from rich.table import Table

from mainspring.app import Mainspring
from mainspring.cli import output
from mainspring.cli.options import AsJson, DatabaseUrl, DataDir, make_settings, run
from mainspring.domain.errors import InvalidOption
from mainspring.domain.limits import LimitState

limits = typer.Typer(help="See and set what may run at once, and how often.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="The limit's name.")]


@limits.command("list")
def list_limits(
    as_json: AsJson = False, database_url: DatabaseUrl = None, data_dir: DataDir = None
) -> None:
    """Limits by name, with how many jobs run and wait."""
    app = Mainspring(settings=make_settings(database_url, data_dir))
    found = run(app, app.limits.alist())
    if as_json:
        output.print_json([_facts(state) for state in found])
    elif found:
        output.console.print(_table(found))
    else:
        output.console.print("No limits.")


@limits.command()
def show(
    name: Name, as_json: AsJson = False, database_url: DatabaseUrl = None, data_dir: DataDir = None
) -> None:
    """One limit."""
    app = Mainspring(settings=make_settings(database_url, data_dir))
    state = run(app, app.limits.aget(name))
    if as_json:
        output.print_json(_facts(state))
    else:
        output.console.print(_table([state]))


@limits.command("set")
def set_limit(
    name: Name,
    concurrency: Annotated[int | None, typer.Option(help="Most jobs that run at once.")] = None,
    key_concurrency: Annotated[
        int | None, typer.Option(help="Most jobs of one key that run at once.")
    ] = None,
    rate: Annotated[
        str | None, typer.Option(help="Most starts of one key, such as 100/minute.")
    ] = None,
    burst: Annotated[int, typer.Option(help="Starts in a row after a rest.")] = 1,
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
) -> None:
    """Say what a shared limit allows from now on; what is left out is not limited."""
    if concurrency is None and key_concurrency is None and rate is None:
        raise InvalidOption("set", "needs --concurrency, --key-concurrency or --rate")
    app = Mainspring(settings=make_settings(database_url, data_dir))
    setting = app.limits.aset(
        name, concurrency=concurrency, key_concurrency=key_concurrency, rate=rate, burst=burst
    )
    state = run(app, setting)
    if as_json:
        output.print_json(_facts(state))
    else:
        output.console.print(f"Limit {name} is set: {_says(state)}.", highlight=False)


@limits.command()
def remove(name: Name, database_url: DatabaseUrl = None, data_dir: DataDir = None) -> None:
    """Limit no more; what waits may go."""
    app = Mainspring(settings=make_settings(database_url, data_dir))
    run(app, app.limits.aremove(name))
    output.console.print(f"Limit {name} is removed.", highlight=False)


def _table(found: list[LimitState]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading in ("NAME", "ALLOWS", "RUNNING", "WAITING"):
        table.add_column(heading, overflow="fold")
    for state in found:
        table.add_row(state.name, _says(state), str(state.running), str(state.waiting))
    return table


def _says(state: LimitState) -> str:
    limit = state.limit
    parts = []
    if limit.concurrency is not None:
        parts.append(f"{limit.concurrency} at once")
    if limit.key_concurrency is not None:
        parts.append(f"{limit.key_concurrency} at once per key")
    if limit.rate is not None:
        burst = f" in bursts of {limit.burst}" if limit.burst > 1 else ""
        parts.append(f"{limit.rate} per key{burst}")
    return ", ".join(parts) or "everything"


def _facts(state: LimitState) -> dict[str, Any]:
    limit = state.limit
    return {
        "name": limit.name,
        "concurrency": limit.concurrency,
        "key_concurrency": limit.key_concurrency,
        "rate": None if limit.rate is None else str(limit.rate),
        "burst": limit.burst,
        "running": state.running,
        "waiting": state.waiting,
    }
