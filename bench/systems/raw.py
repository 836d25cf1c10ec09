"""The raw limit: Mainspring's own tables and statements in the barest loop that can issue them.

No handler, no renewal, no timer, no result: one task claims 500 rows at a time, another moves
them to history, each on its own connection, so that the two overlap. What is missing from this
figure in Mainspring's own is the price of everything a worker is for.

Single enqueue is one bare insert a commit, bulk enqueue is COPY. A bare insert wakes nobody, so an
idle loop looks every millisecond.
"""

import asyncio
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Final

import psycopg
import uvloop
from psycopg import AsyncConnection, Connection

from bench.handlers import chosen, noop
from bench.systems.driver import QUEUE
from mainspring.db import connect, migrate
from mainspring.domain.claiming.lanes import Lane
from mainspring.domain.types import DEFAULT_PRIORITY, DEFAULT_TENANT, WorkerId
from mainspring.store import attempts, workers
from mainspring.store.attempts import Successes
from mainspring.store.workers import WorkerFacts

_WORKER: Final = "bench raw worker"
_LANE: Final = Lane(DEFAULT_PRIORITY, DEFAULT_TENANT, QUEUE)
_BATCHES_AHEAD: Final = 4
_POLL_SECONDS: Final = 0.001
_DEFINE: Final = (
    "insert into mainspring.definitions (key, kind, queue) values ('noop', 'python', %s)"
)
_COPY: Final = "copy mainspring.jobs (queue, definition, payload) from stdin"
_INSERT: Final = """
insert into mainspring.jobs (queue, definition, payload) values (%s, 'noop', %s::jsonb)
"""

Batch = list[tuple[Any, ...]]


class Client:
    def __init__(self, connection: Connection[Any]) -> None:
        self._connection = connection

    def enqueue(self, n: int) -> None:
        self._connection.execute(_INSERT, (QUEUE, _payload(n)), prepare=True)

    def enqueue_bulk(self, numbers: Sequence[int]) -> None:
        rows = "".join(f"{QUEUE}\tnoop\t{_payload(n)}\n" for n in numbers)
        with self._connection.cursor() as cursor, cursor.copy(_COPY) as copy:
            copy.write(rows)


class Driver:
    def install(self, dsn: str) -> None:
        asyncio.run(migrate.migrate(dsn))
        with psycopg.connect(dsn) as connection:
            connection.execute(_DEFINE, (QUEUE,))

    @contextmanager
    def client(self, dsn: str) -> Iterator[Client]:
        with psycopg.connect(dsn, autocommit=True) as connection:
            yield Client(connection)

    def work(self, dsn: str, concurrency: int) -> None:
        uvloop.run(_work(dsn, concurrency))


async def _work(dsn: str, size: int) -> None:
    claims = await connect.connect(dsn, name=_WORKER, pins_plans=True)
    finishes = await connect.connect(dsn, name=_WORKER, pins_plans=True)
    # A lease long enough never to be renewed: reports need one, a bare loop has no other use.
    worker_id = await workers.register(claims, _facts(size), timedelta(days=1))
    batches: asyncio.Queue[Batch] = asyncio.Queue(_BATCHES_AHEAD)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(_claim(claims, batches, worker_id, size=size))
        tasks.create_task(_finish(finishes, batches, worker_id))


async def _claim(
    connection: AsyncConnection[Any],
    batches: asyncio.Queue[Batch],
    worker_id: WorkerId,
    *,
    size: int,
) -> None:
    mark = 0
    while True:
        rows = await attempts.claim(connection, worker_id, [(_LANE, mark)], limit=size)
        if rows:
            # Behind the mark lie only this loop's own dead rows, unless a transaction with
            # earlier ids commits late; an empty claim looks there again.
            mark = max(row[0] for row in rows)
            await batches.put(rows)
        elif mark:
            mark = 0
        else:
            await asyncio.sleep(_POLL_SECONDS)


async def _finish(
    connection: AsyncConnection[Any], batches: asyncio.Queue[Batch], worker_id: WorkerId
) -> None:
    handler = chosen()
    while True:
        rows = await batches.get()
        if handler is not noop:
            await asyncio.gather(*(handler(row[0]) for row in rows))
        await attempts.finish_succeeded(connection, worker_id, _reports(rows))


def _facts(size: int) -> WorkerFacts:
    return WorkerFacts(
        name=_WORKER,
        host="bench",
        pid=os.getpid(),
        process_identity="bench",
        queues=(QUEUE,),
        concurrency=size,
        version="bench",
    )


def _reports(rows: Batch) -> Successes:
    nothing = [0] * len(rows)
    return Successes(
        job_ids=[row[0] for row in rows],
        fences=[row[1] for row in rows],
        waits=nothing,
        runs=nothing,
        results=[None] * len(rows),
    )


def _payload(n: int) -> str:
    return f'{{"n": {n}}}'
