"""Schedules for tests: written by plain SQL, driven through time, fired by real schedulers."""

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from signal import SIGKILL
from typing import Any

import psycopg
from psycopg import AsyncConnection, sql
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from mainspring import Mainspring
from mainspring.domain.schedules import slots as slot_rules
from mainspring.domain.schedules.conditions import Run
from mainspring.runtime.scheduler.evaluator import plan_facts
from mainspring.runtime.scheduler.scheduler import Scheduler
from mainspring.store import due_schedules as store
from mainspring.store.due_schedules import DueGroup
from tests.support.processes import WorkerProcess
from tests.support.waiting import wait_until
from tests.support.warm import ROOT

Row = dict[str, Any]
StartScheduler = Callable[..., "SchedulerProcess"]

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)
_TIMINGS = {"cron", "every", "at"}
_CLOCK = "select column_name from information_schema.columns where table_name = 'clocks'"
_WAKE = "notify mainspring, 'schedule:'"


def insert_schedule(connection: psycopg.Connection, name: str = "tick", **columns: Any) -> int:
    """A schedule as plain SQL adds it: of the definition `work`, hourly unless a timing is given.

    The definition is added where it is missing."""
    row: Row = {"name": name, "definition": "work", **columns}
    if not _TIMINGS & row.keys():
        row["every"] = HOUR
    values = {key: Jsonb(value) if isinstance(value, dict) else value for key, value in row.items()}
    statement = sql.SQL(
        "insert into mainspring.schedules ({}) values ({}) returning schedule_id"
    ).format(
        sql.SQL(", ").join(map(sql.Identifier, values)),
        sql.SQL(", ").join(map(sql.Placeholder, values)),
    )
    connection.execute(
        "insert into mainspring.definitions (key, kind) values ('work', 'python')"
        " on conflict do nothing"
    )
    ((schedule_id,),) = connection.execute(statement, values).fetchall()
    return int(schedule_id)


def insert_due(connection: psycopg.Connection, name: str = "tick", **columns: Any) -> int:
    """A schedule whose first slot is now."""
    schedule_id = insert_schedule(connection, name, enabled=False, **columns)
    update(connection, name, enabled=True, next_run_at="now()", next_slot_at="now()")
    connection.execute(_WAKE)
    return schedule_id


def update(connection: psycopg.Connection, name: str | None = None, **columns: object) -> None:
    """Columns set behind the back of our triggers, each to a SQL expression."""
    kept_by_clock = {column for (column,) in connection.execute(_CLOCK)}
    of_clock = {column: value for column, value in columns.items() if column in kept_by_clock}
    of_schedule = {column: columns[column] for column in columns.keys() - of_clock.keys()}
    with connection.transaction():
        connection.execute("set local session_replication_role = replica")
        _set(connection, "schedules", of_schedule, name)
        _set(connection, "clocks", of_clock, name)


def _set(
    connection: psycopg.Connection, table: str, columns: dict[str, object], name: str | None
) -> None:
    if not columns:
        return
    parts = [
        sql.SQL("{} = {}").format(sql.Identifier(column), sql.SQL(str(value)))
        for column, value in columns.items()
    ]
    statement = sql.SQL(
        "update mainspring.{} set {} where schedule_id in ("
        "select schedule_id from mainspring.schedules where name = coalesce(%s, name))"
    )
    connection.execute(statement.format(sql.Identifier(table), sql.SQL(", ").join(parts)), (name,))


def make_due(connection: psycopg.Connection, name: str | None = None) -> None:
    """Drive the clock: the next slot stays what it is and is due now."""
    update(connection, name, next_run_at="case when next_slot_at is not null then now() end")
    connection.execute(_WAKE)


def miss(connection: psycopg.Connection, name: str, missed: timedelta) -> None:
    """As if no scheduler had run for so long: an interval's first slot was then."""
    then = f"now() - interval '{missed.total_seconds()} seconds'"
    update(connection, name, anchor_at=then, next_slot_at=then, next_run_at=then)


def schedule(connection: psycopg.Connection, name: str = "tick") -> Row:
    """Its row in the table, with its clock."""
    query = "select * from mainspring.clocks join mainspring.schedules using (schedule_id)"
    (row,) = _rows(connection, query + " where name = %s", name)
    return row


def status(connection: psycopg.Connection, name: str = "tick") -> Row:
    (row,) = _rows(connection, "select * from mainspring.schedule_status where name = %s", name)
    return row


def slots(connection: psycopg.Connection, name: str = "tick") -> list[Row]:
    """Oldest first."""
    query = "select * from mainspring.slot_status where name = %s order by scheduled_for"
    return _rows(connection, query, name)


def decided(connection: psycopg.Connection, name: str = "tick", count: int = 1) -> Row:
    """The newest of so many slots; empty while there are not so many."""
    known = [slot for slot in slots(connection, name) if slot["outcome"] != "pending"]
    return known[-1] if len(known) >= count else {}


def is_planned(connection: psycopg.Connection, name: str = "tick") -> bool:
    """Whether a scheduler has seen the schedule as it is now."""
    row = schedule(connection, name)
    return row["next_slot_at"] is not None or row["next_run_at"] is None


def is_there(connection: psycopg.Connection) -> bool:
    """Whether any scheduler is connected."""
    row = connection.execute(
        "select count(*) from pg_stat_activity"
        " where application_name = 'mainspring fire' and datname = current_database()"
    ).fetchone()
    return row != (0,)


def is_resting(connection: psycopg.Connection, schedulers: int = 1) -> bool:
    """Whether so many schedulers sleep: they have looked for nothing for a while."""
    row = connection.execute(
        "select count(*), bool_and(state = 'idle' and state_change < now() - interval '0.3 s')"
        " from pg_stat_activity"
        " where application_name = 'mainspring fire' and datname = current_database()"
    ).fetchone()
    return row == (schedulers, True)


def outcomes(connection: psycopg.Connection, name: str = "tick") -> list[str]:
    return [slot["outcome"] for slot in slots(connection, name)]


def jobs(connection: psycopg.Connection, name: str = "tick") -> list[Row]:
    """The jobs that a schedule made, in the order of their slots."""
    query = (
        "select job.* from mainspring.job_status as job"
        " join mainspring.schedules as schedule using (schedule_id)"
        " where schedule.name = %s order by job.slot_at, job.job_id"
    )
    return _rows(connection, query, name)


def audit(connection: psycopg.Connection, name: str = "tick") -> list[Row]:
    query = "select * from mainspring.audit where subject = %s order by audit_id"
    return _rows(connection, query, name)


def _rows(connection: psycopg.Connection, query: str, *values: object) -> list[Row]:
    with connection.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(query, values).fetchall()


async def plan_at(connection: AsyncConnection[Any], now: datetime | None = None) -> list[Row]:
    """What a scheduler whose clock says `now` decides to write."""
    groups = await store.due(connection, limit=100, now=now)
    return [plan for group in groups for plan in _plans(group)]


async def fire_at(connection: AsyncConnection[Any], now: datetime) -> list[Any]:
    """One pass of a scheduler whose clock says `now`; what came of each schedule."""
    return await store.apply_plans(connection, await plan_at(connection, now))


def _plans(group: DueGroup) -> Iterator[Row]:
    assert group.slot_at is not None
    plan = slot_rules.plan(group.timing(), group.misfires, group.slot_at, now=group.now)
    for schedule_id, revision in zip(group.schedule_ids, group.revisions, strict=True):
        yield {**plan_facts(plan, Run()), "schedule_id": schedule_id, "revision": revision}


@asynccontextmanager
async def scheduling(app: Mainspring) -> AsyncIterator[Scheduler]:
    """A scheduler in the test's own event loop that has taken the lead."""
    async with app.schedules.running() as scheduler, asyncio.timeout(60):
        await asyncio.wait_for(scheduler.started.wait(), 10)
        yield scheduler


class SchedulerProcess(WorkerProcess):
    """`mainspring scheduler` in a process group of its own."""

    @property
    def leads(self) -> bool:
        return "scheduler_leads" in self.log

    def started(self, _: object = None) -> int:
        """Wait until it fires; its pid."""
        wait_until(self._has_started, 30, "the scheduler starts")
        return self.pid

    def _has_started(self) -> bool:
        assert self.is_alive, self.log
        return "scheduler_started" in self.log


@contextmanager
def scheduler_processes(url: str, folder: Path) -> Iterator[StartScheduler]:
    """A function that starts schedulers; what still runs at the end is killed."""
    schedulers: list[SchedulerProcess] = []

    def start(app: str | None = None, **settings: object) -> SchedulerProcess:
        log = folder / f"scheduler-{len(schedulers)}.log"
        arguments = ["scheduler", *(["--app", app] if app else [])]
        variables = {f"MAINSPRING_{name.upper()}": str(value) for name, value in settings.items()}
        scheduler = SchedulerProcess(arguments, {**_environment(url), **variables}, log, ROOT)
        schedulers.append(scheduler)
        return scheduler

    try:
        yield start
    finally:
        for scheduler in schedulers:
            scheduler.end()


class Gunicorn:
    """An ASGI app under gunicorn, on any free port."""

    def __init__(self, url: str, app: str, *, workers: int, folder: Path) -> None:
        self._workers, self._log = workers, folder / "gunicorn.log"
        command = [sys.executable, "-m", "gunicorn", "-w", str(workers), app]
        command += ["-k", "uvicorn.workers.UvicornWorker", "-b", "127.0.0.1:0"]
        with self._log.open("wb") as stream:
            self._master = subprocess.Popen(
                command,
                cwd=ROOT,
                env={**os.environ, **_environment(url)},
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def log(self) -> str:
        return self._log.read_text()

    @property
    def address(self) -> str:
        """Once all of its workers have started."""

        def listening() -> re.Match[str] | None:
            assert self._master.poll() is None, self.log
            is_ready = self.log.count("Application startup complete") == self._workers
            return re.search(r"Listening at: (\S+)", self.log) if is_ready else None

        found = wait_until(listening, 60, "gunicorn has started")
        assert found is not None
        return found[1]

    def stop(self, within: float = 20) -> int:
        """SIGTERM, then the exit code."""
        self._master.terminate()
        try:
            return self._master.wait(within)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running after {within:g} s:\n{self.log}") from None

    def end(self) -> None:
        if self._master.poll() is None:
            os.killpg(self._master.pid, SIGKILL)
            self._master.wait(10)


@contextmanager
def gunicorn(url: str, app: str, *, workers: int, folder: Path) -> Iterator[Gunicorn]:
    """What still runs at the end is killed."""
    site = Gunicorn(url, app, workers=workers, folder=folder)
    try:
        yield site
    finally:
        site.end()


def _environment(url: str) -> dict[str, str]:
    ours = {"PYTHONPATH": str(ROOT / "src"), "MAINSPRING_DEFAULT_SCHEDULES": "false"}
    return {**ours, "MAINSPRING_DATABASE_URL": url}
