"""Failures of real workers are counted by error: each once, whatever becomes of the workers."""

from datetime import timedelta

import psycopg
import pytest

from mainspring import Context, Fail, Mainspring, Snooze
from mainspring.domain.jobs.error_keys import LOST_WORKER, summarize
from tests.support import apps, reading
from tests.support.hidden_words import WORD, ensure_hidden
from tests.support.processes import StartWorker
from tests.support.rows import count
from tests.support.secret_schemas import MARKED, of
from tests.support.waiting import await_until, wait_until
from tests.support.workers import ended, working

OF_ATTEMPTS = "select error_key, count(*) from mainspring.attempts group by 1"
GROUPED = "select error_key, sum(count)::bigint from mainspring.error_days group by 1"
SAMPLES = (
    "select split_part(sample, ':', 1), sum(count)::bigint from mainspring.error_days group by 1"
)


def pairs(connection: psycopg.Connection, query: str) -> dict[str, int]:
    return dict(connection.execute(query.encode()).fetchall())


def is_folded(connection: psycopg.Connection) -> bool:
    return count(connection, "failures") == 0 and count(connection, "error_days") > 0


def test_jobs_that_fail_in_two_ways_are_two_groups_though_a_worker_is_killed(
    shared_app: Mainspring, connection: psycopg.Connection, start_worker: StartWorker
):
    jobs = 400
    doomed, other = start_worker(concurrency=5), start_worker(concurrency=5)
    doomed.started(connection)
    other.started(connection)
    hanging = apps.hang_at_first.enqueue().id
    shared_app.enqueue_many(apps.fail_in_one_of_two_ways, [{"number": n} for n in range(jobs)])
    wait_until(lambda: count(connection, "attempts") > 50, 60)

    doomed.kill()
    other.kill()
    start_worker(), start_worker()

    wait_until(lambda: count(connection, "jobs_history") == jobs + 1, 60)
    wait_until(lambda: is_folded(connection), 30)
    grouped = pairs(connection, GROUPED)
    assert grouped == {key: n for key, n in pairs(connection, OF_ATTEMPTS).items() if key}
    assert grouped[summarize(LOST_WORKER).key] >= 1
    found = pairs(connection, SAMPLES)
    assert (found["ValueError"], found["LookupError"]) == (jobs, jobs)
    assert reading.job(connection, hanging)["state"] == "succeeded"


async def test_what_is_no_failure_is_in_no_group(app: Mainspring, connection: psycopg.Connection):
    @app.job
    async def snooze_once(ctx: Context) -> object:
        return Snooze(timedelta(0)) if ctx.attempt == 1 else None

    @app.job
    async def decline() -> Fail:
        return Fail("no 7")

    async with working(app):
        succeeded = await snooze_once.aenqueue()
        declined = await decline.aenqueue()
        assert (await ended(succeeded)).error_key is None
        job = await ended(declined)
        await await_until(lambda: is_folded(connection))

    assert job.error_key == summarize("no 8").key
    assert pairs(connection, GROUPED) == {job.error_key: 1}


@pytest.mark.parametrize("way", ["raise", "answer"])
async def test_a_sample_holds_no_secret(
    app: Mainspring, connection: psycopg.Connection, database_url: str, way: str
):
    @app.job(max_attempts=1, arg_schema=of(word=MARKED))
    async def use(word: str) -> object:
        if way == "raise":
            raise ValueError(f"cannot use {word}")
        return Fail(f"{word} was refused")

    async with working(app):
        job = await ended(await use.aenqueue(word=WORD))
        await await_until(lambda: is_folded(connection))

    ((sample, key),) = connection.execute(
        "select sample, error_key from mainspring.error_days"
    ).fetchall()
    assert "[redacted]" in sample
    ensure_hidden(sample)
    assert key == job.error_key
