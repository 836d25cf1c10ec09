"""`mainspring events ...`: emit events, and see what came of them."""

from dataclasses import asdict
from typing import Annotated, Any

import orjson
import typer
from rich.table import Table
from rich.text import Text

from mainspring.app import Mainspring
from mainspring.cli import output
from mainspring.cli.options import AsJson, DatabaseUrl, DataDir, Tenant, make_settings, run
from mainspring.domain.errors import InvalidEvent
from mainspring.domain.events import Dispatch, DispatchOutcome, Event

events = typer.Typer(help="Emit events and see what came of them.", no_args_is_help=True)

EventNumber = Annotated[int, typer.Argument(help="The event's id.", min=1)]
_STYLES = {
    DispatchOutcome.ENQUEUED: "green",
    DispatchOutcome.DUPLICATE: "dim",
    DispatchOutcome.FAILED: "red",
}


@events.command()
def emit(
    name: Annotated[str, typer.Argument(help="Such as provider.folder_changed.")],
    context: Annotated[str, typer.Option(help="What templates see, a JSON object.")] = "{}",
    correlation_id: Annotated[
        str | None, typer.Option(help="Given to its jobs; event:ID by default.")
    ] = None,
    tenant: Tenant = "default",
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
) -> None:
    """Say that something happened; triggers that match turn it into jobs."""
    read = read_context(context)
    app = Mainspring(settings=make_settings(database_url, data_dir))
    emitting = app.aemit(name, read, tenant_id=tenant, correlation_id=correlation_id)
    event_id = run(app, emitting)
    if as_json:
        output.print_json({"id": str(event_id)})
    else:
        output.console.print(f"event {event_id}")


@events.command("list")
def list_events(
    name: Annotated[
        str | None, typer.Option(help="Only this name, or those of provider.*.")
    ] = None,
    failed: Annotated[
        bool | None, typer.Option("--failed/--not-failed", help="Only those a trigger failed for.")
    ] = None,
    handled: Annotated[bool | None, typer.Option("--handled/--waiting", help="Only these.")] = None,
    before: Annotated[int | None, typer.Option(help="Only events older than this id.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many at the most.")] = 20,
    tenant: Tenant = "default",
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
) -> None:
    """Events, the newest first."""
    app = Mainspring(settings=make_settings(database_url, data_dir))
    reading = app.events.alist(
        name=name, handled=handled, failed=failed, before=before, limit=limit, tenant_id=tenant
    )
    found = run(app, reading)
    if as_json:
        output.print_json([_facts(event) for event in found])
    elif found:
        output.console.print(_table(found))
    else:
        output.console.print("No events.")


@events.command()
def show(
    event_id: EventNumber,
    tenant: Tenant = "default",
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
) -> None:
    """One event with what each trigger made of it."""
    app = Mainspring(settings=make_settings(database_url, data_dir))
    event = run(app, app.events.aget(event_id, tenant_id=tenant))
    if as_json:
        output.print_json(_facts(event))
    else:
        _print_event(event)


@events.command()
def replay(
    event_id: EventNumber,
    trigger: Annotated[str | None, typer.Option(help="Only this trigger.")] = None,
    tenant: Tenant = "default",
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
) -> None:
    """Give a handled event to its triggers once more; dedupe windows are not asked."""
    app = Mainspring(settings=make_settings(database_url, data_dir))
    event = run(app, app.events.areplay(event_id, trigger, tenant_id=tenant))
    whom = f"to {trigger}" if trigger else "to all triggers that match it"
    line = f"event {event_id} is given {whom} again, replay {event.replays}"
    output.console.print(line, markup=False, highlight=False, soft_wrap=True)


def read_context(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise InvalidEvent(
            "context",
            f"is not JSON ({error}); in a shell write it in single quotes, "
            'such as \'{"folder": "/photos"}\'',
        ) from None


def _table(found: list[Event]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("ID", "NAME", "EMITTED", "STATE", "JOBS", "NOTE"):
        table.add_column(name, overflow="ellipsis", no_wrap=name != "NOTE")
    for event in found:
        note = Text(event.last_error or "", overflow="ellipsis", no_wrap=True)
        emitted = output.ago(event.emitted_at)
        table.add_row(str(event.id), event.name, emitted, _state(event), str(event.jobs), note)
    return table


def _state(event: Event) -> Text:
    if event.handled_at is None:
        return Text("waits", style="cyan")
    if event.failures:
        return Text(f"{event.failures} failed", style="red")
    return Text("handled", style="green" if event.dispatches else "dim")


def _print_event(event: Event) -> None:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    for name, value in _rows(event):
        table.add_row(name, value)
    output.console.print(table)
    if event.handled_at is not None and not event.dispatches:
        output.console.print("No trigger matched it.", style="dim")
    for dispatch in event.dispatches:
        output.console.print(_line(dispatch), soft_wrap=True)


def _rows(event: Event) -> list[tuple[str, Text | str]]:
    context = orjson.dumps(event.context, default=str).decode()
    emitted = f"{event.emitted_at:%Y-%m-%d %H:%M:%S %Z} ({output.ago(event.emitted_at)})"
    return [
        ("event", str(event.id)),
        ("name", Text(event.name)),
        ("state", _state(event)),
        ("context", Text(context)),
        ("emitted", emitted),
        ("correlation", Text(event.correlation_id or f"event:{event.id}")),
    ]


def _line(dispatch: Dispatch) -> Text:
    again = f" (replay {dispatch.replay})" if dispatch.replay else ""
    what = Text.assemble(
        f"trigger {dispatch.trigger}{again}: ",
        (str(dispatch.outcome), _STYLES[dispatch.outcome]),
    )
    told = {
        DispatchOutcome.ENQUEUED: f", job {dispatch.job_id}",
        DispatchOutcome.DUPLICATE: f" of job {dispatch.job_id}",
        DispatchOutcome.FAILED: f": {dispatch.error}",
    }
    return what.append(told[dispatch.outcome])


def _facts(event: Event) -> dict[str, Any]:
    dispatches = [
        {**asdict(each), "job_id": None if each.job_id is None else str(each.job_id)}
        for each in event.dispatches
    ]
    return {**asdict(event), "id": str(event.id), "dispatches": dispatches}
