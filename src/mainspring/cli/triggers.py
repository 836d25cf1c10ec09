"""`mainspring triggers`: Manage triggers, which turn events into jobs."""

from typing import Annotated, Any

import orjson
import typer
from rich.text import Text

from mainspring.api.models.triggers import TriggerModel
from mainspring.cli.columns import Columns
from mainspring.cli.connection import connected
from mainspring.cli.durations import read_duration
from mainspring.cli.events import OUTCOME_STYLES, read_context
from mainspring.cli.examples import example
from mainspring.cli.jobs import parse_payload
from mainspring.cli.listings import Cell, Listing
from mainspring.cli.options import PAGE, Limit, Sure, first
from mainspring.cli.output import Facts, Out, confirm, console
from mainspring.cli.times import ago, span
from mainspring.client import Client
from mainspring.domain.errors import InvalidOption
from mainspring.domain.suggestions import did_you_mean
from mainspring.domain.triggers import UnknownPaths

app = typer.Typer()
triggers = typer.Typer(help="Manage triggers, which turn events into jobs.", no_args_is_help=True)
app.add_typer(triggers, name="triggers")

Name = Annotated[str, typer.Argument(help="Name of the trigger.")]
Payload = Annotated[
    str | None,
    typer.Option(help="Payload template, a JSON object, e.g. with {{event.size|default(0)}}."),
]
Unknown = Annotated[
    UnknownPaths | None,
    typer.Option("--unknown-paths", help="Whether a path the event lacks is an error or null."),
]
Window = Annotated[
    str | None,
    typer.Option("--dedupe-window", help="Ignore identical payloads for this long, e.g. 5m."),
]
Queue = Annotated[str | None, typer.Option(help="Queue, instead of the definition's.")]
Priority = Annotated[int | None, typer.Option(help="Priority, 0 (first) to 1000 (last).")]
_PLAIN = ("event", "definition", "unknown_paths", "queue", "priority")
_CLEARABLE = ("dedupe_window", "queue", "priority")


@triggers.command("list", epilog=example("mainspring triggers list --event provider.renamed"))
@connected
def list_triggers(
    client: Client,
    out: Out,
    event: Annotated[
        list[str] | None, typer.Option(help="Only triggers that match this event; repeatable.")
    ] = None,
    definition: Annotated[
        list[str] | None, typer.Option(help="Only triggers of this definition; repeatable.")
    ] = None,
    enabled: Annotated[
        bool | None, typer.Option("--enabled/--disabled", help="Only enabled or disabled triggers.")
    ] = None,
    after: Annotated[str | None, typer.Option(help="Only names after this one.")] = None,
    limit: Limit = 100,
) -> None:
    """List triggers by name, with their last result."""
    found = client.triggers.list(
        event=event,
        definition=definition,
        is_enabled=enabled,
        after=after,
        limit=min(limit, PAGE),
    )
    nothing = "No triggers; create one with `mainspring triggers create`."
    out.rows(first(found, limit), TRIGGERS, nothing=nothing)


@triggers.command(epilog=example("mainspring triggers show resync"))
@connected
def show(client: Client, out: Out, name: Name) -> None:
    """Show a trigger."""
    out.show(client.triggers.get(name), lambda it: console.print(Facts(_facts(it))))


@triggers.command(
    epilog=example(
        "mainspring triggers create resync --event 'provider.*' --definition sync "
        """--payload '{"folder": "{{event.folder}}"}' --dedupe-window 5m"""
    )
)
@connected
def create(
    client: Client,
    out: Out,
    name: Name,
    event: Annotated[str, typer.Option(help="Event name or pattern, e.g. provider.* or *.")],
    definition: Annotated[str, typer.Option(help="Key of the definition to enqueue.")],
    payload: Payload = None,
    unknown_paths: Unknown = None,
    dedupe_window: Window = None,
    queue: Queue = None,
    priority: Priority = None,
    enabled: Annotated[
        bool, typer.Option("--enabled/--disabled", help="Whether it is enabled.")
    ] = True,
) -> None:
    """Create a trigger that enqueues a definition for each matching event."""
    given = _read(locals())
    _print_change(out, client.triggers.create(name, is_enabled=enabled, **given), "created")


@triggers.command(
    epilog=example(
        "mainspring triggers update resync --dedupe-window 10m",
        "mainspring triggers update resync --clear queue",
    )
)
@connected
def update(
    client: Client,
    out: Out,
    name: Name,
    event: Annotated[
        str | None, typer.Option(help="Event name or pattern, e.g. provider.* or *.")
    ] = None,
    definition: Annotated[
        str | None, typer.Option(help="Key of the definition to enqueue.")
    ] = None,
    payload: Payload = None,
    unknown_paths: Unknown = None,
    dedupe_window: Window = None,
    queue: Queue = None,
    priority: Priority = None,
    clear: Annotated[
        list[str] | None,
        typer.Option(help="Field to clear, e.g. dedupe_window; repeatable."),
    ] = None,
) -> None:
    """Change a trigger, effective with the next event."""
    given = _read(locals()) | dict.fromkeys(_clearable(field) for field in clear or ())
    if not given:
        raise InvalidOption("update", "needs an option that changes something; see --help")
    _print_change(out, client.triggers.update(name, **given), "updated")


@triggers.command(epilog=example("mainspring triggers enable resync"))
@connected
def enable(client: Client, out: Out, name: Name) -> None:
    """Enable a trigger."""
    _print_change(out, client.triggers.enable(name), "enabled")


@triggers.command(epilog=example("mainspring triggers disable resync"))
@connected
def disable(client: Client, out: Out, name: Name) -> None:
    """Disable a trigger."""
    _print_change(out, client.triggers.disable(name), "disabled")


@triggers.command(epilog=example("mainspring triggers delete resync --yes"))
@connected
def delete(client: Client, out: Out, name: Name, is_sure: Sure = False) -> None:
    """Delete a trigger; its jobs and results stay."""
    client.triggers.get(name)
    confirm(f"Delete the trigger {name}?", is_sure=is_sure)
    client.triggers.delete(name)
    out.say({"name": name, "deleted": True}, f"trigger {name} is deleted")


@triggers.command(
    "test", epilog=example("""mainspring triggers test resync --context '{"folder": "/photos"}'""")
)
@connected
def rehearse(
    client: Client,
    out: Out,
    name: Name,
    context: Annotated[str, typer.Option(help="Event context, a JSON object.")] = "{}",
    event: Annotated[
        str | None, typer.Option(help="Event name; one that matches by default.")
    ] = None,
) -> None:
    """Print the payload for an event without enqueuing a job."""
    payload = client.triggers.test(name, read_context(context), event=event)
    Out.chosen(out.format, as_json=out.is_for_people).show(payload, console.print)


def _read(options: dict[str, Any]) -> dict[str, Any]:
    """The fields that were given, from the text they came in."""
    given = {name: options[name] for name in _PLAIN if options[name] is not None}
    if options["payload"] is not None:
        given["payload"] = parse_payload(options["payload"])
    if options["dedupe_window"] is not None:
        given["dedupe_window"] = read_duration("--dedupe-window", options["dedupe_window"])
    return given


def _clearable(field: str) -> str:
    name = field.strip("-").replace("-", "_")
    if name not in _CLEARABLE:
        hint = did_you_mean(name, _CLEARABLE) or f"; there are {', '.join(_CLEARABLE)}"
        raise InvalidOption("--clear", f"{field!r} cannot be cleared{hint}")
    return name


def _print_change(out: Out, trigger: TriggerModel, what: str) -> None:
    out.say(trigger, f"trigger {trigger.name} is {what}")


def _facts(trigger: TriggerModel) -> list[tuple[str, Text | str]]:
    window = trigger.dedupe_window
    facts: list[tuple[str, Text | str]] = [
        ("trigger", Text(trigger.name)),
        ("tenant", trigger.tenant),
        ("state", _state(trigger)),
        ("event", trigger.event),
        ("definition", Text(trigger.definition)),
        ("payload", Text(orjson.dumps(trigger.payload).decode())),
        ("unknown paths", str(trigger.unknown_paths)),
        ("window", "" if window is None else span(window)),
        ("queue", Text(trigger.queue or "")),
        ("priority", "" if trigger.priority is None else str(trigger.priority)),
        ("last", _last(trigger)),
        ("changed", ago(trigger.updated_at)),
    ]
    return [(name, value) for name, value in facts if value]


def _state(trigger: TriggerModel) -> Text:
    return Text("enabled", "green") if trigger.is_enabled else Text("disabled", "dim")


def _last(trigger: TriggerModel) -> Text:
    if trigger.last_outcome is None or trigger.last_dispatched_at is None:
        return Text("")
    what = trigger.last_error or f"job {trigger.last_job_id}"
    details = f", event {trigger.last_event_id}, {what} ({ago(trigger.last_dispatched_at)})"
    return Text.assemble((str(trigger.last_outcome), OUTCOME_STYLES[trigger.last_outcome]), details)


def _cells(trigger: TriggerModel) -> list[Cell]:
    outcome = trigger.last_outcome
    return [
        trigger.name,
        _state(trigger),
        trigger.event,
        trigger.definition,
        None if outcome is None else Text(str(outcome), OUTCOME_STYLES[outcome]),
        trigger.last_dispatched_at,
        "" if trigger.last_job_id is None else str(trigger.last_job_id),
        trigger.last_error,
    ]


TRIGGERS = Listing(
    Columns(
        names=("NAME", "STATE", "EVENT", "DEFINITION", "LAST", "WHEN", "JOB", "NOTE"),
        dropped=("JOB", "WHEN", "LAST"),
        text=("NOTE",),
    ),
    _cells,
)
