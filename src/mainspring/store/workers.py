"""Statements on workers and their leases."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, NamedTuple

import orjson

from mainspring.db.sessions import Session, fetch_mappings
from mainspring.db.statements import load
from mainspring.domain.claiming.lanes import Lane
from mainspring.domain.processes import ClockReading
from mainspring.domain.types import WorkerId
from mainspring.store.rows.clocks import clock_params

_STATEMENTS = load("workers")


@dataclass(frozen=True, slots=True)
class WorkerFacts:
    """What a worker says of itself when it registers."""

    name: str
    host: str
    pid: int
    process_identity: str
    queues: tuple[str, ...]
    concurrency: int
    version: str
    schemas: Mapping[str, Mapping[str, Any] | None] = field(default_factory=dict)
    """What its handlers take, by definition; None for any payload."""
    schema_number: int | None = None
    """The newest migration that its program knows."""


async def register(session: Session, facts: WorkerFacts, lease: timedelta) -> WorkerId:
    cursor = await session.execute(
        _STATEMENTS["register"].sql,
        {
            "lease": lease,
            "pid": facts.pid,
            "concurrency": facts.concurrency,
            "name": facts.name,
            "host": facts.host,
            "process_identity": facts.process_identity,
            "queues": list(facts.queues),
            "version": facts.version,
            "schema_number": facts.schema_number,
            "schemas": orjson.dumps(facts.schemas).decode(),
        },
    )
    ((worker_id,),) = await cursor.fetchall()
    return WorkerId(worker_id)


async def renew(
    session: Session, worker_id: WorkerId, lease: timedelta, *, clock: ClockReading | None = None
) -> float | None:
    """When, in seconds of the database's clock; None if the lease has run out: then it stays lost.
    `clock` is what the renewal before has shown."""
    params = {"worker_id": worker_id, "lease": lease, **clock_params(clock)}
    row = await (await session.execute(_STATEMENTS["renew"].sql, params)).fetchone()
    return None if row is None else row[0]


async def set_wants_wake(session: Session, worker_id: WorkerId, *, wants_wake: bool) -> None:
    params = {"worker_id": worker_id, "wants_wake": wants_wake}
    await session.execute(_STATEMENTS["set_wants_wake"].sql, params)


async def stop(session: Session, worker_id: WorkerId) -> None:
    await session.execute(_STATEMENTS["stop"].sql, {"worker_id": worker_id})


async def remove(session: Session, worker_id: WorkerId) -> None:
    await session.execute(_STATEMENTS["remove"].sql, {"worker_id": worker_id})


class Watched(NamedTuple):
    """A worker that may need recovery."""

    worker_id: WorkerId
    process_identity: str
    is_expired: bool


async def watch(session: Session, host: str) -> list[Watched]:
    """The workers of the host, and those anywhere whose lease ran out."""
    cursor = await session.execute(_STATEMENTS["watch"].sql, {"host": host})
    return [Watched(*row) for row in await cursor.fetchall()]


class Backend(NamedTuple):
    """A server process that works on a statement; `is_blocked` by a lock of another."""

    pid: int
    is_blocked: bool


async def backends_at_work(
    session: Session, pids: Collection[int], names: Collection[str], *, just_now: timedelta
) -> dict[int, Backend]:
    """Those of our connections, by their server process, whose statement the server works on, or
    did until just now."""
    params = {"pids": list(pids), "names": list(names), "just_now": just_now}
    cursor = await session.execute(_STATEMENTS["backends_at_work"].sql, params)
    return {row[0]: Backend(*row) for row in await cursor.fetchall()}


async def expire_workers(
    session: Session, worker_ids: Sequence[WorkerId], *, are_dead: bool = False
) -> None:
    """End their leases; `are_dead` says that their processes are gone."""
    params = {"worker_ids": list(worker_ids), "are_dead": are_dead}
    await session.execute(_STATEMENTS["expire_workers"].sql, params)


async def note_recovered(session: Session) -> None:
    await session.execute(_STATEMENTS["note_recovered"].sql)


async def prune_workers(session: Session) -> None:
    await session.execute(_STATEMENTS["prune_workers"].sql)


async def wake(session: Session, queues: Collection[str]) -> None:
    """Notify idle workers of the queues."""
    await session.execute(_STATEMENTS["wake"].sql, {"queues": sorted(queues)})


async def list_workers(
    session: Session, *, before: int | None, limit: int
) -> list[Mapping[str, Any]]:
    params = {"before": before, "limit": limit}
    return await fetch_mappings(session, _STATEMENTS["list_workers"].sql, params)


async def announce_jobs(session: Session, jobs: Sequence[tuple[Lane, int]]) -> None:
    """Name these jobs, each with its lane, to idle workers."""
    params = {
        "queues": [lane.queue for lane, _ in jobs],
        "priorities": [lane.priority for lane, _ in jobs],
        "tenants": [lane.tenant_id for lane, _ in jobs],
        "job_ids": [job_id for _, job_id in jobs],
    }
    await session.execute(_STATEMENTS["announce_jobs"].sql, params)
