"""Use cases of limits that definitions share."""

from mainspring.db.sessions import Session
from mainspring.domain.errors import LimitNotFound
from mainspring.domain.limits import Limit, LimitState
from mainspring.domain.suggestions import closest
from mainspring.store import limits as store

_ALL = 10_000


async def set_limit(session: Session, limit: Limit, *, actor: str | None) -> LimitState:
    await store.set_limit(session, limit, actor)
    return await get(session, limit.name)


async def remove(session: Session, name: str, *, actor: str | None) -> None:
    if not await store.remove(session, name, actor):
        raise await _unknown(session, name)


async def get(session: Session, name: str) -> LimitState:
    state = await store.get(session, name)
    if state is None:
        raise await _unknown(session, name)
    return state


async def list_limits(
    session: Session, *, after: str | None = None, limit: int = _ALL
) -> list[LimitState]:
    """By name; page on with the last name as `after`."""
    return await store.list_limits(session, after=after, limit=limit)


async def _unknown(session: Session, name: str) -> LimitNotFound:
    known = [state.name for state in await list_limits(session)]
    return LimitNotFound(name, closest(name, known))
