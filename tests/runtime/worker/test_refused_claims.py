"""What the database refuses to a claim, a lookup or a hand-back costs one job, not the others."""

import psycopg
import pytest

from mainspring import Mainspring
from mainspring.runtime.worker.worker import Worker
from tests.support import reading
from tests.support.databases import change_schema
from tests.support.rows import insert_definition
from tests.support.waiting import await_until
from tests.support.workers import working

REFUSE = """
create function public.refuse() returns trigger language plpgsql as $$ begin
    raise 'refused' using errcode = '{code}'; end $$;
create trigger refuse before update on mainspring.jobs for each row
    when (new.job_id = {job_id} and old.state = '{old}' and new.state = '{new}')
    execute function public.refuse();
"""
UNREADABLE = """
alter function mainspring.backoff_of(mainspring.definition_versions) rename to readable_backoff;
create function mainspring.backoff_of(defined mainspring.definition_versions) returns text
language plpgsql as $$ begin
    if defined.key = 'bad' then raise 'unreadable' using errcode = '54000'; end if;
    return mainspring.readable_backoff(defined); end $$;
"""


@pytest.fixture
def numbers(app: Mainspring) -> Mainspring:
    @app.job
    async def answer(n: int) -> int:
        return n

    return app


def refuse(
    connection: psycopg.Connection, job_id: int, code: str = "54000", *, old: str, new: str
) -> None:
    connection.execute(REFUSE.format(code=code, job_id=job_id, old=old, new=new))


async def all_but_one_succeed(connection: psycopg.Connection, others: int, worker: Worker) -> None:
    worker_id = worker.worker_id
    await await_until(lambda: reading.states(connection).get("succeeded") == others)
    assert worker.worker_id == worker_id


@pytest.mark.parametrize("code", ["54000", "P0001"])
@pytest.mark.parametrize("count", [0, 100])
async def test_a_job_that_cannot_be_claimed_is_put_off_with_the_reason(
    numbers: Mainspring, connection: psycopg.Connection, code: str, count: int
):
    await numbers.aregister_definitions()
    before = numbers.enqueue_many("answer", [{"n": n} for n in range(count)])
    bad = await numbers.aenqueue("answer", {"n": 0})
    after = numbers.enqueue_many("answer", [{"n": n} for n in range(count)])
    refuse(connection, bad.id, code, old="queued", new="running")
    set_aside = "select duty, reason from mainspring.set_aside"
    waiting = "select from mainspring.jobs where waits_for = 'time'"

    async with working(numbers) as worker:
        await await_until(lambda: connection.execute(waiting).fetchall())
        if count:
            await all_but_one_succeed(connection, len(before) + len(after), worker)
        job = await bad.ajob()

    assert connection.execute(set_aside).fetchall() == [("claim", "refused")]
    assert (job.waits_for, job.last_error) == ("time", "set aside by claim: refused")


async def test_a_limit_key_whose_jobs_cannot_be_claimed_holds_up_no_other(
    app: Mainspring, connection: psycopg.Connection
):
    await app.limits.aset("one", key_concurrency=1)

    @app.job(limit="one")
    async def answer(n: int) -> int:
        return n

    await app.aregister_definitions()
    handles = [await answer.options(limit_key=str(n)).aenqueue(n) for n in range(20)]
    refuse(connection, handles[7].id, old="queued", new="running")

    async with working(app) as worker:
        await all_but_one_succeed(connection, 19, worker)


async def test_a_definition_that_cannot_be_read_holds_up_no_other(
    app: Mainspring, connection: psycopg.Connection
):
    connection.execute(
        "create schema shop; create function shop.work(payload jsonb) returns jsonb language sql"
        " as $$ select '{\"success\": true}'::jsonb $$;"
        "insert into mainspring.definitions (key, kind, spec) select key, 'sql',"
        " '{\"function\": \"shop.work\"}' from unnest(array['bad', 'good', 'fine']) as key"
    )
    await app.aregister_definitions()
    bad, *_ = [await app.aenqueue(key, {}) for key in ("bad", "good", "fine")]
    connection.execute(UNREADABLE)

    async with working(app) as worker:
        await all_but_one_succeed(connection, 2, worker)
        await await_until(lambda: reading.state(connection, bad.id) == "queued")

    job = await bad.ajob()
    assert (job.waits_for, job.last_error) == (
        "time",
        "the definition could not be read: unreadable",
    )


async def test_a_job_that_cannot_be_handed_back_holds_up_no_other(
    app: Mainspring, connection: psycopg.Connection
):
    insert_definition(connection, "elsewhere")
    jobs = app.enqueue_many("elsewhere", [{}] * 5)
    refuse(connection, jobs[2], old="running", new="queued")
    waiting = "select count(*) from mainspring.jobs where waits_for = 'handler'"

    async with working(app):
        await await_until(lambda: connection.execute(waiting).fetchone() == (4,))
        assert reading.state(connection, jobs[2]) == "running"
        await change_schema(connection, "drop trigger refuse on mainspring.jobs")
        await await_until(lambda: reading.state(connection, jobs[2]) == "queued")
        job = await app.jobs.aget(jobs[2])

    assert job.last_error == "it could not be handed back: refused"
