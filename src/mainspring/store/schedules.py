"""Statements on schedules: what the scheduler reads and writes, and what people do with them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
from psycopg import AsyncConnection
from psycopg.rows import dict_row

from mainspring.db.arrays import IntegerArray
from mainspring.db.calls import Call
from mainspring.db.statements import load
from mainspring.domain import calendars
from mainspring.domain.cron import DstFold, DstGap
from mainspring.domain.schedules import FIELD_NAMES, ScheduleSpec, ScheduleState
from mainspring.domain.slots import CatchUp, Misfires, Overlap, SlotOutcome
from mainspring.domain.timings import Timing
from mainspring.domain.types import TenantId

_STATEMENTS = load("schedules")
_NEVER = "infinity"
_INSTANTS = (
    "at",
    "starts_at",
    "ends_at",
    "paused_until",
    "anchor_at",
    "next_run_at",
    "last_slot_at",
    "last_enqueued_at",
    "last_skipped_at",
    "last_failed_at",
    "created_at",
    "updated_at",
)
_DURATIONS = (
    "every",
    "jitter",
    "misfire_grace",
    "catch_up_max_age",
    "run_timeout",
    "condition_timeout",
)


@dataclass(frozen=True, slots=True)
class DueGroup:
    """Schedules that are due and have the same next slot for the same reasons."""

    timing_facts: Mapping[str, Any]
    misfires: Misfires
    slot_at: datetime | None
    base_at: datetime | None
    now: datetime
    schedule_ids: list[int]
    turns: list[int]

    def timing(self) -> Timing:
        """Raises InvalidSchedule where plain SQL wrote what cannot be understood."""
        facts = dict(self.timing_facts)
        if facts["calendar"] is not None:
            facts["calendar"] = calendars.from_json(facts["calendar"])
        return Timing(**facts)


@dataclass(frozen=True, slots=True)
class DueSchedule:
    """A schedule that needs a look of its own."""

    schedule_id: int
    turn: int
    spec: ScheduleSpec
    anchor_at: datetime
    slot_at: datetime
    now: datetime
    gauge_is_high: bool
    retry_count: int
    is_forced: bool = False

    def timing(self) -> Timing:
        """Raises InvalidSchedule where plain SQL wrote what cannot be understood."""
        return replace(self.spec.timing, anchor_at=self.anchor_at)


@dataclass(frozen=True, slots=True)
class Firing:
    """Schedules of one group and the slots they move from and to."""

    schedule_ids: Sequence[int]
    turns: Sequence[int]
    slot_at: datetime | None
    next_slot_at: datetime | None

    def pairs(self) -> Iterator[tuple[int, int]]:
        return zip(self.schedule_ids, self.turns, strict=True)

    def part(self, start: int, end: int) -> "Firing":
        return replace(self, schedule_ids=self.schedule_ids[start:end], turns=self.turns[start:end])


@dataclass(frozen=True, slots=True)
class Fired:
    """What a set of firings came to."""

    slots: int
    jobs: int
    replaced: list[int]
    queues: set[str]


async def due(
    connection: AsyncConnection[Any],
    *,
    late: timedelta = timedelta(0),
    limit: int,
    now: datetime | None = None,
) -> list[DueGroup]:
    """Plain schedules that are due, and all that have no slot yet."""
    cursor = await connection.execute(
        _STATEMENTS["due"].sql, {"late": late, "limit": limit, "now": now}
    )
    return [_group(row) for row in await cursor.fetchall()]


async def due_checks(
    connection: AsyncConnection[Any],
    *,
    identity: str,
    late: timedelta = timedelta(0),
    limit: int,
    now: datetime | None = None,
) -> list[DueSchedule]:
    """Schedules that are due and have a condition; they are ours for a while."""
    params = {"identity": identity, "late": late, "limit": limit, "now": now}
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(_STATEMENTS["due_checks"].sql, params)
        return [due_schedule(row, row["next_slot_at"]) for row in await cursor.fetchall()]


async def next_fire(connection: AsyncConnection[Any]) -> float | None:
    """Seconds until a schedule is due; less than zero when one is."""
    cursor = await connection.execute(_STATEMENTS["next_fire"].sql)
    row = await cursor.fetchone()
    return row[0] if row else None


async def fire(connection: AsyncConnection[Any], firings: Sequence[Firing]) -> Fired:
    """One slot and one job for each schedule that is still as it was read."""
    # Rows are locked in one order everywhere, so that two schedulers cannot wait for each other.
    cursor = await connection.execute(_STATEMENTS["fire"].sql, _sets(firings))
    (row,) = await cursor.fetchall()
    return Fired(row[0], row[1], row[2], set(row[3] or ()))


async def replace_runs(connection: AsyncConnection[Any], schedule_ids: Sequence[int]) -> None:
    await connection.execute(
        _STATEMENTS["replace_runs"].sql, {"schedule_ids": IntegerArray(schedule_ids)}
    )


async def advance(connection: AsyncConnection[Any], firings: Sequence[Firing]) -> int:
    """Set next slots without firing; returns how many schedules were still as read."""
    params = {name: value for name, value in _sets(firings).items() if name != "slots"}
    cursor = await connection.execute(_STATEMENTS["advance"].sql, params)
    return cursor.rowcount


async def apply_plans(
    connection: AsyncConnection[Any], plans: Iterable[Mapping[str, Any]]
) -> list[SlotOutcome | None]:
    """What came of each schedule's newest slot; None if it was not as read any more."""
    params = {"plans": orjson.dumps(list(plans)).decode()}
    cursor = await connection.execute(_STATEMENTS["apply_plans"].sql, params)
    return [SlotOutcome(row[0]) if row[0] else None for row in await cursor.fetchall()]


async def refuse_timing(
    connection: AsyncConnection[Any],
    schedule_ids: Sequence[int],
    turns: Sequence[int],
    *,
    reason: str,
) -> None:
    """Disable schedules that cannot be understood."""
    await connection.execute(
        _STATEMENTS["refuse_timing"].sql,
        {
            "schedule_ids": IntegerArray(schedule_ids),
            "turns": IntegerArray(turns),
            "reason": reason,
        },
    )


async def lead(connection: AsyncConnection[Any]) -> bool:
    cursor = await connection.execute(_STATEMENTS["lead"].sql)
    row = await cursor.fetchone()
    return bool(row and row[0])


async def checkers(connection: AsyncConnection[Any]) -> list[str]:
    """The identities of the processes that look at schedules now."""
    cursor = await connection.execute(_STATEMENTS["checkers"].sql)
    return [row[0] for row in await cursor.fetchall() if row[0]]


async def drop_checks(connection: AsyncConnection[Any], identities: Sequence[str]) -> int:
    """How many schedules and slots were given back."""
    params = {"identities": list(identities)}
    cursor = await connection.execute(_STATEMENTS["drop_checks"].sql, params)
    row = await cursor.fetchone()
    return row[0] if row else 0


async def overdue_runs(connection: AsyncConnection[Any], *, limit: int) -> int:
    """How many runs were closed because they went on for too long."""
    cursor = await connection.execute(_STATEMENTS["overdue_runs"].sql, {"limit": limit})
    return sum(row[0] for row in await cursor.fetchall())


async def release_turns(connection: AsyncConnection[Any]) -> None:
    await connection.execute(_STATEMENTS["release_turns"].sql)


# What people do


def create(tenant_id: TenantId, spec: Mapping[str, Any]) -> Call:
    """The row is (schedule_id,)."""
    params = {"tenant_id": tenant_id, "spec": orjson.dumps(spec).decode()}
    return Call(_STATEMENTS["create_schedule"].sql, params)


def update(tenant_id: TenantId, name: str, changes: Mapping[str, Any]) -> Call:
    """The row is (schedule_id,)."""
    params = {"tenant_id": tenant_id, "name": name, "changes": orjson.dumps(changes).decode()}
    return Call(_STATEMENTS["update_schedule"].sql, params)


def declare(specs: Sequence[Mapping[str, Any]]) -> Call:
    """Each row is (name, what came of it)."""
    return Call(_STATEMENTS["declare_schedules"].sql, {"specs": orjson.dumps(list(specs)).decode()})


def delete(tenant_id: TenantId, name: str) -> Call:
    """One row if there was such a schedule."""
    params = {"tenant_id": tenant_id, "name": name}
    return Call(_STATEMENTS["delete_schedule"].sql, params)


def trigger(tenant_id: TenantId, name: str, *, force: bool) -> Call:
    """The row is (what came of it, as a dict)."""
    params = {"tenant_id": tenant_id, "name": name, "force": force}
    return Call(_STATEMENTS["trigger_schedule"].sql, params)


def get(tenant_id: TenantId, name: str) -> Call:
    """The row is (the schedule as text,), for `read_state`; no row if there is none."""
    params = {"tenant_id": tenant_id, "name": name}
    return Call(_STATEMENTS["get_schedule"].sql, params)


def read_state(text: str) -> ScheduleState:
    facts = orjson.loads(text)
    for name in _INSTANTS:
        if facts[name] is not None:
            facts[name] = datetime.fromisoformat(facts[name]).astimezone(UTC)
    for name in _DURATIONS:
        if facts[name] is not None:
            facts[name] = timedelta(seconds=facts[name])
    return _state(facts)


async def list_schedules(
    connection: AsyncConnection[Any],
    tenant_id: TenantId,
    *,
    after: str | None = None,
    enabled: bool | None = None,
    definition: str | None = None,
    limit: int = 50,
) -> list[ScheduleState]:
    """By name; page on with the last name as `after`."""
    params = {
        "tenant_id": tenant_id,
        "after": after,
        "enabled": enabled,
        "definition": definition,
        "limit": limit,
    }
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(_STATEMENTS["list_schedules"].sql, params)
        return [_state(row) for row in await cursor.fetchall()]


def names(tenant_id: TenantId) -> Call:
    """Each row is (name,)."""
    return Call(_STATEMENTS["schedule_names"].sql, {"tenant_id": tenant_id})


def due_schedule(row: Mapping[str, Any], slot_at: datetime) -> DueSchedule:
    return DueSchedule(
        schedule_id=row["schedule_id"],
        turn=row["turn"],
        spec=_spec(row),
        anchor_at=row["anchor_at"],
        slot_at=slot_at,
        now=row["now"],
        gauge_is_high=row["gauge_is_high"],
        retry_count=row["retry_count"],
        is_forced=row.get("is_forced", False),
    )


def _sets(firings: Sequence[Firing]) -> dict[str, Any]:
    rows = sorted(
        (schedule_id, turn, number)
        for number, firing in enumerate(firings, start=1)
        for schedule_id, turn in zip(firing.schedule_ids, firing.turns, strict=True)
    )
    schedule_ids, turns, numbers = zip(*rows, strict=True) if rows else ((), (), ())
    return {
        "schedule_ids": IntegerArray(schedule_ids),
        "turns": IntegerArray(turns),
        "numbers": IntegerArray(numbers),
        "slots": [_text(firing.slot_at) for firing in firings],
        "next_slots": [_text(firing.next_slot_at) for firing in firings],
    }


def _text(instant: datetime | None) -> str:
    return _NEVER if instant is None else instant.isoformat()


def _group(row: tuple[Any, ...]) -> DueGroup:
    cron, every, at, zone, gap, fold, calendar, starts_at, ends_at, paused_until = row[:10]
    anchor, spread, grace, catch_up, limit, max_age, slot_at, base_at, now, ids, turns = row[10:]
    facts = {
        "cron": cron,
        "every": every,
        "at": at,
        "zone": zone,
        "gap": DstGap(gap),
        "fold": DstFold(fold),
        "calendar": calendar,
        "starts_at": starts_at,
        "ends_at": ends_at,
        "anchor_at": anchor,
        "spread_key": spread or "",
    }
    if base_at is not None and paused_until is not None:
        base_at = max(base_at, paused_until)
    misfires = Misfires(grace, CatchUp(catch_up), limit, max_age)
    return DueGroup(facts, misfires, slot_at, base_at, now, ids, turns)


def _spec(row: Mapping[str, Any]) -> ScheduleSpec:
    facts = {name: row[name] for name in FIELD_NAMES}
    facts["dst_gap"], facts["dst_fold"] = DstGap(row["dst_gap"]), DstFold(row["dst_fold"])
    facts["catch_up"], facts["overlap"] = CatchUp(row["catch_up"]), Overlap(row["overlap"])
    return ScheduleSpec(**facts)


def _state(row: Mapping[str, Any]) -> ScheduleState:
    figures = row["figures"]
    is_planned = row["next_slot_at"] is not None
    return ScheduleState(
        id=row["schedule_id"],
        spec=_spec(row),
        anchor_at=row["anchor_at"],
        next_run_at=row["next_run_at"] if is_planned else None,
        disabled_reason=row["disabled_reason"],
        retry_count=row["retry_count"],
        last_error=row["last_error"],
        last_slot_at=row["last_slot_at"],
        last_enqueued_at=row["last_enqueued_at"],
        last_skipped_at=row["last_skipped_at"],
        last_failed_at=row["last_failed_at"],
        figures=figures,
        created_at=row["created_at"],
        updated_at=row["updated_at"],
    )
