"""`mainspring cron`: Try cron expressions."""

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from typing import Annotated, NamedTuple
from zoneinfo import ZoneInfo

import typer

from mainspring.cli import output
from mainspring.cli.columns import Columns
from mainspring.cli.examples import example
from mainspring.cli.listings import Cell, Listing, in_utc
from mainspring.cli.options import AsJson
from mainspring.domain.errors import InvalidOption
from mainspring.domain.schedules.cron import (
    Cron,
    DstFold,
    DstGap,
    dst_note,
    explain,
    find_zone,
    next_after,
    parse,
)

EARLIEST_YEAR, LATEST_YEAR = 1900, 2999

Expression = Annotated[
    str, typer.Argument(metavar="EXPR", help="Cron expression, e.g. '30 2 * * *' or @daily.")
]

app = typer.Typer()
cron = typer.Typer(help="Try cron expressions.", no_args_is_help=True)
app.add_typer(cron, name="cron")


@cron.command(
    "next", epilog=example("mainspring cron next '0 9 * * 1-5' --zone Europe/Berlin --count 3")
)
def next_fires(
    text: Expression,
    zone_name: Annotated[str, typer.Option("--zone", help="IANA time zone.")] = "UTC",
    after: Annotated[
        str | None, typer.Option(help="Start after this time or date in the zone; now by default.")
    ] = None,
    count: Annotated[int, typer.Option(min=1, max=1000, help="Number of fires to show.")] = 10,
    gap: Annotated[
        DstGap, typer.Option("--dst-gap", help="What to do with a time that the clock skips.")
    ] = DstGap.RUN_AFTER,
    fold: Annotated[
        DstFold, typer.Option("--dst-fold", help="What to do with a time that occurs twice.")
    ] = DstFold.ONCE,
    spread_key: Annotated[str, typer.Option(help="Text from which H is derived.")] = "",
    as_json: AsJson = False,
) -> None:
    """Show when an expression fires next."""
    expression, zone = parse(text, spread_key=spread_key), find_zone(zone_name)
    start = datetime.now(UTC) if after is None else parse_instant(after, zone)
    fires = _fires(expression, zone, start.replace(microsecond=0), gap=gap, fold=fold)
    found = list(islice(fires, count))
    if as_json:
        output.print_json([in_utc(fire) for fire in found])
    else:
        _print_fires(expression, zone, found)


@cron.command("explain", epilog=example("mainspring cron explain '0 9 * * 1-5'"))
def explain_expression(text: Expression) -> None:
    """Describe an expression in words."""
    output.console.print(explain(text))


def parse_instant(text: str, zone: ZoneInfo) -> datetime:
    """An ISO instant or date in UTC; what has no offset is a time in the zone."""
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        problem = f"must be such as 2026-03-08T06:00:00Z or 2026-03-08, not {text!r}"
        raise InvalidOption("--after", problem) from None
    if not EARLIEST_YEAR <= instant.year <= LATEST_YEAR:
        raise InvalidOption("--after", f"must be in the years {EARLIEST_YEAR} to {LATEST_YEAR}")
    return (instant if instant.tzinfo else instant.replace(tzinfo=zone)).astimezone(UTC)


def _fires(
    expression: Cron, zone: ZoneInfo, start: datetime, *, gap: DstGap, fold: DstFold
) -> Iterator[datetime]:
    following = partial(next_after, expression, zone, gap=gap, fold=fold, anchor=start)
    fire = following(start)
    while fire is not None:
        yield fire
        fire = following(fire)


def _print_fires(expression: Cron, zone: ZoneInfo, found: list[datetime]) -> None:
    fires = [Fire(at.astimezone(zone), at, dst_note(expression, zone, at)) for at in found]
    output.Out(output.Format.TABLE).rows(fires, FIRES, nothing="No fires.")


class Fire(NamedTuple):
    """An instant at which an expression fires, in its zone and in UTC."""

    local: datetime
    at: datetime
    note: str | None


def _cells(fire: Fire) -> list[Cell]:
    return [fire.local.isoformat(sep=" "), in_utc(fire.at), fire.note]


FIRES = Listing(Columns(names=("LOCAL", "UTC", "NOTE"), text=("NOTE",)), _cells)
