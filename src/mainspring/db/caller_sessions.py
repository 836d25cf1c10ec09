"""A session on the async connection of whoever calls us, of any driver that calls.py knows.

It runs in the caller's own transaction. Drivers do not all say how many rows were changed, nor what
the columns are called, so the results say neither.
"""

from mainspring.db import calls
from mainspring.db.calls import Call, Params
from mainspring.db.sessions import Fetched


class CallerSession:
    """An async connection of the caller."""

    def __init__(self, connection: object) -> None:
        self._connection = connection

    async def execute(self, query: str, params: Params | None = None, /) -> Fetched:
        return Fetched(await calls.arun(self._connection, Call(query, params or {})))
