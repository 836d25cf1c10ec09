"""Use cases of limits that definitions share."""

import difflib

from mainspring.db.database import Database
from mainspring.domain.errors import LimitNotFound
from mainspring.domain.limits import Limit, LimitState
from mainspring.store import limits as store

_ALL = 10_000


async def set_limit(database: Database, limit: Limit, *, actor: str | None) -> LimitState:
    await database.arun(store.set_limit(limit, actor))
    return await get(database, limit.name)


async def remove(database: Database, name: str, *, actor: str | None) -> None:
    ((was_there,),) = await database.arun(store.remove(name, actor))
    if not was_there:
        raise await _unknown(database, name)


async def get(database: Database, name: str) -> LimitState:
    rows = await database.arun(store.get(name))
    if not rows:
        raise await _unknown(database, name)
    return store.read_state(rows[0])


async def list_limits(database: Database, *, limit: int = _ALL) -> list[LimitState]:
    return [store.read_state(row) for row in await database.arun(store.list_limits(limit))]


async def _unknown(database: Database, name: str) -> LimitNotFound:
    names = [state.name for state in await list_limits(database)]
    close = difflib.get_close_matches(name, names, n=1)
    return LimitNotFound(name, close[0] if close else None)
