"""`mainspring tenants`: Manage tenants."""

from typing import Annotated, Any

import typer
from rich.text import Text

from mainspring.api.models.tenants import TenantModel
from mainspring.cli.columns import Columns
from mainspring.cli.connection import connected
from mainspring.cli.examples import example
from mainspring.cli.listings import Cell, Listing
from mainspring.cli.options import PAGE, Limit, first
from mainspring.cli.output import Facts, Out, console
from mainspring.cli.times import instant
from mainspring.client import Client
from mainspring.domain.errors import InvalidOption
from mainspring.domain.tenants import ensure_weight

app = typer.Typer()
tenants = typer.Typer(help="Manage tenants.", no_args_is_help=True)
app.add_typer(tenants, name="tenants")

Name = Annotated[str, typer.Argument(help="Name of the tenant.")]
Weight = Annotated[int | None, typer.Option(help="Fair-share weight, 1 to 1000.")]
MaxRunning = Annotated[
    str | None, typer.Option(help="Maximum number of its jobs running at once, or none.")
]


@tenants.command("list", epilog=example("mainspring tenants list"))
@connected
def list_tenants(
    client: Client,
    out: Out,
    after: Annotated[str | None, typer.Option(help="Only names after this one.")] = None,
    limit: Limit = 100,
) -> None:
    """List tenants by name, with their live jobs."""
    found = client.tenants.list(after=after, limit=min(limit, PAGE))
    out.rows(first(found, limit), TENANTS, nothing="No tenants.")


@tenants.command(epilog=example("mainspring tenants show acme"))
@connected
def show(client: Client, out: Out, name: Name) -> None:
    """Show a tenant."""
    out.show(client.tenants.get(name), lambda it: console.print(Facts(_facts(it))))


@tenants.command(epilog=example("mainspring tenants create acme --weight 3 --max-running 50"))
@connected
def create(
    client: Client, out: Out, name: Name, weight: Weight = None, max_running: MaxRunning = None
) -> None:
    """Create a tenant."""
    made = client.tenants.create(name, **_read(weight, max_running))
    out.say(made, f"Tenant {made.name} is created.")


@tenants.command(epilog=example("mainspring tenants update acme --max-running none"))
@connected
def update(
    client: Client, out: Out, name: Name, weight: Weight = None, max_running: MaxRunning = None
) -> None:
    """Change a tenant's weight and limit; effective within about a second."""
    given = _read(weight, max_running)
    if not given:
        raise InvalidOption("update", "needs an option that changes something; see --help")
    out.say(client.tenants.update(name, **given), f"Tenant {name} is updated.")


def _read(weight: int | None, max_running: str | None) -> dict[str, Any]:
    given: dict[str, Any] = {}
    if weight is not None:
        ensure_weight(weight)
        given["weight"] = weight
    if max_running is not None:
        given["max_running"] = _number_or_none(max_running)
    return given


def _number_or_none(text: str) -> int | None:
    if text == "none":
        return None
    if not (text.isascii() and text.isdigit()):
        raise InvalidOption("max_running", f"must be a whole number, or none, not {text!r}")
    return int(text[:20])


def _facts(tenant: TenantModel) -> list[tuple[str, Text | str]]:
    return [
        ("tenant", tenant.name),
        ("weight", str(tenant.weight)),
        ("max running", _limit(tenant)),
        ("jobs", f"{tenant.ready} ready, {tenant.waiting} waiting, {tenant.running} running"),
        ("held", str(tenant.held)),
        ("created", instant(tenant.created_at)),
    ]


def _limit(tenant: TenantModel) -> str:
    return "none" if tenant.max_running is None else str(tenant.max_running)


def _cells(tenant: TenantModel) -> list[Cell]:
    counts = (tenant.ready, tenant.waiting, tenant.running, tenant.held)
    return [tenant.name, tenant.weight, _limit(tenant), *counts]


TENANTS = Listing(
    Columns(
        names=("NAME", "WEIGHT", "MAX RUNNING", "READY", "WAITING", "RUNNING", "HELD"),
        dropped=("WEIGHT", "MAX RUNNING", "HELD", "WAITING"),
    ),
    _cells,
)
