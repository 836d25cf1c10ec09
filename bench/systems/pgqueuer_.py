"""PgQueuer: batches of 500, its own asyncpg driver and uvloop as its command line uses them.

Its schedules are functions of the program that it runs when their row is due; these enqueue a job.
"""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import asyncpg
import orjson
import psycopg
import uvloop
from pgqueuer import PgQueuer
from pgqueuer.db import SyncPsycopgDriver
from pgqueuer.models import Job, Schedule
from pgqueuer.queries import Queries, SyncQueries
from pgqueuer.sm import SchedulerManager

from bench.handlers import chosen, report
from bench.systems import scheduler
from bench.systems.driver import QUEUE

_EVERY_YEAR: Final = "0 0 1 1 *"
_EVERY_SECOND: Final = "* * * * * *"
_STORE_DUE: Final = """
insert into pgqueuer_schedules (expression, entrypoint, next_run)
select $1, 'schedule ' || n, now() from generate_series(0, $2::integer - 1) as n
"""


class Client:
    def __init__(self, queries: SyncQueries) -> None:
        self._queries = queries

    def enqueue(self, n: int) -> None:
        self._queries.enqueue(QUEUE, _payload(n))

    def enqueue_bulk(self, numbers: Sequence[int]) -> None:
        count = len(numbers)
        payloads: list[bytes | None] = [_payload(n) for n in numbers]
        self._queries.enqueue([QUEUE] * count, payloads, [0] * count)


class Driver:
    def install(self, dsn: str) -> None:
        asyncio.run(_install(dsn))

    @contextmanager
    def client(self, dsn: str) -> Iterator[Client]:
        with psycopg.connect(dsn, autocommit=True) as connection:
            yield Client(SyncQueries(SyncPsycopgDriver(connection)))

    def work(self, dsn: str, concurrency: int) -> None:
        uvloop.run(_work(dsn, concurrency))


class Scheduler(scheduler.Scheduler):
    def fire_due(self, dsn: str, count: int) -> None:
        uvloop.run(_fire_due(dsn, count))

    def every_second(self, dsn: str) -> None:
        uvloop.run(_every_second(dsn))


async def _install(dsn: str) -> None:
    connection = await asyncpg.connect(dsn)
    await Queries.from_asyncpg_connection(connection).install()
    await connection.close()


async def _work(dsn: str, concurrency: int) -> None:
    handler = chosen()
    async with asyncpg.create_pool(dsn, min_size=4, max_size=8) as pool:
        application = PgQueuer.from_asyncpg_pool(pool)

        @application.entrypoint(QUEUE)
        async def handle(job: Job) -> None:
            await handler(orjson.loads(job.payload or b"{}")["n"])

        await application.run(batch_size=concurrency)


async def _fire_due(dsn: str, count: int) -> None:
    async with asyncpg.create_pool(dsn, min_size=4, max_size=8) as pool:
        await pool.execute(_STORE_DUE, _EVERY_YEAR, count)
        application = _scheduler(pool, _EVERY_YEAR, count)
        report()
        await application.run()


async def _every_second(dsn: str) -> None:
    async with asyncpg.create_pool(dsn, min_size=4, max_size=8) as pool:
        await _scheduler(pool, _EVERY_SECOND, 1).run()


def _scheduler(pool: asyncpg.Pool, expression: str, count: int) -> SchedulerManager:
    queries = Queries.from_asyncpg_pool(pool)
    manager = SchedulerManager(queries)

    async def enqueue(schedule: Schedule) -> None:
        await queries.enqueue(QUEUE, str(schedule.next_run.timestamp()).encode())

    for n in range(count):
        manager.schedule(f"schedule {n}", expression)(enqueue)
    return manager


def _payload(n: int) -> bytes:
    return orjson.dumps({"n": n})
