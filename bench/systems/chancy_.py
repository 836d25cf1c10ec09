"""Chancy: the async executor, polled as soon as jobs finish, results flushed often, and of the
plugins it enables by default only those that keep it running: metrics and workflows halve it.
"""

import asyncio
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from chancy import Chancy, Job, Queue, Worker
from chancy.plugins.leadership import Leadership
from chancy.plugins.pruner import Pruner
from chancy.plugins.recovery import Recovery

from bench.systems.driver import QUEUE

# It logs every job it takes; nobody reads that here.
_LOG: Final = logging.getLogger("bench.chancy")
_LOG.setLevel(logging.ERROR)
_FLUSH_SECONDS: Final = 0.05


class Client:
    def __init__(self, application: Chancy) -> None:
        self._application = application

    def enqueue(self, n: int) -> None:
        self._application.sync_push(_job(n))

    def enqueue_bulk(self, numbers: Sequence[int]) -> None:
        for _ in self._application.sync_push_many([_job(n) for n in numbers]):
            pass


class Driver:
    def install(self, dsn: str) -> None:
        asyncio.run(_install(dsn))

    @contextmanager
    def client(self, dsn: str) -> Iterator[Client]:
        with _application(dsn) as application:
            yield Client(application)

    def work(self, dsn: str, concurrency: int) -> None:
        asyncio.run(_work(dsn, concurrency))


async def _install(dsn: str) -> None:
    async with _application(dsn) as application:
        await application.migrate()


async def _work(dsn: str, concurrency: int) -> None:
    queue = Queue(
        QUEUE,
        concurrency=concurrency,
        executor=Chancy.Executor.Async,
        polling_interval=1,
        eager_polling=True,
    )
    async with _application(dsn) as application:
        await application.declare(queue, upsert=True)
        worker = Worker(application)
        worker.send_outgoing_interval = _FLUSH_SECONDS
        async with worker:
            await worker.wait_for_shutdown()


def _application(dsn: str) -> Chancy:
    plugins = [Leadership(), Pruner(), Recovery()]
    return Chancy(dsn, plugins=plugins, no_default_plugins=True, log=_LOG)


def _job(n: int) -> Job:
    return Job(func="bench.handlers.job", kwargs={"n": n}, queue=QUEUE)
