"""Connections that go silent, as a network does: the worker goes on with new ones, or lets go."""

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime, timedelta

import psycopg
import pytest

from mainspring import Context, Mainspring
from tests.support import reading
from tests.support.databases import change_schema
from tests.support.log_lines import Line, captured_lines
from tests.support.proxies import SilentProxy, silent_proxy
from tests.support.waiting import await_until
from tests.support.workers import working

LEASE = 1.5
CLAIMS, FINISHES = "mainspring claim", "mainspring finish"
# As a batch that the server can never store, whatever else it does.
FULL = """
create function public.fail() returns trigger language plpgsql as $$
begin
    raise 'no memory' using errcode = 'out_of_memory';
end $$;
create trigger fail before insert on mainspring.jobs_history
    for each row execute function public.fail();
"""

NO_SURVIVORS = """
create function public.refuse() returns trigger language plpgsql as $$ begin
    raise 'it is refused' using errcode = '54000'; end $$;
create trigger refuse before update of survived on mainspring.workers
    for each row execute function public.refuse();
"""

SUSPECTS = """
select count(*) from mainspring.jobs where suspected_at is not null or losses > 0
"""

Logs = list[Line]


@pytest.fixture
async def proxy(database_url: str) -> AsyncIterator[SilentProxy]:
    async with silent_proxy(database_url) as proxy:
        yield proxy


@pytest.fixture
async def app(proxy: SilentProxy) -> AsyncIterator[Mainspring]:
    async with Mainspring(proxy.url) as app:

        @app.job
        async def answer(n: int) -> int:
            return n

        yield app


def events(logs: Logs, name: str) -> Logs:
    return [line for line in logs if line["event"] == name]


@pytest.mark.parametrize("names", [(CLAIMS,), (FINISHES,), (CLAIMS, FINISHES)])
async def test_a_worker_breaks_off_what_the_server_does_nothing_for(
    app: Mainspring, proxy: SilentProxy, names: tuple[str, ...]
):
    with captured_lines() as logs:
        async with working(app, lease_seconds=LEASE) as worker:
            assert await (await app.aenqueue("answer", {"n": 1})).aresult(5) == 1
            worker_id = worker.worker_id
            for name in names:
                proxy.silence(name)

            assert await (await app.aenqueue("answer", {"n": 2})).aresult(5) == 2
            assert worker.worker_id == worker_id, "a new connection in time costs no lease"

    assert {line["connection"] for line in events(logs, "database_lost")} <= set(names)


@pytest.mark.parametrize("name", [CLAIMS, FINISHES])
async def test_a_worker_that_cannot_claim_or_report_lets_its_lease_go_and_starts_over(
    app: Mainspring, proxy: SilentProxy, connection: psycopg.Connection, name: str
):
    with captured_lines() as logs:
        async with working(app, lease_seconds=LEASE) as worker:
            assert await (await app.aenqueue("answer", {"n": 1})).aresult(5) == 1
            worker_id = worker.worker_id
            proxy.silence(name, new_ones=True)
            handle = await app.aenqueue("answer", {"n": 2})

            await await_until(lambda: not is_alive(connection, worker_id), 3 * LEASE)
            proxy.heal()

            assert await handle.aresult(10) == 2
            assert worker.worker_id != worker_id

    (stalled,) = events(logs, "worker_stalled")
    assert (stalled["hangs"], stalled["worker"]) == (name, worker_id)
    assert reading.statuses(connection, handle.id)[-1] == "succeeded"


async def test_what_a_worker_ran_when_it_could_not_reach_the_database_is_no_suspect(
    app: Mainspring, proxy: SilentProxy, connection: psycopg.Connection
):
    begun: list[int] = []

    @app.job
    async def wait(ctx: Context) -> None:
        begun.append(ctx.attempt)
        await asyncio.Event().wait()

    async with working(app, lease_seconds=LEASE, drain_seconds=0.1) as worker:
        worker_id = worker.worker_id
        await wait.aenqueue()
        await await_until(lambda: begun == [1])
        proxy.silence(CLAIMS, new_ones=True)
        await app.aenqueue("answer", {"n": 1})
        await await_until(lambda: not is_alive(connection, worker_id), 3 * LEASE)
        proxy.heal()
        await await_until(lambda: begun == [1, 2], 10)

        assert connection.execute(SUSPECTS).fetchone() == (0,)


async def test_a_worker_that_cannot_say_that_it_survived_goes_on_all_the_same(
    app: Mainspring, proxy: SilentProxy, connection: psycopg.Connection
):
    connection.execute(NO_SURVIVORS)
    async with working(app, lease_seconds=LEASE) as worker:
        worker_id = worker.worker_id
        proxy.silence(CLAIMS, new_ones=True)
        await app.aenqueue("answer", {"n": 1})
        await await_until(lambda: not is_alive(connection, worker_id), 3 * LEASE)
        proxy.heal()
        handle = await app.aenqueue("answer", {"n": 2})

        assert await handle.aresult(timeout=20) == 2


async def test_a_worker_whose_reports_fail_for_ever_lets_its_lease_go(
    app: Mainspring, connection: psycopg.Connection
):
    async with working(app, lease_seconds=LEASE) as worker:
        await change_schema(connection, FULL)
        worker_id = worker.worker_id
        handle = await app.aenqueue("answer", {"n": 1})

        await await_until(lambda: not is_alive(connection, worker_id), 3 * LEASE)
        await change_schema(connection, "drop trigger fail on mainspring.jobs_history")

        assert await handle.aresult(10) == 1
        assert worker.worker_id != worker_id


async def test_the_lease_is_renewed_over_a_new_connection_when_its_own_goes_silent(
    app: Mainspring, proxy: SilentProxy, connection: psycopg.Connection
):
    async with working(app, lease_seconds=LEASE) as worker:
        worker_id = worker.worker_id
        registered_at = renewed_at(connection, worker_id)
        await await_until(lambda: renewed_at(connection, worker_id) > registered_at)
        proxy.silence("mainspring lease")

        silent_at = renewed_at(connection, worker_id)
        enough = silent_at + timedelta(seconds=LEASE)
        await await_until(lambda: renewed_at(connection, worker_id) > enough, 4 * LEASE)
        assert worker.worker_id == worker_id


async def test_a_slow_claim_does_not_cost_the_lease(
    app: Mainspring, connection: psycopg.Connection
):
    connection.execute(
        "create function public.take_long() returns trigger language plpgsql as"
        f" $$ begin perform pg_sleep({2 * LEASE}); return null; end $$;"
        " create trigger take_long after update on mainspring.jobs"
        " for each row when (new.state = 'running') execute function public.take_long()"
    )
    async with working(app, lease_seconds=LEASE) as worker:
        worker_id = worker.worker_id

        assert await (await app.aenqueue("answer", {"n": 1})).aresult(10) == 1
        assert worker.worker_id == worker_id


def renewed_at(connection: psycopg.Connection, worker_id: int) -> datetime:
    (row,) = [row for row in reading.workers(connection) if row["worker_id"] == worker_id]
    renewed: datetime = row["renewed_at"]
    return renewed


def is_alive(connection: psycopg.Connection, worker_id: int) -> bool:
    alive = [row["worker_id"] for row in reading.workers(connection) if row["is_alive"]]
    return worker_id in alive
