"""A rolling upgrade: programs of the previous release on the new schema, replaced one by one."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import httpx
import psycopg
import pytest

from tests.support.databases import empty_database
from tests.support.releases import PREVIOUS, export
from tests.support.rolling import APP, Callers, Program, Release
from tests.support.waiting import wait_until
from tests.support.warm import ROOT

SCHEDULE = """
insert into mainspring.schedules (name, definition, payload, every, overlap, max_running, catch_up)
values ('ticks', 'note', '{"number": 0}', '1 second', 'queue', 100, 'all')
"""
# So that every function, view and trigger is replaced under load, whatever has changed since.
FORGET_FUNCTIONS = "update mainspring.installed_functions set version = 0, objects = '{}'"
LIVE = "select count(*) from mainspring.jobs"
UNSUCCESSFUL = """
select job_id, state::text, last_error from mainspring.jobs_history where state <> 'succeeded'
"""
REPEATED = """
select job_id, number, worker_id, status::text, error from mainspring.attempts
 where status <> 'succeeded'
"""
# Each job with how often it was attempted and what came of it.
RUNS = """
select job_id,
       (select count(*) from mainspring.attempts as attempt where attempt.job_id = job.job_id),
       (select count(*) from public.effects as effect where effect.job_id = job.job_id)
  from mainspring.jobs_history as job
"""
# In one snapshot: the instants that the release before notes are those of its transactions.
LIVE_AND_RUNNING = """
select count(*), count(*) filter (where state = 'running') from mainspring.jobs
"""
BATCH = """
select mainspring.enqueue_many('note',
       array(select '{"number": 1}'::jsonb from generate_series(1, 120)))
"""
WORKERS = "select count(distinct worker_id) from mainspring.attempts"
SLOTS = """
select scheduled_for, outcome::text, job_id,
       extract(epoch from scheduled_for - lag(scheduled_for) over (order by scheduled_for))
  from mainspring.slots order by scheduled_for
"""


@pytest.fixture
def url(server_url: str) -> Iterator[str]:
    with empty_database(server_url) as url:
        yield url


@pytest.fixture
def previous(url: str, tmp_path: Path) -> Iterator[Release]:
    yield from release(export(PREVIOUS, tmp_path / "previous"), url, tmp_path)


@pytest.fixture
def current(url: str, tmp_path: Path) -> Iterator[Release]:
    yield from release(ROOT / "src", url, tmp_path)


def release(source: Path, url: str, folder: Path) -> Iterator[Release]:
    (folder / "rolled.py").write_text(APP)
    release = Release(source, url, folder)
    try:
        yield release
    finally:
        release.end()


def start_server(release: Release) -> tuple[Program, str]:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    program = release.start("server", "--port", str(port))
    wait_until(lambda: answers(address), 120, "the server answers")
    return program, address


def answers(address: str) -> bool:
    try:
        return httpx.get(f"{address}/health").is_success
    except httpx.TransportError:
        return False


def start_worker(release: Release) -> Program:
    return release.start("worker", "--app", "rolled:app").when_it_says("worker_started")


def test_programs_are_rolled_one_by_one_and_nothing_is_lost_doubled_or_refused(
    previous, current, url
):
    previous.run("migrate")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("create table public.effects (job_id bigint)")
        old_scheduler = previous.start("scheduler")
        old_worker = start_worker(previous)
        old_server, address = start_server(previous)
        connection.execute(SCHEDULE)
        token = json.loads(previous.run("tokens", "create", "ci", "--role", "admin", "--json"))
        callers = Callers(url, token["token"], address)

        def done() -> int:
            row = connection.execute("select count(*) from public.effects").fetchone()
            return row[0] if row else 0

        def works_on() -> None:
            before = done()
            wait_until(lambda: done() > before + 20, 60, "jobs are run")

        with callers.calling():
            works_on()
            connection.execute(FORGET_FUNCTIONS)
            current.run("migrate")
            works_on()
            restarted = start_worker(previous)
            old_worker.stop()
            works_on()
            new_worker = start_worker(current)
            restarted.stop()
            new_scheduler = current.start("scheduler").when_it_says("scheduler_started")
            old_scheduler.stop()
            new_server, address = start_server(current)
            callers.switch_to(address)
            old_server.stop()
            works_on()
        new_scheduler.stop()
        wait_until(lambda: connection.execute(LIVE).fetchone() == (0,), 60, "all jobs end")
        new_worker.stop()
        new_server.stop()

        assert callers.refused == []
        assert connection.execute(UNSUCCESSFUL).fetchall() == []
        assert connection.execute(REPEATED).fetchall() == []
        people = {name for (name,) in connection.execute("select name from mainspring.people")}
        assert people >= set(callers.names)
        assert len(callers.names) > 20
        runs = connection.execute(RUNS).fetchall()
        slots = connection.execute(SLOTS).fetchall()
    assert [run for run in runs if run[1:] != (1, 1)] == []
    fired = [job_id for _, outcome, job_id, _ in slots if outcome == "enqueued"]
    assert len(fired) == len(slots) == len(set(fired)) > 5
    assert {distance for *_, distance in slots[1:]} == {1}
    assert sorted(job_id for job_id, *_ in runs) == sorted([*callers.job_ids, *fired])


def test_workers_of_both_releases_keep_to_a_limit_together(previous, current, url):
    current.run("migrate")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("create table public.effects (job_id bigint)")
        programs = [start_worker(previous), start_worker(current)]
        connection.execute("update mainspring.definitions set concurrency = 2 where key = 'note'")
        running: set[int] = set()

        def have_ended() -> bool:
            ((live, at_once),) = connection.execute(LIVE_AND_RUNNING).fetchall()
            running.add(at_once)
            return int(live) == 0

        batches = 0
        # One that starts late may find a batch already done.
        while connection.execute(WORKERS).fetchone() != (2,):
            assert batches < 20, "only one of the workers ran anything"
            connection.execute(BATCH)
            batches += 1
            wait_until(have_ended, 60, "all jobs end")
        for program in programs:
            program.stop()

        runs = connection.execute(RUNS).fetchall()
        assert len(runs) == 120 * batches
        assert [run for run in runs if run[1:] != (1, 1)] == []
        assert max(running) <= 2
