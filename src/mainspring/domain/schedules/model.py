"""A schedule as a person decides it, and as it stands.

Field names are those of the table, so that every interface and plain SQL use the same words.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from math import isfinite
from typing import Any

from mainspring.domain import templates
from mainspring.domain.errors import InvalidOption, InvalidSchedule
from mainspring.domain.jobs.options import (
    MAX_KEY_LENGTH,
    MAX_TEXT_LENGTH,
    ensure_delivery,
    ensure_queue,
)
from mainspring.domain.schedules import calendars, timing
from mainspring.domain.schedules.conditions import Gauge, GaugeBounds
from mainspring.domain.schedules.cron import DstFold, DstGap, find_zone
from mainspring.domain.schedules.slots import CatchUp, Misfires, Overlap
from mainspring.domain.schedules.timing import Timing
from mainspring.domain.suggestions import did_you_mean
from mainspring.domain.types import (
    DEFAULT_QUEUE,
    DEFAULT_TENANT,
    LONGEST_DELAY,
    Delivery,
    SlotTrigger,
    TenantId,
)

# What a payload template may refer to.
TEMPLATE_NAMES = frozenset({"slot_at", "local_at", "schedule", "trigger", "missed", "tenant"})
_LONGEST: Mapping[str, int] = {
    "name": 200,
    "definition": 200,
    "description": MAX_TEXT_LENGTH,
    "launcher": MAX_KEY_LENGTH,
    "condition_role": MAX_KEY_LENGTH,
    "condition_sql": MAX_TEXT_LENGTH,
    "gauge_sql": MAX_TEXT_LENGTH,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleSpec:
    """Everything about a schedule that a person decides; exactly one of cron, every, at."""

    name: str
    definition: str
    tenant_id: TenantId = DEFAULT_TENANT
    description: str = ""
    enabled: bool = True
    cron: str | None = None
    every: timedelta | None = None
    at: datetime | None = None
    zone: str = "UTC"
    dst_gap: DstGap = DstGap.RUN_AFTER
    dst_fold: DstFold = DstFold.ONCE
    calendar: Mapping[str, Any] | None = None
    starts_at: datetime | None = None
    ends_at: datetime | None = None
    jitter: timedelta = timedelta(0)
    payload: Mapping[str, Any] = field(default_factory=dict)
    queue: str | None = None
    priority: int | None = None
    max_attempts: int | None = None
    delivery: Delivery | None = None
    misfire_grace: timedelta = timedelta(minutes=1)
    catch_up: CatchUp = CatchUp.LATEST
    catch_up_limit: int = 100
    catch_up_max_age: timedelta | None = None
    overlap: Overlap = Overlap.SKIP
    max_running: int = 1
    run_timeout: timedelta | None = None
    launcher: str | None = None
    condition_sql: str | None = None
    gauge_sql: str | None = None
    gauge_lower: float | None = None
    gauge_upper: float | None = None
    gauge_bounds: GaugeBounds | None = None
    condition_role: str | None = None
    condition_timeout: timedelta = timedelta(seconds=10)
    max_retries: int = 5
    paused_until: datetime | None = None

    @property
    def timing(self) -> Timing:
        return Timing(
            cron=self.cron,
            every=self.every,
            at=self.at,
            zone=self.zone,
            gap=DstGap(self.dst_gap),
            fold=DstFold(self.dst_fold),
            calendar=calendars.from_json(self.calendar) if self.calendar is not None else None,
            starts_at=self.starts_at,
            ends_at=self.ends_at,
            spread_key=self.name,
        )

    @property
    def misfires(self) -> Misfires:
        return Misfires(
            self.misfire_grace,
            CatchUp(self.catch_up),
            self.catch_up_limit,
            self.catch_up_max_age,
        )


FIELD_NAMES = tuple(part.name for part in fields(ScheduleSpec))
# What other schedulers call them.
_ELSEWHERE: Mapping[str, str] = {
    "args": "payload",
    "coalesce": "catch_up",
    "crontab": "cron",
    "end_date": "ends_at",
    "interval": "every",
    "kwargs": "payload",
    "max_instances": "max_running",
    "misfire_grace_time": "misfire_grace",
    "run_date": "at",
    "start_date": "starts_at",
    "timezone": "zone",
    "tz": "zone",
}
_TEXTS = (
    "name",
    "definition",
    "queue",
    "launcher",
    "condition_sql",
    "gauge_sql",
    "condition_role",
)
WORDS: Mapping[str, type[DstGap | DstFold | CatchUp | Overlap | GaugeBounds | Delivery]] = {
    "dst_gap": DstGap,
    "dst_fold": DstFold,
    "catch_up": CatchUp,
    "overlap": Overlap,
    "gauge_bounds": GaugeBounds,
    "delivery": Delivery,
}
_LEFT_OUT = frozenset({"gauge_bounds", "delivery"})
_NUMBERS: Mapping[str, tuple[int, int]] = {
    "priority": (0, 1000),
    "max_attempts": (1, 1000),
    "catch_up_limit": (1, 10_000),
    "max_running": (1, 1000),
    "max_retries": (1, 1000),
}
_DURATIONS: Mapping[str, tuple[timedelta, timedelta]] = {
    "jitter": (timedelta(0), LONGEST_DELAY),
    "misfire_grace": (timedelta(0), LONGEST_DELAY),
    "catch_up_max_age": (timedelta(seconds=1), LONGEST_DELAY),
    "run_timeout": (timedelta(seconds=1), LONGEST_DELAY),
    "condition_timeout": (timedelta(milliseconds=1), timedelta(days=1)),
    "every": (timedelta(seconds=1), LONGEST_DELAY),
}


def ensure_fields(names: Mapping[str, object]) -> None:
    """Raise InvalidSchedule for a field that there is not."""
    for name in names:
        if name not in FIELD_NAMES:
            raise InvalidSchedule(name, f"is not a field of a schedule{field_hint(name)}")


def field_hint(name: str) -> str:
    """The field that was meant, as the end of a sentence; empty if there is none."""
    if name in _ELSEWHERE:
        return f"; use {_ELSEWHERE[name]}"
    return did_you_mean(name, FIELD_NAMES)


def word_list(name: str) -> str | None:
    """The words that a field takes, such as "none, latest or all"; None if it takes others."""
    if name not in WORDS:
        return None
    *most, last = WORDS[name]
    return f"{', '.join(most)} or {last}"


def ensure_spec(spec: ScheduleSpec) -> None:
    """Raise InvalidSchedule naming the field that is wrong, InvalidTemplate for the payload."""
    _ensure_texts(spec)
    _ensure_words(spec)
    _ensure_ranges(spec)
    timing.ensure_timing(spec.timing)
    _ensure_condition(spec)
    if not isinstance(spec.payload, Mapping):
        raise InvalidSchedule("payload", "must be a JSON object")
    templates.check(spec.payload, TEMPLATE_NAMES)


def _ensure_texts(spec: ScheduleSpec) -> None:
    for name in _TEXTS:
        value = getattr(spec, name)
        if value is not None and not value.strip():
            raise InvalidSchedule(name, "must not be empty")
    for name, longest in _LONGEST.items():
        if len(getattr(spec, name) or "") > longest:
            raise InvalidSchedule(name, f"must have at most {longest} characters")
    try:
        ensure_queue(spec.queue or DEFAULT_QUEUE)
    except InvalidOption as error:
        raise InvalidSchedule("queue", error.problem) from error


def template_values(
    spec: ScheduleSpec, slot_at: datetime, trigger: SlotTrigger, *, missed: int
) -> dict[str, Any]:
    """What the names of a payload template stand for in one slot."""
    return {
        "slot_at": slot_at,
        "local_at": slot_at.astimezone(find_zone(spec.zone)).isoformat(),
        "schedule": spec.name,
        "trigger": str(trigger),
        "missed": missed,
        "tenant": spec.tenant_id,
    }


def _ensure_words(spec: ScheduleSpec) -> None:
    for name, words in WORDS.items():
        value = getattr(spec, name)
        if value not in tuple(words) and (value is not None or name not in _LEFT_OUT):
            known = ", ".join(words)
            raise InvalidSchedule(name, f"must be one of {known}, not {value!r}")
    try:
        ensure_delivery(spec.delivery, spec.max_attempts)
    except InvalidOption as error:
        raise InvalidSchedule(error.option, error.problem) from error


def _ensure_ranges(spec: ScheduleSpec) -> None:
    for name, (low, high) in _NUMBERS.items():
        value = getattr(spec, name)
        if value is not None and not low <= value <= high:
            raise InvalidSchedule(name, f"must be from {low} to {high}, not {value}")
    for name, (shortest, longest) in _DURATIONS.items():
        value = getattr(spec, name)
        if value is not None and value < shortest:
            raise InvalidSchedule(name, f"must be {_said(shortest)} or more, not {_said(value)}")
        if value is not None and value > longest:
            raise InvalidSchedule(name, f"must be {_days(longest)} or less, not {value}")


def _ensure_condition(spec: ScheduleSpec) -> None:
    conditions = (spec.launcher, spec.condition_sql, spec.gauge_sql)
    if sum(condition is not None for condition in conditions) > 1:
        raise InvalidSchedule(
            "condition", "give at most one of launcher, condition_sql and gauge_sql"
        )
    bounds = (spec.gauge_lower, spec.gauge_upper)
    if spec.gauge_sql is None:
        if any(bound is not None for bound in bounds):
            raise InvalidSchedule("gauge_sql", "is required with gauge_lower and gauge_upper")
        if spec.gauge_bounds is not None:
            raise InvalidSchedule("gauge_sql", "is required with gauge_bounds")
    elif spec.gauge_lower is None or spec.gauge_upper is None:
        raise InvalidSchedule("gauge", "needs gauge_lower and gauge_upper")
    elif not (isfinite(spec.gauge_lower) and isfinite(spec.gauge_upper)):
        raise InvalidSchedule("gauge", "needs finite numbers for gauge_lower and gauge_upper")
    elif spec.gauge_lower > spec.gauge_upper:
        raise InvalidSchedule("gauge_lower", "must not be above gauge_upper")


def _days(duration: timedelta) -> str:
    return "1 day" if duration.days == 1 else f"{duration.days:,} days"


def _said(duration: timedelta) -> str:
    return f"{duration.total_seconds():g} s"


@dataclass(frozen=True, slots=True)
class ScheduleState:
    """A schedule with its results so far."""

    id: int
    spec: ScheduleSpec
    anchor_at: datetime
    next_run_at: datetime | None
    next_slot_at: datetime | None
    disabled_reason: str | None
    retry_count: int
    last_error: str | None
    last_slot_at: datetime | None
    last_enqueued_at: datetime | None
    last_skipped_at: datetime | None
    last_failed_at: datetime | None
    gauge: Gauge | None
    figures: Mapping[str, Any]
    created_at: datetime
    updated_at: datetime

    @property
    def problem(self) -> str | None:
        """Why it would fail if it fired now; None if nothing is known to be wrong."""
        problem = self.figures["problem"]
        return None if problem is None else str(problem)
