"""PgQueuer: batches of 500, its own asyncpg driver and uvloop as its command line uses them."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import asyncpg
import orjson
import psycopg
import uvloop
from pgqueuer import PgQueuer
from pgqueuer.db import SyncPsycopgDriver
from pgqueuer.models import Job
from pgqueuer.queries import Queries, SyncQueries

from bench.handlers import chosen
from bench.systems.driver import QUEUE


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


def _payload(n: int) -> bytes:
    return orjson.dumps({"n": n})
