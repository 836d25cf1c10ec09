"""The real queue for tests that step through it: the store's own functions, one at a time."""

import asyncio
import json
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, TypeVar

from psycopg import AsyncConnection
from psycopg.types.json import Jsonb

from mainspring.db import calls
from mainspring.db.calls import Call
from mainspring.db.connect import connect
from mainspring.db.statements import load
from mainspring.domain.claiming.lanes import Lane, LaneBook
from mainspring.domain.definitions import Definition
from mainspring.domain.types import JobState, WorkerId
from mainspring.store import attempts, definitions, workers
from mainspring.store.attempts import ClaimedRow
from mainspring.store.workers import WorkerFacts

T = TypeVar("T")

QUEUES = ("a", "b")
DEFINITIONS = ("build", "clean")
TENANTS = ("default", "acme")
LEASE = timedelta(hours=1)
FACTS = WorkerFacts(
    name="machine",
    host="nowhere",
    pid=1,
    process_identity="",
    queues=QUEUES,
    concurrency=1,
    version="0",
)
OBSERVE_JOBS = """
select job_id, definition, payload, tenant_id, queue, priority, dedupe_key, state, waits_for,
       worker_id, fence, attempt, failures, losses, cancel_requested_at is not null, true
  from mainspring.jobs
union all
select job_id, definition, payload, tenant_id, queue, priority, dedupe_key, state, waits_for,
       worker_id, fence, attempt, failures, losses, cancel_requested_at is not null, false
  from mainspring.jobs_history
"""
OBSERVE_ATTEMPTS = """
select job_id, number, fence, status, late_report from mainspring.attempts order by job_id, number
"""
# Every statement looks into every partition, and one is enough here.
DROP_PARTITIONS = r"""
do $$ declare name text;
begin
    for name in select inhrelid::regclass::text from pg_inherits
                 where inhrelid::regclass::text ~ '_\d{8}$' loop
        execute 'drop table ' || name;
    end loop;
end $$
"""
# Ten times quicker than to truncate all the partitions.
CLEAN = (
    "delete from mainspring.jobs",
    "delete from mainspring.jobs_history",
    "delete from mainspring.attempts",
    "delete from mainspring.failures",
    "delete from mainspring.enqueue_keys",
    "delete from mainspring.workers",
    "delete from mainspring.changes",
    "delete from mainspring.tallies",
    "delete from mainspring.depths",
    "delete from mainspring.figures",
    "delete from mainspring.watches",
)


class JobRow(NamedTuple):
    """A job as the tables have it."""

    job_id: int
    definition: str
    payload: dict[str, Any]
    tenant_id: str
    queue: str
    priority: int
    dedupe_key: str | None
    state: str
    waits_for: str | None
    worker_id: int | None
    fence: int | None
    attempt: int
    failures: int
    losses: int
    is_asked_to_cancel: bool
    is_live: bool


class AttemptRow(NamedTuple):
    """A finished execution as the table has it."""

    job_id: int
    number: int
    fence: int
    status: str
    late_report: str | None


@dataclass(frozen=True)
class Observation:
    """Everything in the tables at one instant, and the first job of each lane of ready ones."""

    jobs: Sequence[JobRow]
    attempts: Sequence[AttemptRow]
    lanes: Mapping[Lane, int]

    def states(self) -> Mapping[int, JobState]:
        return {row.job_id: JobState(row.state) for row in self.jobs}


class QueueDriver:
    """Blocking calls on two connections with the settings that a worker uses."""

    def __init__(self, url: str) -> None:
        self._loop = asyncio.new_event_loop()
        self.connection = self.run(connect(url, name="machine", pins_plans=True))
        self.rival = self.run(connect(url, name="rival", pins_plans=True))
        for connection in (self.connection, self.rival):
            self.run(connection.execute("set synchronous_commit = off"))
        declared = [Definition(key, queue="a") for key in DEFINITIONS]
        sync = definitions.sync(declared)
        self.execute(sync.sql, sync.params)
        self.execute(DROP_PARTITIONS)
        self.execute("insert into mainspring.tenants values ('acme') on conflict do nothing")

    def close(self) -> None:
        self.run(self.connection.close())
        self.run(self.rival.close())
        self._loop.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._loop.run_until_complete(work)

    def execute(self, sql: str, params: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        async def fetch() -> list[tuple[Any, ...]]:
            cursor = await self.connection.execute(sql, params)
            return await cursor.fetchall() if cursor.description else []

        return self.run(fetch())

    def statement(self, noun: str, name: str, **params: Any) -> list[tuple[Any, ...]]:
        """A statement of the catalogue with parameters that its function does not offer."""
        return self.execute(load(noun)[name].sql, {"chosen": None, **params})

    def content_digest(self, tenant_id: str, definition: str, payload: dict[str, Any]) -> str:
        asked = "select mainspring.content_digest(%(tenant)s, %(definition)s, %(payload)s)"
        values = {"tenant": tenant_id, "definition": definition, "payload": Jsonb(payload)}
        ((digest,),) = self.execute(asked, values)
        return str(digest)

    def call(self, call: Call) -> list[tuple[Any, ...]]:
        return self.run(calls.arun(self.connection, call))

    @contextmanager
    def transaction(self, *, is_kept: bool) -> Iterator[None]:
        transaction = self.connection.transaction(force_rollback=not is_kept)
        self.run(transaction.__aenter__())
        try:
            yield
        finally:
            self.run(transaction.__aexit__(None, None, None))

    def clean(self) -> datetime:
        """Empty the tables; returns the database's clock."""
        for sql in CLEAN:
            self.execute(sql)
        return datetime.now(UTC)

    def register(self) -> WorkerId:
        return self.run(workers.register(self.connection, FACTS, LEASE))

    def claim(
        self, worker_id: int, limit: int, connection: AsyncConnection[Any] | None = None
    ) -> list[ClaimedRow]:
        """Claim from all lanes, each from its first ready job."""
        using = connection or self.connection
        book = LaneBook()
        book.swept(self.run(attempts.discover(using, QUEUES)), now=0, cost=0)
        lanes = sorted(book.marks.items())
        rows = self.run(attempts.claim(using, WorkerId(worker_id), lanes, limit=limit))
        return [ClaimedRow(*row) for row in rows]

    def observe(self) -> Observation:
        return Observation(
            jobs=sorted(JobRow(*row) for row in self.execute(OBSERVE_JOBS)),
            attempts=[AttemptRow(*row) for row in self.execute(OBSERVE_ATTEMPTS)],
            lanes={
                found.lane: found.first
                for found in self.run(attempts.discover(self.connection, QUEUES))
            },
        )


def text(payload: Any) -> str:
    return json.dumps(payload)
