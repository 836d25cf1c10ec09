"""Every way in makes the same job of the same request, and sends the same notification.

`add_job` decides; the fast paths that internal/enqueue.sql names, and the callers that build a
request by themselves, are compared with it over one table of cases.
"""

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.types.json import Jsonb

import mainspring
from mainspring.domain.jobs.options import EnqueueOptions
from mainspring.domain.types import JobState, TenantId
from mainspring.runtime.scheduler import due_batches
from mainspring.store import bulk_enqueue
from mainspring.store import jobs as store
from tests.support.rows import insert, insert_definition, insert_job, insert_tenant
from tests.support.schedules import insert_due, insert_schedule

SQL = Path(mainspring.__file__).parent / "sql"
LATER = timedelta(hours=1)
PARENT = -1
IDS_AND_INSTANTS = {"job_id", "created_at"}
OF_A_SLOT = frozenset({"schedule_id", "slot_at", "origin"})
TABLES = [
    *("jobs", "jobs_history", "approvals", "dependencies", "enqueue_keys", "flow_jobs", "flows"),
    *("slots", "dispatches", "events", "schedules", "clocks"),
]

Row = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """A request; `needs` are what a way must be able to do besides taking the options."""

    definition: str = "work"
    tenant: str = "default"
    payload: Row = field(default_factory=lambda: {"region": "eu"})
    options: Row = field(default_factory=dict)
    needs: frozenset[str] = frozenset()
    creator: str = ""

    def demands(self) -> frozenset[str]:
        tenant = {"tenant"} if self.tenant != "default" else set()
        creator = {"creator"} if self.creator else set()
        return self.needs | self.options.keys() | tenant | creator


LIMIT = frozenset({"limit"})
APPROVAL = frozenset({"approval"})
REFUSAL = frozenset({"refusal"})
CASES: dict[str, Case] = {
    "plain": Case(),
    "no payload": Case(payload={}),
    "of another tenant": Case(tenant="acme"),
    "of someone": Case(creator="ann"),
    "queue, priority and attempts": Case(
        options={"queue": "other", "priority": 5, "max_attempts": 9}
    ),
    "first and last priority": Case(options={"priority": 0}),
    "correlation and tags": Case(options={"correlation_id": "c", "tags": ["a", 'b"\\,{}']}),
    "delayed": Case(options={"delay": LATER}),
    "due soon": Case(options={"delay": timedelta(seconds=5)}),
    "scheduled": Case(options={"scheduled_for": datetime.now(UTC) + LATER}),
    "scheduled in the past": Case(options={"scheduled_for": datetime.now(UTC) - LATER}),
    "with a deadline": Case(options={"deadline": datetime.now(UTC) + LATER}),
    "with a dedupe key": Case(options={"dedupe_key": "k"}),
    "by content": Case(options={"dedupe_by": "content"}),
    "limited": Case("limited", needs=LIMIT),
    "limited without its key": Case("limited", payload={}, needs=LIMIT),
    "limited by a key that is given": Case("limited", options={"limit_key": "k"}, needs=LIMIT),
    "limited and delayed": Case("limited", options={"delay": LATER}, needs=LIMIT),
    "rated": Case("rated", needs=LIMIT),
    "of a tenant with a cap": Case(tenant="capped", needs=LIMIT),
    "approval": Case("approved", needs=APPROVAL),
    "approval that the enqueue asks for": Case(options={"approvals_needed": 2}, needs=APPROVAL),
    "approval and a limit": Case("limited", options={"approvals_needed": 1}, needs=LIMIT),
    "approval and a delay": Case("approved", options={"delay": LATER}, needs=APPROVAL),
    "after a parent": Case(options={"after": PARENT}),
    "after a parent, limited": Case("limited", options={"after": PARENT}, needs=LIMIT),
    "after a parent, approval": Case("approved", options={"after": PARENT}, needs=APPROVAL),
    "created by someone": Case(options={"created_by": "bob"}),
    "created by someone for another": Case(options={"created_by": "bob"}, creator="ann"),
    "from a source": Case(options={"source": "checkout"}),
    "at most once": Case(options={"delivery": "at_most_once"}),
    "at least once": Case(options={"delivery": "at_least_once"}),
    "at most once by its definition": Case("once", needs=LIMIT),
    "at least once, not as its definition": Case(
        "once", options={"delivery": "at_least_once"}, needs=LIMIT
    ),
    "some other delivery": Case(options={"delivery": "now_and_then"}, needs=REFUSAL),
    "two attempts at most once": Case(
        options={"delivery": "at_most_once", "max_attempts": 2}, needs=REFUSAL
    ),
    "two attempts of what runs once": Case("once", options={"max_attempts": 2}, needs=REFUSAL),
    "from a source of Mainspring's": Case(options={"source": "schedule"}, needs=REFUSAL),
    "inactive": Case("retired", needs=REFUSAL),
    "unknown": Case("nothing", needs=REFUSAL),
    "closed": Case("mainspring.bulk", needs=REFUSAL),
    "unknown tenant": Case(tenant="nobody", needs=REFUSAL),
    "priority over the last": Case(options={"priority": 1001}, needs=REFUSAL),
    "priority beyond every number": Case(options={"priority": 70_000}, needs=REFUSAL),
    "no attempt": Case(options={"max_attempts": 0}, needs=REFUSAL),
    "no queue": Case(options={"queue": ""}, needs=REFUSAL),
    "negative delay": Case(options={"delay": -LATER}, needs=REFUSAL),
    "beyond every calendar": Case(
        options={"scheduled_for": datetime(9999, 12, 31, tzinfo=UTC)}, needs=REFUSAL
    ),
    "limit key without a limit": Case(options={"limit_key": "k"}, needs=REFUSAL),
}


@dataclass(frozen=True)
class Database:
    """One database with what the cases name, and everything that is sent in it."""

    connection: psycopg.Connection
    listener: psycopg.Connection
    url: str

    def call(self, statement: str, *values: object) -> Any:
        ((value,),) = self.connection.execute(statement, values).fetchall()
        return value

    def parents(self, case: Case) -> list[int]:
        if "after" not in case.options:
            return []
        if not self.call("select count(*) from mainspring.jobs where definition = 'parent'"):
            insert_job(self.connection, JobState.QUEUED, definition="parent", queue="elsewhere")
        return [self.call("select job_id from mainspring.jobs where definition = 'parent'")]

    def messages(self) -> set[str]:
        """What was sent since the last call, without ids; a limit is named or all are meant."""
        self.listener.execute("notify mainspring, 'end'")
        sent: set[str] = set()
        for notify in self.listener.notifies(timeout=10):
            kind, _, subject = notify.payload.partition(":")
            if kind == "end":
                return sent
            if kind == "lane":
                queue, priority, tenant, _, weight = json.loads(subject)
                subject = json.dumps([queue, priority, tenant, weight])
            sent.add(kind if kind == "limit" else f"{kind}:{subject}")
        raise AssertionError("no end")

    def clear(self) -> None:
        self.connection.execute("reset all")
        for table in TABLES:
            self.connection.execute(sql.SQL("delete from mainspring.{}").format(_name(table)))
        self.messages()


def _name(table: str) -> sql.Identifier:
    return sql.Identifier(table)


@pytest.fixture(scope="module")
def filled(module_url: str) -> Iterator[Database]:
    with (
        psycopg.connect(module_url, autocommit=True) as connection,
        psycopg.connect(module_url, autocommit=True) as listener,
    ):
        _fill(connection)
        listener.execute("listen mainspring")
        yield Database(connection, listener, module_url)


@pytest.fixture
def database(filled: Database) -> Iterator[Database]:
    filled.clear()
    yield filled
    filled.clear()


def _fill(connection: psycopg.Connection) -> None:
    usual: Row = {"queue": "tools", "priority": 70, "max_attempts": 4}
    insert_definition(connection, "work", **usual)
    insert_definition(connection, "limited", concurrency=1, limit_by=["region"], **usual)
    insert_definition(connection, "rated", rate_count=1, rate_period="1 hour", **usual)
    insert_definition(connection, "approved", approvals_needed=1, approvers=["ann"], **usual)
    insert_definition(connection, "once", delivery="at_most_once", **usual)
    insert_definition(connection, "retired", is_active=False, **usual)
    insert_definition(connection, "mainspring.bulk")
    for tenant_id in ("acme", "capped"):
        insert_tenant(connection, tenant_id)
    connection.execute("update mainspring.tenants set max_running = 1 where tenant_id = 'capped'")
    insert(
        connection,
        "workers",
        expires_at="infinity",
        pid=1,
        concurrency=1,
        name="w",
        host="h",
        process_identity="p",
        queues=["tools", "other"],
        version="test",
    )


# The ways


def by_function(database: Database, case: Case, **forced: Any) -> int:
    options = {**case.options, **forced, "payload": Jsonb(case.payload), "tenant": case.tenant}
    if "after" in options:
        options["after"] = database.parents(case)
    named = ", ".join(f"{name} => %({name})s" for name in options)
    statement = f"select job_id from mainspring.enqueue_job(%(definition)s, {named})"
    casts = {"priority": "integer", "max_attempts": "integer", "approvals_needed": "integer"}
    for name, kind in casts.items():
        statement = statement.replace(f"%({name})s", f"%({name})s::{kind}")
    values = {"definition": case.definition, **options}
    ((job_id,),) = database.connection.execute(statement, values).fetchall()
    return int(job_id)


def by_add_job(database: Database, case: Case) -> int:
    """The way that all others are compared with: an option keeps it from the fast path."""
    return by_function(database, case, approvals_needed=case.options.get("approvals_needed", 0))


def plainly(database: Database, case: Case) -> int:
    """As a program does that has a connection of its own."""
    payload = json.dumps(case.payload)
    for call in (
        store.enqueue_plainly(case.definition, payload),
        store.enqueue(case.definition, payload),
    ):
        if row := database.connection.execute(call.sql, call.params).fetchone():
            return int(row[0])
    raise AssertionError("no row")


def in_bulk(database: Database, case: Case) -> int:
    options = {key: value for key, value in case.options.items() if key != "tags"}
    tags = tuple(case.options.get("tags", ()))
    asked = EnqueueOptions(tenant_id=TenantId(case.tenant), tags=tags, **options)
    payloads = [json.dumps(case.payload).encode()]
    connection = database.connection
    (job_id,) = bulk_enqueue.enqueue(connection, case.definition, payloads, options=asked)
    return int(job_id)


def by_enqueue_many(database: Database, case: Case) -> int:
    values = {**case.options}
    if "dedupe_key" in values:
        values["dedupe_keys"] = [values.pop("dedupe_key")]
    named = "".join(f", {name} => %({name})s" for name in values)
    for name in ("priority", "max_attempts", "approvals_needed"):
        named = named.replace(f"%({name})s", f"%({name})s::integer")
    statement = (
        "select mainspring.enqueue_many(%(definition)s, array[%(payload)s::jsonb],"
        f" %(tenant)s{named})"
    )
    values |= {"definition": case.definition, "payload": Jsonb(case.payload), "tenant": case.tenant}
    ((job_id,),) = database.connection.execute(statement, values).fetchall()
    return int(job_id)


def as_a_flow(database: Database, case: Case) -> int:
    step = {"definition": case.definition, "payload": case.payload, **case.options}
    step.pop("after", None)
    step["after_jobs"] = database.parents(case)
    if "delay" in step:
        step["delay"] = step["delay"].total_seconds()
    if "scheduled_for" in step:
        step["scheduled_for"] = step["scheduled_for"].isoformat()
    statement = "select job_ids[1] from mainspring.enqueue_flow('f', %s, %s)"
    return int(database.call(statement, Jsonb([step]), case.tenant))


def by_dispatch(database: Database, case: Case) -> int:
    event_id = database.call(
        "insert into mainspring.events (tenant_id, name, context)"
        " values (%s, 'e', '{}') returning event_id",
        case.tenant,
    )
    facts = {"event_id": event_id, "replay": 0, "trigger_id": 1, "trigger_name": "t"}
    plan = {
        **facts,
        "tenant_id": case.tenant,
        "definition": case.definition,
        "payload": json.dumps(case.payload),
        **case.options,
    }
    statement = "select job_id from mainspring.dispatch(array[%s::bigint], %s)"
    return int(database.call(statement, event_id, Jsonb([plan])))


def _scheduled(database: Database, case: Case, add: Callable[..., int] = insert_schedule) -> int:
    columns = {"tenant_id": case.tenant, "definition": case.definition, "payload": case.payload}
    return add(database.connection, **columns, **case.options)


def triggered(database: Database, case: Case) -> int:
    _scheduled(database, case)
    answer = database.call("select mainspring.trigger_scheduled_job('tick', %s)", case.tenant)
    return int(answer["job_id"])


def backfilled(database: Database, case: Case) -> int:
    statement = "select job_id from mainspring.backfill(%s, array[timestamptz '2020-01-01Z'])"
    return int(database.call(statement, _scheduled(database, case)))


def planned(database: Database, case: Case) -> int:
    """As a scheduler does with schedules that need a look of their own."""
    schedule_id = _scheduled(database, case, insert_due)
    slot = {"at": "2020-01-01T00:00:00Z", "outcome": "enqueued", "source": "scheduler"}
    plan = {"schedule_id": schedule_id, "slots": [{**slot, "missed": 0}]}
    revision = database.call(
        "select revision from mainspring.clocks where schedule_id = %s", schedule_id
    )
    plan |= {"revision": revision, "next_slot_at": "2030-01-01T00:00:00Z"}
    assert database.call("select mainspring.apply_plan(%s)", Jsonb(plan)) == "enqueued"
    return int(database.call("select job_id from mainspring.slots"))


def fired(database: Database, case: Case) -> int:
    """As a scheduler does with plain schedules, as a set."""
    _scheduled(database, case, insert_due)
    asyncio.run(_fire(database.url, case.creator))
    return int(database.call("select job_id from mainspring.slots"))


async def _fire(url: str, creator: str) -> None:
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        await connection.execute("select set_config('mainspring.creator', %s, false)", (creator,))
        batch = await due_batches.read(connection)
        assert len(batch.plain) == 1
        assert (await due_batches.write(connection, batch)).fired == 1


def retried(database: Database, case: Case) -> int:
    job_id = by_add_job(database, case)
    database.connection.execute("select mainspring.cancel(%s, tenant => %s)", (job_id, case.tenant))
    database.messages()
    return int(database.call("select mainspring.retry(%s, tenant => %s)", job_id, case.tenant))


@dataclass(frozen=True)
class Way:
    """How jobs are made, what a case may demand of it, and the columns that are its own.

    A scheduler that fires a set wakes idle workers, and leaves busy ones to find its jobs."""

    make: Callable[[Database, Case], int]
    takes: frozenset[str]
    own: frozenset[str] = frozenset()
    informs_busy: bool = True


WAITS = frozenset({"limit", "approval"})
COMMON = frozenset({"queue", "priority", "max_attempts", "tenant", "creator"})
TIMES = frozenset({"delay", "scheduled_for"})
OF_JOBS = (
    COMMON
    | TIMES
    | {
        *("correlation_id", "tags", "limit_key", "approvals_needed"),
        *("created_by", "source", "delivery"),
    }
)
# Their jobs are created by the schedule, whoever fires it.
OF_SCHEDULES = COMMON - {"creator"} | {"delivery"}
EVERYTHING = OF_JOBS | WAITS | {"deadline", "dedupe_key", "after", "refusal"}
WAYS: dict[str, Way] = {
    "enqueue_job": Way(by_function, EVERYTHING | {"dedupe_by"}),
    "enqueue_plainly": Way(plainly, WAITS | {"creator", "refusal"}),
    "copy_jobs": Way(in_bulk, OF_JOBS | WAITS | {"deadline"}),
    "enqueue_many": Way(by_enqueue_many, EVERYTHING - {"after"}),
    "enqueue_flow": Way(as_a_flow, (OF_JOBS | WAITS | {"after"}), frozenset({"correlation_id"})),
    "dispatch": Way(
        by_dispatch,
        WAITS | {"tenant", "queue", "priority", "correlation_id"},
        frozenset({"created_by"}),
    ),
    "trigger": Way(triggered, OF_SCHEDULES | WAITS, OF_A_SLOT),
    "backfill": Way(backfilled, OF_SCHEDULES | WAITS, OF_A_SLOT),
    "apply_plan": Way(planned, OF_SCHEDULES | WAITS, OF_A_SLOT),
    "fire": Way(fired, COMMON, OF_A_SLOT, informs_busy=False),
    "retry": Way(
        retried,
        (OF_JOBS - TIMES - {"limit_key"}) | WAITS | {"dedupe_key", "dedupe_by", "after"},
        frozenset({"last_error"}),
    ),
}


def row(database: Database, job_id: int) -> Row:
    """The row of the job without ids; its instant as minutes from now."""
    found: Row = database.call(
        "select to_jsonb(job) || jsonb_build_object('scheduled_for',"
        " round(extract(epoch from job.scheduled_for - now()) / 600))"
        " from mainspring.jobs as job where job_id = %s",
        job_id,
    )
    return {column: found[column] for column in found.keys() - IDS_AND_INSTANTS}


def approval(database: Database, job_id: int) -> list[tuple[Any, ...]]:
    statement = "select needed, approvers, decision from mainspring.approvals where job_id = %s"
    return database.connection.execute(statement, (job_id,)).fetchall()


def made(database: Database, way: Way, case: Case, *, idle: bool) -> tuple[Row, Any, set[str]]:
    database.clear()
    database.connection.execute("update mainspring.workers set wants_wake = %s", (idle,))
    database.connection.execute(
        "select set_config('mainspring.creator', %s, false)", (case.creator,)
    )
    job_id = way.make(database, case)
    sent = {message for message in database.messages() if not message.startswith(BESIDES)}
    return row(database, job_id), approval(database, job_id), sent


def refusal(database: Database, way: Way, case: Case) -> str | None:
    with pytest.raises(psycopg.Error) as caught:
        way.make(database, case)
    return caught.value.sqlstate


# Of a schedule that was fired; of a job that is ready again below the marks of workers.
BESIDES = ("schedule:", "jobs:")
REFERENCE = Way(by_add_job, EVERYTHING)


def pairs(*, refused: bool) -> list[Any]:
    """Each way with each case that it can take."""
    return [
        pytest.param(way, case, id=f"{way_name}: {case_name}")
        for way_name, way in WAYS.items()
        for case_name, case in CASES.items()
        if case.demands() <= way.takes and ("refusal" in case.needs) is refused
    ]


@pytest.mark.parametrize(("way", "case"), pairs(refused=False))
def test_every_way_makes_the_same_job_and_sends_the_same(database, way, case):
    for idle in (True, False):
        expected, expected_approval, expected_messages = made(database, REFERENCE, case, idle=idle)
        found, found_approval, messages = made(database, way, case, idle=idle)

        own = way.own - case.options.keys()
        assert found.keys() == expected.keys()
        assert {c: found[c] for c in found.keys() - own} == {
            c: expected[c] for c in expected.keys() - own
        }
        assert found_approval == expected_approval
        if idle or way.informs_busy:
            assert messages == expected_messages


@pytest.mark.parametrize(("way", "case"), pairs(refused=True))
def test_every_way_refuses_the_same(database, way, case):
    assert refusal(database, way, case) == refusal(database, REFERENCE, case)
    assert database.call("select count(*) from mainspring.jobs") == 0


def test_a_bulk_operation_waits_for_no_limit(database):
    statement = "select mainspring.start_bulk('cancel', '{}', 'why', 'capped')"
    job_id = database.call(statement)

    found = row(database, job_id)
    assert (found["state"], found["waits_for"], found["limit_name"]) == ("queued", None, None)
    assert found["origin"]["operation"] == "cancel"


def test_every_statement_that_inserts_jobs_is_a_declared_fast_path():
    header = (SQL / "internal" / "enqueue.sql").read_text().partition("create or replace")[0]
    declared = set(re.findall(r"^--   (\w+) +(?:public|queries|internal)/", header, re.MULTILINE))
    inserting = {
        name
        for folder in ("internal", "public", "queries", "triggers")
        for path in (SQL / folder).glob("*.sql")
        for name in _inserting(path.read_text())
    }

    assert len(declared) == 6
    assert inserting == declared | {"add_job"}


def _inserting(text: str) -> Iterator[str]:
    """The functions and statements that write rows into the table of live jobs."""
    pieces = re.split(r"^(?:-- name: |create or replace \w+ mainspring\.)(\w+)", text, flags=re.M)
    for name, body in zip(pieces[1::2], pieces[2::2], strict=True):
        if re.search(r"^\s*(insert into|copy) mainspring\.jobs\b(?!_)", body, re.MULTILINE):
            yield name
