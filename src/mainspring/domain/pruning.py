"""How history is pruned: for each period that jobs are kept for, a window of time moves along.

    history   ──────────────────────────────────────────────────────────────▶ now
                          after        before = now - 7 days
    kept for 7 days   done ├─────────────┤
                                                  after  before = now - 1 hour
    kept for 1 hour   done                          ├───────┤

What ended before a window was looked at when the window was there, so that a pass reads only what
has come of age since the last, however much history there is. Each day, and when a policy changes,
the windows start again where history begins: for parents that were kept for a live child, and for
what was committed late.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

_QUICK, _SLOW = 0.1, 0.5
_FACTOR = 4.0
_NARROWEST, _WIDEST = 1.0, 366 * 86_400.0


class PruneWindow(NamedTuple):
    """What ended between two instants is to be looked at; `keep` is the period as the database
    writes it, `policies` stands for all policies that were in force."""

    keep: str
    after: datetime
    before: datetime
    swept_at: datetime
    policies: str

    @property
    def is_empty(self) -> bool:
        return self.after >= self.before

    def first(self, seconds: float) -> "PruneWindow":
        """The part of so many seconds that it begins with."""
        return self._replace(before=min(self.before, self.after + timedelta(seconds=seconds)))


@dataclass(slots=True)
class WindowWidth:
    """How many seconds of history one statement looks at, so that each takes a moment."""

    seconds: float = 3600.0

    def took(self, seconds: float) -> None:
        """A statement took so long."""
        if seconds < _QUICK:
            self.seconds = min(self.seconds * _FACTOR, _WIDEST)
        elif seconds > _SLOW:
            self.narrow()

    def narrow(self) -> bool:
        """Look at less at once; False if it is as little as can be."""
        before, self.seconds = self.seconds, max(self.seconds / _FACTOR, _NARROWEST)
        return self.seconds < before
