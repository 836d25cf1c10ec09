"""What is due: read and planned a batch at a time, and written as sets where that can be.

A schedule of a set that was not fired is asked for by itself the next time: someone else fired or
changed it, its slot was claimed before, its job cannot be written, or its row is locked and held up
the others.

Most are planned in microseconds. Those with a calendar, or that are late, may take thousands of
times longer: they are planned in a thread, the simplest calendars first, and for a while only. What
is left then stays due and is read again, so they delay what others have due by that while at most.
"""

import asyncio
import time
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, TypeAlias

import psycopg
from psycopg import AsyncConnection

from mainspring import telemetry
from mainspring.domain.errors import InputError
from mainspring.domain.schedules import slots
from mainspring.domain.schedules.conditions import Run
from mainspring.domain.schedules.timing import first_slot
from mainspring.domain.sqlstates import is_of_a_row
from mainspring.runtime.scheduler.evaluator import plan_facts
from mainspring.runtime.scheduler.plans import carry_out
from mainspring.store import due_schedules, workers
from mainspring.store.due_schedules import DueGroup, Fired, FiredSlots, Firing

Key: TypeAlias = tuple[int, int]  # A schedule and its revision.

_BATCH = 5000
_PLANS_AT_ONCE = 200
_LATE = timedelta(minutes=1)
_SLOW_PLANS_SECONDS = 0.2


@dataclass(slots=True)
class Batch:
    """What is to be written for schedules that are due."""

    size: int = 0
    firsts: list[Firing] = field(default_factory=list)
    plain: list[Firing] = field(default_factory=list)
    special: list[dict[str, Any]] = field(default_factory=list)
    is_cut: bool = False
    """Whether some that were read are not planned yet."""

    @property
    def is_full(self) -> bool:
        """Whether there may be more that is due."""
        return self.size == _BATCH


@dataclass(frozen=True, slots=True)
class Written:
    """How many schedules got their first slot and how many were fired; whom a set left out."""

    moved: int
    fired: int
    unfired: AbstractSet[Key]


async def read(
    connection: AsyncConnection[Any],
    *,
    late: timedelta = timedelta(0),
    skip: int = 0,
    alone: AbstractSet[Key] = frozenset(),
    now: datetime | None = None,
) -> Batch:
    """What is due, after some that are being written, and what is to become of it; or what is to
    become of what will be due then."""
    groups = await due_schedules.due(connection, late=late, limit=_BATCH, skip=skip, now=now)
    batch = Batch(sum(len(group.schedule_ids) for group in groups))
    wrong = _plan_some([group for group in groups if not _is_slow(group)], batch, alone)
    if slow := sorted(filter(_is_slow, groups), key=_calendar_size):
        until = time.monotonic() + _SLOW_PLANS_SECONDS
        wrong += await asyncio.to_thread(_plan_some, slow, batch, alone, until=until)
    for group, error in wrong:
        await _refuse(connection, group, error)
    return batch


async def write(connection: AsyncConnection[Any], batch: Batch) -> Written:
    moved = await due_schedules.advance(connection, batch.firsts) if batch.firsts else 0
    asked = sum(len(firing.schedule_ids) for firing in batch.plain)
    fired = await _fire_set(connection, batch.plain) if asked else 0
    unfired = {key for firing in batch.plain for key in firing.pairs()} if fired < asked else set()
    for start in range(0, len(batch.special), _PLANS_AT_ONCE):
        some = batch.special[start : start + _PLANS_AT_ONCE]
        applied = [each for each in await carry_out(connection, some) if each is not None]
        _log([each.fired for each in applied if each.fired is not None])
        fired += len(applied)
    return Written(moved, fired, unfired)


def ensure_written(answer: Written | BaseException) -> Written:
    if isinstance(answer, BaseException):
        raise answer
    return answer


def _is_slow(group: DueGroup) -> bool:
    """Whether it may take long to plan: it has a calendar, or many slots that were missed."""
    is_late = group.slot_at is not None and group.now - group.slot_at > _LATE
    return is_late or group.timing_facts["calendar"] is not None


def _calendar_size(group: DueGroup) -> int:
    # As plain SQL may have written it.
    calendar = group.timing_facts["calendar"]
    parts = calendar.values() if isinstance(calendar, dict) else ()
    return sum(len(part) for part in parts if isinstance(part, list))


def _plan_some(
    groups: Iterable[DueGroup],
    batch: Batch,
    alone: AbstractSet[Key],
    *,
    until: float | None = None,
) -> list[tuple[DueGroup, Exception]]:
    """Plan them, or as many as there is time for and one at the least; those that cannot be."""
    wrong = []
    for number, group in enumerate(groups):
        if until is not None and number > 0 and time.monotonic() > until:
            batch.is_cut = True
            break
        try:
            _plan(group, batch, alone)
        except Exception as error:  # noqa: BLE001 - one schedule must not hold up the others
            wrong.append((group, error))
    return wrong


def _plan(group: DueGroup, batch: Batch, alone: AbstractSet[Key]) -> None:
    timing = group.timing()
    if group.slot_at is None:
        # A date that has passed is due at once.
        first = first_slot(timing, group.base_at or group.now)
        batch.firsts.append(group.firing(first))
        return
    plan = slots.plan(timing, group.misfires, group.slot_at, now=group.now)
    firing = group.firing(plan.next_slot_at)
    if plan.is_plain and (not alone or alone.isdisjoint(firing.pairs())):
        batch.plain.append(firing)
        return
    facts = plan_facts(plan, Run())
    batch.special += [
        {**facts, "schedule_id": schedule_id, "revision": revision}
        for schedule_id, revision in firing.pairs()
    ]


async def _refuse(connection: AsyncConnection[Any], group: DueGroup, error: Exception) -> None:
    """A timing that only the program can read, and cannot: it was written by plain SQL."""
    reason = str(error) if isinstance(error, InputError) else repr(error)
    names = await due_schedules.refuse_timing(
        connection, group.schedule_ids, group.revisions, reason=reason
    )
    facts = {"count": len(names), "schedules": telemetry.first(names)}
    telemetry.event("schedule_disabled", **facts, slot=group.slot_at, error=reason)


async def _fire_set(connection: AsyncConnection[Any], firings: list[Firing]) -> int:
    """How many slots were written."""
    try:
        async with connection.transaction():
            fired = await due_schedules.fire(connection, firings)
            await _after_fire(connection, fired)
    except psycopg.Error as error:
        is_deadlock = isinstance(error, psycopg.errors.DeadlockDetected)
        if not is_deadlock and not is_of_a_row(error.sqlstate):
            raise
        return 0
    if fired.slots:
        telemetry.event("slots_fired", **fired.log_facts())
    return fired.slots


def _log(fired: Sequence[FiredSlots]) -> None:
    """The slots of plans; those of a single schedule with their instants."""
    count = sum(len(each.slots) for each in fired)
    if len(fired) == 1:
        telemetry.event("slots_fired", **fired[0].log_facts(), jobs=count)
    elif fired:
        schedules = telemetry.first(each.schedule for each in fired)
        job_ids = telemetry.first(job_id for each in fired for job_id in each.job_ids)
        telemetry.event(
            "slots_fired", count=count, jobs=count, schedules=schedules, job_ids=job_ids
        )


async def _after_fire(connection: AsyncConnection[Any], fired: Fired) -> None:
    if fired.replaced:
        await due_schedules.replace_runs(connection, fired.replaced)
    if fired.queues:
        await workers.wake(connection, fired.queues)
