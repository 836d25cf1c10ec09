"""`mainspring triggers ...`: see, make and steer what turns events into jobs."""

import difflib
from collections.abc import Sequence
from typing import Annotated, Any

import orjson
import typer
from rich.table import Table
from rich.text import Text

from mainspring.api.models.triggers import TriggerModel
from mainspring.cli.events import OUTCOME_STYLES, read_context
from mainspring.cli.jobs import parse_payload
from mainspring.cli.options import PAGE, Limit, Sure, first
from mainspring.cli.output import Out, ago, confirm, console, facts_table, span, table
from mainspring.cli.reaching import example, reaching
from mainspring.cli.schedule_options import read_duration
from mainspring.client import Client
from mainspring.domain.errors import InvalidOption
from mainspring.domain.triggers import UnknownPaths

triggers = typer.Typer(help="See and steer what turns events into jobs.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="The trigger's name.")]
Payload = Annotated[
    str | None,
    typer.Option(help="The job's payload, a JSON object; may hold {{event.size|default(0)}}."),
]
Unknown = Annotated[
    UnknownPaths | None,
    typer.Option("--unknown-paths", help="What an event lacks is refused, or null."),
]
Window = Annotated[
    str | None,
    typer.Option("--dedupe-window", help="So long an equal payload makes no job, such as 5m."),
]
Queue = Annotated[str | None, typer.Option(help="Another queue than the definition's.")]
Priority = Annotated[int | None, typer.Option(help="0 (first) to 1000 (last).")]
_PLAIN = ("event", "definition", "unknown_paths", "queue", "priority")
_CLEARABLE = ("dedupe_window", "queue", "priority")


@triggers.command("list", epilog=example("mainspring triggers list --event provider.renamed"))
@reaching
def list_triggers(
    client: Client,
    out: Out,
    event: Annotated[str | None, typer.Option(help="Only those that match this event.")] = None,
    definition: Annotated[str | None, typer.Option(help="Only those of this definition.")] = None,
    enabled: Annotated[
        bool | None, typer.Option("--enabled/--disabled", help="Only these.")
    ] = None,
    after: Annotated[str | None, typer.Option(help="Only names after this one.")] = None,
    limit: Limit = 100,
) -> None:
    """Triggers by name, with what came of them last."""
    found = client.triggers.list(
        event=event, definition=definition, enabled=enabled, after=after, limit=min(limit, PAGE)
    )
    nothing = "No triggers; make one with `mainspring triggers create`."
    out.rows(first(found, limit), _table, nothing=nothing)


@triggers.command(epilog=example("mainspring triggers show resync"))
@reaching
def show(client: Client, out: Out, name: Name) -> None:
    """One trigger."""
    out.show(client.triggers.get(name), lambda it: console.print(facts_table(_facts(it))))


@triggers.command(
    epilog=example(
        "mainspring triggers create resync --event 'provider.*' --definition sync "
        """--payload '{"folder": "{{event.folder}}"}' --dedupe-window 5m"""
    )
)
@reaching
def create(
    client: Client,
    out: Out,
    name: Name,
    event: Annotated[str, typer.Option(help="An event's name, provider.* or *.")],
    definition: Annotated[str, typer.Option(help="The key of what it enqueues.")],
    payload: Payload = None,
    unknown_paths: Unknown = None,
    dedupe_window: Window = None,
    queue: Queue = None,
    priority: Priority = None,
    enabled: Annotated[
        bool, typer.Option("--enabled/--disabled", help="Whether it sees events.")
    ] = True,
) -> None:
    """Enqueue a definition for each event that matches."""
    given = _read(locals())
    _tell(out, client.triggers.create(name, enabled=enabled, **given), "created")


@triggers.command(
    epilog=example(
        "mainspring triggers update resync --dedupe-window 10m",
        "mainspring triggers update resync --clear queue",
    )
)
@reaching
def update(
    client: Client,
    out: Out,
    name: Name,
    event: Annotated[str | None, typer.Option(help="An event's name, provider.* or *.")] = None,
    definition: Annotated[str | None, typer.Option(help="The key of what it enqueues.")] = None,
    payload: Payload = None,
    unknown_paths: Unknown = None,
    dedupe_window: Window = None,
    queue: Queue = None,
    priority: Priority = None,
    clear: Annotated[
        list[str] | None,
        typer.Option(help="A field to empty, such as dedupe_window; may be repeated."),
    ] = None,
) -> None:
    """Change some parts of a trigger, from the next event on."""
    given = _read(locals()) | dict.fromkeys(_clearable(field) for field in clear or ())
    if not given:
        raise InvalidOption("update", "has nothing to change; give an option, see --help")
    _tell(out, client.triggers.update(name, **given), "updated")


@triggers.command(epilog=example("mainspring triggers enable resync"))
@reaching
def enable(client: Client, out: Out, name: Name) -> None:
    """Let a trigger see events again."""
    _tell(out, client.triggers.enable(name), "enabled")


@triggers.command(epilog=example("mainspring triggers disable resync"))
@reaching
def disable(client: Client, out: Out, name: Name) -> None:
    """Let a trigger see no events."""
    _tell(out, client.triggers.disable(name), "disabled")


@triggers.command(epilog=example("mainspring triggers delete resync --yes"))
@reaching
def delete(client: Client, out: Out, name: Name, is_sure: Sure = False) -> None:
    """Remove a trigger; its jobs stay, and what it made of events does too."""
    client.triggers.get(name)
    confirm(f"Remove the trigger {name}?", is_sure=is_sure)
    client.triggers.delete(name)
    out.say({"name": name, "deleted": True}, f"trigger {name} is removed")


@triggers.command(
    "test", epilog=example("""mainspring triggers test resync --context '{"folder": "/photos"}'""")
)
@reaching
def rehearse(
    client: Client,
    out: Out,
    name: Name,
    context: Annotated[str, typer.Option(help="The context of an event, a JSON object.")] = "{}",
    event: Annotated[
        str | None, typer.Option(help="The name of the event; one that matches by default.")
    ] = None,
) -> None:
    """Print the payload that an event would make; nothing is enqueued."""
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
        close = difflib.get_close_matches(name, _CLEARABLE, n=1)
        hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(_CLEARABLE)}"
        raise InvalidOption("--clear", f"{field!r} is no field that can be empty; {hint}")
    return name


def _tell(out: Out, trigger: TriggerModel, what: str) -> None:
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
    told = f", event {trigger.last_event_id}, {what} ({ago(trigger.last_dispatched_at)})"
    return Text.assemble((str(trigger.last_outcome), OUTCOME_STYLES[trigger.last_outcome]), told)


def _table(found: Sequence[TriggerModel]) -> Table:
    made = table("NAME", "EVENT", "DEFINITION", "STATE", "LAST", wrap="LAST")
    for trigger in found:
        last = _last(trigger)
        last.overflow, last.no_wrap = "ellipsis", True
        names = (Text(trigger.name), trigger.event, Text(trigger.definition))
        made.add_row(*names, _state(trigger), last)
    return made
