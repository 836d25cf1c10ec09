"""Rooms in which places have come free, and which of them are served now.

To serve a room costs about as much as the job that it lets go, whether it lets one go or five. So
while more jobs are ready than a worker can take, a room waits until half of its key's places have
come free, a quarter of a second at the most: the other half is still at work. Nothing waits that a
key with few places has, or a limit that counts other things as well, or once jobs run short.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from mainspring.domain.limits import Room

ROOMY = 4
"""Places of a key from which on it may wait for some of them."""
_PATIENCE = 0.25


@dataclass(slots=True)
class FreedRooms:
    """What one worker knows of, in the order of arrival; instants are monotonic."""

    places: dict[str, int] = field(default_factory=dict)
    """The places of each key, of limits that are roomy."""
    since: dict[Room, float] = field(default_factory=dict)
    counts: Counter[Room] = field(default_factory=Counter)

    def __bool__(self) -> bool:
        return bool(self.since)

    def add(self, rooms: Iterable[Room], now: float) -> None:
        """A place has come free in each of these; some may come up more than once."""
        for room in rooms:
            self.since.setdefault(room, now)
            self.counts[room] += 1

    def add_urgent(self, rooms: Iterable[Room]) -> None:
        """These have more to let go."""
        for room in rooms:
            self.since[room] = float("-inf")

    def learn(self, asked: Iterable[str], roomy: Mapping[str, int]) -> None:
        """Of the limits that were asked for these are roomy, with so many places a key."""
        for name in asked:
            self.places.pop(name, None)
        self.places |= roomy

    def take(self, most: int, now: float, *, has_plenty: bool) -> list[Room]:
        """The rooms to serve now, which are forgotten here."""
        taken: list[Room] = []
        for room, since in self.since.items():
            if len(taken) == most:
                break
            if not has_plenty or self._until(room, since, now) <= 0:
                taken.append(room)
        for room in taken:
            del self.since[room]
            del self.counts[room]
        return taken

    def until_next(self, now: float, *, has_plenty: bool) -> float | None:
        """Seconds until there is something to take; None if there is nothing at all."""
        if not self.since:
            return None
        if not has_plenty:
            return 0.0
        return max(0.0, min(self._until(room, at, now) for room, at in self.since.items()))

    def _until(self, room: Room, since: float, now: float) -> float:
        places = self.places.get(room.limit, 0)
        if places < ROOMY or 2 * self.counts[room] >= places:
            return 0.0
        return since + _PATIENCE - now
