"""APScheduler 3: its SQLAlchemy job store on the same server, ten threads, one row a run.

It keeps schedules, which it calls jobs, in the database and runs them itself. They are stored a
few thousand at a time, since adding them by its own call takes a commit each.
"""

import pickle
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, Final

import psycopg
from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.job import Job
from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.blocking import BlockingScheduler
from apscheduler.triggers.interval import IntervalTrigger
from apscheduler.util import datetime_to_utc_timestamp

from bench.handlers import report
from bench.systems import scheduler
from bench.systems.driver import Client

_THREADS: Final = 10
_IDLE_PER_DUE: Final = 9
_STORED_AT_ONCE: Final = 5_000
_PERIOD: Final = timedelta(days=1)
_TABLE: Final = "create table bench_fired (n integer, at timestamptz not null default now())"
_INSERT: Final = "insert into bench_fired (n) values (%s)"
_local: Final = threading.local()


def insert(dsn: str, n: int) -> None:
    """What every schedule does."""
    if not hasattr(_local, "connection"):
        _local.connection = psycopg.connect(dsn, autocommit=True)
    _local.connection.execute(_INSERT, (n,), prepare=True)


class Driver:
    def install(self, dsn: str) -> None:
        with psycopg.connect(dsn) as connection:
            connection.execute(_TABLE)
        store = _store(dsn)
        store.jobs_t.create(store.engine)

    def client(self, dsn: str) -> AbstractContextManager[Client]:
        raise NotImplementedError("it has no queue")

    def work(self, dsn: str, concurrency: int) -> None:
        raise NotImplementedError("it has no queue")


class Scheduler(scheduler.Scheduler):
    def fire_due(self, dsn: str, count: int) -> None:
        store = _store(dsn)
        application = _application(store)
        jobs = _jobs(application, dsn, count)
        while some := list(islice(jobs, _STORED_AT_ONCE)):
            _add(store, some)
        report()
        application.start()

    def every_second(self, dsn: str) -> None:
        application = _application(_store(dsn))
        first = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=2)
        trigger = IntervalTrigger(seconds=1, start_date=first, timezone=UTC)
        application.add_job(insert, trigger, args=(dsn, 0), misfire_grace_time=1)
        application.start()


def _store(dsn: str) -> Any:
    return SQLAlchemyJobStore(url=dsn.replace("postgresql://", "postgresql+psycopg://", 1))


def _application(store: Any) -> Any:
    executors = {"default": ThreadPoolExecutor(_THREADS)}
    return BlockingScheduler(jobstores={"default": store}, executors=executors, timezone=UTC)


def _jobs(application: Any, dsn: str, count: int) -> Iterator[Any]:
    """So many that are due, each among others that are not."""
    now = datetime.now(UTC)
    trigger = IntervalTrigger(days=1, start_date=now, timezone=UTC)
    for n in range(count * (_IDLE_PER_DUE + 1)):
        due_at = now + _PERIOD if n % (_IDLE_PER_DUE + 1) else now
        yield Job(
            application,
            id=str(n),
            trigger=trigger,
            executor="default",
            func=insert,
            args=(dsn, n),
            kwargs={},
            name="insert",
            # None is no limit: with its default of a second most would never run.
            misfire_grace_time=None,
            coalesce=True,
            max_instances=1,
            next_run_time=due_at,
        )


def _add(store: Any, jobs: Sequence[Any]) -> None:
    rows = [
        {
            "id": job.id,
            "next_run_time": datetime_to_utc_timestamp(job.next_run_time),
            "job_state": pickle.dumps(job.__getstate__(), store.pickle_protocol),
        }
        for job in jobs
    ]
    with store.engine.begin() as connection:
        connection.execute(store.jobs_t.insert(), rows)
