"""Whether a worker makes progress: what the thread that renews its lease goes by.

    event loop ─ beats                     ─┐
    claims     ─ nothing asked, or answered ├─▶ the oldest sign of life ─▶ lease until then + lease
    finishes   ─ nothing asked, or answered ─┘

A thread that lives proves nothing. So the lease reaches one lease beyond the oldest sign of life of
all that a worker needs: a short hang costs nothing, a long one costs the lease, and none holds jobs
that nobody runs or can report. A slow statement is no hang: the server says whether it works on it,
unless a pooler stands in between. If it does not, although we wait for its answer, there will be
none: that connection is broken off, and the statement is repeated on a new one.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from mainspring.db.reconnecting import ReconnectingConnection
from mainspring.store.workers import Backend

# More often than this, what was asked is not slow but refused.
_MOST_TRIES = 3


@dataclass(frozen=True, slots=True)
class SignOfLife:
    """What has been silent for longest, and since when."""

    of: str
    at: float


class Progress:
    """The signs of life of one worker. `needed` connections hold the lease up, `others` are only
    broken off when they hang. The event loop calls `beat`; all else is for the lease's thread."""

    def __init__(
        self,
        needed: Sequence[ReconnectingConnection],
        others: Sequence[ReconnectingConnection] = (),
    ) -> None:
        self._needed, self._others = needed, others
        self._beat_at = time.monotonic()
        self._worked_at: dict[str, float] = {}
        self._silent: dict[str, float] = {}

    def beat(self) -> None:
        self._beat_at = time.monotonic()

    def silence(self, now: float) -> float:
        """For how many seconds the event loop has done nothing."""
        return now - self._beat_at

    @property
    def awaits_database(self) -> bool:
        """Whether a connection that holds the lease up waits for an answer."""
        return any(each.waiting_since is not None for each in self._needed)

    def oldest(self, now: float) -> SignOfLife:
        signs = [SignOfLife(each.name, self._sign(each, now)) for each in self._needed]
        return min((SignOfLife("event loop", self._beat_at), *signs), key=lambda sign: sign.at)

    def waiting(self, now: float, seconds: float) -> list[ReconnectingConnection]:
        """The connections that have waited for an answer for so long."""
        every = (*self._needed, *self._others)
        return [each for each in every if now - (each.waiting_since or now) >= seconds]

    def note_answer(
        self, connection: ReconnectingConnection, backend: Backend | None, now: float
    ) -> bool:
        """What the server says of a connection that waits; whether it hangs."""
        if backend is None:
            return self._was_silent_before(connection)
        self._silent.pop(connection.name, None)
        if connection.failures < _MOST_TRIES and not backend.is_blocked:
            self._worked_at[connection.name] = now
        return False

    def _was_silent_before(self, connection: ReconnectingConnection) -> bool:
        """An answer may be on its way when one looks for the first time."""
        since = connection.waiting_since
        was_silent = since is not None and self._silent.get(connection.name) == since
        if since is not None:
            self._silent[connection.name] = since
        return was_silent

    def _sign(self, connection: ReconnectingConnection, now: float) -> float:
        since = connection.waiting_since
        if since is None:
            return now
        return max(since, self._worked_at.get(connection.name, since))
