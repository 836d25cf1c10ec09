"""`fix` does what needs no judgement, once, and leaves alone what is not ours."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from mainspring.domain.types import JobState, WaitsFor
from mainspring.services.doctor_fixes import FIXES
from tests.services.test_doctor_checks import canceled, insert_worker
from tests.support.databases import owned_database
from tests.support.doctors import Doctor, doctor_of
from tests.support.rows import insert, insert_job

DAY = timedelta(days=1)


@pytest.fixture
async def doctor(database_url: str) -> AsyncIterator[Doctor]:
    async with doctor_of(database_url) as doctor:
        yield doctor


def break_it(connection: psycopg.Connection, url: str) -> None:
    """Something for each fix."""
    with psycopg.connect(url) as other, canceled(connection, other):
        connection.execute("reindex index concurrently mainspring.jobs_ready")
    connection.execute("alter table mainspring.set_aside set (autovacuum_enabled = off)")
    connection.execute("alter table mainspring.jobs reset (fillfactor)")
    connection.execute(
        "insert into mainspring.set_aside (duty, key, again_at, reason)"
        " select 'x', n, now(), '' from generate_series(1, 1000) as n"
    )
    connection.execute("select pg_stat_force_next_flush()")
    connection.execute(f"drop table mainspring.attempts_{datetime.now(UTC) + DAY:%Y%m%d}".encode())
    past = datetime.now(UTC) - 2 * DAY
    key = {"tenant_id": "default", "kind": "window", "key": "k", "job_id": 1}
    insert(connection, "enqueue_keys", **key, expires_at=past)
    insert_job(connection, JobState.RUNNING)
    insert_job(connection, JobState.QUEUED, waits_for=WaitsFor.TIME, scheduled_for=past)


FIXED = [
    ("D13", "dropped the invalid index jobs_ready_ccnew"),
    ("D15", "set the storage parameters of mainspring.jobs"),
    ("D15", "set the storage parameters of mainspring.set_aside"),
    ("D16", "analyzed mainspring.set_aside"),
    ("D28", "made 1 partitions"),
    ("D29", "removed 1 expired keys"),
    ("D31", "made the jobs of 1 unknown workers recoverable"),
    ("D32", "ended 1 waits for a time"),
]


@pytest.mark.parametrize("use_pooler", [False, True])
async def test_everything_is_fixed_once(
    connection: psycopg.Connection, server_url: str, use_pooler: bool
):
    with owned_database(server_url) as url, psycopg.connect(url, autocommit=True) as owner:
        break_it(owner, url)
        async with doctor_of(url, use_pooler=use_pooler) as doctor:
            first = await doctor.fixes()
            owner.execute("select pg_stat_force_next_flush()")
            second = await doctor.fixes()
            # D32 has 1,000 rows of the test itself that are set aside.
            found = await doctor.found(*sorted(FIXES.keys() - {"D32"}))

    assert [(each.id, each.action) for each in first] == FIXED
    assert all(each.is_done for each in first)
    assert list(second) == []
    assert found == []


async def test_what_is_not_ours_stays(
    doctor: Doctor, connection: psycopg.Connection, database_url: str
):
    with psycopg.connect(database_url) as other, canceled(connection, other):
        connection.execute("create index concurrently mine on mainspring.jobs (created_at)")
    connection.execute("create table mainspring.notes (n integer) with (fillfactor = 10)")
    connection.execute("insert into mainspring.notes select generate_series(1, 5000)")
    connection.execute("select pg_stat_force_next_flush()")

    assert list(await doctor.fixes()) == []
    ((options, index),) = connection.execute(
        "select reloptions, to_regclass('mainspring.mine') is not null from pg_class"
        " where oid = 'mainspring.notes'::regclass"
    ).fetchall()
    assert (options, index) == (["fillfactor=10"], True)


async def test_what_someone_else_holds_is_said_and_left(
    doctor: Doctor, connection: psycopg.Connection, database_url: str
):
    connection.execute("alter table mainspring.jobs reset (fillfactor)")
    connection.execute("alter table mainspring.limits set (fillfactor = 50)")
    with psycopg.connect(database_url) as other:
        other.execute("lock table mainspring.jobs in access exclusive mode")
        jobs, limits = await doctor.fixes("D15")
    (late,) = await doctor.fixes("D15")

    assert (jobs.is_done, limits.is_done, late.is_done) == (False, True, True)
    assert jobs.action == (
        "not set the storage parameters of mainspring.jobs: someone else holds the lock; try again"
    )


async def test_only_what_was_asked_for_is_fixed(doctor: Doctor, connection: psycopg.Connection):
    connection.execute("alter table mainspring.jobs reset (fillfactor)")
    insert_job(connection, JobState.RUNNING)

    assert [each.id for each in await doctor.fixes("D31")] == ["D31"]
    assert await doctor.found("D15") == [("D15", "warning")]


async def test_a_job_that_waits_for_a_worker_that_is_there_is_ready_again(
    doctor: Doctor, connection: psycopg.Connection
):
    job_id = insert_job(connection, JobState.QUEUED, waits_for=WaitsFor.HANDLER)
    insert_worker(connection)
    connection.execute(
        "insert into mainspring.worker_schemas (worker_id, key)"
        " select worker_id, 'work' from mainspring.workers"
    )

    (fix,) = await doctor.fixes("D32")

    assert fix.action == "ended 1 waits for a handler"
    query = "select waits_for from mainspring.jobs where job_id = %s"
    assert connection.execute(query, (job_id,)).fetchone() == (None,)
