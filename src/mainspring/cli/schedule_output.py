"""How schedules and their slots look on a terminal, and as JSON for programs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
from rich.table import Table
from rich.text import Text

from mainspring.cli.output import ago, console, span
from mainspring.domain import cron
from mainspring.domain.cron import find_zone
from mainspring.domain.errors import InvalidSchedule
from mainspring.domain.schedules import ScheduleSpec, ScheduleState
from mainspring.domain.slots import SlotOutcome
from mainspring.domain.timings import Fire
from mainspring.services.schedules import Filled, next_fires
from mainspring.store.slots import Slot

OUTCOME_STYLES = {
    SlotOutcome.PENDING: "cyan",
    SlotOutcome.ENQUEUED: "green",
    SlotOutcome.SKIPPED: "dim",
    SlotOutcome.FAILED: "red",
    SlotOutcome.MISSED: "yellow",
    SlotOutcome.COALESCED: "yellow",
}
_LONGEST_SENTENCE = 40
_LISTED = 20
_UNITS = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))
_DEFAULTS = ScheduleSpec(name="", definition="")
_TOLD_APART = {"name", "definition", "tenant_id", "enabled", "cron", "every", "at", "zone"} | {
    "payload",
    "description",
    "paused_until",
    "condition_role",
}


_FIGURES = (
    "total_runs",
    "successful_runs",
    "failed_runs",
    "success_rate_percent",
    "skipped_slots",
    "missed_slots",
    "failed_launches",
    "average_seconds",
    "worst_seconds",
    "average_lateness_seconds",
    "worst_lateness_seconds",
    "last_run_at",
    "last_run_success",
)


# For programs


def figures_of(state: ScheduleState) -> dict[str, Any]:
    return {name: state.figures[name] for name in _FIGURES}


def schedule_facts(state: ScheduleState) -> dict[str, Any]:
    """Flat; durations are in seconds."""
    facts = {name: _plain(value) for name, value in asdict(state.spec).items()}
    kept = {name: value for name, value in asdict(state).items() if name not in ("spec", "id")}
    return {"id": str(state.id), **facts, **kept, "figures": figures_of(state)}


def slot_facts(slot: Slot) -> dict[str, Any]:
    return {**asdict(slot), "job_id": None if slot.job_id is None else str(slot.job_id)}


def fire_facts(fire: Fire) -> dict[str, Any]:
    return {"at": in_utc(fire.at), "local": fire.local.isoformat(), "note": fire.note}


def filled_facts(filled: Filled) -> dict[str, Any]:
    slot_at, job_id = filled
    return {"slot_at": in_utc(slot_at), "job_id": None if job_id is None else str(job_id)}


def in_utc(instant: datetime) -> str:
    return instant.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _plain(value: object) -> object:
    return value.total_seconds() if isinstance(value, timedelta) else value


# For people


def print_schedules(states: Sequence[ScheduleState]) -> None:
    if not states:
        console.print("No schedules.")
        return
    names = ("NAME", "WHEN", "ZONE", "STATE", "LAST RUN", "SUCCESS", "NEXT RUN")
    table = _table(*names, wraps=("WHEN", "STATE"))
    for state in states:
        table.add_row(
            Text(state.spec.name),
            Text(when(state.spec, longest=_LONGEST_SENTENCE), overflow="ellipsis", no_wrap=True),
            state.spec.zone,
            state_text(state),
            _last_run(state.figures),
            _rate(state.figures),
            next_run(state),
        )
    console.print(table, highlight=False)


def print_schedule(state: ScheduleState, fires: Sequence[Fire]) -> None:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    for name, value in _facts_of(state):
        table.add_row(name, value)
    console.print(table, highlight=False)
    if fires:
        console.print()
        print_fires(fires)


def print_fires(fires: Sequence[Fire]) -> None:
    if not fires:
        console.print("No slots any more.")
        return
    table = _table("LOCAL", "UTC", "NOTE", wraps=("NOTE",))
    for fire in fires:
        table.add_row(fire.local.isoformat(sep=" "), in_utc(fire.at), fire.note or "")
    console.print(table, highlight=False)


def print_slots(state: ScheduleState, slots: Sequence[Slot]) -> None:
    if slots:
        zone = find_zone(state.spec.zone)
        names = ["SLOT", "OUTCOME", "RUN", "LATE", "TOOK", "TRIGGER", "JOB"]
        if has_reasons := any(slot.reason for slot in slots):
            names.append("REASON")
        table = _table(*names, wraps=("REASON",))
        for slot in slots:
            reason = [Text((slot.reason or "").partition("\n")[0])] if has_reasons else []
            table.add_row(
                f"{slot.scheduled_for.astimezone(zone):%Y-%m-%d %H:%M:%S %z}",
                Text(slot.outcome, style=OUTCOME_STYLES[slot.outcome]),
                slot.run_state or "",
                span(timedelta(seconds=slot.lateness_seconds)),
                "" if slot.seconds is None else span(timedelta(seconds=slot.seconds)),
                slot.trigger,
                "" if slot.job_id is None else str(slot.job_id),
                *reason,
            )
        console.print(table, highlight=False)
    else:
        console.print("No slots yet.")
    console.print(figures_line(state.figures), highlight=False)


def print_filled(filled: Sequence[Filled], *, is_dry: bool) -> None:
    if not filled:
        console.print("Nothing to do: every slot of the range had its job.")
        return
    for slot_at, job_id in filled[:_LISTED]:
        job = "" if job_id is None else f"  job {job_id}"
        console.print(f"{in_utc(slot_at)}{job}", highlight=False)
    if len(filled) > _LISTED:
        console.print(f"... and {len(filled) - _LISTED} more", highlight=False)
    done = "would be filled" if is_dry else "filled"
    console.print(f"{_count(len(filled), 'slot')} {done}", highlight=False)


def reach(filled: Sequence[Filled]) -> str:
    return f"{in_utc(filled[0][0])} to {in_utc(filled[-1][0])}"


def figures_line(figures: Mapping[str, Any]) -> str:
    """Skips are no runs: the rate is of those that ran."""
    runs = "no runs yet"
    if figures["total_runs"]:
        runs = (
            f"{_count(figures['total_runs'], 'run')}: {figures['successful_runs']} successful, "
            f"{figures['failed_runs']} failed, success rate {_rate(figures)}"
        )
    return (
        f"{runs}; {figures['skipped_slots']} skipped, {figures['missed_slots']} missed, "
        f"{_count(figures['failed_launches'], 'failed check')}"
    )


def when(spec: ScheduleSpec, *, longest: int | None = None) -> str:
    """The timing as it was written, and as a sentence where that helps."""
    if spec.every is not None:
        return f"every {duration(spec.every)}"
    if spec.at is not None:
        return f"once, {spec.at.astimezone(find_zone(spec.zone)):%Y-%m-%d %H:%M:%S}"
    try:
        sentence = cron.explain(spec.cron or "")
    except InvalidSchedule:
        return spec.cron or ""
    if longest is not None and len(sentence) > longest:
        sentence = f"{sentence[: longest - 1]}…"
    return f"{spec.cron} ({sentence[0].lower()}{sentence[1:]})"


def state_text(state: ScheduleState) -> Text:
    spec = state.spec
    if not spec.enabled:
        reason = f": {state.disabled_reason}" if state.disabled_reason else ""
        return Text(f"disabled{reason}", style="red" if state.retry_count else "yellow")
    if spec.paused_until is not None and spec.paused_until > datetime.now(UTC):
        local = spec.paused_until.astimezone(find_zone(spec.zone))
        return Text(f"paused until {local:%Y-%m-%d %H:%M}", style="yellow")
    if state.retry_count:
        return Text(f"failing, {state.retry_count} of {spec.max_retries} times", style="red")
    return Text("enabled", style="green")


def next_run(state: ScheduleState) -> str:
    """Planned, or as a scheduler would plan it."""
    if not state.spec.enabled:
        return ""
    instant = state.next_run_at or _first_fire(state)
    return "never" if instant is None else ahead(instant)


def ahead(instant: datetime) -> str:
    rest = instant - datetime.now(UTC)
    return f"in {span(rest)}" if rest > timedelta(0) else "now"


def duration(value: timedelta) -> str:
    """As the options take it, such as 1h30m."""
    rest, said = value.total_seconds(), ""
    for unit, size in _UNITS:
        count, rest = divmod(rest, size)
        said += f"{count:.0f}{unit}" if count else ""
    return said or f"{value.total_seconds():g}s"


def _first_fire(state: ScheduleState) -> datetime | None:
    if state.spec.at is not None and state.last_slot_at is None:
        return state.spec.at
    try:
        fires = next_fires(state, 1)
    except InvalidSchedule:
        return None
    return fires[0].at if fires else None


def _facts_of(state: ScheduleState) -> Iterator[tuple[str, Text | str]]:
    spec = state.spec
    yield "schedule", Text(f"{spec.name}{f' ({spec.description})' if spec.description else ''}")
    yield "state", state_text(state)
    yield "when", Text(f"{when(spec)}, {spec.zone}")
    yield "runs", Text(f"{spec.definition} {orjson.dumps(spec.payload).decode()}")
    for name, value in asdict(spec).items():
        if name not in _TOLD_APART and value != getattr(_DEFAULTS, name):
            yield name.replace("_", " "), Text(_said(value))
    if state.last_error and (state.retry_count or not spec.enabled):
        yield "last error", Text(state.last_error)
    yield "next run", next_run(state)
    yield "last run", _last_run(state.figures)
    yield "figures", figures_line(state.figures)
    if state.figures["average_seconds"] is not None:
        average, worst = state.figures["average_seconds"], state.figures["worst_seconds"]
        yield "took", f"{_seconds(average)} on average, {_seconds(worst)} at worst"


def _said(value: object) -> str:
    match value:
        case timedelta():
            return duration(value)
        case dict():
            return orjson.dumps(value).decode()
    return str(value)


def _table(*names: str, wraps: Sequence[str]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in names:
        table.add_column(name, overflow="fold" if name in wraps else "ellipsis")
        table.columns[-1].no_wrap = name not in wraps
    return table


def _last_run(figures: Mapping[str, Any]) -> Text:
    if figures["last_run_at"] is None:
        return Text("never", style="dim")
    text = Text(ago(datetime.fromisoformat(figures["last_run_at"])))
    if figures["last_run_success"] is False:
        text.append(" (unsuccessful)", style="red")
    return text


def _rate(figures: Mapping[str, Any]) -> str:
    rate = figures["success_rate_percent"]
    return "-" if rate is None else f"{rate:g}%"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _seconds(value: float) -> str:
    return span(timedelta(seconds=value))
