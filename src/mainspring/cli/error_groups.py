"""`mainspring errors`: Show what fails, grouped by error."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.console import Group
from rich.text import Text

from mainspring.api.models.error_groups import ErrorGroupDetailsModel, ErrorGroupModel
from mainspring.cli.columns import Columns
from mainspring.cli.connection import connected
from mainspring.cli.durations import read_duration
from mainspring.cli.examples import example
from mainspring.cli.listings import Cell, Listing, Shown
from mainspring.cli.options import PAGE, DefinitionFilter, Limit, first
from mainspring.cli.output import Facts, Out, console, remark
from mainspring.cli.times import instant
from mainspring.client import Client
from mainspring.domain.jobs.error_keys import OTHER_KEY

app = typer.Typer()
errors = typer.Typer(help="Show what fails, grouped by error.", no_args_is_help=True)
app.add_typer(errors, name="errors")

_SHOWN_DAYS = 14


@errors.command(
    "list",
    epilog=example("mainspring errors list", "mainspring errors list --since 7d --new"),
)
@connected
def list_errors(
    client: Client,
    out: Out,
    since: Annotated[str, typer.Option(help="How far back to look, e.g. 90m, 24h or 7d.")] = "24h",
    definition: DefinitionFilter = None,
    is_new: Annotated[
        bool, typer.Option("--new", help="Only errors that were not seen in the 30 days before.")
    ] = False,
    limit: Limit = 20,
) -> None:
    """List errors: new ones first, then those with the most failures."""
    found = client.errors.list(
        since=datetime.now(UTC) - read_duration("--since", since),
        definition=definition,
        is_new=is_new or None,
        limit=min(limit, PAGE),
    )
    groups = list(first(found, limit))
    out.rows(groups, ERRORS, nothing="No errors.")
    if groups and out.is_for_people:
        remark(
            "Show one with `mainspring errors show KEY`; retry its jobs with "
            "`mainspring jobs bulk retry --error-key KEY`."
        )


@errors.command("show", epilog=example("mainspring errors show 5d41402abc4b"))
@connected
def show(
    client: Client,
    out: Out,
    key: Annotated[str, typer.Argument(help="The error's key.")],
) -> None:
    """Show an error, and the command that retries its jobs."""
    out.show(client.errors.get(key), lambda found: console.print(_view(found)))


def _view(group: ErrorGroupDetailsModel) -> Group:
    return Group(Facts(list(_facts(group))))


def _facts(group: ErrorGroupDetailsModel) -> Iterator[tuple[str, Text | str]]:
    yield "error", Text(group.sample)
    yield "key", group.key
    yield "tenant", group.tenant
    yield "failures", f"{group.count:,}" + (", new" if group.is_new else "")
    yield "first", instant(group.first_at)
    yield "last", instant(group.last_at)
    yield "definitions", Text(", ".join(group.definitions))
    yield "newest jobs", ", ".join(map(str, group.job_ids))
    for each in group.days[:_SHOWN_DAYS]:
        yield f"{each.day}", Text(f"{each.count:,} in {each.definition}")
    if group.key != OTHER_KEY:
        yield "retry", f"mainspring jobs bulk retry --error-key {group.key}"


def _cells(group: ErrorGroupModel) -> list[Cell]:
    is_new = Text("new" if group.is_new else "", style="yellow")
    return [
        group.key,
        Shown(is_new, str(group.is_new).lower()),
        group.count,
        group.last_at,
        group.first_at,
        group.tenant,
        ", ".join(group.definitions),
        ", ".join(map(str, group.job_ids)),
        group.sample,
    ]


ERRORS = Listing(
    Columns(
        names=("KEY", "NEW", "COUNT", "LAST", "FIRST", "TENANT", "DEFINITIONS", "JOBS", "ERROR"),
        dropped=("TENANT", "FIRST", "JOBS"),
        text=("ERROR",),
        varied=("TENANT",),
    ),
    _cells,
)
