"""Places of limits that have come free, and which limit keys are granted now.

To grant the jobs of a limit key costs about as much as the job that it lets go, whether it lets one
go or five. So while more jobs are ready than a worker can take, a key waits until half of its
places have come free, a quarter of a second at the most: the other half is still at work. Nothing
waits that a key with few places has, or a limit that counts other things as well, or once jobs run
short.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice

from mainspring.domain.limits import LimitKey

MANY_PLACES = 4
"""The number of places of a key from which on it may wait for some of them."""
_PATIENCE = 0.25


@dataclass(slots=True)
class FreedPlaces:
    """What one worker knows of; instants are monotonic. It is asked after every batch of reports,
    so nothing here looks at more keys than it has to."""

    places: dict[str, int] = field(default_factory=dict)
    """How many places each key has, by limit; of limits that count nothing else."""
    ready: dict[LimitKey, None] = field(default_factory=dict)
    """Those that wait for nothing, in the order of arrival."""
    postponed: dict[LimitKey, tuple[float, int]] = field(default_factory=dict)
    """The others: since when, which is their order, and how many places have come free."""

    def __bool__(self) -> bool:
        return bool(self.ready or self.postponed)

    def add(self, keys: Iterable[LimitKey], now: float) -> None:
        """A place has come free in each of these; some may come up more than once."""
        for key in keys:
            if key in self.ready:
                continue
            since, count = self.postponed.get(key, (now, 0))
            if self._is_enough(key, count + 1):
                self.add_urgent((key,))
            else:
                self.postponed[key] = (since, count + 1)

    def add_urgent(self, keys: Iterable[LimitKey]) -> None:
        """These have more to let go."""
        for key in keys:
            self.postponed.pop(key, None)
            self.ready[key] = None

    def learn(self, asked: Collection[str], places: Mapping[str, int]) -> None:
        """How many places each key has, of the limits that were asked for; others count more."""
        changed = {name for name in asked if self.places.get(name) != places.get(name)}
        if not changed:
            return
        for name in changed:
            self.places.pop(name, None)
        self.places |= places
        theirs = [(key, free) for key, (_, free) in self.postponed.items() if key.limit in changed]
        self.add_urgent(key for key, free in theirs if self._is_enough(key, free))

    def take(self, most: int, now: float, *, has_backlog: bool) -> list[LimitKey]:
        """The keys to grant now, which are forgotten here."""
        while self.postponed and self._until_first(now) <= 0:
            self.add_urgent((next(iter(self.postponed)),))
        taken = list(islice(self.ready, most))
        for key in taken:
            del self.ready[key]
        if not has_backlog:
            rest = list(islice(self.postponed, most - len(taken)))
            for key in rest:
                del self.postponed[key]
            taken += rest
        return taken

    def until_next(self, now: float, *, has_backlog: bool) -> float | None:
        """Seconds until there is something to take; None if there is nothing at all."""
        if not self:
            return None
        if self.ready or not has_backlog:
            return 0.0
        return max(0.0, self._until_first(now))

    def _until_first(self, now: float) -> float:
        since, _ = next(iter(self.postponed.values()))
        return since + _PATIENCE - now

    def _is_enough(self, key: LimitKey, free: int) -> bool:
        places = self.places.get(key.limit, 0)
        return places < MANY_PLACES or 2 * free >= places
