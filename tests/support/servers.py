"""A PostgreSQL server of one's own, to be killed."""

import asyncio
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from signal import Signals

import psutil
import psycopg

from mainspring.db import embedded, migrate
from tests.support.waiting import wait_until


class OwnServer:
    """An embedded server that can be taken down and brought back; its URL stays the same."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._servers = [embedded.acquire(folder)]

    @property
    def url(self) -> str:
        return self._servers[0].url

    def take_down(self, number: Signals) -> None:
        """SIGQUIT ends every session at once, SIGKILL is a crash; it stays down."""
        os.kill(self._servers[-1].pid, number)
        wait_until(lambda: not self._answers(), what="the server is down")

    def signal(self, number: Signals) -> None:
        """To the server and all of its sessions."""
        server = psutil.Process(self._servers[-1].pid)
        for process in (server, *server.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):  # A session may end at any moment.
                process.send_signal(number)

    def bring_back(self) -> None:
        self._servers.append(embedded.acquire(self._folder))

    def number(self, query: str) -> int:
        """The one number a query answers."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            row = connection.execute(query).fetchone()
        assert row is not None
        return int(row[0])

    def release(self) -> None:
        for server in self._servers:
            embedded.release(server)

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.url, connect_timeout=1).close()
        except psycopg.OperationalError:
            return False
        return True


@contextmanager
def own_server() -> Iterator[OwnServer]:
    """Started and migrated; stopped and removed at the end."""
    folder = Path(tempfile.mkdtemp(prefix="mainspring-own-"))
    folder.chmod(0o755)
    try:
        server = OwnServer(folder)
        try:
            asyncio.run(migrate.migrate(server.url))
            yield server
        finally:
            server.release()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
