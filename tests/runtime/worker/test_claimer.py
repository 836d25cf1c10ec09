"""Claims: two never share a job, and each is as large as it should be."""

import asyncio
from collections import Counter
from datetime import timedelta

import psycopg
import pytest

from mainspring import Mainspring
from mainspring.db.connect import connect
from mainspring.store import attempts, workers
from mainspring.store.workers import WorkerFacts
from tests.support import apps, reading, rows
from tests.support.processes import StartWorker
from tests.support.waiting import await_until, wait_until
from tests.support.workers import working

FACTS = WorkerFacts("claimer", "host", 1, "identity", ("default",), 1, "test")


async def claim_all(url: str) -> list[int]:
    claimed: list[int] = []
    async with await connect(url, name="claimer", pins_plans=True) as connection:
        worker_id = await workers.register(connection, FACTS, timedelta(minutes=1))
        while found := await attempts.discover(connection, ["default"]):
            marks = [(each.lane, 0) for each in found]
            rows = await attempts.claim(connection, worker_id, marks, limit=37)
            claimed += [row[0] for row in rows]
    return claimed


async def test_eight_claimers_take_every_job_once(shared_app: Mainspring, database_url: str):
    payloads = [{"number": number} for number in range(4000)]
    job_ids = shared_app.enqueue_many(apps.do_nothing, payloads)

    claims = await asyncio.gather(*(claim_all(database_url) for _ in range(8)))

    assert sorted(job_id for claimed in claims for job_id in claimed) == sorted(job_ids)
    assert sum(1 for claimed in claims if claimed) > 1


def test_three_workers_run_every_job_once(
    shared_app: Mainspring, connection: psycopg.Connection, start_worker: StartWorker
):
    processes = [start_worker(concurrency=20, prefetch=20) for _ in range(3)]
    for worker in processes:
        worker.started(connection)
    payloads = [{"number": number, "workers": 3} for number in range(3000)]

    job_ids = shared_app.enqueue_many(apps.record_beside, payloads)

    wait_until(lambda: reading.are_all(connection, "succeeded"), 60, "all jobs succeed")
    runs = Counter(note["job_id"] for note in reading.notes(connection, "ran"))
    assert runs == Counter(job_ids)
    assert len({note["pid"] for note in reading.notes(connection, "ran")}) == 3


async def test_a_worker_whose_lease_ran_out_claims_nothing(
    shared_app: Mainspring, aconnection: psycopg.AsyncConnection
):
    job_id = apps.do_nothing.enqueue(number=1).id
    worker_id = await workers.register(aconnection, FACTS, timedelta(minutes=1))
    await workers.expire_workers(aconnection, [worker_id])
    lanes = [(each.lane, 0) for each in await attempts.discover(aconnection, ["default"])]

    assert await attempts.claim(aconnection, worker_id, lanes, limit=10) == []

    living = await workers.register(aconnection, FACTS, timedelta(minutes=1))
    rows = await attempts.claim(aconnection, living, lanes, limit=10)
    assert [row[0] for row in rows] == [job_id]


# Counted as they are made: a slow machine hands some of the jobs back and claims them again.
COUNT_CLAIMS = """
create table public.claims (size bigint);
create function public.count_claims() returns trigger language plpgsql as $$ begin
    insert into public.claims select count(*) from changed where state = 'running';
    return null; end $$;
create trigger count_claims after update on mainspring.jobs
    referencing new table as changed for each statement execute function public.count_claims();
"""


@pytest.mark.parametrize(("tenants", "largest"), [(1, 1000), (25, 2000)])
async def test_a_claim_from_many_lanes_takes_more_of_each(
    app: Mainspring, connection: psycopg.Connection, tenants: int, largest: int
):
    @app.job
    async def work() -> None: ...

    await app.aregister_definitions()
    connection.execute(
        "insert into mainspring.tenants (tenant_id)"
        " select 'tenant' || n from generate_series(1, %s) as n",
        (tenants,),
    )
    connection.execute(
        "insert into mainspring.jobs (tenant_id, definition, payload)"
        " select 'tenant' || (n %% %s + 1), 'work', '{}' from generate_series(1, 4000) as n",
        (tenants,),
    )

    connection.execute(COUNT_CLAIMS)

    async with working(app, concurrency=4000):
        await await_until(lambda: rows.count(connection, "jobs") == 0)

    assert connection.execute("select max(size) from public.claims").fetchone() == (largest,)
