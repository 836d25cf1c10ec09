"""Oban for Python: one queue with a high limit, uvloop as its command line uses it."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import uvloop
from oban import Oban, worker
from oban.job import Job
from oban.schema import install
from psycopg_pool import AsyncConnectionPool

from bench.handlers import chosen
from bench.systems.driver import QUEUE

WORKER: Final = "bench.systems.oban_.Noop"
_handler: Final = chosen()


@worker(queue=QUEUE)
class Noop:
    async def process(self, job: Job) -> None:
        await _handler(job.args["n"])


class Client:
    def __init__(self, application: Oban, loop: asyncio.AbstractEventLoop) -> None:
        self._application = application
        self._loop = loop

    def enqueue(self, n: int) -> None:
        self._loop.run_until_complete(self._application.enqueue(_job(n)))

    def enqueue_bulk(self, numbers: Sequence[int]) -> None:
        jobs = (_job(n) for n in numbers)
        self._loop.run_until_complete(self._application.enqueue_many(jobs))


class Driver:
    def install(self, dsn: str) -> None:
        asyncio.run(_install(dsn))

    @contextmanager
    def client(self, dsn: str) -> Iterator[Client]:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            pool = runner.run(_pool(dsn))
            yield Client(Oban(pool=pool), runner.get_loop())
            runner.run(pool.close())

    def work(self, dsn: str, concurrency: int) -> None:
        uvloop.run(_work(dsn, concurrency))


async def _install(dsn: str) -> None:
    pool = await _pool(dsn)
    await install(pool)
    await pool.close()


async def _work(dsn: str, concurrency: int) -> None:
    async with Oban(pool=await _pool(dsn), queues={QUEUE: concurrency}):
        await asyncio.Event().wait()


async def _pool(dsn: str) -> AsyncConnectionPool:
    pool: AsyncConnectionPool = await Oban.create_pool(dsn)
    return pool


def _job(n: int) -> Job:
    return Job(worker=WORKER, queue=QUEUE, args={"n": n})
