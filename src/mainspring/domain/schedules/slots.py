"""What becomes of the slots that are due: fired, caught up on, or let go.

    due ── s1 ── s2 ── s3 ── now ── next
                        └ on time if not older than the grace

    catch_up   none    s1, s2 missed; s3 fires only on time
               latest  s3 fires, s1 and s2 are coalesced into it
               all     s1, s2, s3 fire one after the other, the newest `limit` of them

A slot older than `max_age` does not fire, unless it is within the grace. After a long outage
only the newest slots are written, and those before them are counted, about: a minutely schedule
has half a million a year.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import islice, takewhile
from typing import assert_never

from mainspring.domain.schedules.timing import Timing, next_slot, slots_after
from mainspring.domain.types import SlotTrigger

# Enough to tell what was missed; a schedule that was down for longer is estimated.
_COUNTED = 2000
_RECORDED = 1000
_COALESCED = "a later slot was due as well and ran instead"


class SlotOutcome(StrEnum):
    """The outcome of a slot."""

    PENDING = "pending"
    ENQUEUED = "enqueued"
    SKIPPED = "skipped"
    FAILED = "failed"
    MISSED = "missed"
    COALESCED = "coalesced"


class CatchUp(StrEnum):
    """What to do about slots that were missed."""

    NONE = "none"
    LATEST = "latest"
    ALL = "all"


class Overlap(StrEnum):
    """What to do when a slot is due while an earlier run is live."""

    SKIP = "skip"
    QUEUE = "queue"
    REPLACE = "replace"


@dataclass(frozen=True, slots=True)
class Misfires:
    """How late slots are treated."""

    grace: timedelta = timedelta(minutes=1)
    catch_up: CatchUp = CatchUp.LATEST
    limit: int = 100
    max_age: timedelta | None = None


@dataclass(frozen=True, slots=True)
class PlannedSlot:
    """One slot to write; `missed` counts the slots before it that get no job."""

    at: datetime
    outcome: SlotOutcome
    trigger: SlotTrigger = SlotTrigger.SCHEDULER
    missed: int = 0
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """What to write for a schedule that is due, oldest slot first."""

    slots: tuple[PlannedSlot, ...]
    next_slot_at: datetime | None

    @property
    def is_plain(self) -> bool:
        """One slot, on time: the common case, which is fired in sets."""
        return len(self.slots) == 1 and self.slots[0] == PlannedSlot(
            self.slots[0].at, SlotOutcome.ENQUEUED
        )

    @property
    def runs_in_line(self) -> bool:
        """Several slots fire at once: they wait for each other instead of being skipped."""
        return sum(slot.outcome is SlotOutcome.ENQUEUED for slot in self.slots) > 1


def plan(timing: Timing, misfires: Misfires, due: datetime, *, now: datetime) -> Plan:
    """What to do at `now` for a schedule whose next slot is `due`."""
    following = next_slot(timing, due)
    if following is None or following > now:
        return Plan(_decide(misfires, [due], now=now, unseen=0), following)
    is_all = misfires.catch_up is CatchUp.ALL
    most = max(_RECORDED, misfires.limit) if is_all else _RECORDED
    slots, unseen = _due_slots(timing, due, now, most=most)
    return Plan(_decide(misfires, slots, now=now, unseen=unseen), next_slot(timing, slots[-1]))


def _due_slots(
    timing: Timing, due: datetime, now: datetime, *, most: int
) -> tuple[list[datetime], int]:
    """The newest slots up to now, at most that many, and about how many came before them."""
    timing = replace(timing, anchor_at=timing.anchor_at or due)
    slots = [due, *islice(_slots(timing, due, now), _COUNTED - 1)]
    skipped = 0
    if len(slots) == _COUNTED:
        period = (slots[-1] - due) / (len(slots) - 1)
        start, newest = _newest(timing, slots[-1], now, span=period * most, most=most)
        skipped = int((start - slots[-1]) / period)
        slots += newest
    kept = slots[-most:]
    return kept, skipped + len(slots) - len(kept)


def _newest(
    timing: Timing, since: datetime, now: datetime, *, span: timedelta, most: int
) -> tuple[datetime, list[datetime]]:
    """That many slots up to now or more, unless there are fewer, and from where on they are all."""
    while True:
        start = max(now - span, since)
        slots = list(_slots(timing, start, now))
        if len(slots) >= most or start == since:
            return start, slots
        span *= 4


def _slots(timing: Timing, after: datetime, now: datetime) -> Iterator[datetime]:
    return takewhile(lambda slot: slot <= now, slots_after(timing, after))


def _decide(
    misfires: Misfires, slots: list[datetime], *, now: datetime, unseen: int
) -> tuple[PlannedSlot, ...]:
    let_go = len(slots) - _fire_count(misfires, slots, now=now)
    is_coalesced = misfires.catch_up is CatchUp.LATEST and let_go < len(slots)
    outcome = SlotOutcome.COALESCED if is_coalesced else SlotOutcome.MISSED
    planned = []
    for slot in slots[:let_go]:
        reason = _COALESCED if is_coalesced else _why_missed(misfires, slot, now)
        planned.append(PlannedSlot(slot, outcome, reason=reason))
    for slot in slots[let_go:]:
        trigger = SlotTrigger.SCHEDULER if now - slot <= misfires.grace else SlotTrigger.CATCH_UP
        missed = let_go + unseen if slot == slots[-1] else 0
        planned.append(PlannedSlot(slot, SlotOutcome.ENQUEUED, trigger, missed))
    return tuple(planned)


def _fire_count(misfires: Misfires, slots: list[datetime], *, now: datetime) -> int:
    """How many slots, the newest, get a job."""
    young = sum(_is_young(misfires, slot, now) for slot in slots)
    match misfires.catch_up:
        case CatchUp.NONE:
            return int(now - slots[-1] <= misfires.grace)
        case CatchUp.LATEST:
            return min(young, 1)
        case CatchUp.ALL:
            return min(young, misfires.limit)
        case _:
            assert_never(misfires.catch_up)


def _is_young(misfires: Misfires, slot: datetime, now: datetime) -> bool:
    age = now - slot
    return age <= misfires.grace or misfires.max_age is None or age <= misfires.max_age


def _why_missed(misfires: Misfires, slot: datetime, now: datetime) -> str:
    if misfires.catch_up is CatchUp.NONE:
        return "no scheduler ran in time (catch_up = none)"
    if not _is_young(misfires, slot, now):
        return "no scheduler ran before it was too old (catch_up_max_age)"
    return f"more than {misfires.limit:,} slots were due (catch_up_limit)"
