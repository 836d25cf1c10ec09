"""Connections that never prepare a statement whose columns an upgrade may change.

The server refuses to run a prepared statement once its result has other columns (0A000, "cached
plan must not change result type"), and inside a transaction it is too late to send it anew. So a
statement that returns `*` of a view is sent as text: a server of the release before goes on while
the views under it get their new columns.
"""

from typing import Any

import psycopg
from psycopg import AsyncConnection, AsyncCursor, Connection, Cursor
from psycopg.abc import Params

from mainspring.db.statements import has_open_columns

# Of the server's source; the message is translated into the language of its settings.
_REFUSES = "RevalidateCachedQuery"


class OwnConnection(AsyncConnection[Any]):
    """One of ours; not behind a pooler, which prepares nothing anyway."""

    async def execute(
        self,
        query: Any,
        params: Params | None = None,
        *,
        prepare: bool | None = None,
        binary: bool = False,
    ) -> AsyncCursor[Any]:
        if prepare is None and type(query) is str and has_open_columns(query):
            prepare = False
        return await super().execute(query, params, prepare=prepare, binary=binary)


class OwnBlockingConnection(Connection[Any]):
    """The same for blocking callers."""

    def execute(
        self,
        query: Any,
        params: Params | None = None,
        *,
        prepare: bool | None = None,
        binary: bool = False,
    ) -> Cursor[Any]:
        if prepare is None and type(query) is str and has_open_columns(query):
            prepare = False
        return super().execute(query, params, prepare=prepare, binary=binary)


def is_outdated(error: BaseException) -> bool:
    """Whether a prepared statement was refused because its result has other columns by now. Nothing
    was done, and on a new connection it can be."""
    if not isinstance(error, psycopg.errors.FeatureNotSupported):
        return False
    return error.diag.source_function == _REFUSES
