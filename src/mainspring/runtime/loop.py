"""The one loop behind every background duty: a pass, a wait, and no end to either."""

import asyncio
import math
import time
from collections.abc import Callable, Coroutine
from typing import Any

import psycopg

from mainspring import telemetry
from mainspring.db.outages import is_outage
from mainspring.domain.errors.database import DatabaseError
from mainspring.domain.health import Pulse

_LONGEST_PAUSE = 10.0
_MOST_DOUBLINGS = 6


class Failures:
    """Errors in a row of something that goes on in spite of them."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._count = 0
        self._logged_at: float | None = None

    def note(self, error: Exception) -> float:
        """Report the first, unless it is of an outage, which is reported once for the process; how
        many seconds to wait before the next try."""
        self._count += 1
        if self._logged_at is None and not is_outage(error):
            self._logged_at = time.monotonic()
            telemetry.event("loop_failed", loop=self._name, error=error)
        return min(0.2 * 2.0 ** min(self._count, _MOST_DOUBLINGS), _LONGEST_PAUSE)

    def end(self) -> None:
        self._count = 0
        if self._logged_at is not None:
            seconds = round(time.monotonic() - self._logged_at, 3)
            telemetry.event("loop_back", loop=self._name, seconds=seconds)
            self._logged_at = None


class Rounds:
    """When something that goes round last came by, and how long it rests; any thread may look."""

    def __init__(self, name: str) -> None:
        self.at, self._name, self._rest = time.monotonic(), name, math.inf

    def passed(self, rest: float) -> None:
        """It comes by again in so many seconds; infinitely many if it waits to be woken."""
        self.at, self._rest = time.monotonic(), rest

    def pulse(self, *, awaits_database: bool = False) -> Pulse:
        return Pulse(self._name, self.at, self._rest, awaits_database)


class Loop:
    """Calls `action` for ever; it answers how many seconds to wait, and `wake` ends the wait.

    A lost database is waited for; any other error is reported and the next pass comes anyway,
    because one bad pass must not end the duty.
    """

    def __init__(self, name: str, action: Callable[[], Coroutine[Any, Any, float]]) -> None:
        self.name = name
        self.passes = 0
        self.rounds = Rounds(f"{name} loop")
        self._action = action
        self._wake = asyncio.Event()
        self._failures = Failures(name)

    def wake(self) -> None:
        self._wake.set()

    async def run(self) -> None:
        self.rounds.passed(0)
        while True:
            self._wake.clear()
            pause = await self._pass()
            self.passes += 1
            self.rounds.passed(pause)
            try:
                async with asyncio.timeout(pause):
                    await self._wake.wait()
            except TimeoutError:
                continue

    async def _pass(self) -> float:
        try:
            pause: float = await self._action()
        except (psycopg.Error, DatabaseError, OSError) as error:
            return self._failures.note(error)
        self._failures.end()
        return pause


async def done_before(
    waited: Coroutine[Any, Any, Any], other: Coroutine[Any, Any, Any], *, seconds: float
) -> bool:
    """Whether the first ends before the other does, and in time."""
    first, second = asyncio.create_task(waited), asyncio.create_task(other)
    await asyncio.wait((first, second), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    is_done = first.done()
    first.cancel()
    second.cancel()
    return is_done
