"""Each check finds what was caused for real, and nothing once its advice was followed.

What a test server cannot be made to show is judged in `tests/domain/checks/` only: D01 (an old
server), D07 (a standby), D08 (a billion transactions), D12 and D48 (gigabytes), D21 (a server that
is started with little memory), D22 (a full disk), a pooler of transactions in D23, and D24 (another
machine). What takes settings of the whole server is in `test_doctor_servers.py`.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from mainspring.db import migrate
from mainspring.domain.types import JobState, WaitsFor
from mainspring.services.doctor_checks import CHECKS
from tests.support.databases import owned_database, role, same_database
from tests.support.doctors import Doctor, doctor_of, follow
from tests.support.rows import (
    insert,
    insert_attempt,
    insert_definition,
    insert_job,
    insert_tenant,
)
from tests.support.schedules import insert_schedule
from tests.support.waiting import await_until

MINUTES_20, HOURS_2, DAY = timedelta(minutes=20), timedelta(hours=2), timedelta(days=1)
# The server of the tests does not wait for its disk, and makes checkpoints for new databases.
OF_TEST_SERVER = {"D17", "D20"}


@pytest.fixture
async def doctor(database_url: str) -> AsyncIterator[Doctor]:
    async with doctor_of(database_url) as doctor:
        yield doctor


@pytest.fixture
def other(database_url: str) -> Iterator[psycopg.Connection]:
    """Another session, whose transactions stay open."""
    connection = psycopg.connect(database_url, application_name="report")
    yield connection
    connection.close()


def insert_worker(connection: psycopg.Connection, **columns: object) -> None:
    """A live worker of the queue default."""
    row: dict[str, object] = {
        "name": "w",
        "host": "h1",
        "pid": 1,
        "concurrency": 1,
        "process_identity": "h1:1",
        "queues": ["default"],
        "version": "1.0",
        "expires_at": datetime.now(UTC) + DAY,
    }
    insert(connection, "workers", **{**row, **columns})


@contextmanager
def canceled(connection: psycopg.Connection, other: psycopg.Connection) -> Iterator[None]:
    """What is done inside waits for the other's snapshot until it is canceled."""
    other.execute("set transaction isolation level repeatable read")
    other.execute("select from mainspring.jobs")
    connection.execute("set statement_timeout = '300ms'")
    with pytest.raises(psycopg.errors.QueryCanceled):
        yield
    connection.execute("reset statement_timeout")
    other.rollback()


async def test_a_new_database_needs_no_action(doctor: Doctor):
    found = await doctor.findings()

    assert {each.id for each in found if each.severity != "note"} <= OF_TEST_SERVER


async def test_all_checks_are_quick(doctor: Doctor):
    await doctor.findings()  # Connects.
    began_at = asyncio.get_running_loop().time()

    await doctor.findings()

    assert asyncio.get_running_loop().time() - began_at < 3


async def test_an_old_transaction_is_found_and_ended(
    doctor: Doctor, connection: psycopg.Connection, other: psycopg.Connection
):
    other.execute("select 1")
    assert await doctor.found("D03") == []
    assert await doctor.found("D03", later=HOURS_2) == [("D03", "critical")]

    finding = await doctor.finding("D03", later=MINUTES_20)
    assert finding.severity == "warning"
    assert f"report (login {other.info.user}, pid {other.info.backend_pid})" in finding.fact

    follow(connection, finding.advice)
    await await_until(lambda: _is_gone(connection, other.info.backend_pid))
    assert await doctor.found("D03", later=MINUTES_20) == []


def _is_gone(connection: psycopg.Connection, pid: int) -> bool:
    query = "select from pg_stat_activity where pid = %s"
    return connection.execute(query, (pid,)).fetchone() is None


async def test_an_idle_transaction_is_found_and_ended(
    doctor: Doctor, connection: psycopg.Connection, other: psycopg.Connection
):
    other.execute("select 1")
    first, *notes = await doctor.findings("D04", later=MINUTES_20)

    assert first.severity == "warning"
    assert {each.severity for each in notes} <= {"note"}
    follow(connection, first.advice)
    await await_until(lambda: _is_gone(connection, other.info.backend_pid))
    assert ("D04", "warning") not in await doctor.found("D04", later=MINUTES_20)


async def test_dead_rows_that_are_not_vacuumed_are_found(
    doctor: Doctor, connection: psycopg.Connection
):
    connection.execute("alter table mainspring.set_aside set (autovacuum_enabled = off)")
    connection.execute(
        "insert into mainspring.set_aside (duty, key, again_at, reason)"
        " select 'x', n, now(), '' from generate_series(1, 100001) as n"
    )
    connection.execute("delete from mainspring.set_aside")
    connection.execute("select pg_stat_force_next_flush()")

    finding = await doctor.finding("D11")
    assert "set_aside has 100,001 dead rows and 0 live ones" in finding.fact

    follow(connection, finding.advice)
    connection.execute("select pg_stat_force_next_flush()")
    assert await doctor.found("D11") == []


async def test_an_index_whose_making_was_canceled_is_found(
    doctor: Doctor, connection: psycopg.Connection, other: psycopg.Connection
):
    with canceled(connection, other):
        connection.execute("create index concurrently mine on mainspring.jobs (created_at)")

    finding = await doctor.finding("D13")

    assert finding.fact == "index mine on mainspring.jobs is invalid"
    assert await doctor.fixes("D13") == []
    assert await doctor.found("D13") == [("D13", "warning")]
    follow(connection, finding.advice)
    assert await doctor.found("D13") == []


@pytest.mark.parametrize(
    ("statement", "kind"),
    [
        ("create index mine on mainspring.jobs (created_at)", "index"),
        (
            (
                "create trigger mine after insert on mainspring.jobs for each statement"
                " execute function mainspring.mine()"
            ),
            "trigger",
        ),
        ("create rule mine as on delete to mainspring.limits do instead nothing", "rule"),
        ("create index mine on mainspring.jobs_history (created_at)", "index"),
    ],
)
async def test_what_is_not_ours_on_our_tables_is_found(
    doctor: Doctor, connection: psycopg.Connection, statement: str, kind: str
):
    connection.execute(
        "create function mainspring.mine() returns trigger language plpgsql as"
        " $$ begin return null; end $$"
    )
    connection.execute(statement.encode())

    finding = await doctor.finding("D14")

    assert finding.fact.startswith(f"{kind} mine on mainspring.")
    follow(connection, finding.advice)
    assert await doctor.found("D14") == []


@pytest.mark.parametrize(
    "change",
    [
        "reset (autovacuum_vacuum_threshold)",
        "set (autovacuum_enabled = off)",
        "set (fillfactor = 100)",
    ],
)
async def test_storage_parameters_that_were_changed_are_found(
    doctor: Doctor, connection: psycopg.Connection, change: str
):
    connection.execute(f"alter table mainspring.jobs {change}".encode())

    finding = await doctor.finding("D15")

    assert finding.fact.startswith("mainspring.jobs has ")
    follow(connection, finding.advice)
    assert await doctor.found("D15") == []


async def test_a_table_that_was_never_analyzed_is_found(
    doctor: Doctor, connection: psycopg.Connection
):
    connection.execute("alter table mainspring.set_aside set (autovacuum_enabled = off)")
    connection.execute(
        "insert into mainspring.set_aside (duty, key, again_at, reason)"
        " select 'x', n, now(), '' from generate_series(1, 1000) as n"
    )
    connection.execute("select pg_stat_force_next_flush()")

    finding = await doctor.finding("D16")

    assert "set_aside has 1,000 rows and was never analyzed" in finding.fact
    follow(connection, finding.advice)
    connection.execute("select pg_stat_force_next_flush()")
    assert await doctor.found("D16") == []


async def test_a_short_statement_timeout_of_the_login_is_found(server_url: str):
    with (
        owned_database(server_url) as url,
        psycopg.connect(url, autocommit=True) as connection,
    ):
        connection.execute("alter role current_user set statement_timeout = '59s'")
        async with doctor_of(url) as doctor:
            finding = await doctor.finding("D19")
        assert "statement_timeout of Mainspring's login is 59,000 ms" in finding.fact

        follow(connection, finding.advice)
        async with doctor_of(url) as doctor:
            assert await doctor.found("D19") == []


async def test_a_pooler_that_is_none_is_noted(database_url: str):
    async with doctor_of(database_url, use_pooler=True) as doctor:
        assert await doctor.found("D23") == [("D23", "note")]
    async with doctor_of(database_url) as doctor:
        assert await doctor.found("D23") == []


async def test_row_level_security_that_is_off_is_found(
    doctor: Doctor, connection: psycopg.Connection
):
    connection.execute("alter table mainspring.jobs disable row level security")

    finding = await doctor.finding("D25")

    assert (finding.severity, finding.fact) == (
        "critical",
        "row-level security of mainspring.jobs is off",
    )
    follow(connection, finding.advice)
    assert await doctor.found("D25") == []


async def test_a_table_of_another_owner_is_found(
    doctor: Doctor, connection: psycopg.Connection, server_url: str
):
    with role(server_url) as someone:
        connection.execute(f"alter table mainspring.limits owner to {someone}".encode())
        finding = await doctor.finding("D25")
        assert f"mainspring.limits belongs to {someone}" in finding.fact
        follow(connection, finding.advice)

        assert await doctor.found("D25") == []


@pytest.mark.parametrize(
    "tampering",
    [
        (
            "create or replace function mainspring.install_schedule(spec jsonb) returns boolean"
            " language sql as $$ select false $$"
        ),
        "drop trigger definitions_audit on mainspring.definitions",
        "alter table mainspring.definitions disable trigger definitions_audit",
        "update mainspring.installed_functions set version = 1",
    ],
)
async def test_functions_and_triggers_that_are_not_as_shipped_are_found(
    doctor: Doctor, connection: psycopg.Connection, database_url: str, tampering: str
):
    connection.execute(tampering.encode())

    finding = await doctor.finding("D27")

    assert finding.severity == "critical"
    if finding.advice.startswith("update"):
        follow(connection, finding.advice)
    await asyncio.to_thread(migrate.migrate_apart, database_url)
    assert await doctor.found("D27") == []


async def test_a_missing_partition_of_tomorrow_is_found(
    doctor: Doctor, connection: psycopg.Connection
):
    tomorrow = datetime.now(UTC) + DAY
    connection.execute(f"drop table mainspring.attempts_{tomorrow:%Y%m%d}".encode())

    finding = await doctor.finding("D28")

    assert finding.fact == "attempts has no partition for tomorrow"
    follow(connection, finding.advice)
    assert await doctor.found("D28") == []


async def test_rows_of_today_in_a_default_partition_are_noted(
    doctor: Doctor, connection: psycopg.Connection
):
    connection.execute(f"drop table mainspring.jobs_history_{datetime.now(UTC):%Y%m%d}".encode())
    insert_job(connection, JobState.SUCCEEDED)

    assert await doctor.found("D28") == [("D28", "note")]


async def test_partitions_and_keys_that_should_be_gone_are_found(
    doctor: Doctor, connection: psycopg.Connection
):
    connection.execute(
        "create table mainspring.attempts_20200101 partition of mainspring.attempts"
        " for values from ('2020-01-01') to ('2020-01-02')"
    )
    key = {"tenant_id": "default", "kind": "window", "key": "k", "job_id": 1}
    insert(connection, "enqueue_keys", **key, expires_at=datetime.now(UTC))

    partition, keys = await doctor.findings("D29", later=DAY + MINUTES_20)

    assert partition.fact == "attempts_20200101 should have been dropped a day ago"
    assert keys.fact == "1 idempotency keys and dedupe windows expired more than a day ago"
    assert len(await doctor.findings("D29", later=DAY - MINUTES_20)) == 1
    connection.execute("drop table mainspring.attempts_20200101")
    assert [each.id for each in await doctor.fixes("D29")] == ["D29"]
    assert await doctor.found("D29", later=DAY + MINUTES_20) == []


async def test_running_jobs_without_a_worker_are_found(
    doctor: Doctor, connection: psycopg.Connection
):
    job_id = insert_job(connection, JobState.RUNNING)

    finding = await doctor.finding("D31")

    assert finding.fact == f"1 running jobs, such as {job_id}, have no worker"
    assert [each.is_done for each in await doctor.fixes("D31")] == [True]
    assert await doctor.found("D31") == []


async def test_a_job_past_its_time_is_found(doctor: Doctor, connection: psycopg.Connection):
    due = datetime.now(UTC) - timedelta(seconds=25)
    insert_job(connection, JobState.QUEUED, waits_for=WaitsFor.TIME, scheduled_for=due)
    assert await doctor.found("D32") == []
    assert await doctor.found("D32", later=timedelta(seconds=10)) == [("D32", "warning")]

    insert_worker(connection)
    finding = await doctor.finding("D32", later=timedelta(seconds=10))

    assert finding.severity == "critical"
    assert "still wait for their time" in finding.fact
    await doctor.fixes("D32")
    assert await doctor.found("D32", later=timedelta(seconds=10)) == []


async def test_a_job_whose_parents_have_ended_is_found(
    doctor: Doctor, connection: psycopg.Connection
):
    parent = insert_job(connection, JobState.SUCCEEDED)
    child = insert_job(connection, JobState.BLOCKED)
    insert(connection, "dependencies", job_id=child, parent_id=parent)
    assert await doctor.found("D32") == []

    finding = await doctor.finding("D32", later=timedelta(minutes=1))

    assert f"such as {child}, still wait for their parents" in finding.fact
    await doctor.fixes("D32")
    assert await doctor.found("D32", later=timedelta(minutes=1)) == []


async def test_a_job_whose_turn_has_come_is_found(doctor: Doctor, connection: psycopg.Connection):
    schedule = insert_schedule(connection)
    job = {"schedule_id": schedule, "slot_at": datetime.now(UTC)}
    insert_job(connection, JobState.QUEUED, waits_for=WaitsFor.TURN, **job)

    finding = await doctor.finding("D32", later=timedelta(minutes=1))

    assert "still wait for their turn" in finding.fact
    await doctor.fixes("D32")
    assert await doctor.found("D32", later=timedelta(minutes=1)) == []


async def test_a_job_whose_handler_every_worker_has_is_found(
    doctor: Doctor, connection: psycopg.Connection
):
    insert_job(connection, JobState.QUEUED, waits_for=WaitsFor.HANDLER)
    insert_worker(connection)
    assert await doctor.found("D32", later=timedelta(minutes=1)) == []
    insert(connection, "worker_schemas", worker_id=_worker(connection), key="work")

    finding = await doctor.finding("D32", later=timedelta(minutes=1))

    assert "still wait for a worker that knows their definition" in finding.fact
    await doctor.fixes("D32")
    assert await doctor.found("D32", later=timedelta(minutes=1)) == []


def _worker(connection: psycopg.Connection) -> int:
    ((worker_id,),) = connection.execute("select worker_id from mainspring.workers").fetchall()
    return int(worker_id)


async def test_a_job_that_was_set_aside_is_found(doctor: Doctor, connection: psycopg.Connection):
    row = {"duty": "promote", "key": 7, "again_at": datetime.now(UTC) + DAY, "reason": "too large"}
    insert(connection, "set_aside", **row)

    finding = await doctor.finding("D32")

    assert finding.fact == "job 7 was set aside by promote 1 times: too large"


async def test_a_queue_that_nobody_serves_is_found(doctor: Doctor, connection: psycopg.Connection):
    job_id = insert_job(connection, JobState.QUEUED, queue="mail")
    insert_job(connection, JobState.QUEUED, queue="default")
    insert_worker(connection)

    unserved, single = await doctor.findings("D33")

    assert unserved.fact.startswith(f"queue mail has ready jobs, such as {job_id} of tenant")
    assert (single.severity, "one live worker" in single.fact) == ("note", True)
    insert_worker(connection, queues=["mail"])
    assert await doctor.found("D33") == []


async def test_a_definition_that_no_worker_has_is_found(
    doctor: Doctor, connection: psycopg.Connection
):
    insert_job(connection, JobState.QUEUED, waits_for=WaitsFor.HANDLER)
    assert await doctor.found("D34") == []

    finding = await doctor.finding("D34", later=MINUTES_20)

    assert finding.fact.startswith("1 jobs of work wait for a worker that knows it")


async def test_a_schedule_that_is_overdue_is_found(doctor: Doctor, connection: psycopg.Connection):
    insert_schedule(connection)
    connection.execute("update mainspring.clocks set next_run_at = now() + interval '1 hour'")
    assert await doctor.found("D35") == []

    finding = await doctor.finding("D35", later=timedelta(hours=1, minutes=5))
    assert finding.severity == "warning"
    assert finding.fact.startswith("1 schedules are overdue, tick of tenant default by ")

    assert await doctor.found("D35", later=HOURS_2) == [("D35", "critical")]
    connection.execute("delete from mainspring.schedules")
    assert await doctor.found("D35", later=HOURS_2) == []


async def test_schedules_that_cannot_work_are_found(doctor: Doctor, connection: psycopg.Connection):
    insert_definition(connection, "gone")
    insert_schedule(connection, "broken", definition="gone")
    failing = insert_schedule(connection, "failing")
    insert_schedule(connection, "off", enabled=False, disabled_reason="5 failures")
    connection.execute("update mainspring.definitions set is_active = false where key = 'gone'")
    connection.execute(
        "insert into mainspring.schedule_figures (schedule_id, unsuccessful) values (%s, 3)"
        " on conflict (schedule_id) do update set unsuccessful = 3",
        (failing,),
    )

    facts = [each.fact for each in await doctor.findings("D35")]

    assert facts == [
        "schedule broken of tenant default is enabled, and its definition gone is inactive",
        "schedule failing of tenant default has never succeeded in 3 runs",
        "schedule off of tenant default was disabled: 5 failures",
    ]


async def test_many_schedules_in_one_second_are_noted(
    doctor: Doctor, connection: psycopg.Connection
):
    async def together() -> list[tuple[str, str]]:
        soon = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)
        connection.execute("update mainspring.clocks set next_run_at = %s", (soon,))
        return await doctor.found("D36")

    for number in range(10):
        insert_schedule(connection, f"s{number}")
    assert await together() == []

    insert_schedule(connection, "one too many")
    await together()
    finding = await doctor.finding("D36")

    assert (finding.severity, finding.fact[:12]) == ("note", "11 schedules")
    insert_worker(connection, concurrency=11)
    assert await doctor.found("D36") == []


async def test_runs_longer_than_their_interval_are_found(
    doctor: Doctor, connection: psycopg.Connection
):
    schedule = insert_schedule(connection, every=timedelta(minutes=1))
    connection.execute(
        "insert into mainspring.schedule_figures (schedule_id, succeeded, seconds_total)"
        " values (%s, 4, 4 * 90) on conflict (schedule_id) do update"
        " set succeeded = 4, seconds_total = 4 * 90",
        (schedule,),
    )
    connection.execute(
        "update mainspring.clocks"
        " set last_slot_at = now(), next_slot_at = now() + interval '1 minute'"
    )

    finding = await doctor.finding("D37")

    assert "runs for 90 seconds on average and is due every 60 seconds" in finding.fact


async def test_attempts_that_lost_their_worker_are_found(
    doctor: Doctor, connection: psycopg.Connection
):
    job_id = insert_job(connection, JobState.SUCCEEDED)
    insert_attempt(connection, job_id, status="lost")

    finding = await doctor.finding("D39")

    assert finding.fact.startswith("1 attempts lost their worker and 0 reported too late")
    assert await doctor.found("D39", later=DAY + MINUTES_20) == []


async def test_events_that_wait_and_triggers_that_fail_are_found(
    doctor: Doctor, connection: psycopg.Connection
):
    connection.execute("select mainspring.emit('folder_changed')")
    insert_definition(connection, "work")
    row = {"name": "resync", "event": "folder_changed", "definition": "work"}
    insert(connection, "triggers", **row)
    for replay in range(3):
        connection.execute(
            "insert into mainspring.dispatches"
            " (event_id, trigger_id, replay, outcome, trigger_name, error)"
            " select event_id, trigger_id, %s, 'failed', triggers.name, 'no such path'"
            " from mainspring.triggers, mainspring.events",
            (replay,),
        )

    failing = await doctor.finding("D40")
    waiting, _ = await doctor.findings("D40", later=timedelta(seconds=70))

    assert "failed every time: resync (default); the last error: no such path" in failing.fact
    assert waiting.fact.startswith("1 events wait, the oldest for ")


async def test_tokens_that_end_or_that_nobody_uses_are_found(
    doctor: Doctor, connection: psycopg.Connection
):
    insert_tenant(connection, "acme")
    common = {"role": "admin", "prefix": "msk_1", "created_by": "ann", "tenant_id": "acme"}
    soon = datetime.now(UTC) + timedelta(days=15)
    insert(connection, "tokens", name="ci", digest=b"1" * 32, expires_at=soon, **common)
    operator = {**common, "role": "operator", "tenant_id": None}
    insert(connection, "tokens", name="ops", digest=b"2" * 32, **operator)
    assert [each.fact for each in await doctor.findings("D41")] == [
        "token ops is an operator's and never expires"
    ]

    facts = [each.fact for each in await doctor.findings("D41", later=timedelta(days=5))]
    assert facts[0] == "token ci expires in 10 days"
    much_later = [each.fact for each in await doctor.findings("D41", later=timedelta(days=91))]
    assert "token ops was not used for 91 days" in much_later


async def test_workers_of_two_versions_are_found_after_a_day(
    doctor: Doctor, connection: psycopg.Connection
):
    insert_worker(connection, version="1.0", expires_at=datetime.now(UTC) + 3 * DAY)
    insert_worker(connection, version="1.1", expires_at=datetime.now(UTC) + 3 * DAY)

    assert await doctor.found("D43") == [("D43", "note")]
    different, same_host = await doctor.findings("D43", later=DAY + MINUTES_20)
    assert "have had the versions 1.0, 1.1 for more than a day" in different.fact
    assert same_host.fact == "all 2 live workers are on the host h1"
    connection.execute("update mainspring.workers set version = '1.1', host = version")
    assert await doctor.found("D43", later=DAY + MINUTES_20) == []


async def test_a_wait_for_a_lock_is_found_and_ended(
    doctor: Doctor, connection: psycopg.Connection, database_url: str, other: psycopg.Connection
):
    other.execute("lock table mainspring.limits in access exclusive mode")
    async with await psycopg.AsyncConnection.connect(database_url) as waiting:
        task = asyncio.create_task(waiting.execute("select from mainspring.limits"))
        await await_until(lambda: _waits(connection, waiting.info.backend_pid))
        assert await doctor.found("D45") == []

        finding = await doctor.finding("D45", later=timedelta(seconds=10))

        assert "waited for a lock on mainspring.limits" in finding.fact
        assert f"held by pid {other.info.backend_pid} (report)" in finding.fact
        follow(connection, finding.advice)
        await task
        assert await doctor.found("D45", later=timedelta(seconds=10)) == []


def _waits(connection: psycopg.Connection, pid: int) -> bool:
    query = "select from pg_locks where pid = %s and waitstart is not null"
    return connection.execute(query, (pid,)).fetchone() is not None


async def test_a_limit_that_nobody_uses_is_noted(doctor: Doctor, connection: psycopg.Connection):
    connection.execute("select mainspring.set_limit('openai', 1, null, null, null, 1)")

    finding = await doctor.finding("D46")

    assert (finding.severity, finding.advice) == ("note", "mainspring limits remove openai")
    connection.execute("select mainspring.remove_limit('openai')")
    assert await doctor.found("D46") == []


async def test_what_an_ordinary_owner_cannot_see_is_a_note(server_url: str):
    with (
        owned_database(server_url) as url,
        psycopg.connect(same_database(server_url, url), autocommit=True) as superuser,
    ):
        superuser.execute("select 1")
        async with doctor_of(url) as doctor:
            finding = await doctor.finding("D03")
            found = await doctor.findings()

    assert (finding.severity, finding.fact) == (
        "note",
        "1 sessions of other logins cannot be seen",
    )
    assert {each.id for each in found if each.severity != "note"} <= OF_TEST_SERVER


async def test_every_check_works_through_a_pooler(database_url: str):
    async with doctor_of(database_url, use_pooler=True) as doctor:
        found = await doctor.findings()

    assert {each.id for each in found if each.severity != "note"} <= OF_TEST_SERVER
    assert len(CHECKS) == 42
