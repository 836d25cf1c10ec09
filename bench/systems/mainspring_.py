"""Mainspring by its public Python door; its worker is the command a user would start."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from bench.handlers import chosen
from bench.systems.driver import QUEUE
from mainspring import Mainspring
from mainspring.db import migrate

# The database comes from MAINSPRING_DATABASE_URL, as it would in a deployment.
app: Final = Mainspring()
noop: Final = app.job(key="noop", queue=QUEUE)(chosen())


class Client:
    def enqueue(self, n: int) -> None:
        noop.enqueue(n)

    def enqueue_bulk(self, numbers: Sequence[int]) -> None:
        app.enqueue_many_sync(noop, [{"n": n} for n in numbers])


class Driver:
    def install(self, dsn: str) -> None:
        asyncio.run(migrate.migrate(dsn))

    @contextmanager
    def client(self, dsn: str) -> Iterator[Client]:
        with app:
            yield Client()

    def work(self, dsn: str, concurrency: int) -> None:
        raise NotImplementedError("the worker is started as `mainspring worker`")
