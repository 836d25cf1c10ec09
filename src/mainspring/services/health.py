"""Whether the roles of this process are healthy and ready.

/healthz ─▶ vitals of the roles                               never the database
/readyz  ─▶ the same, and what hinders them ─▶ the database   at most a second
"""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import orjson
import psycopg
from psycopg import AsyncConnection

from mainspring.db import connect, migrate
from mainspring.db.reconnecting import shut_down
from mainspring.domain import health as rules
from mainspring.domain.errors import MainspringError
from mainspring.domain.errors.database import DatabaseError, DatabaseUnreachable
from mainspring.domain.health import Answer, ReadVitals

_PATIENCE_SECONDS = 0.8
# However often it is asked, the database is asked no more often than that.
_FRESH_SECONDS = 0.25
_UNREACHABLE = "the database cannot be reached"
_SILENT = "the database does not answer"
_UNFIT = "the schema of the database does not fit this program; run `mainspring migrate`"


class DatabaseProbe:
    """Asks on a connection of its own whether the database answers and its schema fits. `find_url`
    may block."""

    def __init__(self, find_url: Callable[[], str], *, use_pooler: bool) -> None:
        self._find_url, self._use_pooler = find_url, use_pooler
        self._connection: AsyncConnection[Any] | None = None
        self._asking: asyncio.Task[str | None] | None = None
        self._answered_at, self._answer = -_FRESH_SECONDS, ""

    async def complaint(self) -> str | None:
        """What is wrong; None if nothing is."""
        if self._asking is None:
            if time.monotonic() - self._answered_at < _FRESH_SECONDS:
                return self._answer or None
            self._asking = asyncio.create_task(self._ask())
            self._asking.add_done_callback(self._note)
        asking = self._asking
        done, _ = await asyncio.wait((asking,), timeout=_PATIENCE_SECONDS)
        if done:
            return _SILENT if asking.cancelled() else asking.result()
        self._give_up(asking)
        return _SILENT

    async def close(self) -> None:
        if self._asking is not None:
            self._give_up(self._asking)
        if self._connection is not None:
            await self._connection.close()
            self._connection = None

    async def _ask(self) -> str | None:
        try:
            if self._connection is None or self._connection.closed:
                self._connection = await self._connect()
            await migrate.check(self._connection)
        except (DatabaseUnreachable, psycopg.OperationalError, psycopg.InterfaceError, OSError):
            await self._disconnect()
            return _UNREACHABLE
        except (DatabaseError, psycopg.Error):
            return _UNFIT
        except MainspringError:  # The embedded server does not start.
            return _UNREACHABLE
        return None

    async def _connect(self) -> AsyncConnection[Any]:
        url = await asyncio.to_thread(self._find_url)
        return await connect.connect(
            url, name="mainspring health", use_pooler=self._use_pooler, patience_seconds=1
        )

    def _note(self, asking: "asyncio.Task[str | None]") -> None:
        if self._asking is asking:
            self._asking = None
        if not asking.cancelled():
            self._answered_at, self._answer = time.monotonic(), asking.result() or ""

    def _give_up(self, asking: "asyncio.Task[str | None]") -> None:
        """A canceled statement would be waited for; one whose socket is shut fails at once."""
        connection, self._connection = self._connection, None
        if connection is not None:
            shut_down(connection)
            asking.add_done_callback(lambda _: connection.pgconn.finish())
        asking.cancel()
        if self._asking is asking:
            self._asking = None

    async def _disconnect(self) -> None:
        if self._connection is not None:
            with suppress(psycopg.Error):
                await self._connection.close()
        self._connection = None


def body_of(answer: Answer) -> bytes:
    """What both endpoints say, and nothing secret."""
    status = "ok" if answer.is_yes else "failing"
    return orjson.dumps({"status": status, "reasons": list(answer.reasons)})


class Health:
    """Answers for the roles of this process; for one event loop."""

    def __init__(self, probe: DatabaseProbe) -> None:
        self._probe = probe
        self._roles: list[ReadVitals] = []

    def add(self, *roles: ReadVitals) -> None:
        self._roles += roles

    def healthy(self) -> Answer:
        """Without asking the database."""
        return Answer(rules.unhealthy([read() for read in self._roles], time.monotonic()))

    async def ready(self) -> Answer:
        """Within a second."""
        vitals = [read() for read in self._roles]
        reasons = rules.unhealthy(vitals, time.monotonic()) + rules.hindered(vitals)
        complaint = await self._probe.complaint()
        return Answer(reasons if complaint is None else [*reasons, complaint])

    async def close(self) -> None:
        await self._probe.close()
