"""Workers where sweeps are dear: they begin behind the floors, and still find what is below."""

from functools import partial

import psycopg

from mainspring import JobState, Mainspring
from tests.support import reading
from tests.support.rows import insert, insert_job
from tests.support.waiting import await_until
from tests.support.workers import working

FLOOR = {"queue": "default", "priority": 100, "tenant_id": "default", "floor": 1000}


def begin_above(connection: psycopg.Connection) -> None:
    """Another worker has found the walk over dead entries slow."""
    insert(connection, "lane_floors", **FLOOR, sweep_seconds=20.0)
    connection.execute("select setval('mainspring.job_ids', 2000)")


def has_succeeded(connection: psycopg.Connection, job_id: int) -> bool:
    return reading.state(connection, job_id) == "succeeded"


async def test_a_worker_that_starts_begins_behind_the_floors(
    app: Mainspring, connection: psycopg.Connection
):
    @app.job
    async def work() -> str:
        return "done"

    begin_above(connection)
    async with working(app) as worker:
        handle = await work.aenqueue()
        assert await handle.aresult(5) == "done"
        (mark,) = worker.parts.claimer.lanes.marks.values()

    assert mark == handle.id > 2000


async def test_a_job_below_the_floor_and_a_lane_without_one_are_found(
    app: Mainspring, connection: psycopg.Connection
):
    @app.job
    async def work() -> str:
        return "done"

    await app.aregister_definitions()
    below = insert_job(connection, JobState.QUEUED)
    begin_above(connection)
    urgent = insert_job(connection, JobState.QUEUED, priority=5)
    async with working(app):
        for job_id in (below, urgent):
            await await_until(partial(has_succeeded, connection, job_id), 5)


CLEANUP_WAITS = """
select count(*) from pg_stat_activity
 where datname = current_database() and wait_event_type = 'Lock'
   and application_name = 'mainspring cleanup'
"""


async def test_a_job_below_the_floor_is_found_while_cleaning_up_takes_long(
    app: Mainspring, connection: psycopg.Connection, database_url: str
):
    @app.job
    async def work() -> str:
        return "done"

    await app.aregister_definitions()
    below = insert_job(connection, JobState.QUEUED)
    begin_above(connection)
    with psycopg.connect(database_url) as blocker:
        blocker.execute("lock table mainspring.tallies in access exclusive mode")
        async with working(app):
            await await_until(lambda: connection.execute(CLEANUP_WAITS).fetchone() == (1,))
            await await_until(partial(has_succeeded, connection, below), 5)
            assert connection.execute(CLEANUP_WAITS).fetchone() == (1,)
            blocker.rollback()


async def test_the_marks_are_noted_as_floors_while_sweeps_are_dear(
    app: Mainspring, connection: psycopg.Connection
):
    begin_above(connection)
    async with working(app) as worker:
        await await_until(lambda: worker.parts.stragglers.loop.passes > 0)

        def floors() -> list[tuple[int, bool]]:
            query = "select floor, sweep_seconds < 1 from mainspring.lane_floors"
            return connection.execute(query).fetchall()

        await await_until(lambda: floors() == [(1000, True)], 5)
        # The walk turned out quick, so sweeps look at everything again.
        await await_until(lambda: not worker.parts.claimer.lanes.is_dear, 5)
