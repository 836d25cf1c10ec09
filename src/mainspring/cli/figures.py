"""`mainspring figures`: Count jobs enqueued and ended, and show how long they waited and ran."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from mainspring.api.models.figures import DurationsModel, FigureReportModel, SeriesModel
from mainspring.cli.columns import Columns
from mainspring.cli.connection import connected
from mainspring.cli.durations import read_duration
from mainspring.cli.examples import example
from mainspring.cli.listings import Cell, Listing
from mainspring.cli.options import Instant
from mainspring.cli.output import Out, console, remark
from mainspring.cli.times import ago, span
from mainspring.client import Client
from mainspring.domain.figures import Key
from mainspring.domain.types import JobState

app = typer.Typer()


@app.command(epilog=example("mainspring figures --since 24h --by definition"))
@connected
def figures(
    client: Client,
    out: Out,
    since: Annotated[str, typer.Option(help="Show this much time up to now, e.g. 24h.")] = "24h",
    until: Instant = None,
    by: Annotated[
        list[Key] | None,
        typer.Option(help="Show a row for each; repeatable."),
    ] = None,
    queue: Annotated[list[str] | None, typer.Option(help="Only this queue; repeatable.")] = None,
    definition: Annotated[
        list[str] | None, typer.Option(help="Only this definition; repeatable.")
    ] = None,
) -> None:
    """Count jobs enqueued and ended, and show how long they waited and ran."""
    end = datetime.now(UTC) if until is None else until
    end = end if end.tzinfo is not None else end.replace(tzinfo=UTC)
    report = client.figures.read(
        start=end - read_duration("since", since),
        end=end,
        by=by or [Key.DEFINITION],
        queue=queue,
        definition=definition,
        points=False,
    )
    out.show(report, _print)


def _print(report: FigureReportModel) -> None:
    if report.seen_at is None:
        remark("nothing was counted yet; a worker counts every few seconds")
        return
    if not report.series:
        remark("no jobs in this time")
    else:
        console.print(SERIES(report.series))
    if report.more:
        remark(f"and {report.more:,} more")
    remark(f"as of {ago(report.seen_at)}")


def _name(series: SeriesModel) -> str:
    known = (series.tenant, series.queue, series.definition)
    return " ".join(part for part in known if part is not None) or "all"


def _middle(durations: DurationsModel) -> str:
    return "-" if durations.p50 is None else span(timedelta(seconds=durations.p50))


def _slow(durations: DurationsModel) -> str:
    return "-" if durations.p95 is None else span(timedelta(seconds=durations.p95))


def _cells(series: SeriesModel) -> list[Cell]:
    total = series.total
    failed = total.ended[JobState.FAILED] + total.ended[JobState.DEAD_LETTER]
    return [
        _name(series),
        total.enqueued,
        total.ended[JobState.SUCCEEDED],
        failed,
        total.ended[JobState.CANCELED],
        _middle(total.waited),
        _slow(total.waited),
        _middle(total.ran),
        _slow(total.ran),
    ]


SERIES = Listing(
    Columns(
        names=(
            "FIGURES OF",
            "ENQUEUED",
            "SUCCEEDED",
            "FAILED",
            "CANCELED",
            "WAIT P50",
            "WAIT P95",
            "RUN P50",
            "RUN P95",
        ),
        dropped=("CANCELED", "WAIT P50", "RUN P50"),
    ),
    _cells,
)
