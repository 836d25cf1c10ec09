"""The next slots of a schedule as it is stored: as planned, and as a scheduler would plan them."""

from dataclasses import replace
from datetime import UTC, datetime

from mainspring.domain.errors import InvalidOption
from mainspring.domain.schedules import timing
from mainspring.domain.schedules.model import ScheduleState
from mainspring.domain.schedules.timing import Fire, Timing

_MOST_FIRES = 1000


def next_fires(state: ScheduleState, count: int, after: datetime | None = None) -> list[Fire]:
    """The next slots as if the schedule were enabled; a pause is respected."""
    if not 1 <= count <= _MOST_FIRES:
        raise InvalidOption("count", f"must be from 1 to {_MOST_FIRES}, not {count}")
    if after is None:
        after = max(datetime.now(UTC), state.spec.paused_until or state.created_at)
    if after.tzinfo is None:
        raise InvalidOption("after", "needs a time zone, such as datetime(..., tzinfo=UTC)")
    return timing.preview(timing_of(state), after, count)


def planned(state: ScheduleState) -> datetime | None:
    """When it runs next, as a scheduler has planned it; None until then, but for a date."""
    if state.next_run_at is None and state.spec.enabled and state.last_slot_at is None:
        return state.spec.at
    return state.next_run_at


def timing_of(state: ScheduleState) -> Timing:
    return replace(state.spec.timing, anchor_at=state.anchor_at)
