"""awa: the queue-storage engine of a fresh installation, COPY for many, Python handlers."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import quote

import awa
from psycopg.conninfo import conninfo_to_dict

from bench.handlers import chosen
from bench.systems.driver import QUEUE


@dataclass
class Noop:
    n: int


class Client:
    def __init__(self, client: awa.Client) -> None:
        self._client = client

    def enqueue(self, n: int) -> None:
        self._client.insert(Noop(n), queue=QUEUE)

    def enqueue_bulk(self, numbers: Sequence[int]) -> None:
        self._client.enqueue_many_copy([Noop(n) for n in numbers], queue=QUEUE)


class Driver:
    def install(self, dsn: str) -> None:
        client = awa.Client(_url(dsn))
        client.migrate()
        client.install_queue_storage()
        client.close()

    @contextmanager
    def client(self, dsn: str) -> Iterator[Client]:
        client = awa.Client(_url(dsn))
        yield Client(client)
        client.close()

    def work(self, dsn: str, concurrency: int) -> None:
        asyncio.run(_work(dsn, concurrency))


async def _work(dsn: str, concurrency: int) -> None:
    handler = chosen()
    client = awa.AsyncClient(_url(dsn))

    @client.task(Noop, queue=QUEUE)
    async def handle(job: "awa.Job[Noop]") -> None:
        await handler(job.args.n)

    await client.start([{"name": QUEUE, "max_workers": concurrency}])
    await asyncio.Event().wait()


def _url(dsn: str) -> str:
    # Its own client wants a host name in the URL even when the host is a socket's folder.
    parts = conninfo_to_dict(dsn)
    host, port = str(parts.get("host") or "localhost"), parts.get("port") or 5432
    account = quote(str(parts["user"]))
    if password := parts.get("password"):
        account += ":" + quote(str(password))
    address = f"localhost:{port}" if host.startswith("/") else f"{host}:{port}"
    socket = f"?host={quote(host, safe='')}" if host.startswith("/") else ""
    return f"postgresql://{account}@{address}/{parts['dbname']}{socket}"
