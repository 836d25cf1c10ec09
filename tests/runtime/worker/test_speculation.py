"""A lone job begins while its claim is being committed; nothing is said of it before that is."""

import asyncio
import math
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psycopg
import pytest
from psycopg import AsyncConnection

from mainspring import Context, Mainspring
from mainspring.domain.types import WorkerId
from mainspring.runtime.worker.lease import Lease
from mainspring.runtime.worker.speculation import LeaseEnded, SpeculativeStarts
from mainspring.store.attempts import Finished, Successes, finish_succeeded
from tests.support import reading
from tests.support.proxies import lossy_proxy
from tests.support.waiting import await_until
from tests.support.workers import working

# What a slow disk or a standby that is far away does to the commit of a claim.
SLOW_CLAIMS = """
create function public.hold_claim() returns trigger language plpgsql as $$
begin
    perform pg_advisory_xact_lock_shared(4711);
    return null;
end $$;
create constraint trigger hold_claim after update on mainspring.jobs
    deferrable initially deferred for each row when (new.state = 'running')
    execute function public.hold_claim();
"""
# The server goes down in the middle of it; the next claim may get the same fencing number then.
FAILING_CLAIM = """
create sequence public.claims;
create function public.fail_claim() returns trigger language plpgsql as $$
begin
    if nextval('public.claims') = 1 then
        perform pg_advisory_xact_lock_shared(4711);
        perform setval('mainspring.fences', (select last_value - 1 from mainspring.fences));
        perform pg_terminate_backend(pg_backend_pid());
    end if;
    return null;
end $$;
create constraint trigger fail_claim after update on mainspring.jobs
    deferrable initially deferred for each row when (new.state = 'running')
    execute function public.fail_claim();
"""
HOLD = "select pg_advisory_lock(4711)"
RELEASE = "select pg_advisory_unlock(4711)"
TIMEOUT = "show idle_in_transaction_session_timeout"


class Notes:
    """What handlers did, in order."""

    def __init__(self) -> None:
        self.began: list[int] = []
        self.ended: list[int] = []
        self.canceled: list[int] = []
        self.may_end = asyncio.Event()


@pytest.fixture
def notes(app: Mainspring) -> Notes:
    return define(app)


def define(app: Mainspring) -> Notes:
    notes = Notes()

    @app.job
    async def quick(n: int) -> int:
        notes.began.append(n)
        return n

    @app.job
    async def slow(n: int) -> int:
        notes.began.append(n)
        try:
            await notes.may_end.wait()
        except asyncio.CancelledError:
            notes.canceled.append(n)
            raise
        notes.ended.append(n)
        return n

    @app.job
    def threaded(n: int) -> int:
        notes.began.append(n)
        return n

    @app.job
    async def careful(n: int, ctx: Context) -> int:
        notes.began.append(n)
        await ctx.acheckpoint({"n": n})
        return n

    return notes


@asynccontextmanager
async def idle(app: Mainspring, connection: psycopg.Connection) -> AsyncIterator[None]:
    """A worker that has run a job and waits for the next, whose claim will not be committed
    before the lock is given back."""
    async with working(app):
        handle = await app.aenqueue("quick", {"n": 0})
        await handle.aresult(5)
        connection.execute(HOLD)
        yield


@pytest.mark.parametrize("key", ["quick", "threaded"])
async def test_a_lone_job_begins_before_its_claim_is_committed(
    app: Mainspring, connection: psycopg.Connection, notes: Notes, key: str
):
    connection.execute(SLOW_CLAIMS)
    async with idle(app, connection):
        handle = await app.aenqueue(key, {"n": 1})
        await await_until(lambda: notes.began == [0, 1])
        assert reading.state(connection, handle.id) == "queued"
        connection.execute(RELEASE)
        assert await handle.aresult(5) == 1

    assert reading.statuses(connection, handle.id) == ["succeeded"]
    assert notes.began == [0, 1]


async def test_one_that_can_touch_its_job_waits_for_the_commit(
    app: Mainspring, connection: psycopg.Connection, notes: Notes
):
    connection.execute(SLOW_CLAIMS)
    async with idle(app, connection):
        careful = await app.aenqueue("careful", {"n": 1})
        await await_until(lambda: is_committing(connection))
        assert notes.began == [0]
        connection.execute(RELEASE)
        assert await careful.aresult(5) == 1

    assert reading.statuses(connection, careful.id) == ["succeeded"]


@pytest.mark.parametrize("is_quick", [True, False], ids=["it had ended", "it was still running"])
async def test_a_claim_that_came_to_nothing_is_made_again(
    app: Mainspring, connection: psycopg.Connection, notes: Notes, is_quick: bool
):
    async with idle(app, connection):
        connection.execute(FAILING_CLAIM)
        handle = await app.aenqueue("quick" if is_quick else "slow", {"n": 1})
        await await_until(lambda: notes.began == [0, 1] and is_committing(connection))
        connection.execute(RELEASE)
        await await_until(lambda: notes.began == [0, 1, 1])
        assert notes.canceled == ([] if is_quick else [1])
        notes.may_end.set()
        assert await handle.aresult(5) == 1

    assert reading.statuses(connection, handle.id) == ["succeeded"]
    assert reading.job(connection, handle.id)["attempt"] == 1
    assert notes.ended == ([] if is_quick else [1])


async def test_what_ended_before_its_claim_came_to_nothing_is_never_reported(
    app: Mainspring,
    connection: psycopg.Connection,
    notes: Notes,
    monkeypatch: pytest.MonkeyPatch,
):
    sent: list[int] = []

    async def finish(lent: AsyncConnection, worker_id: WorkerId, batch: Successes) -> Finished:
        sent.extend(batch.job_ids)
        return await finish_succeeded(lent, worker_id, batch)

    monkeypatch.setattr("mainspring.runtime.worker.reporter.attempts.finish_succeeded", finish)
    async with idle(app, connection):
        connection.execute(FAILING_CLAIM)
        handle = await app.aenqueue("quick", {"n": 1})
        await await_until(lambda: notes.began == [0, 1] and is_committing(connection))
        connection.execute(RELEASE)
        assert await handle.aresult(5) == 1

    assert (notes.began, sent.count(handle.id)) == ([0, 1, 1], 1)


async def test_a_commit_that_was_not_heard_of_counts(
    database_url: str, connection: psycopg.Connection
):
    async with lossy_proxy(database_url) as proxy, Mainspring(proxy.url) as app:
        notes = define(app)
        async with working(app):
            await (await app.aenqueue("quick", {"n": 0})).aresult(5)
            handle = await app.aenqueue("slow", {"n": 1})
            await await_until(lambda: notes.began == [0, 1])
            proxy.lose_answer_to("COMMIT")
            lone = await app.aenqueue("slow", {"n": 2})
            await await_until(lambda: proxy.lost == 1 and notes.began == [0, 1, 2])
            notes.may_end.set()
            assert [await handle.aresult(5), await lone.aresult(5)] == [1, 2]

    assert (notes.began, notes.canceled) == ([0, 1, 2], [])
    assert reading.statuses(connection, lone.id) == ["succeeded"]


async def test_a_worker_that_stops_waits_for_the_commit(
    app: Mainspring, connection: psycopg.Connection, notes: Notes
):
    connection.execute(SLOW_CLAIMS)
    async with idle(app, connection):
        handle = await app.aenqueue("quick", {"n": 1})
        await await_until(lambda: notes.began == [0, 1])
        connection.execute(RELEASE)

    assert reading.statuses(connection, handle.id) == ["succeeded"]
    assert notes.began == [0, 1]


def is_committing(connection: psycopg.Connection) -> bool:
    """Whether someone waits for the lock that holds claims up."""
    query = "select exists (select from pg_locks where locktype = 'advisory' and not granted)"
    row = connection.execute(query).fetchone()
    return row is not None and bool(row[0])


async def test_a_claim_is_not_committed_after_the_lease(aconnection: AsyncConnection):
    lease = Lease(15)
    lease.valid_until = math.inf

    async def claim() -> None:
        async with SpeculativeStarts(lease).transaction(aconnection):
            await aconnection.execute("create table claimed ()")
            lease.valid_until = -math.inf

    with pytest.raises(LeaseEnded):
        await claim()

    found = await aconnection.execute("select to_regclass('claimed')")
    assert await found.fetchone() == (None,)


async def test_the_server_gives_up_an_open_claim_long_before_the_lease_ends(
    aconnection: AsyncConnection,
):
    lease = Lease(15)
    lease.valid_until = time.monotonic() + 5
    assert not SpeculativeStarts(lease).is_possible
    lease.valid_until = time.monotonic() + 6
    assert SpeculativeStarts(lease).is_possible

    async with SpeculativeStarts(lease).transaction(aconnection):
        inside = await (await aconnection.execute(TIMEOUT)).fetchone()

    assert inside == ("3750ms",)
    assert await (await aconnection.execute(TIMEOUT)).fetchone() == ("0",)
