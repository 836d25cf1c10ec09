"""`mainspring triggers ...`: see, make and steer what turns events into jobs."""

import difflib
from dataclasses import asdict
from typing import Annotated, Any

import orjson
import typer
from rich.table import Table
from rich.text import Text

from mainspring.app import Mainspring
from mainspring.cli import output
from mainspring.cli.events import read_context
from mainspring.cli.jobs import parse_payload
from mainspring.cli.options import AsJson, DatabaseUrl, DataDir, Tenant, make_settings, run
from mainspring.cli.schedule_options import read_duration
from mainspring.domain.errors import InvalidOption
from mainspring.domain.triggers import TriggerState, UnknownPaths
from mainspring.services.triggers import NULLABLE

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


@triggers.command("list")
def list_triggers(
    event: Annotated[str | None, typer.Option(help="Only those that match this event.")] = None,
    definition: Annotated[str | None, typer.Option(help="Only those of this definition.")] = None,
    enabled: Annotated[
        bool | None, typer.Option("--enabled/--disabled", help="Only these.")
    ] = None,
    after: Annotated[str | None, typer.Option(help="Only names after this one.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many at the most.")] = 100,
    tenant: Tenant = "default",
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
) -> None:
    """Triggers by name, with what came of them last."""
    app = Mainspring(settings=make_settings(database_url, data_dir))
    reading = app.triggers.alist(
        event=event,
        definition=definition,
        enabled=enabled,
        after=after,
        limit=limit,
        tenant_id=tenant,
    )
    found = run(app, reading)
    if as_json:
        output.print_json([_facts(state) for state in found])
    elif found:
        output.console.print(_table(found))
    else:
        output.console.print("No triggers.")


@triggers.command()
def show(
    name: Name,
    tenant: Tenant = "default",
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
) -> None:
    """One trigger."""
    app = Mainspring(settings=make_settings(database_url, data_dir))
    _tell(run(app, app.triggers.aget(name, tenant_id=tenant)), None, as_json=as_json)


@triggers.command()
def create(
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
    tenant: Tenant = "default",
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
) -> None:
    """Enqueue a definition for each event that matches."""
    given = _read(locals())
    app = Mainspring(settings=make_settings(database_url, data_dir))
    making = app.triggers.acreate(name, enabled=enabled, tenant_id=tenant, **given)
    _tell(run(app, making), "is created", as_json=as_json)


@triggers.command()
def update(
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
    tenant: Tenant = "default",
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
) -> None:
    """Change some parts of a trigger, from the next event on."""
    given = _read(locals()) | dict.fromkeys(_clearable(field) for field in clear or ())
    if not given:
        raise InvalidOption("update", "has nothing to change; give an option, see --help")
    app = Mainspring(settings=make_settings(database_url, data_dir))
    changing = app.triggers.aupdate(name, tenant_id=tenant, **given)
    _tell(run(app, changing), "is updated", as_json=as_json)


@triggers.command()
def enable(
    name: Name,
    tenant: Tenant = "default",
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
) -> None:
    """Let a trigger see events again."""
    app = Mainspring(settings=make_settings(database_url, data_dir))
    _tell(run(app, app.triggers.aenable(name, tenant_id=tenant)), "is enabled")


@triggers.command()
def disable(
    name: Name,
    tenant: Tenant = "default",
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
) -> None:
    """Let a trigger see no events."""
    app = Mainspring(settings=make_settings(database_url, data_dir))
    _tell(run(app, app.triggers.adisable(name, tenant_id=tenant)), "is disabled")


@triggers.command()
def delete(
    name: Name,
    is_sure: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    tenant: Tenant = "default",
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
) -> None:
    """Remove a trigger; its jobs stay, and what it made of events does too."""
    app = Mainspring(settings=make_settings(database_url, data_dir))

    async def remove() -> None:
        await app.triggers.aget(name, tenant_id=tenant)
        if not is_sure:
            typer.confirm(f"Remove the trigger {name}?", abort=True)
        await app.triggers.adelete(name, tenant_id=tenant)

    run(app, remove())
    output.console.print(f"trigger {name} is removed", markup=False, highlight=False)


@triggers.command("test")
def rehearse(
    name: Name,
    context: Annotated[str, typer.Option(help="The context of an event, a JSON object.")] = "{}",
    event: Annotated[
        str | None, typer.Option(help="The name of the event; one that matches by default.")
    ] = None,
    tenant: Tenant = "default",
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
) -> None:
    """Print the payload that an event would make; nothing is enqueued."""
    read = read_context(context)
    app = Mainspring(settings=make_settings(database_url, data_dir))
    output.print_json(run(app, app.triggers.atest(name, read, event=event, tenant_id=tenant)))


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
    if name not in NULLABLE:
        close = difflib.get_close_matches(name, NULLABLE, n=1)
        hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(NULLABLE)}"
        raise InvalidOption("--clear", f"{field!r} is no field that can be empty; {hint}")
    return name


def _tell(state: TriggerState, what: str | None, *, as_json: bool = False) -> None:
    if as_json:
        output.print_json(_facts(state))
    elif what is not None:
        line = f"trigger {state.name} {what}"
        output.console.print(line, markup=False, highlight=False, soft_wrap=True)
    else:
        table = Table(box=None, pad_edge=False, show_header=False)
        for name, value in _rows(state):
            table.add_row(name, Text(value))
        output.console.print(table)


def _rows(state: TriggerState) -> list[tuple[str, str]]:
    trigger = state.trigger
    window = trigger.dedupe_window
    rows = [
        ("trigger", state.name),
        ("state", "enabled" if state.is_enabled else "disabled"),
        ("event", trigger.event),
        ("definition", trigger.definition),
        ("payload", orjson.dumps(trigger.payload, default=str).decode()),
        ("unknown paths", str(trigger.unknown_paths)),
        ("window", "" if window is None else output.span(window)),
        ("queue", trigger.queue or ""),
        ("priority", "" if trigger.priority is None else str(trigger.priority)),
        ("last", _last(state)),
        ("changed", output.ago(state.updated_at)),
    ]
    return [(name, value) for name, value in rows if value]


def _last(state: TriggerState) -> str:
    if state.last_dispatched_at is None:
        return ""
    what = state.last_error or f"job {state.last_job_id}"
    told = f"{state.last_outcome}, event {state.last_event_id}, {what}"
    return f"{told} ({output.ago(state.last_dispatched_at)})"


def _table(found: list[TriggerState]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("NAME", "EVENT", "DEFINITION", "STATE", "LAST"):
        table.add_column(name, overflow="ellipsis", no_wrap=name != "LAST")
    for state in found:
        trigger = state.trigger
        shown = Text("enabled", style="green") if state.is_enabled else Text("disabled", "dim")
        last = Text(_last(state), overflow="ellipsis", no_wrap=True)
        table.add_row(Text(state.name), trigger.event, trigger.definition, shown, last)
    return table


def _facts(state: TriggerState) -> dict[str, Any]:
    facts = asdict(state)
    trigger = facts.pop("trigger")
    window = state.trigger.dedupe_window
    trigger["dedupe_window"] = None if window is None else window.total_seconds()
    for name in ("id", "last_event_id", "last_job_id"):
        facts[name] = None if facts[name] is None else str(facts[name])
    return {**trigger, **facts}
