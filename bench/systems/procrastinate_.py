"""Procrastinate: concurrent async tasks on a pool of connections; it claims one job at a time.

Its periodic tasks are deferred by a worker, one after the other; this one has no queue to work. A
worker that starts defers what was due before, which here are all of them.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from procrastinate import App, PsycopgConnector, SyncPsycopgConnector

from bench.handlers import chosen, report
from bench.systems import scheduler
from bench.systems.driver import QUEUE

_TASK: Final = "noop"
_CONNECTIONS: Final = 8
_NO_QUEUE: Final = "nothing"
_EVERY_DAY: Final = "0 0 * * *"
_EVERY_SECOND: Final = "* * * * * *"
_TWO_DAYS: Final = 172_800


class Client:
    def __init__(self, application: App) -> None:
        self._deferrer = application.configure_task(_TASK, queue=QUEUE)

    def enqueue(self, n: int) -> None:
        self._deferrer.defer(n=n)

    def enqueue_bulk(self, numbers: Sequence[int]) -> None:
        self._deferrer.batch_defer(*({"n": n} for n in numbers))


class Driver:
    def install(self, dsn: str) -> None:
        with App(connector=SyncPsycopgConnector(conninfo=dsn)).open() as application:
            application.schema_manager.apply_schema()

    @contextmanager
    def client(self, dsn: str) -> Iterator[Client]:
        with App(connector=SyncPsycopgConnector(conninfo=dsn, min_size=1)).open() as application:
            yield Client(application)

    def work(self, dsn: str, concurrency: int) -> None:
        asyncio.run(_work(dsn, concurrency))


class Scheduler(scheduler.Scheduler):
    def fire_due(self, dsn: str, count: int) -> None:
        asyncio.run(_schedule(dsn, _EVERY_DAY, count, begin=report))

    def every_second(self, dsn: str) -> None:
        asyncio.run(_schedule(dsn, _EVERY_SECOND, 1))


async def _work(dsn: str, concurrency: int) -> None:
    application = App(connector=_connector(dsn))
    application.task(name=_TASK, queue=QUEUE)(chosen())
    async with application.open_async():
        await application.run_worker_async(queues=[QUEUE], concurrency=concurrency)


async def _schedule(
    dsn: str, cron: str, count: int, *, begin: Callable[[], None] | None = None
) -> None:
    application = App(connector=_connector(dsn), periodic_defaults={"max_delay": _TWO_DAYS})
    task = application.task(name="periodic", queue=QUEUE)(_periodic)
    for n in range(count):
        application.periodic(cron=cron, periodic_id=str(n))(task)
    async with application.open_async():
        if begin:
            begin()
        await application.run_worker_async(queues=[_NO_QUEUE], concurrency=1)


async def _periodic(timestamp: int) -> None:
    pass


def _connector(dsn: str) -> PsycopgConnector:
    return PsycopgConnector(conninfo=dsn, min_size=_CONNECTIONS, max_size=_CONNECTIONS)
