"""Rooms in which places have come free, and which of them are served now.

To serve a room costs about as much as the job that it lets go, whether it lets one go or five. So
while more jobs are ready than a worker can take, a room waits until half of its key's places have
come free, a quarter of a second at the most: the other half is still at work. Nothing waits that a
key with few places has, or a limit that counts other things as well, or once jobs run short.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice

from mainspring.domain.limits import Room

ROOMY = 4
"""Places of a key from which on it may wait for some of them."""
_PATIENCE = 0.25


@dataclass(slots=True)
class FreedPlaces:
    """What one worker knows of; instants are monotonic. It is asked after every batch of reports,
    so nothing here looks at more rooms than it has to."""

    places: dict[str, int] = field(default_factory=dict)
    """The places of each key, of limits that are roomy."""
    ready: dict[Room, None] = field(default_factory=dict)
    """Those that wait for nothing, in the order of arrival."""
    resting: dict[Room, tuple[float, int]] = field(default_factory=dict)
    """The others: since when, which is their order, and how many places have come free."""

    def __bool__(self) -> bool:
        return bool(self.ready or self.resting)

    def add(self, rooms: Iterable[Room], now: float) -> None:
        """A place has come free in each of these; some may come up more than once."""
        for room in rooms:
            if room in self.ready:
                continue
            since, count = self.resting.get(room, (now, 0))
            if self._is_enough(room, count + 1):
                self.add_urgent((room,))
            else:
                self.resting[room] = (since, count + 1)

    def add_urgent(self, rooms: Iterable[Room]) -> None:
        """These have more to let go."""
        for room in rooms:
            self.resting.pop(room, None)
            self.ready[room] = None

    def learn(self, asked: Collection[str], roomy: Mapping[str, int]) -> None:
        """Of the limits that were asked for these are roomy, with so many places a key."""
        changed = {name for name in asked if self.places.get(name) != roomy.get(name)}
        if not changed:
            return
        for name in changed:
            self.places.pop(name, None)
        self.places |= roomy
        theirs = [(room, free) for room, (_, free) in self.resting.items() if room.limit in changed]
        self.add_urgent(room for room, free in theirs if self._is_enough(room, free))

    def take(self, most: int, now: float, *, has_plenty: bool) -> list[Room]:
        """The rooms to serve now, which are forgotten here."""
        while self.resting and self._until_first(now) <= 0:
            self.add_urgent((next(iter(self.resting)),))
        taken = list(islice(self.ready, most))
        for room in taken:
            del self.ready[room]
        if not has_plenty:
            early = list(islice(self.resting, most - len(taken)))
            for room in early:
                del self.resting[room]
            taken += early
        return taken

    def until_next(self, now: float, *, has_plenty: bool) -> float | None:
        """Seconds until there is something to take; None if there is nothing at all."""
        if not self:
            return None
        if self.ready or not has_plenty:
            return 0.0
        return max(0.0, self._until_first(now))

    def _until_first(self, now: float) -> float:
        since, _ = next(iter(self.resting.values()))
        return since + _PATIENCE - now

    def _is_enough(self, room: Room, free: int) -> bool:
        places = self.places.get(room.limit, 0)
        return places < ROOMY or 2 * free >= places
