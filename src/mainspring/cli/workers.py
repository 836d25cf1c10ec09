"""`mainspring workers ...` and `mainspring queues ...`: who works, and on what."""

from collections.abc import Sequence

import typer
from rich.table import Table
from rich.text import Text

from mainspring.api.models.queues import QueueModel
from mainspring.api.models.workers import WorkerModel
from mainspring.cli.output import Out, ago, table
from mainspring.cli.reaching import example, reaching
from mainspring.client import Client

workers = typer.Typer(help="See who runs jobs.", no_args_is_help=True)
queues = typer.Typer(help="See where jobs wait.", no_args_is_help=True)

NO_WORKERS = "No workers; start one with `mainspring worker`."
NO_QUEUES = "No queue holds live jobs."


@workers.command("list", epilog=example("mainspring workers list"))
@reaching
def list_workers(client: Client, out: Out) -> None:
    """Workers, the newest first; one whose lease has run out is stale."""
    out.rows(client.workers(), workers_table, nothing=NO_WORKERS)


@queues.command("list", epilog=example("mainspring queues list --tenant acme"))
@reaching
def list_queues(client: Client, out: Out) -> None:
    """The queues that hold live jobs: how many, and since when the oldest is ready."""
    out.rows(client.queues(), queues_table, nothing=NO_QUEUES)


def workers_table(found: Sequence[WorkerModel]) -> Table:
    made = table(
        "NAME", "STATE", "QUEUES", "RUNNING", "HEARTBEAT", "VERSION", "HOST", wrap="QUEUES"
    )
    for worker in found:
        made.add_row(
            Text(worker.name),
            _state(worker),
            Text(", ".join(worker.queues)),
            f"{worker.running} of {worker.concurrency}",
            ago(worker.renewed_at),
            Text(worker.version),
            Text(f"{worker.host} (pid {worker.pid})"),
            style="" if worker.is_alive else "red",
        )
    return made


def _state(worker: WorkerModel) -> Text:
    if not worker.is_alive:
        return Text("stale", style="red")
    return Text("stopping", style="yellow") if worker.is_stopping else Text("alive", style="green")


def queues_table(found: Sequence[QueueModel]) -> Table:
    made = table("NAME", "READY", "WAITING", "RUNNING", "HELD", "OLDEST READY")
    for queue in found:
        counts = (queue.ready, queue.waiting, queue.running, queue.held)
        oldest = "" if queue.oldest_ready_at is None else ago(queue.oldest_ready_at)
        made.add_row(Text(queue.name), *map(str, counts), oldest)
    return made
