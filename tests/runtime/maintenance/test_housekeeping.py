"""The jobs that every worker can run: pruning and the doctor."""

from collections.abc import AsyncIterator

import psycopg
import pytest

from mainspring import JobState, Mainspring
from mainspring.domain.errors import InvalidPayload
from mainspring.services.housekeeping import install
from tests.support import reading
from tests.support.rows import count, insert, insert_job
from tests.support.waiting import await_until
from tests.support.workers import ended, working

SESSIONS = """
create schema civic;
create table civic.sessions (id integer, seen_at timestamptz);
insert into civic.sessions
select n, now() - n * interval '1 day' from generate_series(1, 100) as n;
"""
ALLOWED = "civic.sessions.seen_at, civic.logs.at"
PRUNE = {"table": "civic.sessions", "column": "seen_at", "older_than_days": 30}


@pytest.fixture
async def tidy(app: Mainspring, connection: psycopg.Connection) -> AsyncIterator[Mainspring]:
    """An app without jobs of its own beside a worker that may prune one table."""
    connection.execute(SESSIONS)
    await install(app.database, with_schedules=False)
    async with working_on_all(app):
        yield app


def working_on_all(app: Mainspring, **settings: object):
    return working(app, queues=("mainspring",), prune_tables=ALLOWED, **settings)


async def run(app: Mainspring, key: str, payload: dict[str, object] | None = None):
    return await ended(await app.aenqueue(f"mainspring.{key}", payload or {}))


async def test_old_rows_of_an_allowed_table_are_removed_in_batches(
    tidy: Mainspring, connection: psycopg.Connection
):
    job = await run(tidy, "prune_table", {**PRUNE, "batch_size": 20})

    assert (job.state, job.result) == (JobState.SUCCEEDED, {"removed": 71})
    assert connection.execute("select count(*) from civic.sessions").fetchone() == (29,)


async def test_no_more_rows_go_than_asked(tidy: Mainspring, connection: psycopg.Connection):
    job = await run(tidy, "prune_table", {**PRUNE, "batch_size": 20, "max_rows": 50})

    assert job.result == {"removed": 50}


async def test_seconds_are_an_age_too(tidy: Mainspring):
    payload = {"table": "civic.sessions", "column": "seen_at", "older_than_seconds": 86400 * 99.5}

    assert (await run(tidy, "prune_table", payload)).result == {"removed": 1}


async def test_a_column_that_is_not_allowed_is_refused_for_good(
    tidy: Mainspring, connection: psycopg.Connection
):
    job = await run(tidy, "prune_table", {**PRUNE, "column": "other_at"})

    assert (job.state, job.attempt) == (JobState.FAILED, 1)
    assert "civic.sessions.other_at is not a column that this worker may prune by" in (
        job.last_error or ""
    )
    assert "MAINSPRING_PRUNE_TABLES" in (job.last_error or "")
    assert connection.execute("select count(*) from civic.sessions").fetchone() == (100,)


async def test_a_table_that_is_allowed_but_cannot_be_pruned_fails_with_a_sentence(
    tidy: Mainspring,
):
    handle = await tidy.aenqueue(
        "mainspring.prune_table",
        {"table": "civic.logs", "column": "at", "older_than_days": 1},
        max_attempts=1,
    )
    job = await ended(handle)

    assert job.state is JobState.DEAD_LETTER
    assert "table civic.logs does not exist" in (job.last_error or "")


async def test_a_prune_that_is_canceled_stops_and_keeps_what_it_removed(
    tidy: Mainspring, connection: psycopg.Connection
):
    connection.execute(
        "create function civic.slow() returns trigger language plpgsql as"
        " $$ begin perform pg_sleep(0.2); return old; end $$;"
        " create trigger slow before delete on civic.sessions"
        " for each row execute function civic.slow()"
    )
    handle = await tidy.aenqueue("mainspring.prune_table", {**PRUNE, "batch_size": 1})

    def some_are_gone() -> bool:
        row = connection.execute("select count(*) from civic.sessions").fetchone()
        return row is not None and row[0] < 99

    await await_until(some_are_gone)
    await tidy.jobs.acancel(handle.id)

    assert (await ended(handle)).state is JobState.CANCELED
    left = connection.execute("select count(*) from civic.sessions").fetchone()
    assert left is not None
    assert 29 < left[0] < 99


async def test_history_past_its_retention_is_pruned(
    tidy: Mainspring, connection: psycopg.Connection
):
    old = "now() - interval '40 days'"
    for _ in range(3):
        insert_job(connection, JobState.FAILED)
    connection.execute(f"update mainspring.jobs_history set finished_at = {old}".encode())
    kept = insert_job(connection, JobState.FAILED)

    job = await run(tidy, "prune_history")

    assert job.result is not None
    assert job.result["removed"] in (0, 3)  # The worker's own round may have come first.
    assert reading.state(connection, kept) == "failed"
    assert count(connection, "jobs_history") == 2


async def test_keys_that_have_expired_are_pruned(tidy: Mainspring, connection: psycopg.Connection):
    for key, expiry in (("old", "-infinity"), ("new", "infinity")):
        row = {"tenant_id": "default", "kind": "window", "key": key, "job_id": 1}
        insert(connection, "enqueue_keys", **row, expires_at=expiry)

    job = await run(tidy, "prune_keys")

    assert job.state is JobState.SUCCEEDED
    keys = connection.execute("select key from mainspring.enqueue_keys").fetchall()
    assert keys == [("new",)]


@pytest.mark.parametrize("key", ["doctor", "vacuum_check"])
async def test_a_healthy_database_passes_the_doctor_with_a_report(tidy: Mainspring, key: str):
    # The server of the tests does not wait for its disk, and makes checkpoints for new databases.
    job = await run(tidy, key, {"ignore": ["D17", "D20"]})

    assert (job.state, job.last_error) == (JobState.SUCCEEDED, None)
    assert job.result is not None
    assert {each["id"] for each in job.result["findings"]} >= {"D17"}
    assert len(job.result["checked"]) == 42


async def test_the_doctor_fails_for_what_it_finds(tidy: Mainspring, connection: psycopg.Connection):
    connection.execute("alter table mainspring.jobs reset (fillfactor)")

    job = await run(tidy, "doctor", {"only": ["D15", "D28"]})
    lenient = await run(tidy, "doctor", {"only": ["D15"], "fail_on": "critical"})

    assert (job.state, job.attempt) == (JobState.FAILED, 1)
    assert job.last_error == (
        "D15 (warning): autovacuum comes too late or not at all, or updates leave their page; "
        "see `mainspring doctor --only D15`"
    )
    assert lenient.state is JobState.SUCCEEDED
    assert lenient.result is not None
    assert [each["id"] for each in lenient.result["findings"]] == ["D15"]


async def test_a_payload_that_makes_no_sense_is_refused_at_the_door(tidy: Mainspring):
    with pytest.raises(InvalidPayload):
        await tidy.aenqueue("mainspring.prune_table", {"table": "civic.sessions"})
