"""What a case works on: the server, how large to go, and databases in a known state."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import psycopg

from bench import processes
from bench.catalogue import System
from bench.servers import Server

_FILL_BATCH: Final = 50_000
# They check and audit what a person writes, which takes far longer than the rows themselves.
_WITHOUT_TRIGGERS: Final = "-c session_replication_role=replica"


@dataclass(frozen=True, slots=True)
class Bench:
    server: Server
    scale: float = 1.0
    samples: int = 150
    seconds: float = 10.0

    def scaled(self, count: int) -> int:
        return max(int(count * self.scale), 100)

    @contextmanager
    def database(
        self,
        system: System,
        *,
        queued: int = 0,
        finished: int = 0,
        scheduled: int = 0,
        tenants: int = 0,
    ) -> Iterator[str]:
        """The DSN of a fresh database with the system's schema and so many jobs or schedules; the
        queued jobs are those of the one tenant there is, or of so many who take turns."""

        def fill(dsn: str) -> None:
            processes.call(system, "install", dsn)
            if finished:
                _seed(dsn, system.seed_finished, finished)
            if queued and tenants:
                _seed(dsn, system.seed_tenants, queued, tenants=tenants)
            elif queued:
                _queue(system, dsn, queued)
            if scheduled and system.schedules:
                _seed(dsn, system.schedules.seed, scheduled, options=_WITHOUT_TRIGGERS)

        template = f"{system.name}_{queued}_{finished}_{scheduled}_{tenants}"
        with self.server.database(template, fill) as dsn:
            yield dsn


def _queue(system: System, dsn: str, count: int) -> None:
    if system.seed_queued:
        _seed(dsn, system.seed_queued, count)
        return
    for start in range(0, count, _FILL_BATCH):
        processes.call(system, "bulk", dsn, count=min(_FILL_BATCH, count - start))


def _seed(
    dsn: str, statement: str | None, count: int, *, tenants: int = 0, options: str = ""
) -> None:
    if statement is None:
        raise NotImplementedError("this system cannot be seeded")
    with psycopg.connect(dsn, options=options) as connection:
        connection.execute(statement, {"count": count, "tenants": tenants})
