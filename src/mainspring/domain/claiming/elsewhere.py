"""Places that come free here and that jobs of other workers' queues may be waiting for.

A worker claims what waits for a limit in its own queues only. So where a limit is shared with other
queues, whoever frees a place of it notifies the others and leaves the place alone for a moment, or
it would take it again and again while their jobs wait. If nobody else took it in that moment, which
is so where a queue has no worker or a busy one, nothing is left alone for a second.

A worker that can start nothing notifies the others too of what has come free.
"""

import math
from collections.abc import Collection, Iterable
from itertools import islice

from mainspring.domain.limits import LimitKey

_MOMENT = 0.05
_REST = 1.0
_ANNOUNCE_AFTER = 0.02
_MOST_ANNOUNCED = 100


class Elsewhere:
    """What one worker knows; instants are monotonic."""

    def __init__(self) -> None:
        self._limits: set[str] = set()  # For which jobs of other queues wait.
        self._found: set[str] = set()  # The same, as far as the scan under way has got.
        self._left_alone: dict[LimitKey, float] = {}
        self._was_left_alone: set[str] = set()
        self._in_vain_at: dict[str, float] = {}
        self._untaken: dict[LimitKey, None] = {}
        self._untaken_since = math.inf
        self._announced: dict[LimitKey, None] = {}

    @property
    def next_at(self) -> float:
        """When there is something to take."""
        if self._announced:
            return -math.inf
        alone = next(iter(self._left_alone.values()), math.inf)
        return min(alone, self._untaken_since + _ANNOUNCE_AFTER)

    def freed(
        self, keys: Collection[LimitKey], now: float, *, is_full: bool
    ) -> Collection[LimitKey]:
        """Those of the keys to serve at once; `is_full` says that nothing can start here."""
        own = keys if not self._limits else self._leave_alone(keys, now)
        if is_full:
            self._untaken_since = min(self._untaken_since, now)
            self._untaken |= dict.fromkeys(own)
        return own

    def _leave_alone(self, keys: Collection[LimitKey], now: float) -> Collection[LimitKey]:
        own = []
        for key in keys:
            if (
                key.limit in self._limits
                and now >= self._in_vain_at.get(key.limit, -math.inf) + _REST
            ):
                self._left_alone.setdefault(key, now + _MOMENT)
                self._announced[key] = None
            else:
                own.append(key)
        return own

    def taken(self, keys: Collection[LimitKey]) -> None:
        """These are looked at."""
        if self._untaken:
            for key in keys:
                self._untaken.pop(key, None)

    def claimed(self, names: Collection[str], now: float) -> None:
        """Jobs of these limits, and of no others, were claimed here."""
        for name in self._was_left_alone & set(names):
            self._in_vain_at[name] = now
        self._was_left_alone.clear()

    def take_left_alone(self, now: float) -> list[LimitKey]:
        """The keys that others had a moment to look at."""
        over = [key for key, until in self._left_alone.items() if now >= until]
        for key in over:
            del self._left_alone[key]
            self._was_left_alone.add(key.limit)
        return over

    def take_announced(self, now: float, *, is_full: bool) -> list[LimitKey]:
        """The keys that others are to be notified of."""
        if now >= self._untaken_since + _ANNOUNCE_AFTER:
            if is_full:
                self._announced |= self._untaken
            self._untaken.clear()
            self._untaken_since = math.inf
        taken = list(islice(self._announced, _MOST_ANNOUNCED))
        self._announced.clear()
        return taken

    def scanned(self, names: Iterable[str]) -> None:
        """A scan has found jobs of other queues that wait for these limits."""
        self._found.update(names)

    def scan_ended(self) -> None:
        self._limits, self._found = self._found, set()
        for name in self._in_vain_at.keys() - self._limits:
            del self._in_vain_at[name]
