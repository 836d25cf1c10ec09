"""Bulk operations under a worker: killed, canceled, or in the way of others."""

from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from mainspring import JobState, Mainspring
from mainspring.services.housekeeping import install
from tests.support import reading
from tests.support.databases import change_schema
from tests.support.processes import StartWorker
from tests.support.rows import insert_job
from tests.support.waiting import await_until
from tests.support.workers import working

# Whoever holds the lock 7 lets one batch pass, and no other.
GATE = """
create function public.gate() returns trigger language plpgsql as $$ begin
    if (select count(*) from mainspring.jobs_history where state = 'canceled') >= 500 then
        perform pg_advisory_xact_lock_shared(7);
    end if;
    return null;
end $$;
create trigger gate before delete on mainspring.jobs
    for each statement execute function public.gate()
"""
# So that there is time between two batches, which each remove jobs in one statement.
SLOW = """
create function public.slow() returns trigger language plpgsql
    as $$ begin perform pg_sleep(0.15); return null; end $$;
create trigger slow after delete on mainspring.jobs
    for each statement execute function public.slow()
"""
# Whatever keeps one job from being written: here a trigger, elsewhere an index or a corrupt page.
POISON = """
create function refuse_poison() returns trigger language plpgsql as
$$ begin raise exception 'it is poison' using errcode = '{sqlstate}'; end $$;
create trigger poison before update or delete on mainspring.jobs
for each row when (old.tags = '{{poison}}') execute function refuse_poison();
create trigger poison before delete on mainspring.jobs_history
for each row when (old.tags = '{{poison}}') execute function refuse_poison();
"""


def fill(connection: psycopg.Connection, count: int) -> None:
    """Jobs in a queue that nobody works."""
    connection.execute(
        "insert into mainspring.jobs (definition, queue)"
        " select 'work', 'left alone' from generate_series(1, %s)",
        (count,),
    )


def start(connection: psycopg.Connection, action: str, total: int | None, **asked: Any) -> int:
    row = connection.execute(
        "select mainspring.start_bulk(%s, %s, 'why', total => %s)", (action, Jsonb(asked), total)
    ).fetchone()
    assert row is not None
    return int(row[0])


def changed(connection: psycopg.Connection, job_id: int) -> int:
    return int((reading.job(connection, job_id)["checkpoint"] or {"changed": 0})["changed"])


def tally(connection: psycopg.Connection) -> tuple[int, int, int]:
    """How many jobs are canceled, of how many the audit says so, and how many are live."""
    row = connection.execute(
        "select (select count(*) from mainspring.jobs_history"
        "         where definition = 'work' and state = 'canceled'),"
        "       (select count(distinct subject) from mainspring.audit where action = 'cancel'),"
        "       (select count(*) from mainspring.jobs where definition = 'work')"
    ).fetchone()
    assert row is not None
    return row


def progress(connection: psycopg.Connection, job_id: int) -> tuple[int, int]:
    told = reading.job(connection, job_id)["progress"] or {"current": 0, "total": 0}
    return told["current"], told["total"]


async def test_an_operation_whose_worker_is_killed_goes_on_where_it_was(
    app: Mainspring, connection: psycopg.Connection, start_worker: StartWorker
):
    connection.execute(GATE)
    connection.execute("select pg_advisory_lock(7)")
    doomed = start_worker()
    doomed.started(connection)
    fill(connection, 1200)
    job_id = start(connection, "cancel", None, definition="work")
    await await_until(lambda: progress(connection, job_id) == (500, 1200), 30)
    doomed.kill()
    assert tally(connection) == (500, 500, 700)
    connection.execute("select pg_advisory_unlock(7)")

    async with working(app, queues=("mainspring",)):
        await await_until(lambda: reading.state(connection, job_id) == "succeeded", 30)

    assert reading.statuses(connection, job_id) == ["lost", "succeeded"]
    result = reading.job(connection, job_id)["result"]
    assert result == {"action": "cancel", "changed": 1200, "skipped": 0, "reasons": {}}
    assert tally(connection) == (1200, 1200, 0)
    rows = connection.execute("select count(*) from mainspring.audit where action = 'cancel'")
    assert rows.fetchone() == (1200,), "a job was canceled twice"


@pytest.fixture
async def ready(app: Mainspring, connection: psycopg.Connection) -> Mainspring:
    await install(app.database, with_schedules=False)
    connection.execute("insert into mainspring.definitions (key, kind) values ('work', 'python')")
    return app


async def test_an_operation_that_is_canceled_stops_and_keeps_what_it_did(
    ready: Mainspring, connection: psycopg.Connection
):
    connection.execute(SLOW)
    fill(connection, 2600)
    job_id = start(connection, "cancel", 2600, definition="work")
    async with working(ready, queues=("mainspring",)):
        await await_until(lambda: changed(connection, job_id) >= 500)
        connection.execute("select mainspring.cancel(%s)", (job_id,))
        await await_until(lambda: reading.state(connection, job_id) == "canceled")

    canceled, _, live = tally(connection)
    assert 500 <= canceled < 2600
    assert canceled + live == 2600
    assert changed(connection, job_id) == canceled


async def test_a_job_that_someone_holds_is_waited_for_when_all_others_of_its_batch_are_done(
    ready: Mainspring, connection: psycopg.Connection, database_url: str
):
    fill(connection, 10)
    job_id = start(connection, "delete", 10, definition="work")
    with psycopg.connect(database_url) as holder:
        holder.execute("select from mainspring.jobs where definition = 'work' limit 1 for update")
        async with working(ready, queues=("mainspring",)):
            await await_until(lambda: tally(connection)[2] == 1)
            assert reading.state(connection, job_id) == "running"
            holder.rollback()
            await await_until(lambda: reading.state(connection, job_id) == "succeeded")

    assert reading.job(connection, job_id)["result"]["changed"] == 10
    assert tally(connection)[2] == 0


async def test_jobs_that_have_moved_on_are_counted_as_skipped(
    ready: Mainspring, connection: psycopg.Connection
):
    fill(connection, 3)
    asked = insert_job(connection, JobState.RUNNING)
    connection.execute(
        "insert into mainspring.workers (worker_id, expires_at, pid, concurrency, name, host,"
        " process_identity, queues, version)"
        " values (7, 'infinity', 1, 1, 'far', 'far', 'far', '{}', '1')"
    )
    job_id = start(connection, "cancel", 4, definition="work")
    connection.execute("select mainspring.cancel(%s)", (asked,))
    connection.execute(
        "select mainspring.delete_job(min(job_id)) from mainspring.jobs where state = 'queued'"
        " and definition = 'work'"
    )

    async with working(ready, queues=("mainspring",)):
        await await_until(lambda: reading.state(connection, job_id) == "succeeded")

    assert reading.job(connection, job_id)["result"] == {
        "action": "cancel",
        "changed": 2,
        "skipped": 2,
        "reasons": {"already_asked": 1, "changed_meanwhile": 1},
    }


async def test_what_has_failed_since_the_operation_began_is_not_retried_by_it(
    ready: Mainspring, connection: psycopg.Connection
):
    before = insert_job(connection, JobState.FAILED, queue="left alone")
    since = insert_job(connection, JobState.FAILED)
    job_id = start(connection, "retry", 1, state="failed")
    connection.execute(
        "update mainspring.jobs_history set finished_at = now() + interval '1 second'"
        " where job_id = %s",
        (since,),
    )

    async with working(ready, queues=("mainspring",)):
        await await_until(lambda: reading.state(connection, job_id) == "succeeded")

    assert reading.state(connection, before) == "queued"
    assert reading.state(connection, since) == "failed"


@pytest.mark.parametrize(
    ("action", "state"),
    [("cancel", JobState.QUEUED), ("delete", JobState.QUEUED), ("retry", JobState.FAILED)],
)
async def test_jobs_that_cannot_be_changed_cost_no_other_its_change(
    ready: Mainspring, connection: psycopg.Connection, action: str, state: JobState
):
    jobs = [insert_job(connection, state, queue="left alone") for _ in range(20)]
    bad = [jobs[0], jobs[7], jobs[19]]
    for table in ("jobs", "jobs_history"):
        connection.execute(
            f"update mainspring.{table} set tags = '{{poison}}' where job_id = any(%s)".encode(),
            (bad,),
        )
    connection.execute(POISON.format(sqlstate="P0001"))
    job_id = start(connection, action, 20, definition="work")

    async with working(ready, queues=("mainspring",)):
        await await_until(lambda: reading.state(connection, job_id) == "succeeded")

    assert reading.job(connection, job_id)["result"] == {
        "action": action,
        "changed": 17,
        "skipped": 3,
        "reasons": {"refused": 3},
        "refused": [{"job_id": str(each), "error": "it is poison"} for each in bad],
    }
    assert reading.statuses(connection, job_id) == ["succeeded"]


async def test_a_job_that_was_held_and_cannot_be_changed_is_skipped_too(
    ready: Mainspring, connection: psycopg.Connection, database_url: str
):
    bad = insert_job(connection, JobState.QUEUED, queue="left alone", tags=["poison"])
    fill(connection, 3)
    connection.execute(POISON.format(sqlstate="23514"))
    job_id = start(connection, "cancel", 4, definition="work")
    with psycopg.connect(database_url) as holder:
        holder.execute("select from mainspring.jobs where job_id = %s for update", (bad,))
        async with working(ready, queues=("mainspring",)):
            await await_until(lambda: tally(connection)[2] == 1)
            holder.rollback()
            await await_until(lambda: reading.state(connection, job_id) == "succeeded")

    result = reading.job(connection, job_id)["result"]
    assert (result["changed"], result["refused"]) == (
        3,
        [{"job_id": str(bad), "error": "it is poison"}],
    )


async def test_an_operation_blames_no_job_for_a_missing_privilege(
    ready: Mainspring, connection: psycopg.Connection
):
    fill(connection, 3)
    connection.execute("update mainspring.jobs set tags = '{poison}' where definition = 'work'")
    connection.execute(POISON.format(sqlstate="42501"))
    job_id = start(connection, "cancel", 3, definition="work")

    async with working(ready, queues=("mainspring",)):
        await await_until(lambda: reading.statuses(connection, job_id) == ["failed"])
        await change_schema(connection, "drop trigger poison on mainspring.jobs")
        await await_until(lambda: reading.state(connection, job_id) == "succeeded")

    assert reading.job(connection, job_id)["result"]["changed"] == 3
