"""Lanes that begin with dead entries: what is found above their floors, and what below."""

from itertools import product

import psycopg
from psycopg import AsyncConnection

from mainspring.domain.claiming.lanes import Lane
from mainspring.domain.types import JobState
from mainspring.store import attempts, lanes
from tests.support.plans import measure
from tests.support.rows import insert_job

QUEUES = ["a", "b"]
ALL = [Lane(priority, tenant, queue) for priority, tenant, queue in product((0, 5), "xyz", QUEUES)]
MANY = """
insert into mainspring.jobs (definition, queue, payload)
select 'work', 'a', jsonb_build_object('text', repeat('x', 200)) from generate_series(1, 10000)
"""


def fill(connection: psycopg.Connection) -> dict[Lane, list[int]]:
    """Two ready jobs in every lane."""
    return {
        lane: [insert_job(connection, JobState.QUEUED, **lane._asdict()) for _ in range(2)]
        for lane in ALL
    }


async def test_with_no_floor_all_lanes_are_found_as_ever(
    connection: psycopg.Connection, aconnection: AsyncConnection
):
    fill(connection)
    found = await attempts.discover(aconnection, QUEUES)

    assert sorted(await lanes.discover_above(aconnection, QUEUES, [])) == sorted(found)
    assert len(found) == len(ALL)


async def test_of_a_lane_with_a_floor_only_what_is_behind_it_is_found(
    connection: psycopg.Connection, aconnection: AsyncConnection
):
    jobs = fill(connection)
    for known in (ALL[:1], ALL[3:7], ALL[-1:], ALL):
        floors = [(lane, jobs[lane][0]) for lane in known]
        found = {
            each.lane: each.first
            for each in await lanes.discover_above(aconnection, QUEUES, floors)
        }
        assert found == {lane: jobs[lane][lane in known] for lane in ALL}


async def test_a_lane_whose_floor_is_above_all_its_jobs_hides_no_other(
    connection: psycopg.Connection, aconnection: AsyncConnection
):
    fill(connection)
    floors = [(lane, 10**9) for lane in ALL[::2]]

    found = await lanes.discover_above(aconnection, QUEUES, floors)

    assert sorted(each.lane for each in found) == sorted(ALL[1::2])


async def test_what_is_below_the_floors_is_named(
    connection: psycopg.Connection, aconnection: AsyncConnection
):
    jobs = fill(connection)
    lane, other = ALL[:2]
    floors = [(lane, jobs[lane][1]), (other, jobs[other][0])]

    found = await lanes.find_below(aconnection, floors)

    assert found == {lane: jobs[lane], other: jobs[other][:1]}


async def test_floors_are_kept_for_who_starts_next(
    connection: psycopg.Connection, aconnection: AsyncConnection
):
    await lanes.note_floors(aconnection, [(ALL[0], 7), (ALL[1], 8)], seconds=3.0)
    await lanes.note_floors(aconnection, [(ALL[0], 9)], seconds=2.0)

    assert await lanes.read_floors(aconnection, ["a"]) == ({ALL[0]: 9}, 2.0)
    assert await lanes.read_floors(aconnection, ["c"]) == ({}, 0.0)
    connection.execute("update mainspring.lane_floors set noted_at = now() - interval '11 minutes'")
    assert await lanes.read_floors(aconnection, ["a"]) == ({}, 0.0)


def test_a_sweep_above_the_floors_reads_no_dead_entry(
    connection: psycopg.Connection, database_url: str
):
    connection.execute("set enable_seqscan = off")
    lane = {"lane_queues": ["a"], "priorities": [100], "tenants": ["default"]}
    with psycopg.connect(database_url) as holder:
        holder.execute("set transaction isolation level repeatable read")
        connection.execute(MANY)
        holder.execute("select count(*) from mainspring.jobs")
        connection.execute("delete from mainspring.jobs")
        last = insert_job(connection, JobState.QUEUED, queue="a")
        walk = measure(connection, "attempts", "discover", queues=["a"])
        floors = {"floors": [last - 1], "queues": ["a"]}
        above = measure(connection, "lanes", "discover_above", **lane, **floors)

    assert walk.rows == above.rows == 1
    assert above.pages < 100 < walk.pages
