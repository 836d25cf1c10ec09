"""`mainspring schedules ...`: see, make and steer schedules."""

import difflib
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import typer

from mainspring.app import Mainspring
from mainspring.cli import output
from mainspring.cli import schedule_output as looks
from mainspring.cli.options import AsJson, DatabaseUrl, DataDir, Tenant, make_settings, run
from mainspring.cli.schedule_options import read_fields, read_instant, with_fields
from mainspring.domain.cron import find_zone
from mainspring.domain.errors import InvalidOption
from mainspring.domain.schedule_kinds import NULLABLE
from mainspring.domain.schedules import ScheduleState
from mainspring.domain.slots import SlotOutcome
from mainspring.domain.timings import Fire
from mainspring.services.schedules import Filled
from mainspring.store.slots import Slot

_SHOWN_FIRES = 5

Name = Annotated[str, typer.Argument(help="The schedule's name.")]
IsSure = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
Definition = Annotated[str, typer.Option(help="The key of what it runs.")]

schedules = typer.Typer(help="See and steer schedules.", no_args_is_help=True)


@schedules.command("list")
def list_schedules(
    enabled: Annotated[
        bool | None, typer.Option("--enabled/--disabled", help="Only these.")
    ] = None,
    definition: Annotated[str | None, typer.Option(help="Only those of this definition.")] = None,
    after: Annotated[str | None, typer.Option(help="Only names after this one.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many at the most.")] = 50,
    tenant: Tenant = "default",
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
) -> None:
    """Schedules by name, with how they fare."""
    app = Mainspring(settings=make_settings(database_url, data_dir))
    reading = app.schedules.alist(
        after=after, enabled=enabled, definition=definition, limit=limit, tenant_id=tenant
    )
    found = run(app, reading)
    if as_json:
        output.print_json([looks.schedule_facts(state) for state in found])
    else:
        looks.print_schedules(found)


@schedules.command()
def show(
    name: Name,
    tenant: Tenant = "default",
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
) -> None:
    """One schedule with its next fires."""
    app = Mainspring(settings=make_settings(database_url, data_dir))

    async def read() -> tuple[ScheduleState, list[Fire]]:
        state = await app.schedules.aget(name, tenant_id=tenant)
        return state, await app.schedules.apreview(name, _SHOWN_FIRES, tenant_id=tenant)

    state, fires = run(app, read())
    if as_json:
        facts = [looks.fire_facts(fire) for fire in fires]
        output.print_json({**looks.schedule_facts(state), "next_fires": facts})
    else:
        looks.print_schedule(state, fires)


@schedules.command()
@with_fields
def create(
    name: Name,
    definition: Definition,
    tenant: Tenant = "default",
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    **fields: Any,
) -> None:
    """Add a schedule; exactly one of --cron, --every and --at says when it fires."""
    given = read_fields(fields, "UTC")
    app = Mainspring(settings=make_settings(database_url, data_dir))
    state = run(app, app.schedules.acreate(name, definition, tenant_id=tenant, **given))
    _tell(state, "is created", as_json=as_json)


@schedules.command()
@with_fields
def update(
    name: Name,
    definition: Annotated[str | None, typer.Option(help="The key of what it runs.")] = None,
    rename: Annotated[str | None, typer.Option(help="Another name.")] = None,
    clear: Annotated[
        list[str] | None, typer.Option(help="A field to empty, such as ends_at; may be repeated.")
    ] = None,
    tenant: Tenant = "default",
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    **fields: Any,
) -> None:
    """Change some parts of a schedule."""
    changes = {"definition": definition, "name": rename}
    given: dict[str, Any] = {key: value for key, value in changes.items() if value is not None}
    given |= dict.fromkeys(_clearable(field) for field in clear or ())
    app = Mainspring(settings=make_settings(database_url, data_dir))

    async def change() -> ScheduleState:
        state = await app.schedules.aget(name, tenant_id=tenant)
        merged = {**given, **read_fields(fields, state.spec.zone)}
        if not merged:
            raise InvalidOption("update", "has nothing to change; give an option, see --help")
        return await app.schedules.aupdate(name, tenant_id=tenant, **merged)

    _tell(run(app, change()), "is updated", as_json=as_json)


@schedules.command()
def enable(
    name: Name,
    tenant: Tenant = "default",
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
) -> None:
    """Let a schedule fire again, from now on."""
    app = Mainspring(settings=make_settings(database_url, data_dir))
    _tell(run(app, app.schedules.aenable(name, tenant_id=tenant)), "is enabled")


@schedules.command()
def disable(
    name: Name,
    reason: Annotated[str | None, typer.Option(help="Shown until it is enabled.")] = None,
    tenant: Tenant = "default",
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
) -> None:
    """Let a schedule fire no more."""
    app = Mainspring(settings=make_settings(database_url, data_dir))
    _tell(run(app, app.schedules.adisable(name, reason, tenant_id=tenant)), "is disabled")


@schedules.command()
def pause(
    name: Name,
    until: Annotated[
        str | None, typer.Option(help="An instant, in its zone unless it says; else for good.")
    ] = None,
    tenant: Tenant = "default",
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
) -> None:
    """Let a schedule fire nothing for a while, or until it is resumed."""
    app = Mainspring(settings=make_settings(database_url, data_dir))

    async def pause() -> ScheduleState:
        if until is None:
            return await app.schedules.apause(name, tenant_id=tenant)
        zone = await _zone(app, name, tenant)
        instant = read_instant("--until", until, zone)
        return await app.schedules.apause(name, instant, tenant_id=tenant)

    is_open = until is None
    _tell(run(app, pause()), f"is paused{' until it is resumed' if is_open else ''}")


@schedules.command()
def resume(
    name: Name,
    tenant: Tenant = "default",
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
) -> None:
    """End a pause; what was due meanwhile is not caught up on."""
    app = Mainspring(settings=make_settings(database_url, data_dir))
    _tell(run(app, app.schedules.aresume(name, tenant_id=tenant)), "is resumed")


@schedules.command()
def trigger(
    name: Name,
    force: Annotated[bool, typer.Option("--force", help="Do not ask its condition.")] = False,
    wait: Annotated[
        float, typer.Option(min=0, help="Seconds to wait for a scheduler that checks it.")
    ] = 10,
    tenant: Tenant = "default",
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
) -> None:
    """Fire a schedule now, in a slot of its own."""
    app = Mainspring(settings=make_settings(database_url, data_dir))
    patience = timedelta(seconds=wait)
    done = run(app, app.schedules.atrigger(name, force=force, wait=patience, tenant_id=tenant))
    if as_json:
        job_id = None if done.job_id is None else str(done.job_id)
        facts = {"outcome": done.outcome, "slot_at": looks.in_utc(done.slot_at)}
        output.print_json({**facts, "job_id": job_id, "message": done.message})
    elif done.outcome is SlotOutcome.PENDING:
        output.errors.print("pending: no scheduler has looked at it yet; is one running?")
    elif done.outcome is SlotOutcome.ENQUEUED:
        output.console.print(f"job {done.job_id}")
    else:
        output.errors.print(f"{done.outcome}: {done.message}", markup=False, soft_wrap=True)
    if done.outcome is not SlotOutcome.ENQUEUED:
        raise typer.Exit(1)


@schedules.command()
def history(
    name: Name,
    outcome: Annotated[
        SlotOutcome | None, typer.Option(help="Only slots with this outcome.")
    ] = None,
    before: Annotated[str | None, typer.Option(help="Only slots before this instant.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many at the most.")] = 20,
    tenant: Tenant = "default",
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
) -> None:
    """The slots of a schedule, the newest first, and its figures."""
    app = Mainspring(settings=make_settings(database_url, data_dir))

    async def read() -> tuple[ScheduleState, list[Slot]]:
        state = await app.schedules.aget(name, tenant_id=tenant)
        zone = find_zone(state.spec.zone)
        until = None if before is None else read_instant("--before", before, zone)
        return state, await app.schedules.ahistory(
            name, before=until, outcome=outcome, limit=limit, tenant_id=tenant
        )

    state, slots = run(app, read())
    if as_json:
        facts = [looks.slot_facts(slot) for slot in slots]
        output.print_json({"slots": facts, "figures": looks.figures_of(state)})
    else:
        looks.print_slots(state, slots)


@schedules.command()
def preview(
    name: Name,
    count: Annotated[int, typer.Option(min=1, max=1000, help="How many fires.")] = 10,
    after: Annotated[
        str | None, typer.Option(help="An instant, in its zone unless it says; now.")
    ] = None,
    tenant: Tenant = "default",
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
) -> None:
    """The next slots of a schedule, with notes where the clock changes."""
    app = Mainspring(settings=make_settings(database_url, data_dir))

    async def read() -> list[Fire]:
        zone = await _zone(app, name, tenant)
        start = None if after is None else read_instant("--after", after, zone)
        return await app.schedules.apreview(name, count, start, tenant_id=tenant)

    fires = run(app, read())
    if as_json:
        output.print_json([looks.fire_facts(fire) for fire in fires])
    else:
        looks.print_fires(fires)


@schedules.command()
def backfill(
    name: Name,
    start: Annotated[str, typer.Option("--from", help="The first instant, in its zone.")],
    end: Annotated[str | None, typer.Option("--to", help="The last instant; now.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="The most slots.")] = 1000,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say which slots.")] = False,
    is_sure: IsSure = False,
    tenant: Tenant = "default",
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
) -> None:
    """Enqueue the past slots of a range that had no job; conditions are not asked."""
    app = Mainspring(settings=make_settings(database_url, data_dir))

    async def fill() -> list[Filled]:
        zone = await _zone(app, name, tenant)
        first = read_instant("--from", start, zone)
        last = datetime.now(UTC) if end is None else read_instant("--to", end, zone)
        options: dict[str, Any] = {"limit": limit, "tenant_id": tenant}
        found = await app.schedules.abackfill(name, first, last, dry_run=True, **options)
        if dry_run or not found:
            return found
        if not is_sure:
            question = f"Enqueue {len(found)} jobs of {name}, {looks.reach(found)}?"
            typer.confirm(question, abort=True)
        return await app.schedules.abackfill(name, first, last, **options)

    filled = run(app, fill())
    if as_json:
        output.print_json([looks.filled_facts(each) for each in filled])
    else:
        looks.print_filled(filled, is_dry=dry_run)


@schedules.command()
def delete(
    name: Name,
    is_sure: IsSure = False,
    tenant: Tenant = "default",
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
) -> None:
    """Remove a schedule with its history; the jobs it made stay."""
    app = Mainspring(settings=make_settings(database_url, data_dir))

    async def remove() -> None:
        await app.schedules.aget(name, tenant_id=tenant)
        if not is_sure:
            typer.confirm(f"Remove the schedule {name} and its history?", abort=True)
        await app.schedules.adelete(name, tenant_id=tenant)

    run(app, remove())
    output.console.print(f"schedule {name} is removed", markup=False, highlight=False)


async def _zone(app: Mainspring, name: str, tenant: str) -> Any:
    return find_zone((await app.schedules.aget(name, tenant_id=tenant)).spec.zone)


def _clearable(field: str) -> str:
    name = field.strip("-").replace("-", "_")
    if name not in NULLABLE:
        close = difflib.get_close_matches(name, NULLABLE, n=1)
        hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(sorted(NULLABLE))}"
        raise InvalidOption("--clear", f"{field!r} is no field that can be empty; {hint}")
    return name


def _tell(state: ScheduleState, done: str, *, as_json: bool = False) -> None:
    if as_json:
        output.print_json(looks.schedule_facts(state))
    else:
        following = looks.next_run(state)
        when = f"; next run {following}" if following else ""
        line = f"schedule {state.spec.name} {done}{when}"
        output.console.print(line, markup=False, highlight=False, soft_wrap=True)
    if state.spec.launcher is not None and done in ("is created", "is updated"):
        note = f"note: the app of a scheduler must register the launcher {state.spec.launcher}"
        output.errors.print(note, markup=False, highlight=False, soft_wrap=True)
