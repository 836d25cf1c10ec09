"""`mainspring tenants`: Manage tenants."""

from typing import Annotated, Any

import typer
from rich.text import Text

from mainspring.api.models.tenants import TenantDeletionModel, TenantModel
from mainspring.cli.columns import Columns
from mainspring.cli.connection import connected
from mainspring.cli.examples import example
from mainspring.cli.listings import Cell, Listing
from mainspring.cli.options import PAGE, Limit, Sure, first
from mainspring.cli.output import Facts, Out, confirm, console
from mainspring.cli.times import instant
from mainspring.client import Client
from mainspring.domain.errors import InvalidOption
from mainspring.domain.tenants import ensure_weight, ensure_zone

app = typer.Typer()
tenants = typer.Typer(help="Manage tenants.", no_args_is_help=True)
app.add_typer(tenants, name="tenants")

Name = Annotated[str, typer.Argument(help="Name of the tenant.")]
Weight = Annotated[int | None, typer.Option(help="Fair-share weight, 1 to 1000.")]
MaxRunning = Annotated[
    str | None, typer.Option(help="Maximum number of its jobs running at once, or none.")
]

Zone = Annotated[
    str | None, typer.Option(help="Time zone of its schedules that name none, e.g. Europe/Berlin.")
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
    client: Client,
    out: Out,
    name: Name,
    weight: Weight = None,
    max_running: MaxRunning = None,
    zone: Zone = None,
) -> None:
    """Create a tenant."""
    made = client.tenants.create(name, **_read(weight, max_running, zone))
    out.say(made, f"Tenant {made.name} is created.")


@tenants.command(epilog=example("mainspring tenants update acme --max-running none"))
@connected
def update(
    client: Client,
    out: Out,
    name: Name,
    weight: Weight = None,
    max_running: MaxRunning = None,
    zone: Zone = None,
) -> None:
    """Change a tenant's weight, limit and zone; effective within about a second."""
    given = _read(weight, max_running, zone)
    if not given:
        raise InvalidOption("update", "needs an option that changes something; see --help")
    out.say(client.tenants.update(name, **given), f"Tenant {name} is updated.")


@tenants.command(epilog=example("mainspring tenants disable acme"))
@connected
def disable(client: Client, out: Out, name: Name) -> None:
    """Refuse jobs and tokens of a tenant, and start none of its jobs."""
    out.say(client.tenants.update(name, is_enabled=False), f"Tenant {name} is disabled.")


@tenants.command(epilog=example("mainspring tenants enable acme"))
@connected
def enable(client: Client, out: Out, name: Name) -> None:
    """Enable a tenant again; its schedules go on from now."""
    out.say(client.tenants.update(name, is_enabled=True), f"Tenant {name} is enabled.")


@tenants.command(
    epilog=example("mainspring tenants delete acme --dry-run", "mainspring tenants delete acme")
)
@connected
def delete(
    client: Client,
    out: Out,
    name: Name,
    is_dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be deleted.")
    ] = False,
    is_sure: Sure = False,
) -> None:
    """Delete a tenant with all it has, in the background. The audit log is kept.

    Shows what it has and asks for confirmation.
    """
    if is_dry_run or not is_sure:
        found = client.tenants.delete(name, dry_run=True)
        if is_dry_run:
            out.say(found, f"Tenant {name} has {_contents(found)}; nothing was deleted.")
            return
        confirm(f"Delete tenant {name} with {_contents(found)}?", is_sure=False)
    started = client.tenants.delete(name)
    out.say(
        started,
        f"Tenant {name} is disabled, and job {started.job_id} deletes it; follow it with "
        f"`mainspring jobs show {started.job_id} --watch`",
    )


def _contents(found: TenantDeletionModel) -> str:
    counts = found.contents.model_dump()
    return ", ".join(f"{count:,} {_counted(what, count)}" for what, count in counts.items())


def _counted(things: str, count: int) -> str:
    if count != 1:
        return things.replace("_", " ")
    return "person" if things == "people" else things.removesuffix("s").replace("_", " ")


def _read(weight: int | None, max_running: str | None, zone: str | None) -> dict[str, Any]:
    given: dict[str, Any] = {}
    if weight is not None:
        ensure_weight(weight)
        given["weight"] = weight
    if max_running is not None:
        given["max_running"] = _number_or_none(max_running)
    if zone is not None:
        ensure_zone(zone)
        given["zone"] = zone
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
        ("zone", tenant.zone),
        ("enabled", "yes" if tenant.is_enabled else "no"),
        ("jobs", f"{tenant.ready} ready, {tenant.waiting} waiting, {tenant.running} running"),
        ("held", str(tenant.held)),
        ("created", instant(tenant.created_at)),
    ]


def _limit(tenant: TenantModel) -> str:
    return "none" if tenant.max_running is None else str(tenant.max_running)


def _cells(tenant: TenantModel) -> list[Cell]:
    counts = (tenant.ready, tenant.waiting, tenant.running, tenant.held)
    is_enabled = "yes" if tenant.is_enabled else "no"
    return [tenant.name, is_enabled, tenant.weight, _limit(tenant), tenant.zone, *counts]


TENANTS = Listing(
    Columns(
        names=(
            *("NAME", "ENABLED", "WEIGHT", "MAX RUNNING", "ZONE"),
            *("READY", "WAITING", "RUNNING", "HELD"),
        ),
        dropped=("WEIGHT", "MAX RUNNING", "ZONE", "HELD", "WAITING"),
    ),
    _cells,
)
