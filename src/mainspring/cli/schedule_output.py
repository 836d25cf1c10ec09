"""How schedules and their slots look on a terminal."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import orjson
from rich.text import Text

from mainspring.api.models.schedules import (
    Figures,
    FilledModel,
    FireModel,
    GaugeModel,
    ScheduleModel,
    SlotModel,
    TriggeredModel,
)
from mainspring.cli.columns import Columns
from mainspring.cli.cron import FIRES, Fire
from mainspring.cli.listings import Cell, Listing, Shown, in_utc
from mainspring.cli.output import Facts, Format, Out, console, errors, remark, say_id
from mainspring.cli.times import ago, relative, span
from mainspring.domain.errors import InvalidSchedule
from mainspring.domain.schedules import cron
from mainspring.domain.schedules.conditions import GaugeBounds
from mainspring.domain.schedules.cron import find_zone
from mainspring.domain.schedules.model import FIELD_NAMES, ScheduleSpec
from mainspring.domain.schedules.slots import SlotOutcome

OUTCOME_STYLES = {
    SlotOutcome.PENDING: "cyan",
    SlotOutcome.ENQUEUED: "green",
    SlotOutcome.SKIPPED: "dim",
    SlotOutcome.FAILED: "red",
    SlotOutcome.MISSED: "yellow",
    SlotOutcome.COALESCED: "yellow",
}
_LISTED = 20
_UNITS = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))
_DEFAULTS = ScheduleSpec(name="", definition="")
_SHOWN_ABOVE = {"name", "definition", "tenant_id", "enabled", "cron", "every", "at", "zone"} | {
    "payload",
    "description",
    "paused_until",
    "condition_role",
}


def print_schedule(schedule: ScheduleModel, fires: Sequence[FireModel]) -> None:
    console.print(Facts(_facts_of(schedule)))
    if fires:
        console.print()
        console.print(FIRES(in_zone(fires)))


def in_zone(fires: Sequence[FireModel]) -> list[Fire]:
    return [Fire(fire.local, fire.at, fire.note) for fire in fires]


def print_triggered(done: TriggeredModel) -> None:
    """A job for whoever reads on; why there is none goes to the errors."""
    if done.outcome is SlotOutcome.ENQUEUED:
        say_id(done.job_id, f"job {done.job_id}")
        return
    said = done.message
    if done.outcome is SlotOutcome.PENDING:
        said = "no scheduler has looked at it yet; is one running?"
    errors.print(f"{done.outcome}: {said}")


def print_slots(schedule: ScheduleModel, slots: Sequence[SlotModel]) -> None:
    zone = find_zone(schedule.zone)
    Out(Format.TABLE).rows([(slot, zone) for slot in slots], SLOTS, nothing="No slots yet.")
    remark(figures_line(schedule.figures))


def print_filled(filled: Sequence[FilledModel], *, is_dry: bool) -> None:
    if not filled:
        console.print("Nothing to do: every slot of the range had its job.")
        return
    for slot in filled[:_LISTED]:
        job = "" if slot.job_id is None else f"  job {slot.job_id}"
        console.print(f"{in_utc(slot.slot_at)}{job}")
    if len(filled) > _LISTED:
        console.print(f"... and {len(filled) - _LISTED:,} more")
    done = "would be filled" if is_dry else "filled"
    console.print(f"{_count(len(filled), 'slot')} {done}")


def reach(filled: Sequence[FilledModel]) -> str:
    return f"{in_utc(filled[0].slot_at)} to {in_utc(filled[-1].slot_at)}"


def figures_line(figures: Figures) -> str:
    """Skips are no runs: the rate is of those that ran."""
    runs = "no runs yet"
    if figures.total_runs:
        runs = (
            f"{_count(figures.total_runs, 'run')}: {figures.successful_runs:,} successful, "
            f"{figures.failed_runs:,} failed, success rate {_rate(figures)}"
        )
    return (
        f"{runs}; {figures.skipped_slots:,} skipped, {figures.missed_slots:,} missed, "
        f"{_count(figures.failed_launches, 'failed check')}"
    )


def when(schedule: ScheduleModel) -> str:
    """The timing as it was written, and as a sentence where that helps."""
    sentence = meaning(schedule)
    return timing(schedule) + (f" ({sentence})" if sentence else "")


def timing(schedule: ScheduleModel) -> str:
    """The timing as it was written."""
    if schedule.every is not None:
        return f"every {duration(schedule.every)}"
    if schedule.at is not None:
        return f"once, {schedule.at.astimezone(find_zone(schedule.zone)):%Y-%m-%d %H:%M:%S}"
    return schedule.cron or ""


def meaning(schedule: ScheduleModel) -> str:
    """A cron expression as a sentence; empty for what needs none."""
    try:
        sentence = cron.explain(schedule.cron or "")
    except InvalidSchedule:
        return ""
    return f"{sentence[0].lower()}{sentence[1:]}"


def state_text(schedule: ScheduleModel) -> Text:
    """The state and why it is so."""
    state, why = _state(schedule)
    return state.append(why)


def _state(schedule: ScheduleModel) -> tuple[Text, str]:
    if not schedule.is_enabled:
        reason = f": {schedule.disabled_reason}" if schedule.disabled_reason else ""
        return Text("disabled", style="red" if schedule.retry_count else "yellow"), reason
    if schedule.paused_until is not None and schedule.paused_until > datetime.now(UTC):
        local = schedule.paused_until.astimezone(find_zone(schedule.zone))
        return Text("paused", style="yellow"), f" until {local:%Y-%m-%d %H:%M}"
    if schedule.retry_count:
        return Text("failing", "red"), f", {schedule.retry_count} of {schedule.max_retries} times"
    if schedule.problem is not None:
        return Text("enabled", style="yellow"), f": {schedule.problem}"
    return Text("enabled", style="green"), ""


def next_run(schedule: ScheduleModel) -> str:
    if not schedule.is_enabled:
        return ""
    if schedule.next_run_at is None:
        return "never"
    is_due = schedule.next_run_at <= datetime.now(UTC)
    return "now" if is_due else relative(schedule.next_run_at)


def duration(value: timedelta) -> str:
    """As the options take it, such as 1h30m."""
    rest, said = value.total_seconds(), ""
    for unit, size in _UNITS:
        count, rest = divmod(rest, size)
        said += f"{count:.0f}{unit}" if count else ""
    return said or f"{value.total_seconds():g}s"


def _facts_of(schedule: ScheduleModel) -> Iterator[tuple[str, Text | str]]:
    note = f" ({schedule.description})" if schedule.description else ""
    yield "schedule", Text(f"{schedule.name}{note}")
    yield "state", state_text(schedule)
    yield "when", Text(f"{when(schedule)}, {schedule.zone}")
    yield "runs", Text(f"{schedule.definition} {orjson.dumps(schedule.payload).decode()}")
    for name in FIELD_NAMES:
        if name not in _SHOWN_ABOVE and getattr(schedule, name) != getattr(_DEFAULTS, name):
            yield name.replace("_", " "), Text(_said(getattr(schedule, name)))
    if schedule.gauge is not None:
        yield "gauge", _gauge(schedule.gauge)
    if schedule.last_error and (schedule.retry_count or not schedule.is_enabled):
        yield "last error", Text(schedule.last_error)
    yield "next run", next_run(schedule)
    yield "last run", _last_run(schedule.figures)
    yield "figures", figures_line(schedule.figures)
    average, worst = schedule.figures.average_seconds, schedule.figures.worst_seconds
    if average is not None and worst is not None:
        yield "took", f"{_seconds(average)} on average, {_seconds(worst)} at worst"


def _gauge(gauge: GaugeModel) -> str:
    """Where it is, and where it turns."""
    is_open = gauge.bounds is GaugeBounds.EXCLUSIVE
    turns = f"high {'above' if is_open else 'from'} {gauge.upper:g}, "
    turns += f"low {'below' if is_open else 'from'} {gauge.lower:g}{'' if is_open else ' down'}"
    if gauge.value is None or gauge.read_at is None:
        return f"not read yet; {turns}"
    return f"{gauge.value:g}, {gauge.side}, {ago(gauge.read_at)}; {turns}"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:g}"


def _said(value: object) -> str:
    match value:
        case timedelta():
            return duration(value)
        case dict():
            return orjson.dumps(value).decode()
    return str(value)


def _last_run(figures: Figures) -> Text:
    if figures.last_run_at is None:
        return Text("never", style="dim")
    text = Text(ago(figures.last_run_at))
    if figures.last_run_success is False:
        text.append(" (unsuccessful)", style="red")
    return text


def _rate(figures: Figures) -> str:
    rate = figures.success_rate_percent
    return "-" if rate is None else f"{rate:g}%"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _seconds(value: float) -> str:
    return span(timedelta(seconds=value))


def _schedule_cells(schedule: ScheduleModel) -> list[Cell]:
    (state, why), written = _state(schedule), timing(schedule)
    error = schedule.last_error if schedule.retry_count else None
    whole = why
    if state.plain == "paused" and schedule.paused_until is not None:
        whole = f"until {in_utc(schedule.paused_until)}"
    return [
        schedule.name,
        state,
        Shown(written, f"once, {in_utc(schedule.at)}" if schedule.at else written),
        schedule.zone,
        Shown(next_run(schedule), in_utc(schedule.next_run_at) if schedule.next_run_at else ""),
        _last_run_cell(schedule.figures),
        _rate(schedule.figures),
        meaning(schedule),
        Shown(_note(why, error), _note(whole, error)),
    ]


def _note(why: str, error: str | None) -> str:
    return ": ".join(note for note in (why.lstrip(":, "), error) if note)


def _last_run_cell(figures: Figures) -> Cell:
    if figures.last_run_at is None:
        return Shown(Text("never", style="dim"), "")
    # Shorter than where one schedule is shown, so that a column of them is narrow.
    has_failed = figures.last_run_success is False
    said = Text.assemble(ago(figures.last_run_at), (", failed" if has_failed else "", "red"))
    return Shown(said, in_utc(figures.last_run_at))


def _slot_cells(found: tuple[SlotModel, ZoneInfo]) -> list[Cell]:
    slot, zone = found
    return [
        Shown(
            f"{slot.scheduled_for.astimezone(zone):%Y-%m-%d %H:%M:%S %z}",
            in_utc(slot.scheduled_for),
        ),
        Text(slot.outcome, style=OUTCOME_STYLES[slot.outcome]),
        slot.run_state,
        timedelta(seconds=slot.lateness_seconds),
        None if slot.seconds is None else timedelta(seconds=slot.seconds),
        slot.trigger,
        "" if slot.job_id is None else str(slot.job_id),
        _number(slot.gauge_value),
        slot.message or slot.reason,
        _details(slot),
    ]


def _details(slot: SlotModel) -> str:
    if slot.is_details_omitted:
        return "omitted: over 8 KiB"
    return "" if slot.details is None else orjson.dumps(slot.details).decode()


SCHEDULES = Listing(
    Columns(
        names=(
            *("NAME", "STATE", "WHEN", "ZONE", "NEXT RUN"),
            *("LAST RUN", "SUCCESS", "MEANING", "NOTE"),
        ),
        dropped=("MEANING", "SUCCESS", "LAST RUN", "NEXT RUN"),
        text=("NOTE", "MEANING"),
    ),
    _schedule_cells,
)
SLOTS = Listing(
    Columns(
        names=(
            "SLOT",
            "OUTCOME",
            "RUN",
            "LATE",
            "TOOK",
            "TRIGGER",
            "JOB",
            "VALUE",
            "MESSAGE",
            "DETAILS",
        ),
        dropped=("TRIGGER", "LATE", "TOOK", "VALUE"),
        text=("MESSAGE", "DETAILS"),
    ),
    _slot_cells,
)
