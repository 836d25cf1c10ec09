"""Connections through a pooler in transaction mode, where a session's settings do not last.

Each transaction may run on another connection of the server, so what we rely on is set again in
each, for its duration. A statement by itself gets a transaction, in one round trip.
"""

import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from types import MappingProxyType
from typing import Any

from psycopg import (
    AsyncConnection,
    AsyncCursor,
    AsyncTransaction,
    Connection,
    Cursor,
    IsolationLevel,
    Transaction,
)
from psycopg.abc import Params

_SET = """
select set_config(name, value, true)
  from unnest(%(names)s::text[], %(values)s::text[]) as setting (name, value)
"""
_SETTING = re.compile(r"-c\s*([\w.]+)=((?:\\.|[^\s\\])*)")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_NONE: Mapping[str, str] = MappingProxyType({})


def split_options(options: str) -> tuple[dict[str, str], str]:
    """The settings (`-c name=value`) among the options of a connection, and the other options."""
    settings = {name: _ESCAPED.sub(r"\1", value) for name, value in _SETTING.findall(options)}
    return settings, _SETTING.sub("", options).strip()


class PoolerConnection(AsyncConnection[Any]):
    """Sets its settings in each transaction; a statement outside of one gets one."""

    _settings: Mapping[str, str] = _NONE
    _depth = 0

    async def keep(self, settings: Mapping[str, str]) -> None:
        """Use these from now on, and read committed."""
        self._settings = settings
        await self.set_isolation_level(IsolationLevel.READ_COMMITTED)

    async def execute(
        self,
        query: Any,
        params: Params | None = None,
        *,
        prepare: bool | None = None,
        binary: bool = False,
    ) -> AsyncCursor[Any]:
        if self._depth:
            return await super().execute(query, params, prepare=prepare, binary=binary)
        async with self.pipeline(), self.transaction():
            return await super().execute(query, params, prepare=prepare, binary=binary)

    @asynccontextmanager
    async def transaction(
        self, savepoint_name: str | None = None, force_rollback: bool = False
    ) -> AsyncIterator[AsyncTransaction]:
        async with super().transaction(savepoint_name, force_rollback) as transaction:
            self._depth += 1
            try:
                if self._depth == 1:
                    await super().execute(_SET, _values(self._settings))
                yield transaction
            finally:
                self._depth -= 1


class BlockingPoolerConnection(Connection[Any]):
    """The same for blocking callers."""

    _settings: Mapping[str, str] = _NONE
    _depth = 0

    def keep(self, settings: Mapping[str, str]) -> None:
        """Use these from now on, and read committed."""
        self._settings = settings
        self.set_isolation_level(IsolationLevel.READ_COMMITTED)

    def execute(
        self,
        query: Any,
        params: Params | None = None,
        *,
        prepare: bool | None = None,
        binary: bool = False,
    ) -> Cursor[Any]:
        if self._depth:
            return super().execute(query, params, prepare=prepare, binary=binary)
        with self.pipeline(), self.transaction():
            return super().execute(query, params, prepare=prepare, binary=binary)

    @contextmanager
    def transaction(
        self, savepoint_name: str | None = None, force_rollback: bool = False
    ) -> Iterator[Transaction]:
        with super().transaction(savepoint_name, force_rollback) as transaction:
            self._depth += 1
            try:
                if self._depth == 1:
                    super().execute(_SET, _values(self._settings))
                yield transaction
            finally:
                self._depth -= 1


def _values(settings: Mapping[str, str]) -> dict[str, list[str]]:
    return {"names": list(settings), "values": list(settings.values())}
