"""`mainspring workers`: List workers."""

import typer
from rich.text import Text

from mainspring.api.models.workers import WorkerModel
from mainspring.cli.columns import Columns
from mainspring.cli.connection import connected
from mainspring.cli.examples import example
from mainspring.cli.listings import Cell, Listing, several
from mainspring.cli.output import Out
from mainspring.client import Client

app = typer.Typer()
workers = typer.Typer(help="List workers.", no_args_is_help=True)
app.add_typer(workers, name="workers")

NO_WORKERS = "No workers; start one with `mainspring worker`."


@workers.command("list", epilog=example("mainspring workers list"))
@connected
def list_workers(client: Client, out: Out) -> None:
    """List workers, newest first; one whose lease has expired is stale."""
    out.rows(client.workers(), WORKERS, nothing=NO_WORKERS)


def _worker_cells(worker: WorkerModel) -> list[Cell]:
    return [
        str(worker.id),
        worker.name,
        _state(worker),
        several(worker.queues),
        f"{worker.running} of {worker.concurrency}",
        worker.renewed_at,
        worker.version,
        _host(worker),
    ]


def _host(worker: WorkerModel) -> str:
    """A worker over the API has no process id here."""
    if worker.host is None:
        return ""
    return f"{worker.host} (pid {worker.pid})" if worker.pid else "remote"


def _state(worker: WorkerModel) -> Text:
    if not worker.is_alive:
        return Text("stale", style="red")
    return Text("stopping", style="yellow") if worker.is_stopping else Text("alive", style="green")


WORKERS = Listing(
    Columns(
        names=("ID", "NAME", "STATE", "QUEUES", "RUNNING", "HEARTBEAT", "VERSION", "HOST"),
        dropped=("VERSION", "HOST", "QUEUES", "HEARTBEAT", "RUNNING"),
    ),
    _worker_cells,
)
