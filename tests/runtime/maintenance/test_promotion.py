"""Promotion: in slices that let others in, and without spinning on what someone has locked."""

import psycopg
import pytest
from psycopg import AsyncConnection

from mainspring import Mainspring
from mainspring.runtime.maintenance.duties import Maintenance
from mainspring.runtime.worker.worker import Worker
from mainspring.settings import load

DUE = """
insert into mainspring.jobs (definition, queue, waits_for, scheduled_for)
select 'work', 'elsewhere', 'time', now() from generate_series(1, %s)
"""
WAITING = "select count(*) from mainspring.jobs where waits_for = 'time'"


@pytest.fixture
def maintenance(app: Mainspring, database_url: str) -> Maintenance:
    """Of a worker that does not run."""
    settings = load(database_url=database_url)
    queues = ("default",)
    worker = Worker(database_url, {}, queues=queues, settings=settings, enqueuer=app, version="0")
    return worker.parts.maintenance


@pytest.mark.parametrize(("busy_since", "pause"), [(None, 0.0), (1.0, 0.02)])
async def test_jobs_that_are_due_at_once_are_promoted_a_thousand_at_a_time(
    maintenance: Maintenance,
    connection: psycopg.Connection,
    aconnection: AsyncConnection,
    busy_since: float | None,
    pause: float,
):
    connection.execute(DUE, (2500,))
    maintenance._claimer._busy_since = busy_since

    pauses, left = [], []
    for _ in range(2):
        pauses.append(await maintenance._promote(aconnection))
        left += connection.execute(WAITING).fetchall()

    assert left == [(1500,), (500,)]
    assert pauses == [pause, pause]


async def test_a_due_job_that_someone_has_locked_is_looked_at_again_in_a_moment(
    maintenance: Maintenance,
    connection: psycopg.Connection,
    aconnection: AsyncConnection,
    database_url: str,
):
    connection.execute(DUE, (1,))
    with psycopg.connect(database_url) as other:
        other.execute("select from mainspring.jobs for update")

        assert 0 < await maintenance._promote(aconnection) < 1
