"""`mainspring top`: queues, workers and jobs by state, live."""

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from mainspring.api.models.jobs import SummaryModel
from mainspring.api.models.tenants import QueueModel, WorkerModel
from mainspring.cli import output
from mainspring.cli.output import STATE_STYLES, Out, ago, table
from mainspring.cli.reaching import reaching
from mainspring.client import Client
from mainspring.domain.types import JobState

_MOST_ROWS = 15


@reaching
def top(
    client: Client,
    out: Out,
    every: Annotated[float, typer.Option(min=0.2, max=60, help="Seconds between looks.")] = 1.0,
    is_once: Annotated[bool, typer.Option("--once", help="Look once and end.")] = False,
) -> None:
    """Queues, workers and jobs by state, as they change, until Ctrl-C."""
    if is_once or not out.is_for_people or not output.console.is_terminal:
        facts = _look(client)
        out.show(facts, lambda _: output.console.print(_view(facts)))
        return
    # Another screen, so that what was on this one is there again afterwards.
    with (
        suppress(KeyboardInterrupt),
        Live(console=output.console, screen=True, auto_refresh=False) as live,
    ):
        while True:
            live.update(_view(_look(client)), refresh=True)
            time.sleep(every)


def _look(client: Client) -> dict[str, Any]:
    return {
        "summary": client.jobs.summary(),
        "queues": list(client.queues()),
        "workers": list(client.workers()),
    }


def _view(facts: Mapping[str, Any]) -> RenderableType:
    return Group(
        _summary_line(facts["summary"]),
        Text(),
        _queue_table(facts["queues"]),
        Text(),
        _worker_table(facts["workers"]),
    )


def _summary_line(summary: SummaryModel) -> Text:
    line = Text()
    for state in JobState:
        count = summary.counts.get(state, 0)
        line.append(f"{state} ", style="dim")
        line.append(f"{count:,}   ", style=STATE_STYLES[state] if count else "dim")
    return line


def _queue_table(queues: Sequence[QueueModel]) -> Table | Text:
    if not queues:
        return Text("No live jobs in any queue.", style="dim")
    made = table("QUEUE", "READY", "WAITING", "RUNNING", "HELD", "OLDEST READY")
    busiest = sorted(queues, key=lambda queue: -(queue.ready + queue.running))
    for queue in busiest[:_MOST_ROWS]:
        counts = (queue.ready, queue.waiting, queue.running, queue.held)
        oldest = ago(queue.oldest_ready_at) if queue.oldest_ready_at else ""
        made.add_row(queue.name, *(f"{count:,}" for count in counts), oldest)
    return _with_rest(made, len(queues), "queues")


def _worker_table(workers: Sequence[WorkerModel]) -> Table | Text:
    if not workers:
        return Text("No workers; start one with `mainspring worker`.", style="yellow")
    made = table("WORKER", "QUEUES", "PLACES", "VERSION", "STARTED", "STATE")
    for worker in workers[:_MOST_ROWS]:
        made.add_row(
            worker.name,
            ", ".join(worker.queues),
            str(worker.concurrency),
            worker.version,
            ago(worker.started_at),
            _state(worker),
        )
    return _with_rest(made, len(workers), "workers")


def _state(worker: WorkerModel) -> Text:
    if not worker.is_alive:
        return Text(f"lost, silent since {ago(worker.renewed_at)}", style="red")
    return Text("stopping", style="yellow") if worker.is_stopping else Text("alive", style="green")


def _with_rest(made: Table, count: int, what: str) -> Table:
    if count > _MOST_ROWS:
        made.add_row(Text(f"and {count - _MOST_ROWS} more {what}", style="dim"))
    return made
