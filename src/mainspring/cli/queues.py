"""`mainspring queues`: List, pause and resume queues."""

from typing import Annotated
from zoneinfo import ZoneInfo

import typer
from rich.text import Text

from mainspring.api.models.queues import QueueModel, QueuePauseModel
from mainspring.cli.columns import Columns
from mainspring.cli.connection import connected
from mainspring.cli.durations import read_seconds
from mainspring.cli.examples import example
from mainspring.cli.listings import Cell, Listing, Shown
from mainspring.cli.output import Out
from mainspring.cli.schedule_options import read_instant
from mainspring.cli.times import relative
from mainspring.client import Client

app = typer.Typer()
queues = typer.Typer(help="List, pause and resume queues.", no_args_is_help=True)
app.add_typer(queues, name="queues")

_UTC = ZoneInfo("UTC")
NO_QUEUES = "No queue holds live jobs."
Name = Annotated[str, typer.Argument(help="The queue's name.")]


@queues.command("list", epilog=example("mainspring queues list --tenant acme"))
@connected
def list_queues(client: Client, out: Out) -> None:
    """List queues that have live jobs or are paused."""
    out.rows(client.queues(), QUEUES, nothing=NO_QUEUES)


@queues.command(
    "pause",
    epilog=example(
        "mainspring queues pause mail --for 1h --reason 'provider down'",
        "mainspring queues pause mail --until 2027-01-07T06:00Z",
    ),
)
@connected
def pause(
    client: Client,
    out: Out,
    name: Name,
    until: Annotated[
        str | None, typer.Option(help="When it ends, in UTC; never by default.")
    ] = None,
    duration: Annotated[
        str | None, typer.Option("--for", help="Time until it ends, e.g. 90s, 5m or 1h30m.")
    ] = None,
    reason: Annotated[str, typer.Option(help="Reason, shown while it is paused.")] = "",
) -> None:
    """Pause a queue: workers claim none of its jobs; those they have claimed run."""
    made = client.pause_queue(
        name,
        until=None if until is None else read_instant("--until", until, _UTC),
        duration=None if duration is None else read_seconds("--for", duration),
        reason=reason,
    )
    end = "it is resumed" if made.paused_until is None else _end(made)
    out.say(made, f"Queue {name} is paused until {end}.")


@queues.command("resume", epilog=example("mainspring queues resume mail"))
@connected
def resume(client: Client, out: Out, name: Name) -> None:
    """End the pause of a queue."""
    client.resume_queue(name)
    out.say({"name": name, "paused": False}, f"Queue {name} is resumed.")


def _end(pause: QueuePauseModel) -> str:
    end = pause.paused_until
    return "" if end is None else f"{end:%Y-%m-%d %H:%M:%S} UTC ({relative(end)})"


def _paused(pause: QueuePauseModel | None) -> Shown:
    """By whom, until when and why."""
    if pause is None:
        return Shown(Text(""), "")
    until = f" until {_end(pause)}" if pause.paused_until else ""
    why = f": {pause.reason}" if pause.reason else ""
    said = f"by {pause.paused_by}{until}{why}"
    return Shown(Text(said, style="yellow"), said)


def _cells(queue: QueueModel) -> list[Cell]:
    counts = (queue.ready, queue.waiting, queue.running, queue.held)
    return [queue.name, *counts, queue.oldest_ready_at, _paused(queue.pause)]


QUEUES = Listing(
    Columns(
        names=("NAME", "READY", "WAITING", "RUNNING", "HELD", "OLDEST READY", "PAUSED"),
        dropped=("HELD", "OLDEST READY", "WAITING", "RUNNING", "READY"),
        text=("PAUSED",),
    ),
    _cells,
)
