"""Whether the roles of a process are healthy and ready.

healthy  all that has to go round does: the event loop and the essential loops. What waits for the
         database is healthy, since to restart every worker would not bring the database back.
ready    healthy, and what it needs is there: the database, the right schema, the lease.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mainspring.domain.processes import ProcessKind

# What rests shorter may be held up for this long without harm.
LEAST_REST_SECONDS = 1.0
_RESTS = 3


@dataclass(frozen=True, slots=True)
class Pulse:
    """When something that goes round last came by, and for how many seconds it rests at the most;
    endlessly if it waits to be woken. Instants are of a monotonic clock."""

    of: str
    at: float
    rest: float
    awaits_database: bool = False

    def silence(self, now: float) -> float | None:
        """For how long it has been overdue to come by; None if it is not."""
        silent = now - self.at
        is_late = silent > _RESTS * max(self.rest, LEAST_REST_SECONDS)
        return silent if is_late and not self.awaits_database else None


@dataclass(frozen=True, slots=True)
class Vitals:
    """What one role says of itself; `hindrances` keep it from its work, though it is healthy."""

    pulses: Sequence[Pulse] = ()
    hindrances: Sequence[str] = ()
    role: ProcessKind | None = None
    """None for what all roles share."""


ReadVitals = Callable[[], Vitals]


@dataclass(frozen=True, slots=True)
class Answer:
    """To one of the two questions; without reasons it is yes."""

    reasons: Sequence[str]

    @property
    def is_yes(self) -> bool:
        return not self.reasons


def unhealthy(vitals: Sequence[Vitals], now: float) -> list[str]:
    """Why the process is not healthy."""
    return [
        f"{_prefix(each)}no pass of the {pulse.of} for {silence:.0f} s"
        for each in vitals
        for pulse in each.pulses
        if (silence := pulse.silence(now)) is not None
    ]


def hindered(vitals: Sequence[Vitals]) -> list[str]:
    """Why the process cannot do its work, though it may be healthy."""
    return [f"{_prefix(each)}{hindrance}" for each in vitals for hindrance in each.hindrances]


def _prefix(vitals: Vitals) -> str:
    return "" if vitals.role is None else f"{vitals.role}: "
