"""Statements on limits."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from mainspring.db.arrays import TextArray
from mainspring.db.sessions import Session, fetch_all, fetch_one
from mainspring.db.statements import load
from mainspring.domain.limits import Limit, LimitKey, LimitState, Rate
from mainspring.store.attempts import Report

_STATEMENTS = load("limits")
_BATCH = 1000
_MOST_GRANTED = 4000


class Granted(NamedTuple):
    """What a grant came to; without the lock it came to nothing. `unfinished` are the keys that may
    have more to let go, `shared` the limits whose places serve several keys, `full` those of them
    that have none left; `next_in` is seconds, `key_places` the places of each key of limits that
    count nothing else."""

    is_ours: bool
    jobs: int
    queues: list[str]
    unfinished: list[LimitKey]
    shared: list[str]
    full: list[str]
    next_in: float | None
    key_places: dict[str, int]


async def waiting_keys(session: Session, *, after: LimitKey, limit: int) -> list[LimitKey]:
    """The keys behind the given one for which jobs wait, in order."""
    params = {
        "limit_name": after.limit,
        "key": after.key,
        "tenant_id": after.tenant_id,
        "limit": limit,
    }
    cursor = await session.execute(_STATEMENTS["waiting_limit_keys"].sql, params)
    return [LimitKey(*row) for row in await cursor.fetchall()]


async def waiting_keys_of(
    session: Session, name: str, *, after: LimitKey, limit: int
) -> list[LimitKey]:
    """The keys of one limit behind the given one for which jobs wait, in order."""
    params = {"limit_name": name, "key": after.key, "tenant_id": after.tenant_id, "limit": limit}
    cursor = await session.execute(_STATEMENTS["waiting_keys_of_limit"].sql, params)
    return [LimitKey(*row) for row in await cursor.fetchall()]


async def take_back(session: Session) -> bool:
    """Take places back from jobs that have not started, where a limit was lowered; False if
    someone else is granting."""
    cursor = await session.execute(_STATEMENTS["take_back"].sql)
    (row,) = await cursor.fetchall()
    return bool(row[0])


async def grant(session: Session, keys: Sequence[LimitKey]) -> Granted:
    """Let jobs of the keys go, as far as there are places."""
    params = {
        "names": TextArray([key.limit.encode() for key in keys]),
        "keys": TextArray([key.key.encode() for key in keys]),
        "tenants": TextArray([key.tenant_id.encode() for key in keys]),
        "limit": _MOST_GRANTED,
    }
    cursor = await session.execute(_STATEMENTS["grant"].sql, params)
    (row,) = await cursor.fetchall()
    is_ours, jobs, queues, unfinished, shared, full, next_in, names, places = row
    return Granted(
        is_ours,
        jobs,
        queues,
        [keys[number - 1] for number in unfinished],
        shared,
        full,
        next_in,
        dict(zip(names or (), places or (), strict=True)),
    )


async def take_token(session: Session, report: Report) -> float | None:
    """0 if the job may start, else the seconds until it could; None if the lease was lost."""
    cursor = await session.execute(_STATEMENTS["take_token"].sql, report._asdict())
    (row,) = await cursor.fetchall()
    seconds: float | None = row[0]
    return seconds


async def prune_buckets(session: Session) -> bool:
    """Whether there may be more to prune."""
    cursor = await session.execute(_STATEMENTS["prune_buckets"].sql, {"limit": _BATCH})
    return cursor.rowcount == _BATCH


async def refill_buckets(session: Session) -> bool:
    """Whether any bucket was not full; all are now."""
    cursor = await session.execute(_STATEMENTS["refill_buckets"].sql)
    return cursor.rowcount > 0


async def set_limit(session: Session, limit: Limit, actor: str | None) -> None:
    params = {
        "name": limit.name,
        "concurrency": limit.concurrency,
        "key_concurrency": limit.key_concurrency,
        "rate_count": limit.rate.count if limit.rate else None,
        "rate_period": limit.rate.period if limit.rate else None,
        "burst": limit.burst,
        "actor": actor,
    }
    await session.execute(_STATEMENTS["set_limit"].sql, params)


async def remove(session: Session, name: str, actor: str | None) -> bool:
    """Whether there was one."""
    params = {"name": name, "actor": actor}
    ((was_there,),) = await fetch_all(session, _STATEMENTS["remove_limit"].sql, params)
    return bool(was_there)


async def get(session: Session, name: str) -> LimitState | None:
    row = await fetch_one(session, _STATEMENTS["get_limit"].sql, {"name": name})
    return None if row is None else _state(row)


async def list_limits(session: Session, limit: int) -> list[LimitState]:
    rows = await fetch_all(session, _STATEMENTS["list_limits"].sql, {"limit": limit})
    return [_state(row) for row in rows]


def _state(row: tuple[Any, ...]) -> LimitState:
    name, concurrency, key_concurrency, count, seconds, burst, running, waiting = row
    rate = None if count is None else Rate.of(count, seconds)
    limit = Limit(
        name, concurrency=concurrency, key_concurrency=key_concurrency, rate=rate, burst=burst
    )
    return LimitState(limit, running, waiting)
