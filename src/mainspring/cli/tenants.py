"""`mainspring tenants ...`: who there is, and what each may take of a queue."""

from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.table import Table

from mainspring.app import Mainspring
from mainspring.cli import output
from mainspring.cli.options import AsJson, DatabaseUrl, DataDir, make_settings, run
from mainspring.domain.errors import InvalidOption
from mainspring.domain.tenants import TenantState

tenants = typer.Typer(help="See and steer who work belongs to.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="The tenant's name.")]
Weight = Annotated[
    int | None, typer.Option(help="Its jobs for each one of a tenant of weight 1; 1 to 1000.")
]
MaxRunning = Annotated[
    str | None, typer.Option(help="How many of its jobs may run at once; none for no limit.")
]


@tenants.command("list")
def list_tenants(
    after: Annotated[str | None, typer.Option(help="Only names after this one.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many at the most.")] = 100,
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
) -> None:
    """Tenants by name, with their live jobs."""
    app = Mainspring(settings=make_settings(database_url, data_dir))
    found = run(app, app.tenants.alist(after=after, limit=limit))
    if as_json:
        output.print_json([asdict(state) for state in found])
    elif found:
        output.console.print(_table(found))
    else:
        output.console.print("No tenants.")


@tenants.command()
def show(
    name: Name, as_json: AsJson = False, database_url: DatabaseUrl = None, data_dir: DataDir = None
) -> None:
    """One tenant."""
    app = Mainspring(settings=make_settings(database_url, data_dir))
    _tell(run(app, app.tenants.aget(name)), None, as_json=as_json)


@tenants.command()
def create(
    name: Name,
    weight: Weight = None,
    max_running: MaxRunning = None,
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
) -> None:
    """Add a tenant."""
    given = _read(weight, max_running)
    app = Mainspring(settings=make_settings(database_url, data_dir))
    _tell(run(app, app.tenants.acreate(name, **given)), "is created", as_json=as_json)


@tenants.command()
def update(
    name: Name,
    weight: Weight = None,
    max_running: MaxRunning = None,
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
) -> None:
    """Change what a tenant may take; workers go by it within about a second."""
    given = _read(weight, max_running)
    if not given:
        raise InvalidOption("update", "has nothing to change; give an option, see --help")
    app = Mainspring(settings=make_settings(database_url, data_dir))
    _tell(run(app, app.tenants.aupdate(name, **given)), "is updated", as_json=as_json)


def _read(weight: int | None, max_running: str | None) -> dict[str, Any]:
    given: dict[str, Any] = {} if weight is None else {"weight": weight}
    if max_running is not None:
        given["max_running"] = _number_or_none(max_running)
    return given


def _number_or_none(text: str) -> int | None:
    if text == "none":
        return None
    if not (text.isascii() and text.isdigit()):
        raise InvalidOption("max_running", f"must be a whole number, or none, not {text!r}")
    return int(text)


def _tell(state: TenantState, what: str | None, *, as_json: bool = False) -> None:
    if as_json:
        output.print_json(asdict(state))
    elif what is not None:
        output.console.print(f"Tenant {state.tenant_id} {what}.", highlight=False)
    else:
        table = Table(box=None, pad_edge=False, show_header=False)
        for name, value in _rows(state):
            table.add_row(name, value)
        output.console.print(table)


def _rows(state: TenantState) -> list[tuple[str, str]]:
    return [
        ("tenant", state.tenant_id),
        ("weight", str(state.weight)),
        ("max running", _limit(state)),
        ("jobs", f"{state.ready} ready, {state.waiting} waiting, {state.running} running"),
        ("held", str(state.held)),
        ("created", output.ago(state.created_at)),
    ]


def _table(found: list[TenantState]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("NAME", "WEIGHT", "MAX RUNNING", "READY", "WAITING", "RUNNING", "HELD"):
        table.add_column(name, overflow="ellipsis", no_wrap=True)
    for state in found:
        counts = (state.ready, state.waiting, state.running, state.held)
        table.add_row(state.tenant_id, str(state.weight), _limit(state), *map(str, counts))
    return table


def _limit(state: TenantState) -> str:
    return "none" if state.max_running is None else str(state.max_running)
