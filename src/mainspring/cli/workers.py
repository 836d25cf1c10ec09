"""`mainspring workers`: List workers.

`mainspring queues`: List queues.
"""

from collections.abc import Sequence

import typer
from rich.table import Table
from rich.text import Text

from mainspring.api.models.queues import QueueModel
from mainspring.api.models.workers import WorkerModel
from mainspring.cli.connection import connected
from mainspring.cli.examples import example
from mainspring.cli.output import Out, ago, table
from mainspring.client import Client

app = typer.Typer()
workers = typer.Typer(help="List workers.", no_args_is_help=True)
queues = typer.Typer(help="List queues.", no_args_is_help=True)
app.add_typer(workers, name="workers")
app.add_typer(queues, name="queues")

NO_WORKERS = "No workers; start one with `mainspring worker`."
NO_QUEUES = "No queue holds live jobs."


@workers.command("list", epilog=example("mainspring workers list"))
@connected
def list_workers(client: Client, out: Out) -> None:
    """List workers, newest first; one whose lease has expired is stale."""
    out.rows(client.workers(), workers_table, nothing=NO_WORKERS)


@queues.command("list", epilog=example("mainspring queues list --tenant acme"))
@connected
def list_queues(client: Client, out: Out) -> None:
    """List queues with live jobs, with counts and the oldest ready job."""
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
            Text("" if worker.host is None else f"{worker.host} (pid {worker.pid})"),
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
