"""Statements on figures."""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from mainspring.db.sessions import Session, fetch_all, fetch_one
from mainspring.db.statements import load
from mainspring.domain.figures import Part, Step
from mainspring.domain.types import TenantId

_STATEMENTS = load("figures")
_MOST_CHANGES = 20_000


class Turn(NamedTuple):
    """Whether this transaction is the one that looks; how many seconds ago the last look was, and
    how many it took. None if there was none."""

    is_ours: bool
    age: float | None
    took: float | None


class RowKey(NamedTuple):
    """What figures are of; empty where they are of all."""

    tenant_id: str
    queue: str
    definition: str


class FigureRow(NamedTuple):
    """The figures of a key in a span of time, in the order of the table."""

    at: datetime
    tenant_id: str
    queue: str
    definition: str
    enqueued: int
    started: int
    succeeded: int
    failed: int
    dead_letter: int
    canceled: int
    deleted: int
    revived: int
    attempts_succeeded: int
    attempts_failed: int
    attempts_timeout: int
    attempts_canceled: int
    attempts_snoozed: int
    attempts_lost: int
    ready: int
    running: int
    oldest_ready_seconds: float
    wait_sum: float
    wait_worst: float
    run_sum: float
    run_worst: float
    wait_buckets: list[list[int]]
    run_buckets: list[list[int]]

    @property
    def key(self) -> RowKey:
        return RowKey(self.tenant_id, self.queue, self.definition)


class Watches(NamedTuple):
    """When the last look was, and up to when hours and days are complete."""

    seen_at: datetime | None
    complete: dict[Step, datetime | None]


async def lock(session: Session) -> Turn:
    """Try to be the one that looks, until the transaction ends."""
    row = await fetch_one(session, _STATEMENTS["lock_figures"].sql, {})
    return Turn(*row) if row else Turn(is_ours=False, age=None, took=None)


async def look(session: Session, *, most_keys: int) -> int:
    """Add up what has changed; how many changes that were. The lock was taken before."""
    params = {"most_keys": most_keys, "most_changes": _MOST_CHANGES}
    row = await fetch_one(session, _STATEMENTS["look"].sql, params)
    return row[0] if row else 0


async def compact_next(session: Session, step: Step, source: Step) -> bool:
    """Make the next figures of a step from those of a smaller one; whether there were any."""
    params: dict[str, object] = {"step": step, "source": source}
    row = await fetch_one(session, _STATEMENTS["oldest_uncompacted"].sql, params)
    if row is None:
        return False
    await session.execute(_STATEMENTS["compact"].sql, params | {"start": row[0]})
    return True


async def prune(session: Session, step: Step, keep: timedelta, *, made: Step) -> None:
    """Remove old figures of a step from which those of another have been made."""
    params = {"step": step, "keep": keep, "made": f"figures of {made}s"}
    await session.execute(_STATEMENTS["prune_figures"].sql, params)


async def read(
    session: Session,
    tenant_id: TenantId | None,
    parts: Sequence[Part],
    *,
    span: timedelta,
    by: Collection[str] = (),
    queues: Sequence[str] | None = None,
    definitions: Sequence[str] | None = None,
) -> list[FigureRow]:
    """Figures added up for spans and by some of tenant, queue and definition; of all tenants if
    none is given. In the order of time."""
    params = {
        "steps": [part.step for part in parts],
        "starts": [part.start for part in parts],
        "ends": [part.end for part in parts],
        "span": span,
        "keys": list(by),
        "tenant": tenant_id,
        "queues": None if queues is None else list(queues),
        "definitions": None if definitions is None else list(definitions),
    }
    return [FigureRow(*row) for row in await fetch_all(session, _STATEMENTS["read"].sql, params)]


async def watches(session: Session) -> Watches:
    rows = await fetch_all(session, _STATEMENTS["watches"].sql, {})
    known: dict[str, datetime] = dict(rows)
    complete = {step: known.get(f"figures of {step}s") for step in (Step.HOUR, Step.DAY)}
    return Watches(known.get("figures"), complete)
