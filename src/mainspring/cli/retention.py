"""`mainspring retention`: Manage how long things are kept."""

from datetime import timedelta
from typing import Annotated, Any

import typer

from mainspring.api.models.retention import (
    RetentionDayModel,
    RetentionModel,
    RetentionPreviewModel,
)
from mainspring.cli.columns import Columns
from mainspring.cli.connection import connected
from mainspring.cli.durations import read_duration
from mainspring.cli.examples import example
from mainspring.cli.listings import Cell, Listing
from mainspring.cli.options import Sure
from mainspring.cli.output import Out, confirm, say
from mainspring.client import Client
from mainspring.domain.errors import InvalidOption
from mainspring.domain.retention import ensure_keep, ensure_kind, ensure_state
from mainspring.domain.types import LONGEST_DELAY

app = typer.Typer()
retention = typer.Typer(help="Manage how long things are kept.", no_args_is_help=True)
app.add_typer(retention, name="retention")

Kind = Annotated[str, typer.Argument(help="What is kept: jobs, audit, slots or events.")]
State = Annotated[str | None, typer.Option(help="Only jobs in this state: succeeded, failed, ...")]


@retention.command("list", epilog=example("mainspring retention list"))
@connected
def list_retention(client: Client, out: Out) -> None:
    """List retention policies and defaults, by kind, tenant and state."""
    out.rows(list(client.retention.list()), POLICIES, nothing="No policies.")


@retention.command(
    "set",
    epilog=example(
        "mainspring retention set jobs --state succeeded --keep 2d",
        "mainspring retention set audit --keep 1825d --tenant acme",
    ),
)
@connected
def set_retention(
    client: Client,
    out: Out,
    kind: Kind,
    keep: Annotated[str, typer.Option(help="How long, e.g. 12h or 30d.")],
    state: State = None,
) -> None:
    """Set how long things are kept: of the tenant, or as an operator of all."""
    made = client.retention.set(kind, **_policy(kind, keep, state))
    out.say(made, f"{_subject(made)} are kept {_lasts(made.keep)}.")


@retention.command("unset", epilog=example("mainspring retention unset events --tenant acme"))
@connected
def unset(client: Client, out: Out, kind: Kind, state: State = None, is_sure: Sure = False) -> None:
    """Remove a policy, so that the next more general one applies."""
    ensure_state(ensure_kind(kind), state)
    name = f"{kind} in state {state}" if state else kind
    confirm(f"Remove the retention policy for {name}?", is_sure=is_sure)
    client.retention.unset(kind, state=state)
    facts = {"kind": kind, "state": state, "removed": True}
    out.say(facts, f"The retention policy for {name} is removed.")


@retention.command(
    epilog=example(
        "mainspring retention preview",
        "mainspring retention preview jobs --state failed --keep 7d",
    )
)
@connected
def preview(
    client: Client,
    out: Out,
    kind: Annotated[
        str | None, typer.Argument(help="jobs, audit, slots or events; all if omitted.")
    ] = None,
    keep: Annotated[str | None, typer.Option(help="Count as if this were set, e.g. 30d.")] = None,
    state: State = None,
) -> None:
    """Show what the next pass removes, by day; with --keep, as if that were set."""
    asked: dict[str, Any] = {"state": state}
    if keep is not None:
        if kind is None:
            raise InvalidOption("keep", "needs a kind: jobs, audit, slots or events")
        asked = _policy(kind, keep, state)
    found = client.retention.preview(kind, **asked)
    out.show(found, lambda shown: _print_preview(out, shown))


def _print_preview(out: Out, found: RetentionPreviewModel) -> None:
    out.rows(found.days, DAYS, nothing="The next pass removes nothing.")
    if found.count:
        say(f"The next pass removes {found.count:,}, of which {found.already:,} in any case.")


def _policy(kind: str, keep: str, state: str | None) -> dict[str, Any]:
    known = ensure_kind(kind)
    period = read_duration("keep", keep, longest=LONGEST_DELAY)
    return {"keep": ensure_keep(known, period), "state": ensure_state(known, state)}


def _subject(policy: RetentionModel) -> str:
    things = {"jobs": "Finished jobs", "audit": "Audit entries"}.get(
        policy.kind, policy.kind.capitalize()
    )
    state = f" in state {policy.state}" if policy.state else ""
    whose = f" of tenant {policy.tenant}" if policy.tenant else " of all tenants"
    return f"{things}{state}{whose}"


def _lasts(keep: timedelta) -> str:
    days = keep / timedelta(days=1)
    if days >= 1 or not keep:
        return f"{days:g} day{'' if days == 1 else 's'}"
    return f"{keep / timedelta(hours=1):g} hours"


def _cells(policy: RetentionModel) -> list[Cell]:
    source = "setting" if policy.is_default else "policy"
    keep = _lasts(policy.keep)
    return [policy.kind, policy.tenant or "all", policy.state or "all", keep, source]


def _day_cells(day: RetentionDayModel) -> list[Cell]:
    return [day.kind, day.day.isoformat(), day.count, day.already]


POLICIES = Listing(
    Columns(names=("KIND", "TENANT", "STATE", "KEEP", "SOURCE"), dropped=("SOURCE",)), _cells
)
DAYS = Listing(Columns(names=("KIND", "DAY", "REMOVED", "IN ANY CASE")), _day_cells)
