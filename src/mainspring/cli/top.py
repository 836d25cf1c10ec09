"""`mainspring top`: Watch queues, workers and jobs by state until Ctrl-C."""

import gc
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Any, TypeVar

import typer
from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from mainspring.api.models.jobs import SummaryModel
from mainspring.cli import output
from mainspring.cli.connection import connected
from mainspring.cli.durations import read_seconds
from mainspring.cli.examples import example
from mainspring.cli.listings import Listing
from mainspring.cli.output import STATE_STYLES, Out
from mainspring.cli.queues import NO_QUEUES, QUEUES
from mainspring.cli.workers import NO_WORKERS, WORKERS
from mainspring.client import Client
from mainspring.domain.types import JobState

T = TypeVar("T")

_MOST_ROWS = 15


app = typer.Typer()


@app.command(epilog=example("mainspring top", "mainspring top --once --json"))
@connected
def top(
    client: Client,
    out: Out,
    every: Annotated[str, typer.Option(help="Time between updates, from 0.2s to 1m.")] = "1s",
    is_once: Annotated[bool, typer.Option("--once", help="Print once and exit.")] = False,
) -> None:
    """Watch queues, workers and jobs by state until Ctrl-C."""
    seconds = read_seconds("--every", every, least=0.2, most=60)
    if is_once or not out.is_for_people or not output.console.is_terminal:
        facts = _look(client)
        out.show(facts, lambda _: output.console.print(_view(facts)))
        return
    gc.enable()
    # Another screen, so that what was on this one is there again afterwards.
    with (
        suppress(KeyboardInterrupt),
        Live(console=output.console, screen=True, auto_refresh=False) as live,
    ):
        while True:
            live.update(_view(_look(client)), refresh=True)
            time.sleep(seconds)


def _look(client: Client) -> dict[str, Any]:
    return {
        "summary": client.jobs.summary(),
        "queues": sorted(client.queues(), key=lambda queue: -(queue.ready + queue.running)),
        "workers": list(client.workers()),
    }


def _view(facts: Mapping[str, Any]) -> RenderableType:
    return Group(
        _summary_line(facts["summary"]),
        Text(),
        _part(facts["queues"], QUEUES, NO_QUEUES),
        Text(),
        _part(facts["workers"], WORKERS, NO_WORKERS),
    )


def _summary_line(summary: SummaryModel) -> Text:
    line = Text()
    for state in JobState:
        count = summary.counts.get(state, 0)
        line.append(f"{state} ", style="dim")
        line.append(f"{count:,}   ", style=STATE_STYLES[state] if count else "dim")
    return line


def _part(found: Sequence[T], listing: Listing[T], nothing: str) -> Group:
    """As many as a screen has room for."""
    if not found:
        return Group(Text(nothing, style="dim"))
    rest = len(found) - _MOST_ROWS
    more = [Text(f"and {rest} more", style="dim")] if rest > 0 else []
    return Group(listing(found[:_MOST_ROWS]), *more)
