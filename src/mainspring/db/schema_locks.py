"""DDL in short locks, so that a migration never stops the programs that use the database.

A statement that waits for a strong lock makes everyone wait who comes after it. Behind a report of
an hour that would be an outage of an hour. So each step gives up after two seconds, gives back all
it had locked, lets the others through and tries again later:

    step ──lock_timeout 2 s──▶ rolled back ──pause 1, 2 ... 30 s──▶ step ... at most `tries` times

A step that already holds a lock waits less for the next. Who waits for us and holds what we wait
for is in a deadlock, and after a second (`deadlock_timeout`) PostgreSQL may end them and not us. So
all those waits together end sooner.

While it waits, a second connection asks who is in the way, because after the timeout nobody knows.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from psycopg import AsyncConnection, errors

from mainspring.db import connect
from mainspring.domain.errors.database import SchemaLocked

TRIES = 10
NAME = "mainspring migrate"

# An index may take longer to build than the role's other statements may take.
_TIMEOUTS = "set lock_timeout = '2s'; set statement_timeout = 0"
_WAIT_LESS = "select set_config('lock_timeout', %s, true)"
_PAUSES = (1, 2, 4, 8, 16, 30)
# The default of deadlock_timeout, which only a superuser can change, is 1000.
_HOLDING_MS = 800
_SHORTEST_MS = 20
_LOOK_SECONDS = 0.05
_BLOCKERS = """
select blocking.pid, activity.application_name, activity.usename,
       extract(epoch from clock_timestamp() - activity.xact_start)
  from unnest(pg_blocking_pids(%s)) as blocking (pid)
  left join pg_stat_activity as activity using (pid)
"""

Result = TypeVar("Result")
Report = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Blocker:
    """A session that holds a lock; `seconds` counts from the start of its transaction."""

    pid: int
    application: str | None
    user: str | None
    seconds: float | None

    def __str__(self) -> str:
        facts = [f"application {self.application!r}"] if self.application else []
        facts += [f"user {self.user}"] if self.user else []
        # Another user's transaction times are hidden from those without pg_read_all_stats.
        facts += [f"in a transaction for {self.seconds:.0f} s"] if self.seconds is not None else []
        return f"pid {self.pid} ({', '.join(facts)})" if facts else f"pid {self.pid}"


async def wait_less(connection: AsyncConnection[Any], *, statements: int) -> None:
    """For so many statements of a transaction that already holds a lock."""
    timeout = max(_HOLDING_MS // max(statements, 1), _SHORTEST_MS)
    await connection.execute(_WAIT_LESS, (f"{timeout}ms",))


class ShortLocks:
    """Runs steps on a connection of its own; every lock wait on it ends after two seconds."""

    def __init__(
        self, url: str, connection: AsyncConnection[Any], *, tries: int, report: Report
    ) -> None:
        self._url, self._connection = url, connection
        self._tries, self._report = tries, report

    async def run(self, step: Callable[[], Awaitable[Result]], *, what: str) -> Result:
        """The step's result; `what` names it in SchemaLocked, raised after the last try."""
        await self._connection.execute(_TIMEOUTS)
        for number in range(1, self._tries + 1):
            async with _watched(self._url, self._connection) as blockers:
                try:
                    return await step()
                except (errors.LockNotAvailable, errors.DeadlockDetected):
                    names = [str(blocker) for blocker in blockers]
            if number < self._tries:
                pause = _PAUSES[min(number, len(_PAUSES)) - 1]
                self._report(
                    f"{what} is waiting for a lock{_holders(names)}; attempt {number} of "
                    f"{self._tries}, retrying in {pause} s"
                )
                await asyncio.sleep(pause)
        raise SchemaLocked(what, self._tries, names)


def _holders(names: list[str]) -> str:
    return f" held by {', '.join(names)}" if names else ""


@asynccontextmanager
async def _watched(url: str, connection: AsyncConnection[Any]) -> AsyncIterator[list[Blocker]]:
    """A list that holds who was last seen to block the connection."""
    seen: list[Blocker] = []
    task = asyncio.create_task(_watch(url, connection.info.backend_pid, seen))
    try:
        yield seen
    finally:
        task.cancel()
        # Whatever went wrong there: the names are missing then, and nothing else.
        await asyncio.gather(task, return_exceptions=True)


async def _watch(url: str, pid: int, seen: list[Blocker]) -> None:
    await asyncio.sleep(_LOOK_SECONDS)
    async with await connect.connect(url, name=NAME) as connection:
        while True:
            rows = await (await connection.execute(_BLOCKERS, (pid,))).fetchall()
            if rows:
                seen[:] = [Blocker(*row) for row in rows]
            await asyncio.sleep(_LOOK_SECONDS)
