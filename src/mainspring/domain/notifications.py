"""What the database notifies processes of, on one channel: a kind, a colon, and a subject.

    who enqueues, cancels, ends ...  ──NOTIFY "kind:subject"──▶  worker, scheduler, dispatcher

A notification only saves waiting. Whoever gets one looks at the tables, and looks there from time
to time anyway, so one that is lost, repeated or sent by someone else does no harm.
"""

from enum import StrEnum
from typing import NamedTuple


class NotificationKind(StrEnum):
    """The values are what `pg_notify` is called with in `sql/`."""

    QUEUE_READY = "q"
    """A queue, the subject, has ready jobs and idle workers."""
    LANE_READY = "n"
    """A lane that looked empty has ready jobs while all workers are busy: see `lanes.py`."""
    JOB_DUE = "d"
    """A job becomes due soon."""
    CANCEL_REQUESTED = "c"
    """A job of the worker whose id is the subject is to stop."""
    LIMIT_FREED = "l"
    """Jobs that wait for a limit may go: those of the limit key that is the subject, or any."""
    PARENT_ENDED = "p"
    """A job that others wait for has ended."""
    SCHEDULE_CHANGED = "s"
    """A schedule is new, changed, or due earlier."""
    EVENT_EMITTED = "e"
    """An event waits to be dispatched."""


class Notification(NamedTuple):
    """One notification; what the subject is depends on the kind."""

    kind: NotificationKind
    subject: str


def parse_notification(payload: str) -> Notification | None:
    """None for a kind that this program does not know: a newer one may have sent it."""
    kind, _, subject = payload.partition(":")
    if kind not in _KINDS:
        return None
    return Notification(NotificationKind(kind), subject)


_KINDS = frozenset(NotificationKind)
