"""Statements on limits."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from mainspring.db.arrays import IntegerArray, TextArray
from mainspring.db.sessions import Session, fetch_all, fetch_one
from mainspring.db.statements import load
from mainspring.domain.claiming.lanes import LEAST_URGENT
from mainspring.domain.limits import Limit, LimitKey, LimitState, Rate
from mainspring.domain.types import WorkerId
from mainspring.store.attempts import Report

_STATEMENTS = load("limits")
_BATCH = 1000
_FACTS = -1


class WaitingKey(NamedTuple):
    """A limit key that jobs of a queue wait for."""

    limit: str
    key: str
    tenant_id: str
    queue: str

    @property
    def limit_key(self) -> LimitKey:
        return LimitKey(self.limit, self.key, self.tenant_id)


FIRST_KEY = WaitingKey("", "", "", "")
"""Comes before all others."""


class LimitedClaim(NamedTuple):
    """What a claim of jobs that wait for limits came to. `rows` are in the shape of ClaimedRow and
    in no particular order; `unfinished` are the keys that may have more to give, `shared` the
    limits whose places serve several keys, `full` those of them that have none left; `next_in` is
    the seconds until a rate has its next token, `key_places` the places of each key of limits that
    count nothing else, `weights` those of tenants that have another weight than 1."""

    rows: list[tuple[Any, ...]]
    unfinished: list[LimitKey]
    shared: list[str]
    full: list[str]
    next_in: float | None
    key_places: dict[str, int]
    weights: dict[str, int]


async def waiting_keys(session: Session, *, after: WaitingKey, limit: int) -> list[WaitingKey]:
    """The keys behind the given one for which jobs wait, in order."""
    params = {
        "limit_name": after.limit,
        "key": after.key,
        "tenant_id": after.tenant_id,
        "queue": after.queue,
        "limit": limit,
    }
    cursor = await session.execute(_STATEMENTS["waiting_limit_keys"].sql, params)
    return [WaitingKey(*row) for row in await cursor.fetchall()]


async def waiting_keys_of(
    session: Session, name: str, queues: Sequence[str], *, after: LimitKey, limit: int
) -> list[LimitKey]:
    """The keys of one limit behind the given one for which jobs of the queues wait, in order."""
    params = {
        "limit_name": name,
        "key": after.key,
        "tenant_id": after.tenant_id,
        "queues": list(queues),
        "limit": limit,
    }
    cursor = await session.execute(_STATEMENTS["waiting_keys_of_limit"].sql, params)
    return list(dict.fromkeys(LimitKey(*row) for row in await cursor.fetchall()))


async def take_back(session: Session) -> bool:
    """Take places back that programs of an earlier release have granted; False if someone else has
    the lock."""
    cursor = await session.execute(_STATEMENTS["take_back"].sql)
    (row,) = await cursor.fetchall()
    return bool(row[0])


async def claim(
    session: Session,
    keys: Sequence[LimitKey],
    *,
    worker_id: WorkerId,
    queues: Sequence[str],
    limit: int,
    shares: Mapping[str, int] | None = None,
    lowest: int = LEAST_URGENT,
) -> LimitedClaim | None:
    """Claim jobs of the keys, as far as there are places; None if someone else has the lock, or
    the lease ran out. None of the jobs is less urgent than `lowest`, and of those that are as
    urgent each tenant gives its share at most."""
    params = {
        "worker_id": worker_id,
        "queues": list(queues),
        **_columns(keys),
        "shares": IntegerArray(
            [limit if shares is None else shares.get(key.tenant_id, limit) for key in keys]
        ),
        "limit": limit,
        "lowest": lowest,
    }
    cursor = await session.execute(_STATEMENTS["claim_limited"].sql, params)
    rows = await cursor.fetchall()
    if not rows:
        return None
    facts = rows.pop()[_FACTS]
    return LimitedClaim(
        [row[:_FACTS] for row in rows],
        [keys[number - 1] for number in facts["unfinished"]],
        facts["shared"],
        facts["full"],
        facts["next_in"],
        dict(zip(facts["keyed_names"], facts["keyed_places"], strict=True)),
        facts["weights"] or {},
    )


async def announce(session: Session, keys: Sequence[LimitKey]) -> None:
    """Notify idle workers of limit keys that may have a place free."""
    await session.execute(_STATEMENTS["announce_limits"].sql, _columns(keys))


def _columns(keys: Sequence[LimitKey]) -> dict[str, TextArray]:
    return {
        "names": TextArray([key.limit.encode() for key in keys]),
        "keys": TextArray([key.key.encode() for key in keys]),
        "tenants": TextArray([key.tenant_id.encode() for key in keys]),
    }


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


async def list_limits(session: Session, *, after: str | None, limit: int) -> list[LimitState]:
    params = {"after": after, "limit": limit}
    rows = await fetch_all(session, _STATEMENTS["list_limits"].sql, params)
    return [_state(row) for row in rows]


def _state(row: tuple[Any, ...]) -> LimitState:
    name, concurrency, key_concurrency, count, seconds, burst, running, waiting = row
    rate = None if count is None else Rate.of(count, seconds)
    limit = Limit(
        name, concurrency=concurrency, key_concurrency=key_concurrency, rate=rate, burst=burst
    )
    return LimitState(limit, running, waiting)
