"""A server process, its database, and the ways in whose budgets are tried."""

import asyncio
import itertools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import orjson
import psycopg

from mainspring import Mainspring, settings
from mainspring.db.database import Database
from mainspring.domain.errors import MainspringError
from mainspring.services import tenants, tokens
from tests.support.http_workers import server_process

TENANT = "acme"
NEIGHBOUR = "globex"
_DEFINITIONS = """
insert into mainspring.definitions (key, kind, approvals_needed, concurrency, arg_schema) values
    ('work', 'python', 0, null, null), ('careful', 'python', 1, null, null),
    ('limited', 'python', 0, 1, null),
    ('guarded', 'python', 0, null, '{"properties": {"n": {"type": "integer"}}}');
create function public.noop(payload jsonb) returns jsonb language sql return payload;
"""
_COUNTED = (
    *("approvals", "attempts", "audit", "clocks", "definition_versions", "definitions"),
    *("dependencies", "dispatches", "enqueue_keys", "events", "flow_jobs", "flows", "jobs"),
    *("jobs_history", "limits", "people", "replies", "schedules", "slots", "tenants", "tokens"),
    *("triggers", "votes", "workers"),
)
_COUNTS = "select " + ", ".join(f"(select count(*) from mainspring.{name})" for name in _COUNTED)


class Refusal(NamedTuple):
    """How an input was refused: a status, an SQLSTATE or the code of an error, and why."""

    code: str
    text: str
    written: Mapping[str, int]
    """How many rows were written nevertheless, by table."""


@dataclass
class Bench:
    """A tenant with every role, and the owner of the database."""

    url: str
    connection: psycopg.Connection
    app: Mainspring
    client: httpx.Client
    tokens: Mapping[tuple[str, str], str]
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def name(self, length: int = 12) -> str:
        """A new name with so many characters."""
        return f"n{next(self._numbers)}-".ljust(length, "x")

    def rest(
        self, method: str, path: str, body: Any = None, *, role: str = "operator", **headers: str
    ) -> Refusal | None:
        """None if the request is carried out."""
        before = self.rows()
        answer = self.ask(method, path, body, role=role, **headers)
        if answer.is_success:
            return None
        return Refusal(str(answer.status_code), answer.json()["detail"], self.since(before))

    def ask(
        self, method: str, path: str, body: Any = None, *, role: str = "operator", **headers: str
    ) -> httpx.Response:
        given = {"Authorization": f"Bearer {self.tokens[TENANT, role]}", **headers}
        if role == "operator" and "tenant=" not in path:
            path += f"{'&' if '?' in path else '?'}tenant={TENANT}"
        content = body if body is None or isinstance(body, bytes) else orjson.dumps(body)
        given["Content-Type"] = "application/json"
        return self.client.request(method, f"/api/v1{path}", content=content, headers=given)

    def sql(self, statement: str, *values: object) -> Refusal | None:
        before = self.rows()
        try:
            self.connection.execute(statement.encode(), values)
        except psycopg.Error as error:
            return Refusal(error.sqlstate or "", str(error), self.since(before))
        return None

    def python(self, call: Callable[[], object]) -> Refusal | None:
        before = self.rows()
        try:
            call()
        except MainspringError as error:
            return Refusal(error.code, str(error), self.since(before))
        return None

    def since(self, before: Mapping[str, int]) -> dict[str, int]:
        """How many rows have come since, by table."""
        return {name: count for name, count in self.rows().items() if count != before[name]}

    def rows(self) -> dict[str, int]:
        """How many rows every table has."""
        (found,) = self.connection.execute(_COUNTS.encode()).fetchall()
        return dict(zip(_COUNTED, found, strict=True))

    def job(self, definition: str = "work", count: int = 1) -> int:
        """The last of so many new jobs of the tenant."""
        found = self.connection.execute(
            "select max(id) from mainspring.enqueue_many(%s, array_fill('{}'::jsonb, array[%s]),"
            " tenant => %s) as id",
            [definition, count, TENANT],
        ).fetchone()
        assert found is not None
        return int(found[0])

    def claimed(self) -> tuple[str, dict[str, Any]]:
        """The path and the body of reports on a job that a worker over HTTP has just claimed."""
        queue = self.name()
        worker = self.ask("POST", "/work/workers", {"name": "w", "queues": [queue]}, role="worker")
        path = f"/work/workers/{worker.json()['worker_id']}"
        self.ask("POST", "/jobs", {"definition": "work", "queue": queue})
        asked = {"definitions": ["work"], "limit": 1}
        (job,) = self.ask("POST", f"{path}/claim", asked, role="worker").json()["jobs"]
        return f"{path}/jobs/{job['job_id']}", {"fence": job["fence"]}


async def _tokens(database_url: str) -> dict[tuple[str, str], str]:
    database = Database(settings.load(database_url=database_url))
    try:
        await tokens.open_to_app(database)
        made = {}
        for tenant in (TENANT, NEIGHBOUR):
            await tenants.create(database, tenant)
            for role in ("admin", "worker"):
                new = await tokens.create(database, f"{role}-{tenant}", role, tenant_id=tenant)
                made[tenant, role] = new.text
        made[TENANT, "operator"] = (await tokens.create(database, "ops", "operator")).text
        return made
    finally:
        await database.aclose()


@contextmanager
def bench(database_url: str, folder: Path) -> Iterator[Bench]:
    with (
        psycopg.connect(database_url, autocommit=True) as connection,
        Mainspring(database_url) as app,
    ):
        connection.execute(_DEFINITIONS)
        shown = asyncio.run(_tokens(database_url))
        with (
            server_process(database_url, folder) as url,
            httpx.Client(base_url=url, timeout=60) as client,
        ):
            yield Bench(url, connection, app, client, shown)
