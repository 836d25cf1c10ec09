"""Outages of a database: logged once when one begins and once when it is over, in each process.

    broken, unreachable ─▶ database_lost ─ further ones: nothing ─▶ answers ─▶ database_back

Connections that nobody uses meanwhile are found broken only later. One that was made before the end
of an outage is part of it, and replacing it is no news.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import psycopg
from psycopg.conninfo import conninfo_to_dict

from mainspring import telemetry
from mainspring.domain.errors.database import DatabaseUnreachable

# Connection exceptions, and a server that stops, crashes or starts.
_OF_OUTAGES = ("08", "57P01", "57P02", "57P03")


@dataclass(slots=True)
class _Outage:
    began_at: float
    ended_at: float | None = None


class Outages:
    """The last outage of each database that this process uses; safe for threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.open = 0
        self._clock = clock
        self._last: dict[str, _Outage] = {}
        self._lock = threading.Lock()

    def broken(self, url: str, name: str, error: Exception, *, connected_at: float) -> None:
        """A connection that was made then is gone."""
        with self._lock:
            last = self._last.get(_database(url))
            is_known = last is not None and (last.ended_at is None or connected_at < last.ended_at)
            is_over = is_known and last is not None and last.ended_at is not None
            if not is_known:
                self._begin(url)
        if not is_known:
            telemetry.event("database_lost", connection=name, error=_first_line(error))
        elif is_over:
            telemetry.event("connection_replaced", connection=name, error=_first_line(error))

    def unreachable(self, url: str, name: str, error: Exception) -> None:
        """No connection can be made."""
        self.broken(url, name, error, connected_at=self._clock())

    def answers(self, url: str, name: str) -> None:
        """A connection was made."""
        if not self.open:
            return
        with self._lock:
            last = self._last.get(_database(url))
            if last is None or last.ended_at is not None:
                return
            last.ended_at = self._clock()
            self.open -= 1
        seconds = round(last.ended_at - last.began_at, 3)
        telemetry.event("database_back", connection=name, seconds=seconds)

    def _begin(self, url: str) -> None:
        self._last[_database(url)] = _Outage(self._clock())
        self.open += 1


OUTAGES = Outages()
"""Those of this process."""


def is_outage(error: BaseException) -> bool:
    """Whether an error means that the database cannot be reached, or has ended the connection."""
    if isinstance(error, DatabaseUnreachable):
        return True
    if not isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return False
    return error.sqlstate is None or error.sqlstate.startswith(_OF_OUTAGES)


@lru_cache(maxsize=100)
def _database(url: str) -> str:
    """What URLs of one database have in common, whoever logs in and with which options."""
    try:
        facts = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        return url
    return "/".join(str(facts.get(name, "")) for name in ("host", "hostaddr", "port", "dbname"))


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
