"""Schedules, slots and previews in requests and answers."""

from dataclasses import fields
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from mainspring.api.models.base import (
    Answer,
    Body,
    DurationIn,
    DurationOut,
    IdOut,
    InstantIn,
    LongText,
    Name,
    Object,
    Text,
)
from mainspring.api.models.jobs import Priority
from mainspring.domain.schedules.conditions import Gauge, GaugeBounds, GaugeSide
from mainspring.domain.schedules.cron import DstFold, DstGap
from mainspring.domain.schedules.model import ScheduleSpec, ScheduleState
from mainspring.domain.schedules.slots import CatchUp, Overlap, SlotOutcome
from mainspring.domain.schedules.timing import Fire
from mainspring.domain.types import Delivery, SlotTrigger
from mainspring.services.next_slots import planned
from mainspring.store.schedules import Triggered
from mainspring.store.slots import Slot


class ScheduleModel(Answer):
    """When a definition is enqueued, with its policies and results so far."""

    name: str
    tenant: str
    definition: str
    description: str
    is_enabled: bool
    cron: str | None
    every: DurationOut | None
    at: datetime | None
    zone: str
    dst_gap: DstGap
    dst_fold: DstFold
    calendar: Object | None
    starts_at: datetime | None
    ends_at: datetime | None
    jitter: DurationOut
    payload: Object
    queue: str | None
    priority: int | None
    max_attempts: int | None
    delivery: Delivery | None = Field(description="Null for that of the definition.")
    misfire_grace: DurationOut
    catch_up: CatchUp
    catch_up_limit: int
    catch_up_max_age: DurationOut | None
    overlap: Overlap
    max_running: int
    run_timeout: DurationOut | None
    launcher: str | None
    condition_sql: str | None
    gauge_sql: str | None
    gauge_lower: float | None
    gauge_upper: float | None
    gauge_bounds: GaugeBounds | None
    condition_role: str | None
    condition_timeout: DurationOut
    max_retries: int
    paused_until: datetime | None
    next_run_at: datetime | None = Field(
        description="When the schedule fires next; null if it will not fire again, and in lists "
        "if it has a calendar and no scheduler has planned it yet."
    )
    problem: str | None = Field(
        description="Why it would fail if it fired now, such as a definition that was deactivated; "
        "null if nothing is known to be wrong."
    )
    disabled_reason: str | None
    retry_count: int
    last_error: str | None
    last_slot_at: datetime | None
    last_enqueued_at: datetime | None
    last_skipped_at: datetime | None
    last_failed_at: datetime | None
    gauge: "GaugeModel | None" = Field(description="What its gauge said last; null without one.")
    figures: "Figures"
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, state: ScheduleState, next_run_at: datetime | None = None) -> "ScheduleModel":
        spec = state.spec
        own = {part.name: getattr(spec, part.name) for part in fields(spec)}
        own |= {"tenant": own.pop("tenant_id"), "is_enabled": own.pop("enabled")}
        own |= {"payload": dict(spec.payload)}
        own |= {"calendar": None if spec.calendar is None else dict(spec.calendar)}
        facts = {name: getattr(state, name) for name in cls.model_fields if hasattr(state, name)}
        facts |= {"next_run_at": next_run_at or planned(state)}
        facts |= {"figures": Figures.of(state.figures)}
        facts["gauge"] = None if state.gauge is None else GaugeModel.of(state.gauge)
        return cls.model_construct(**{**own, **facts})


class GaugeModel(Answer):
    """A gauge: its last value, the side it is on, and its thresholds. With inclusive bounds a value
    that equals a threshold has reached it."""

    value: float | None = Field(description="Null before the first reading.")
    side: GaugeSide
    lower: float
    upper: float
    bounds: GaugeBounds
    read_at: datetime | None

    @classmethod
    def of(cls, gauge: Gauge) -> "GaugeModel":
        return cls.model_construct(**{name: getattr(gauge, name) for name in cls.model_fields})


class Figures(Answer):
    """Results of a schedule's slots and runs."""

    total_runs: int
    successful_runs: int
    failed_runs: int
    skipped_slots: int
    missed_slots: int
    failed_launches: int
    success_rate_percent: float | None
    average_seconds: float | None
    worst_seconds: float | None
    average_lateness_seconds: float | None
    worst_lateness_seconds: float | None
    last_run_at: datetime | None
    last_run_success: bool | None

    @classmethod
    def of(cls, figures: Any) -> "Figures":
        known = {name: figures[name] for name in cls.model_fields}
        last = known["last_run_at"]
        known["last_run_at"] = None if last is None else datetime.fromisoformat(last)
        return cls.model_construct(**known)


class ScheduleFields(Body):
    """Fields of a schedule. Durations are in seconds; set exactly one of cron, every and at."""

    description: LongText | None = None
    is_enabled: bool | None = None
    cron: Text | None = None
    every: DurationIn | None = None
    at: InstantIn | None = None
    zone: Text | None = None
    dst_gap: Literal["run_after", "skip"] | None = None
    dst_fold: Literal["once", "both"] | None = None
    calendar: Object | None = None
    starts_at: InstantIn | None = None
    ends_at: InstantIn | None = None
    jitter: DurationIn | None = None
    payload: Object | None = None
    queue: Text | None = None
    priority: Priority | None = None
    max_attempts: Annotated[int, Field(ge=1, le=1000)] | None = None
    delivery: Literal["at_least_once", "at_most_once"] | None = Field(
        None, description="at_most_once: a job whose worker died is not run again."
    )
    misfire_grace: DurationIn | None = None
    catch_up: Literal["none", "latest", "all"] | None = None
    catch_up_limit: Annotated[int, Field(ge=1, le=10_000)] | None = None
    catch_up_max_age: DurationIn | None = None
    overlap: Literal["skip", "queue", "replace"] | None = None
    max_running: Annotated[int, Field(ge=1, le=1000)] | None = None
    run_timeout: DurationIn | None = None
    launcher: Text | None = None
    condition_sql: LongText | None = None
    gauge_sql: LongText | None = None
    gauge_lower: float | None = None
    gauge_upper: float | None = None
    gauge_bounds: Literal["inclusive", "exclusive"] | None = None
    condition_role: Text | None = None
    condition_timeout: DurationIn | None = None
    max_retries: Annotated[int, Field(ge=1, le=1000)] | None = None
    paused_until: InstantIn | None = None

    def read(self) -> dict[str, Any]:
        """The fields that were given, with the names of columns."""
        facts = self.given()
        if "is_enabled" in facts:
            facts["enabled"] = facts.pop("is_enabled")
        return facts


class NewSchedule(ScheduleFields):
    """A schedule to create."""

    name: Name
    definition: Name


class ScheduleChanges(ScheduleFields):
    """Fields to change; a new timing or condition replaces the old one."""

    name: Name | None = None
    definition: Name | None = None


class Disabling(Body):
    """Why the schedule is disabled."""

    reason: LongText | None = None


class Pause(Body):
    """Until when the schedule is paused; until it is resumed if omitted."""

    until: InstantIn | None = None


class Firing(Body):
    """How to fire a schedule now: `slot` claims a past slot that has no job, instead of an extra
    one; `force` skips its condition; `wait` is how many seconds to wait for a scheduler to check
    the condition."""

    slot: InstantIn | None = None
    force: bool = False
    wait: Annotated[float, Field(ge=0, le=30)] = 0


class TriggeredModel(Answer):
    """The result of firing a schedule manually; a pending slot waits for a scheduler."""

    outcome: SlotOutcome
    slot_at: datetime
    job_id: IdOut | None
    message: str

    @classmethod
    def of(cls, fired: Triggered) -> "TriggeredModel":
        return cls.model_construct(
            outcome=fired.outcome,
            slot_at=fired.slot_at,
            job_id=fired.job_id,
            message=fired.message,
        )


class Range(Body):
    """Which past slots to backfill; a dry run only lists them."""

    start: InstantIn
    end: InstantIn
    limit: Annotated[int, Field(ge=1, le=10_000)] = 1000
    dry_run: bool = False


class FilledModel(Answer):
    """A slot that was backfilled, or would be."""

    slot_at: datetime
    job_id: IdOut | None


class Filling(Answer):
    """The slots in a range that had no job."""

    items: list[FilledModel]


class SlotModel(Answer):
    """One instant a schedule was due, with its outcome."""

    scheduled_for: datetime
    outcome: SlotOutcome
    trigger: SlotTrigger
    reason: str | None
    missed: int
    job_id: IdOut | None
    fired_at: datetime
    lateness_seconds: float
    run_state: str | None
    seconds: float | None
    gauge_value: float | None = Field(description="What the gauge of the schedule said, if any.")
    started_at: datetime | None = Field(description="When the run started, once it has ended.")
    finished_at: datetime | None = Field(description="When the run ended.")
    message: str | None = Field(
        description="The message of the run's result, up to 2,000 characters."
    )
    details: Any = Field(
        description="The details of the run's result; all of a result that has neither message nor "
        "details."
    )
    is_details_omitted: bool = Field(description="Whether the details are over 8 KiB.")

    @classmethod
    def of(cls, slot: Slot) -> "SlotModel":
        return cls.model_construct(**{name: getattr(slot, name) for name in cls.model_fields})


class FireModel(Answer):
    """A future slot, in UTC and in the schedule's time zone; `note` says how a clock change moves
    it."""

    at: datetime
    local: datetime
    note: str | None

    @classmethod
    def of(cls, fire: Fire) -> "FireModel":
        return cls.model_construct(at=fire.at, local=fire.local, note=fire.note)


def spec_facts(spec: ScheduleSpec) -> dict[str, Any]:
    """What a change has to know of a schedule."""
    return {part.name: str(getattr(spec, part.name)) for part in fields(spec)}
