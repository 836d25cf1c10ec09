"""Sets of schedules that fire together: their first slots, and how a large set is shared out."""

from mainspring.domain.timings import Timing, first_slot
from mainspring.store.schedules import DueGroup, Fired, Firing

_SET = 1000


def first_firing(group: DueGroup, timing: Timing) -> Firing:
    """The first slot of schedules that have none; a date that has passed is due at once."""
    base = group.base_at or group.now
    return Firing(group.schedule_ids, group.turns, None, first_slot(timing, base))


def ensure_fired(answer: Fired | BaseException) -> Fired:
    if isinstance(answer, BaseException):
        raise answer
    return answer


def shared_out(firings: list[Firing], shares: int) -> list[list[Firing]]:
    """About equal parts, fewer when there is little to do."""
    total = sum(len(firing.schedule_ids) for firing in firings)
    size = max(_SET, -(-total // shares))
    parts: list[list[Firing]] = [[]]
    room = size
    for firing in firings:
        start = 0
        while start < len(firing.schedule_ids):
            if not room:
                parts.append([])
                room = size
            piece = firing.part(start, start + room)
            parts[-1].append(piece)
            start += len(piece.schedule_ids)
            room -= len(piece.schedule_ids)
    return parts
