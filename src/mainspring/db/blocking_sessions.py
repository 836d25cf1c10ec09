"""Sessions that await nothing, so that store functions also serve code without an event loop:

    is_saved = at_once(attempts.save_checkpoint(ConnectionSession(connection), report, text))

Some connections refuse to work inside an event loop, so none is started.
"""

from collections.abc import Coroutine
from typing import Any, TypeVar

from psycopg import Connection

from mainspring.db.calls import Call, Params
from mainspring.db.database import Database
from mainspring.db.sessions import Fetched, has_rows

T = TypeVar("T")


class BlockingSession:
    """A blocking connection of the caller, of any driver that calls.py knows, or one of ours."""

    def __init__(self, database: Database, connection: object = None) -> None:
        self._database, self._connection = database, connection

    async def execute(self, query: str, params: Params | None = None, /) -> Fetched:
        return Fetched(self._database.run(Call(query, params or {}), self._connection))


class ConnectionSession:
    """A blocking connection of psycopg, in whatever transaction it has open."""

    def __init__(self, connection: Connection[Any]) -> None:
        self._connection = connection

    async def execute(self, query: str, params: Params | None = None, /) -> Fetched:
        cursor = self._connection.execute(query, params)
        rows = cursor.fetchall() if has_rows(cursor) else []
        return Fetched(rows, cursor.rowcount, cursor.pgresult)


def at_once(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that awaits nothing, without an event loop."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    raise RuntimeError("a blocking use has to wait for something")
