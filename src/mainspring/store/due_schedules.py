"""Statements on the clocks of schedules: what the scheduler reads and writes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from mainspring import telemetry
from mainspring.db.arrays import IntegerArray
from mainspring.db.sessions import Session, fetch_mappings
from mainspring.db.statements import load
from mainspring.domain.schedules import calendars
from mainspring.domain.schedules.cron import DstFold, DstGap
from mainspring.domain.schedules.model import ScheduleSpec
from mainspring.domain.schedules.slots import CatchUp, Misfires, SlotOutcome
from mainspring.domain.schedules.timing import Timing
from mainspring.domain.types import JobId
from mainspring.store.rows.schedules import read_spec

_STATEMENTS = load("due_schedules")
_NEVER = "infinity"


@dataclass(frozen=True, slots=True)
class DueGroup:
    """Schedules that are due and have the same next slot for the same reasons."""

    timing_facts: Mapping[str, Any]
    misfires: Misfires
    definition: str
    slot_at: datetime | None
    base_at: datetime | None
    now: datetime
    schedule_ids: list[int]
    revisions: list[int]
    places: str
    """Where their rows were, as PostgreSQL writes it."""

    def firing(self, next_slot_at: datetime | None) -> "Firing":
        return Firing(
            self.schedule_ids,
            self.revisions,
            self.places,
            slot_at=self.slot_at,
            next_slot_at=next_slot_at,
            definition=self.definition,
        )

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
    revision: int
    spec: ScheduleSpec
    anchor_at: datetime
    slot_at: datetime
    now: datetime
    gauge_is_high: bool
    retry_count: int
    is_forced: bool = False

    @classmethod
    def of(cls, row: Mapping[str, Any], slot_at: datetime) -> "DueSchedule":
        return cls(
            schedule_id=row["schedule_id"],
            revision=row["revision"],
            spec=read_spec(row),
            anchor_at=row["anchor_at"],
            slot_at=slot_at,
            now=row["now"],
            gauge_is_high=row["gauge_is_high"],
            retry_count=row["retry_count"],
            is_forced=row.get("is_forced", False),
        )

    def log_facts(self) -> dict[str, Any]:
        """What every log line about the slot names."""
        spec = self.spec
        names = {"tenant": spec.tenant_id, "definition": spec.definition, "schedule": spec.name}
        return {**names, "slot": self.slot_at}

    def timing(self) -> Timing:
        """Raises InvalidSchedule where plain SQL wrote what cannot be understood."""
        return replace(self.spec.timing, anchor_at=self.anchor_at)


@dataclass(frozen=True, slots=True)
class Firing:
    """Schedules of one group and the slots they move from and to."""

    schedule_ids: Sequence[int]
    revisions: Sequence[int]
    places: str
    slot_at: datetime | None
    next_slot_at: datetime | None
    definition: str

    def pairs(self) -> Iterator[tuple[int, int]]:
        return zip(self.schedule_ids, self.revisions, strict=True)


@dataclass(frozen=True, slots=True)
class Fired:
    """What a set of firings came to."""

    slots: int
    jobs: int
    replaced: list[int]
    queues: set[str]
    schedules: list[str]
    """Names of the first few, as log lines have them; `job_ids` likewise."""
    job_ids: list[int]
    first: list[str] | None
    """Tenant, definition and slot of the first."""

    def log_facts(self) -> dict[str, Any]:
        if self.slots > 1 or self.first is None:
            names = {"schedules": self.schedules, "job_ids": self.job_ids}
            return {"count": self.slots, "jobs": self.jobs, **names}
        tenant, definition, slot = self.first
        names = {"tenant": tenant, "definition": definition, "slot": slot}
        job_id = self.job_ids[0] if self.job_ids else None
        return {"schedule": self.schedules[0], "job_id": job_id, **names, "jobs": self.jobs}


@dataclass(frozen=True, slots=True)
class FiredSlots:
    """The slots of one schedule that fired, oldest first, with their jobs."""

    tenant: str
    definition: str
    schedule: str
    slots: list[datetime]
    job_ids: list[JobId]

    def log_facts(self) -> dict[str, Any]:
        """The slot and its job; if there are several, the first of them and their number."""
        names = {"tenant": self.tenant, "definition": self.definition, "schedule": self.schedule}
        if len(self.slots) == 1:
            return {**names, "slot": self.slots[0], "job_id": self.job_ids[0]}
        slots = [at.isoformat() for at in telemetry.first(self.slots)]
        facts = {"count": len(self.slots), "slots": slots}
        return {**names, **facts, "job_ids": telemetry.first(self.job_ids)}


@dataclass(frozen=True, slots=True)
class Applied:
    """What came of a schedule's newest slot, which of its slots fired, and why one failed."""

    outcome: SlotOutcome
    fired: FiredSlots | None
    failure: str | None

    @classmethod
    def of(
        cls, outcome: str | None, fired: Mapping[str, Any] | None, failure: str | None
    ) -> "Applied | None":
        """None if nothing was written."""
        if outcome is None:
            return None
        if fired is None:
            return cls(SlotOutcome(outcome), None, failure)
        slots = [datetime.fromisoformat(at).astimezone(UTC) for at in fired["slots"]]
        return cls(SlotOutcome(outcome), FiredSlots(**{**fired, "slots": slots}), failure)


async def due(
    session: Session,
    *,
    late: timedelta = timedelta(0),
    limit: int,
    skip: int = 0,
    now: datetime | None = None,
) -> list[DueGroup]:
    """Plain schedules that are due, and all that have no slot yet."""
    params = {"late": late, "limit": limit, "skip": skip, "now": now}
    cursor = await session.execute(_STATEMENTS["due"].sql, params)
    return [_group(row) for row in await cursor.fetchall()]


async def due_checks(
    session: Session,
    *,
    identity: str,
    late: timedelta = timedelta(0),
    limit: int,
    now: datetime | None = None,
) -> list[DueSchedule]:
    """Schedules that are due and have a condition; they are ours for a while."""
    params = {"identity": identity, "late": late, "limit": limit, "now": now}
    rows = await fetch_mappings(session, _STATEMENTS["due_checks"].sql, params)
    return [DueSchedule.of(row, row["next_slot_at"]) for row in rows]


async def next_fire(session: Session) -> tuple[float, datetime] | None:
    """Seconds until a schedule is due, less than zero when one is; and the instant."""
    cursor = await session.execute(_STATEMENTS["next_fire"].sql)
    return await cursor.fetchone()


async def fire(session: Session, firings: Sequence[Firing]) -> Fired:
    """One slot and one job for each schedule that is still as it was read."""
    params = {
        **_sets(firings),
        "slots": [_text(firing.slot_at) for firing in firings],
        "definitions": [firing.definition for firing in firings],
        "places": "{" + ",".join(firing.places.strip("{}") for firing in firings) + "}",
    }
    cursor = await session.execute(_STATEMENTS["fire"].sql, params)
    ((slots, jobs, replaced, queues, *named),) = await cursor.fetchall()
    return Fired(slots, jobs, replaced, set(queues), *named)


async def replace_runs(session: Session, schedule_ids: Sequence[int]) -> None:
    await session.execute(
        _STATEMENTS["replace_runs"].sql, {"schedule_ids": IntegerArray(schedule_ids)}
    )


async def advance(session: Session, firings: Sequence[Firing]) -> int:
    """Set next slots without firing; returns how many schedules were still as read."""
    cursor = await session.execute(_STATEMENTS["advance"].sql, _sets(firings))
    return cursor.rowcount


async def reserve_job(session: Session) -> JobId:
    """An id that no other job will have."""
    cursor = await session.execute(_STATEMENTS["reserve_job"].sql)
    ((job_id,),) = await cursor.fetchall()
    return JobId(job_id)


async def apply_plans(session: Session, plans: Iterable[Mapping[str, Any]]) -> list[Applied | None]:
    """What came of each schedule; None if it was not as read any more."""
    params = {"plans": orjson.dumps(list(plans)).decode()}
    cursor = await session.execute(_STATEMENTS["apply_plans"].sql, params)
    return [Applied.of(*row) for row in await cursor.fetchall()]


async def unknown_launchers(session: Session, known: Iterable[str]) -> list[tuple[str, str]]:
    """Enabled schedules whose launcher is none of these, with its name."""
    params = {"known": list(known)}
    cursor = await session.execute(_STATEMENTS["unknown_launchers"].sql, params)
    return await cursor.fetchall()


async def refuse_timing(
    session: Session,
    schedule_ids: Sequence[int],
    revisions: Sequence[int],
    *,
    reason: str,
) -> list[str]:
    """Disable schedules that cannot be understood; their names."""
    cursor = await session.execute(
        _STATEMENTS["refuse_timing"].sql,
        {
            "schedule_ids": IntegerArray(schedule_ids),
            "revisions": IntegerArray(revisions),
            "reason": reason,
        },
    )
    return [name for (name,) in await cursor.fetchall()]


async def name_schedules(session: Session, schedule_ids: Sequence[int]) -> list[dict[str, Any]]:
    """The fields of log lines about the schedules."""
    params = {"schedule_ids": IntegerArray(schedule_ids)}
    cursor = await session.execute(_STATEMENTS["name_schedules"].sql, params)
    fields = ("tenant", "definition", "schedule")
    return [dict(zip(fields, row, strict=True)) for row in await cursor.fetchall()]


async def lead(session: Session) -> bool:
    cursor = await session.execute(_STATEMENTS["lead"].sql)
    row = await cursor.fetchone()
    return bool(row and row[0])


async def checkers(session: Session) -> list[str]:
    """The identities of the processes that look at schedules now."""
    cursor = await session.execute(_STATEMENTS["checkers"].sql)
    return [row[0] for row in await cursor.fetchall() if row[0]]


async def drop_checks(session: Session, identities: Sequence[str]) -> int:
    """How many schedules and slots were given back."""
    params = {"identities": list(identities)}
    cursor = await session.execute(_STATEMENTS["drop_checks"].sql, params)
    row = await cursor.fetchone()
    return row[0] if row else 0


async def overdue_runs(
    session: Session, chosen: Sequence[int] | None = None, *, limit: int
) -> list[tuple[JobId, str]]:
    """The runs that were closed because they went on for too long, with their schedules; of some
    jobs only if chosen."""
    params = {"limit": limit, "chosen": _chosen(chosen)}
    cursor = await session.execute(_STATEMENTS["overdue_runs"].sql, params)
    return [(job_id, name) for job_id, name, is_closed in await cursor.fetchall() if is_closed]


async def find_overdue(session: Session, *, limit: int) -> list[JobId]:
    """The runs that `overdue_runs` would close."""
    cursor = await session.execute(_STATEMENTS["find_overdue"].sql, {"limit": limit})
    return [job_id for (job_id,) in await cursor.fetchall()]


async def release_turns(session: Session, chosen: Sequence[int] | None = None) -> list[JobId]:
    """The first waiting jobs of the schedules that were looked at, or of the chosen ones."""
    params = {"chosen": _chosen(chosen)}
    cursor = await session.execute(_STATEMENTS["release_turns"].sql, params)
    return [job_id for job_id, _ in await cursor.fetchall()]


async def find_turns(session: Session) -> list[JobId]:
    """The jobs that `release_turns` would look at."""
    cursor = await session.execute(_STATEMENTS["find_turns"].sql)
    return [job_id for (job_id,) in await cursor.fetchall()]


def _chosen(job_ids: Sequence[int] | None) -> IntegerArray | None:
    return None if job_ids is None else IntegerArray(job_ids)


def _sets(firings: Sequence[Firing]) -> dict[str, Any]:
    """A group each, with the part of the schedules that is its own."""
    schedule_ids: list[int] = []
    revisions: list[int] = []
    firsts: list[int] = []
    lasts: list[int] = []
    for firing in firings:
        firsts.append(len(schedule_ids) + 1)
        schedule_ids += firing.schedule_ids
        revisions += firing.revisions
        lasts.append(len(schedule_ids))
    return {
        "schedule_ids": IntegerArray(schedule_ids),
        "revisions": IntegerArray(revisions),
        "firsts": IntegerArray(firsts),
        "lasts": IntegerArray(lasts),
        "next_slots": [_text(firing.next_slot_at) for firing in firings],
    }


def _text(instant: datetime | None) -> str:
    return _NEVER if instant is None else instant.isoformat()


def _group(row: tuple[Any, ...]) -> DueGroup:
    cron, every, at, zone, gap, fold, calendar, starts_at, ends_at, paused_until = row[:10]
    anchor, spread, grace, catch_up, limit, max_age, definition = row[10:17]
    slot_at, base_at, now, schedule_ids, revisions, places = row[17:]
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
    return DueGroup(
        facts, misfires, definition, slot_at, base_at, now, schedule_ids, revisions, places
    )
