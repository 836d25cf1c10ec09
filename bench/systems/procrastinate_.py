"""Procrastinate: concurrent async tasks on a pool of connections; it claims one job at a time."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from procrastinate import App, PsycopgConnector, SyncPsycopgConnector

from bench.handlers import chosen
from bench.systems.driver import QUEUE

_TASK: Final = "noop"
_CONNECTIONS: Final = 8


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


async def _work(dsn: str, concurrency: int) -> None:
    connector = PsycopgConnector(conninfo=dsn, min_size=_CONNECTIONS, max_size=_CONNECTIONS)
    application = App(connector=connector)
    application.task(name=_TASK, queue=QUEUE)(chosen())
    async with application.open_async():
        await application.run_worker_async(queues=[QUEUE], concurrency=concurrency)
