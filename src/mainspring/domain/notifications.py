"""What the database notifies processes of, on one channel: a kind, a colon, and a subject.

    who enqueues, cancels, ends ...  ──NOTIFY "kind:subject"──▶  worker, scheduler, dispatcher

A notification only saves waiting. Whoever gets one looks at the tables, and looks there from time
to time anyway, so one that is lost, repeated or sent by someone else does no harm. Everyone who can
connect to the database may send any text on the channel, so none of it is trusted.
"""

from enum import StrEnum
from typing import NamedTuple

from mainspring.domain.claiming.lanes import parse_ready_lane
from mainspring.domain.limits import parse_limit_key


class NotificationKind(StrEnum):
    """The values are the words that `sql/internal/notifications.sql` sends."""

    QUEUE_READY = "ready"
    """A queue, the subject, has ready jobs and idle workers."""
    LANE_READY = "lane"
    """A lane that looked empty has ready jobs while all workers are busy: see `lanes.py`."""
    JOBS_READY = "jobs"
    """Jobs became ready that are older than what workers look for: see `lanes.py`."""
    JOB_DUE = "due"
    """A job becomes due soon."""
    CANCEL_REQUESTED = "cancel"
    """A job of the worker whose id is the subject is to stop."""
    LIMIT_FREED = "limit"
    """Jobs that wait for a limit may go: those of the limit key that is the subject, or any."""
    PARENT_ENDED = "parents"
    """A job that others wait for has ended."""
    SCHEDULE_CHANGED = "schedule"
    """A schedule is new, changed, or due earlier."""
    EVENT_EMITTED = "event"
    """An event waits to be dispatched."""


class InvalidNotification(ValueError):
    """A notification of a kind that we know, with a subject that none of ours has."""


class Notification(NamedTuple):
    """One notification; what the subject is depends on the kind."""

    kind: NotificationKind
    subject: str


def parse_notification(payload: str) -> Notification | None:
    """None for a kind that this program does not know: a newer one may have sent it. Raises
    InvalidNotification for a subject that nobody could use."""
    kind, _, subject = payload.partition(":")
    if kind not in _KINDS:
        return None
    notification = Notification(NotificationKind(kind), subject)
    if not _is_valid(notification):
        raise InvalidNotification(payload)
    return notification


def _is_valid(notification: Notification) -> bool:
    match notification:
        case (NotificationKind.LANE_READY, lane):
            return parse_ready_lane(lane) is not None
        case (NotificationKind.LIMIT_FREED, key):
            return key == "" or parse_limit_key(key) is not None
        case _:
            return True


_KINDS = frozenset(NotificationKind)
