"""`mainspring schedules`: Manage schedules."""

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import Annotated, Any
from zoneinfo import ZoneInfo

import typer

from mainspring.api.models.schedules import FilledModel, ScheduleModel
from mainspring.cli import output
from mainspring.cli import schedule_output as looks
from mainspring.cli.connection import connected
from mainspring.cli.cron import FIRES
from mainspring.cli.durations import read_seconds
from mainspring.cli.examples import example
from mainspring.cli.options import Limit, Sure
from mainspring.cli.output import Out, confirm, console
from mainspring.cli.schedule_options import read_fields, read_instant, with_fields
from mainspring.client import Client
from mainspring.domain.errors import InvalidOption
from mainspring.domain.schedules.cron import find_zone
from mainspring.domain.schedules.fields import NULLABLE
from mainspring.domain.schedules.slots import SlotOutcome
from mainspring.domain.suggestions import did_you_mean

_SHOWN_FIRES = 5
_MOST_OF_A_PAGE = 1000

Name = Annotated[str, typer.Argument(help="Name of the schedule.")]
Definition = Annotated[str, typer.Option(help="Key of the definition to enqueue.")]

app = typer.Typer()
schedules = typer.Typer(help="Manage schedules.", no_args_is_help=True)
app.add_typer(schedules, name="schedules")


@schedules.command("list", epilog=example("mainspring schedules list --enabled"))
@connected
def list_schedules(
    client: Client,
    out: Out,
    enabled: Annotated[
        bool | None,
        typer.Option("--enabled/--disabled", help="Only enabled or disabled schedules."),
    ] = None,
    definition: Annotated[
        list[str] | None, typer.Option(help="Only schedules of this definition; repeatable.")
    ] = None,
    after: Annotated[str | None, typer.Option(help="Only names after this one.")] = None,
    limit: Limit = 50,
) -> None:
    """List schedules by name, with their status."""
    filters: dict[str, Any] = {"is_enabled": enabled, "definition": definition, "after": after}
    found = client.schedules.list(limit=min(limit, _MOST_OF_A_PAGE), **filters)
    is_filtered = any(value is not None for value in filters.values())
    nothing = "No schedules; create one with `mainspring schedules create`."
    out.rows(
        list(islice(found, limit)),
        looks.SCHEDULES,
        nothing="No matching schedules." if is_filtered else nothing,
    )


@schedules.command("show", epilog=example("mainspring schedules show nightly"))
@connected
def show(client: Client, out: Out, name: Name) -> None:
    """Show a schedule and its next fires."""
    schedule = client.schedules.get(name)
    fires = client.schedules.preview(name, count=_SHOWN_FIRES)
    if out.is_for_people:
        looks.print_schedule(schedule, fires)
    else:
        out.show({**schedule.model_dump(mode="json"), "next_fires": list(fires)}, console.print)


@schedules.command(
    "create",
    epilog=example(
        "mainspring schedules create nightly --definition report --cron '0 2 * * *'",
        "mainspring schedules create poll --definition fetch --every 5m --zone Europe/Berlin",
    ),
)
@connected
@with_fields
def create(client: Client, out: Out, name: Name, definition: Definition, **fields: Any) -> None:
    """Create a schedule; give exactly one of --cron, --every and --at."""
    made = client.schedules.create(name, definition, **read_fields(fields, "UTC"))
    _print_change(out, made, "is created")
    _note_launcher(made)


@schedules.command(
    "update", epilog=example("mainspring schedules update nightly --cron '0 3 * * *'")
)
@connected
@with_fields
def update(
    client: Client,
    out: Out,
    name: Name,
    definition: Annotated[
        str | None, typer.Option(help="Key of the definition to enqueue.")
    ] = None,
    rename: Annotated[str | None, typer.Option(help="New name.")] = None,
    clear: Annotated[
        list[str] | None, typer.Option(help="Field to clear, e.g. ends_at; repeatable.")
    ] = None,
    **fields: Any,
) -> None:
    """Change a schedule."""
    changes = {"definition": definition, "name": rename}
    given: dict[str, Any] = {key: value for key, value in changes.items() if value is not None}
    given |= dict.fromkeys(_clearable(field) for field in clear or ())
    given |= read_fields(fields, client.schedules.get(name).zone)
    if not given:
        raise InvalidOption("update", "needs an option that changes something; see --help")
    changed = client.schedules.update(name, **given)
    _print_change(out, changed, "is updated")
    _note_launcher(changed)


@schedules.command("enable", epilog=example("mainspring schedules enable nightly"))
@connected
def enable(client: Client, out: Out, name: Name) -> None:
    """Enable a schedule, from now on."""
    _print_change(out, client.schedules.enable(name), "is enabled")


@schedules.command(
    "disable", epilog=example("mainspring schedules disable nightly --reason 'the archive moves'")
)
@connected
def disable(
    client: Client,
    out: Out,
    name: Name,
    reason: Annotated[
        str | None, typer.Option(help="Reason, shown until it is enabled again.")
    ] = None,
) -> None:
    """Disable a schedule."""
    _print_change(out, client.schedules.disable(name, reason), "is disabled")


@schedules.command("pause", epilog=example("mainspring schedules pause nightly --until 2027-01-07"))
@connected
def pause(
    client: Client,
    out: Out,
    name: Name,
    until: Annotated[
        str | None, typer.Option(help="When to resume, in the schedule's zone; never by default.")
    ] = None,
) -> None:
    """Pause a schedule for a while, or until it is resumed."""
    if until is None:
        _print_change(out, client.schedules.pause(name), "is paused until it is resumed")
    else:
        instant = read_instant("--until", until, _zone(client, name))
        _print_change(out, client.schedules.pause(name, instant), "is paused")


@schedules.command("resume", epilog=example("mainspring schedules resume nightly"))
@connected
def resume(client: Client, out: Out, name: Name) -> None:
    """End a pause; slots missed during the pause are not caught up."""
    _print_change(out, client.schedules.resume(name), "is resumed")


@schedules.command(
    "trigger",
    epilog=example(
        "mainspring schedules trigger nightly --force",
        "mainspring schedules trigger nightly --slot 2026-11-17T02:00Z",
    ),
)
@connected
def trigger(
    client: Client,
    out: Out,
    name: Name,
    slot: Annotated[
        str | None,
        typer.Option(
            help="Claim this past slot, in the schedule's zone, unless it has its job; an extra "
            "slot by default."
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Ignore its condition.")] = False,
    wait: Annotated[
        str,
        typer.Option(help="Time to wait for a scheduler to check the condition, at most 30s."),
    ] = "10s",
) -> None:
    """Fire a schedule now, in an extra slot or in a past one that has no job."""
    at = None if slot is None else read_instant("--slot", slot, _zone(client, name))
    patience = read_seconds("--wait", wait, most=30)
    done = client.schedules.trigger(name, slot=at, force=force, wait=patience)
    out.show(done, looks.print_triggered)
    if done.outcome is not SlotOutcome.ENQUEUED:
        raise typer.Exit(1)


@schedules.command(
    "history", epilog=example("mainspring schedules history nightly --outcome failed")
)
@connected
def history(
    client: Client,
    out: Out,
    name: Name,
    outcome: Annotated[
        list[SlotOutcome] | None, typer.Option(help="Only slots with this outcome; repeatable.")
    ] = None,
    before: Annotated[str | None, typer.Option(help="Only slots before this time.")] = None,
    limit: Limit = 20,
) -> None:
    """List the slots of a schedule, newest first, with its figures."""
    schedule = client.schedules.get(name)
    zone = find_zone(schedule.zone)
    until = None if before is None else read_instant("--before", before, zone)
    size = min(limit, _MOST_OF_A_PAGE)
    found = client.schedules.history(name, outcome=outcome, before=until, limit=size)
    slots = list(islice(found, limit))
    if out.is_for_people:
        looks.print_slots(schedule, slots)
    else:
        out.show({"slots": slots, "figures": schedule.figures}, console.print)


@schedules.command(
    "preview", epilog=example("mainspring schedules preview nightly --count 3 --after 2026-03-28")
)
@connected
def preview(
    client: Client,
    out: Out,
    name: Name,
    count: Annotated[int, typer.Option(min=1, max=1000, help="Number of fires to show.")] = 10,
    after: Annotated[
        str | None,
        typer.Option(help="Start after this time, in the schedule's zone; now by default."),
    ] = None,
) -> None:
    """Show the next slots of a schedule, with notes on clock changes."""
    start = None if after is None else read_instant("--after", after, _zone(client, name))
    fires = client.schedules.preview(name, count=count, after=start)
    if out.is_for_people:
        out.rows(looks.in_zone(fires), FIRES, nothing="No more slots.")
    else:
        out.show(fires, console.print)


@schedules.command(
    "backfill",
    epilog=example("mainspring schedules backfill nightly --from 2026-05-01 --dry-run"),
)
@connected
def backfill(
    client: Client,
    out: Out,
    name: Name,
    start: Annotated[
        str, typer.Option("--from", help="Start of the range, in the schedule's zone.")
    ],
    end: Annotated[
        str | None, typer.Option("--to", help="End of the range; now by default.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Maximum number of slots.")] = 1000,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print the slots.")] = False,
    is_sure: Sure = False,
) -> None:
    """Enqueue the past slots of a range that have no job, ignoring conditions."""
    zone = _zone(client, name)
    first = read_instant("--from", start, zone)
    last = datetime.now(UTC) if end is None else read_instant("--to", end, zone)
    filled = client.schedules.backfill(name, first, last, limit=limit, dry_run=True)
    if filled and not dry_run:
        question = f"Enqueue {len(filled)} jobs of {name}, {looks.reach(filled)}?"
        confirm(question, is_sure=is_sure)
        filled = client.schedules.backfill(name, first, last, limit=limit)

    def show(slots: Sequence[FilledModel]) -> None:
        looks.print_filled(slots, is_dry=dry_run)

    out.show(filled, show)


@schedules.command("delete", epilog=example("mainspring schedules delete nightly --yes"))
@connected
def delete(client: Client, out: Out, name: Name, is_sure: Sure = False) -> None:
    """Delete a schedule and its history; its jobs stay."""
    client.schedules.get(name)
    confirm(f"Delete the schedule {name} and its history?", is_sure=is_sure)
    client.schedules.delete(name)
    out.say({"name": name, "deleted": True}, f"schedule {name} is deleted")


def _zone(client: Client, name: str) -> ZoneInfo:
    return find_zone(client.schedules.get(name).zone)


def _clearable(field: str) -> str:
    name = field.strip("-").replace("-", "_")
    if name not in NULLABLE:
        hint = did_you_mean(name, NULLABLE) or f"; there are {', '.join(sorted(NULLABLE))}"
        raise InvalidOption("--clear", f"{field!r} cannot be cleared{hint}")
    return name


def _print_change(out: Out, schedule: ScheduleModel, done: str) -> None:
    following = looks.next_run(schedule)
    when = f"; next run {following}" if following else ""
    out.say(schedule, f"schedule {schedule.name} {done}{when}")


def _note_launcher(schedule: ScheduleModel) -> None:
    if schedule.launcher is not None:
        note = f"note: the app of a scheduler must register the launcher {schedule.launcher}"
        output.errors.print(note)
