"""The next slots of a schedule as it is stored: as planned, and as a scheduler would plan them."""

from dataclasses import replace
from datetime import UTC, datetime

from mainspring.domain.errors import InvalidOption, InvalidSchedule
from mainspring.domain.schedules import timing
from mainspring.domain.schedules.cron import find_zone
from mainspring.domain.schedules.model import ScheduleState
from mainspring.domain.schedules.timing import Fire, Timing

RETRY = "tried again after a failure"
_MOST_FIRES = 1000


def next_fires(state: ScheduleState, count: int, after: datetime | None = None) -> list[Fire]:
    """The next slots as if the schedule were enabled; a pause is respected."""
    if not 1 <= count <= _MOST_FIRES:
        raise InvalidOption("count", f"must be from 1 to {_MOST_FIRES}, not {count}")
    if after is None:
        after = max(datetime.now(UTC), state.spec.paused_until or state.created_at)
        if (again_at := _retry_at(state, after)) is not None:
            zone = find_zone(state.spec.zone)
            retry = Fire(again_at, again_at.astimezone(zone), RETRY)
            return [retry, *timing.preview(timing_of(state), again_at, count - 1)]
    if after.tzinfo is None:
        raise InvalidOption("after", "needs a time zone, such as datetime(..., tzinfo=UTC)")
    return timing.preview(timing_of(state), after, count)


def _retry_at(state: ScheduleState, now: datetime) -> datetime | None:
    """When a slot that failed is tried again; until then no other is due."""
    again_at = state.next_slot_at
    if again_at is None or again_at <= now or not state.spec.enabled or not state.retry_count:
        return None
    # After a failure for good it goes on with its next slot.
    is_slot = bool(timing.slots_between(timing_of(state), again_at, again_at, limit=1))
    return None if is_slot else again_at


def planned(state: ScheduleState) -> datetime | None:
    """When it runs next, as a scheduler has planned it. Until then it is searched for, unless there
    is a calendar: that may take long, and a list would hold up the requests of others."""
    if state.next_run_at is not None or not state.spec.enabled:
        return state.next_run_at
    if state.spec.at is not None and state.last_slot_at is None:
        return state.spec.at
    return None if state.spec.calendar is not None else searched(state)


def searched(state: ScheduleState) -> datetime | None:
    """When it would run next; None if never, or if that is not found within the budget."""
    try:
        fires = next_fires(state, 1)
    except InvalidSchedule:
        return None
    return fires[0].at if fires else None


def timing_of(state: ScheduleState) -> Timing:
    return replace(state.spec.timing, anchor_at=state.anchor_at)
