"""`mainspring events`: Emit and inspect events."""

from typing import Annotated, Any

import orjson
import typer
from rich.text import Text

from mainspring.api.models.events import DispatchModel, EventModel
from mainspring.cli.columns import Columns
from mainspring.cli.connection import connected
from mainspring.cli.examples import example
from mainspring.cli.listings import Cell, Listing
from mainspring.cli.options import PAGE, Limit, first
from mainspring.cli.output import Facts, Out, console, say_id
from mainspring.cli.times import instant
from mainspring.client import Client
from mainspring.domain.errors import InvalidEvent
from mainspring.domain.events import DispatchOutcome

app = typer.Typer()
events = typer.Typer(help="Emit and inspect events.", no_args_is_help=True)
app.add_typer(events, name="events")

EventNumber = Annotated[int, typer.Argument(help="The event's id.", min=1)]
OUTCOME_STYLES = {
    DispatchOutcome.ENQUEUED: "green",
    DispatchOutcome.DUPLICATE: "dim",
    DispatchOutcome.FAILED: "red",
}


@events.command(
    epilog=example(
        """mainspring events emit provider.folder_changed --context '{"folder": "/photos"}'"""
    )
)
@connected
def emit(
    client: Client,
    out: Out,
    name: Annotated[str, typer.Argument(help="Event name, e.g. provider.folder_changed.")],
    context: Annotated[str, typer.Option(help="Event context, a JSON object.")] = "{}",
    correlation_id: Annotated[
        str | None, typer.Option(help="Correlation id of its jobs; event:ID by default.")
    ] = None,
) -> None:
    """Emit an event; matching triggers enqueue jobs."""
    made = client.events.emit(name, read_context(context), correlation_id=correlation_id)
    out.show(made, lambda _: say_id(made.id, f"event {made.id}"))


@events.command(
    "list",
    epilog=example("mainspring events list --name 'provider.*'", "mainspring events list --failed"),
)
@connected
def list_events(
    client: Client,
    out: Out,
    name: Annotated[
        list[str] | None,
        typer.Option(help="Only events with this name or pattern, e.g. provider.*; repeatable."),
    ] = None,
    failed: Annotated[
        bool | None,
        typer.Option("--failed/--not-failed", help="Only events for which a trigger failed."),
    ] = None,
    handled: Annotated[
        bool | None,
        typer.Option("--handled/--waiting", help="Only events that were handled, or were not."),
    ] = None,
    before: Annotated[
        int | None, typer.Option(min=1, help="Only events older than this id.")
    ] = None,
    limit: Limit = 20,
) -> None:
    """List events, newest first."""
    found = client.events.list(
        name=name, has_failed=failed, is_handled=handled, before=before, limit=min(limit, PAGE)
    )
    out.rows(first(found, limit), EVENTS, nothing="No events.")


@events.command(epilog=example("mainspring events show 1"))
@connected
def show(client: Client, out: Out, event_id: EventNumber) -> None:
    """Show an event and the result of each trigger."""
    out.show(client.events.get(event_id), _print_event)


@events.command(epilog=example("mainspring events replay 4 --trigger resync"))
@connected
def replay(
    client: Client,
    out: Out,
    event_id: EventNumber,
    trigger: Annotated[str | None, typer.Option(help="Replay for this trigger only.")] = None,
) -> None:
    """Run the triggers of a handled event again, ignoring dedupe windows."""
    event = client.events.replay(event_id, trigger)
    whom = f"for {trigger}" if trigger else "for all matching triggers"
    out.say(event, f"event {event_id} is replayed {whom}, replay {event.replays}")


def read_context(text: str) -> dict[str, Any]:
    try:
        context = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise InvalidEvent(
            "context",
            f"is not JSON ({error}); in a shell write it in single quotes, "
            'such as \'{"folder": "/photos"}\'',
        ) from None
    if not isinstance(context, dict):
        raise InvalidEvent("context", "must be a JSON object")
    return context


def _state(event: EventModel) -> Text:
    if event.handled_at is None:
        return Text("waits", style="cyan")
    if event.failures:
        return Text(f"{event.failures} failed", style="red")
    return Text("handled", style="green" if event.dispatches else "dim")


def _print_event(event: EventModel) -> None:
    console.print(Facts(_facts(event)))
    if event.handled_at is not None and not event.dispatches:
        console.print("No trigger matched it.", style="dim")
    for dispatch in event.dispatches:
        console.print(_line(dispatch))


def _facts(event: EventModel) -> list[tuple[str, Text | str]]:
    return [
        ("event", str(event.id)),
        ("tenant", event.tenant),
        ("name", Text(event.name)),
        ("state", _state(event)),
        ("context", Text(orjson.dumps(event.context).decode())),
        ("emitted", instant(event.emitted_at)),
        ("correlation", Text(event.correlation_id or f"event:{event.id}")),
    ]


def _line(dispatch: DispatchModel) -> Text:
    again = f" (replay {dispatch.replay})" if dispatch.replay else ""
    what = Text.assemble(
        f"trigger {dispatch.trigger}{again}: ",
        (str(dispatch.outcome), OUTCOME_STYLES[dispatch.outcome]),
    )
    words = {
        DispatchOutcome.ENQUEUED: f", job {dispatch.job_id}",
        DispatchOutcome.DUPLICATE: f" of job {dispatch.job_id}",
        DispatchOutcome.FAILED: f": {dispatch.error}",
    }
    return what.append(words[dispatch.outcome])


def _cells(event: EventModel) -> list[Cell]:
    names = (str(event.id), event.name, _state(event))
    return [*names, event.jobs, event.emitted_at, event.last_error]


EVENTS = Listing(
    Columns(
        names=("ID", "NAME", "STATE", "JOBS", "EMITTED", "NOTE"),
        dropped=("JOBS", "EMITTED"),
        text=("NOTE",),
    ),
    _cells,
)
