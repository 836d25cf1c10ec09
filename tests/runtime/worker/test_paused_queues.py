"""Nothing of a paused queue is claimed, by any claimer; other queues go on without it."""

import asyncio
from datetime import timedelta

import psycopg
import pytest

from mainspring import JobState, Mainspring
from mainspring.domain.claiming.lanes import Lane, ReadyLane
from mainspring.domain.types import WorkerId
from mainspring.services.claiming import ClaimOrder
from mainspring.store import attempts, lanes
from mainspring.testing import drain
from tests.support.rows import insert, insert_job
from tests.support.waiting import await_until
from tests.support.workers import ended, working

WORKER = WorkerId(7)


@pytest.fixture
def mixed(connection: psycopg.Connection) -> psycopg.Connection:
    """A worker, and in two queues a ready job each and one that waits for a limit."""
    insert(
        connection, "workers", worker_id=WORKER, pid=1, concurrency=9, name="w", host="h",
        process_identity="i", queues=["mail", "other"], version="1", expires_at="tomorrow",
    )  # fmt: skip
    insert(connection, "limits", name="few", concurrency=9)
    for queue in ("mail", "other"):
        insert_job(connection, JobState.QUEUED, queue=queue)
        insert_job(
            connection, JobState.QUEUED, queue=queue, waits_for="limit", limit_name="few",
            limit_key="",
        )  # fmt: skip
    connection.execute("select mainspring.pause_queue('mail')")
    return connection


async def claimed(aconnection: psycopg.AsyncConnection) -> list[str]:
    rows = await ClaimOrder().claim_unbuffered(aconnection, WORKER, ["mail", "other"], limit=9)
    return sorted(row.queue for row in rows)


async def test_a_claim_takes_nothing_of_a_paused_queue(mixed, aconnection):
    assert await claimed(aconnection) == ["other", "other"]

    mixed.execute("select mainspring.resume_queue('mail')")

    assert await claimed(aconnection) == ["mail", "mail"]


@pytest.mark.parametrize(("until", "count"), [("1 hour", 2), ("-1 ms", 4)])
async def test_a_pause_holds_until_its_end_and_no_longer(mixed, aconnection, until, count):
    mixed.execute("update mainspring.queues set paused_until = now() + %s::interval", (until,))

    assert len(await claimed(aconnection)) == count


async def test_a_claim_that_knows_the_lane_already_takes_nothing(mixed, aconnection):
    lane = Lane(100, "default", "mail")

    assert await attempts.claim(aconnection, WORKER, [(lane, 0)], limit=9) == []


async def test_sweeps_pass_paused_queues_over(mixed, aconnection):
    found = await attempts.discover(aconnection, ["mail", "other"])
    floors = [(Lane(100, "default", "mail"), 0)]
    above = await lanes.discover_above(aconnection, ["mail", "other"], floors)

    assert [each.lane.queue for each in found] == ["other"]
    assert [each.lane.queue for each in above] == ["other"]
    assert isinstance(found[0], ReadyLane)


async def test_a_paused_queue_keeps_a_worker_from_no_other(app: Mainspring):
    @app.job(queue="mail", priority=0)
    async def send() -> None:
        """Would come first."""

    @app.job(queue="other")
    async def work() -> str:
        return "done"

    await app.queues.apause("mail")
    await app.aenqueue_many(send, [{}] * 300)
    handles = [await work.aenqueue() for _ in range(20)]

    async with working(app, concurrency=2):
        jobs = await asyncio.gather(*map(ended, handles))

    assert {job.state for job in jobs} == {JobState.SUCCEEDED}
    assert {queue.name: queue.ready for queue in await app.queues.alist()} == {"mail": 300}


@pytest.mark.parametrize("concurrency", [None, 1])
async def test_resume_wakes_an_idle_worker(app: Mainspring, concurrency: int | None):
    @app.job(queue="mail", concurrency=concurrency)
    async def send() -> str:
        return "sent"

    await app.queues.apause("mail")
    async with working(app, poll_seconds=60) as worker:
        handle = await send.aenqueue()
        await await_until(lambda: worker.parts.maintenance.grants.loop.passes > 1)
        assert (await handle.ajob()).attempt == 0

        await app.queues.aresume("mail")

        assert (await ended(handle)).result == "sent"


async def test_a_pause_that_ends_by_itself_lets_a_worker_go_on(app: Mainspring):
    @app.job(queue="mail")
    async def send() -> str:
        return "sent"

    await app.queues.apause("mail", duration=timedelta(milliseconds=300))
    async with working(app):
        handle = await send.aenqueue()

        assert (await ended(handle)).result == "sent"


def test_a_drain_leaves_a_paused_queue(database_url: str, connection: psycopg.Connection):
    app = Mainspring(database_url)

    @app.job(queue="mail")
    async def send() -> None:
        """Is not run."""

    try:
        handle = send.enqueue()
        connection.execute("select mainspring.pause_queue('mail')")
        drain(app)
        assert handle.job().state is JobState.QUEUED
    finally:
        app.close()
