"""What the harness knows of each system without importing it: where its rows are and how fast
it is, roughly, so that each measurement takes a few seconds whoever is measured.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import metadata
from importlib.util import find_spec
from typing import Final

OURS: Final = "mainspring"
RAW: Final = "raw"


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many jobs a measurement takes at scale 1."""

    single: int
    bulk: int
    drain: int
    backlog: int = 200_000
    snapshot: int = 500_000


@dataclass(frozen=True, slots=True)
class Schedules:
    """What the schedules of a system have come to, read from outside.

    `fired` counts the committed jobs they made. `lateness` lists, oldest first, how many
    milliseconds after its slot each was begun. `seed` inserts schedules that are not due `from
    generate_series(1, %(count)s)`; without it the system's scheduler stores its own.
    """

    fired: str
    lateness: str
    seed: str | None = None


@dataclass(frozen=True, slots=True)
class System:
    """One system to measure; `name` is what the results call it.

    `finished` and `unfinished` count committed rows. Where there is no `unfinished`, progress is
    told by `finished` alone. `seed_finished` and `seed_queued` insert rows `from
    generate_series(1, %(count)s)`; without `seed_queued` the system's own bulk enqueue fills it.
    `seed_tenants` does the same for `%(tenants)s` tenants.
    A system without a queue is measured by its schedules alone.
    """

    name: str
    module: str
    package: str | None
    sizes: Sizes
    finished: str
    unfinished: str | None = None
    seed_finished: str | None = None
    seed_queued: str | None = None
    seed_tenants: str | None = None
    concurrency: int = 500
    setup: str = ""
    schedules: Schedules | None = None
    is_queue: bool = True
    omitted: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_rival(self) -> bool:
        return self.name not in {OURS, RAW}

    @property
    def label(self) -> str:
        return f"{self.name} {metadata.version(self.package)}" if self.package else self.name

    def absence(self) -> str | None:
        """Why it cannot be measured here; None when it can."""
        if self.name == "oban" and sys.version_info < (3, 12):
            return "needs Python 3.12"
        if self.package and find_spec(self.module.rstrip("_")) is None:
            return f"{self.package} is not installed"
        return None


_FINISHED_OURS: Final = "select count(*) from mainspring.jobs_history"
_UNFINISHED_OURS: Final = "select count(*) from mainspring.jobs"
_SEED_FINISHED_OURS: Final = """
with job as (
    select nextval('mainspring.job_ids') as job_id, nextval('mainspring.fences') as fence, n
      from generate_series(1, %(count)s) as n
), archived as (
    insert into mainspring.jobs_history (
        job_id, started_at, finished_at, attempt, state, queue, definition, payload)
    select job_id, now(), now(), 1, 'succeeded', 'bench', 'noop', jsonb_build_object('n', n)
      from job
)
insert into mainspring.attempts (job_id, fence, worker_id, started_at, finished_at, number, status)
select job_id, fence, 1, now(), now(), 1, 'succeeded' from job
"""

_SEED_TENANTS_OURS: Final = """
with tenant as (
    insert into mainspring.tenants (tenant_id)
    select 'tenant' || n from generate_series(0, %(tenants)s - 1) as n
)
insert into mainspring.jobs (tenant_id, queue, definition, payload)
select 'tenant' || n %% %(tenants)s, 'bench', 'noop', jsonb_build_object('n', n)
  from generate_series(1, %(count)s) as n
"""

# Of ten schedules nine are nightly, at a time of their own; the tenth, which a case makes due,
# takes turns among 24 timings, as they are planned together when they are alike.
_SEED_SCHEDULES_OURS: Final = """
with added as (
insert into mainspring.schedules (name, origin, definition, payload, cron, zone)
select 'schedule ' || n, jsonb_build_object('schedule', 'schedule ' || n), 'noop',
       jsonb_build_object('n', n),
       case when n %% 10 > 0 then 'H H * * *'
            else (array['0 3 * * *', '30 6 * * 1-5', '15 12 * * 0', '0 0 1 * *'])[n / 10 %% 4 + 1]
       end,
       case when n %% 10 > 0 then 'UTC'
            else (array['UTC', 'Europe/London', 'Europe/Berlin', 'America/New_York',
                        'Asia/Kolkata', 'Australia/Sydney'])[n / 40 %% 6 + 1] end
  from generate_series(1, %(count)s) as n
returning *
)
insert into mainspring.clocks
    (schedule_id, next_run_at, next_slot_at, plan_key, is_plain, definition)
select schedule_id, later, later, mainspring.plan_key(added), true, definition
  from added,
       lateral (select now() + interval '1 day' + schedule_id %% 86400 * interval '1 second')
       as t (later)
"""

MAINSPRING: Final = System(
    name=OURS,
    module="mainspring_",
    package="mainspring",
    sizes=Sizes(single=2_500, bulk=100_000, drain=100_000),
    finished=_FINISHED_OURS,
    unfinished=_UNFINISHED_OURS,
    seed_finished=_SEED_FINISHED_OURS,
    seed_tenants=_SEED_TENANTS_OURS,
    setup="concurrency 500",
    schedules=Schedules(
        fired="""
select count(*) from mainspring.slots as slot
  join mainspring.jobs as job using (job_id) where slot.outcome = 'enqueued'
""",
        lateness="select lateness_seconds * 1000 from mainspring.slot_status order by fired_at",
        seed=_SEED_SCHEDULES_OURS,
    ),
)

SYSTEM_RAW: Final = System(
    name=RAW,
    module="raw",
    package=None,
    sizes=Sizes(single=5_000, bulk=100_000, drain=100_000),
    finished=_FINISHED_OURS,
    unfinished=_UNFINISHED_OURS,
    seed_finished=_SEED_FINISHED_OURS,
    setup="our statements in a bare loop, 500 a batch; one-row insert; COPY",
)

PGQUEUER: Final = System(
    name="pgqueuer",
    module="pgqueuer_",
    package="pgqueuer",
    sizes=Sizes(single=2_000, bulk=100_000, drain=50_000),
    finished="select count(*) from pgqueuer_log where status = 'successful'",
    unfinished="select count(*) from pgqueuer",
    seed_finished="""
insert into pgqueuer_log (job_id, status, priority, entrypoint, aggregated)
select -n, 'successful', 0, 'bench', true from generate_series(1, %(count)s) as n
""",
    setup="asyncpg pool, uvloop, batch size 500; keeps a log row a job, not its payload; "
    "schedules are functions that enqueue a job, declared in code: only those that are due",
    schedules=Schedules(
        fired="select count(*) from pgqueuer",
        # A run tells when the next is due; its own slot is what the run before it told.
        lateness="""
select (extract(epoch from created)::float
        - lag(convert_from(payload, 'UTF8')::float) over (order by id)) * 1000
  from pgqueuer order by id offset 1
""",
    ),
)

AWA: Final = System(
    name="awa",
    module="awa_",
    package="awa-pg",
    sizes=Sizes(single=2_000, bulk=100_000, drain=25_000, snapshot=200_000),
    finished="""
select coalesce((select sum(completed_count) from awa.receipt_completion_batches), 0)
     + (select count(*) from awa.done_entries)
     + coalesce((select sum(pruned_completed_count) from awa.queue_terminal_rollups), 0)
""",
    concurrency=1_000,
    setup="queue storage, 1,000 workers; keeps finished jobs in rotating segments",
    omitted={"drain_history": "its finished jobs lie in rotating segments that cannot be seeded"},
)

CHANCY: Final = System(
    name="chancy",
    module="chancy_",
    package="chancy",
    sizes=Sizes(single=1_500, bulk=10_000, drain=15_000, snapshot=100_000),
    finished="select count(*) from chancy_jobs where state = 'succeeded'",
    unfinished="select count(*) from chancy_jobs where state in ('pending', 'running')",
    seed_finished="""
insert into chancy_jobs (
    id, queue, func, kwargs, state, attempts, started_at, completed_at)
select gen_random_uuid(), 'bench', 'bench.handlers.job', jsonb_build_object('n', n), 'succeeded',
       1, now(), now()
  from generate_series(1, %(count)s) as n
""",
    seed_queued="""
insert into chancy_jobs (id, queue, func, kwargs)
select gen_random_uuid(), 'bench', 'bench.handlers.job', jsonb_build_object('n', n)
  from generate_series(1, %(count)s) as n
""",
    setup="async executor, concurrency 500, eager polling, results flushed every 50 ms, "
    "leadership, pruner and recovery plugins only",
)

PROCRASTINATE: Final = System(
    name="procrastinate",
    module="procrastinate_",
    package="procrastinate",
    sizes=Sizes(single=1_500, bulk=40_000, drain=3_000, snapshot=50_000),
    finished="select count(*) from procrastinate_jobs where status = 'succeeded'",
    unfinished="select count(*) from procrastinate_jobs where status in ('todo', 'doing')",
    seed_finished="""
with job as (
    insert into procrastinate_jobs (queue_name, task_name, args, status, attempts)
    select 'bench', 'noop', jsonb_build_object('n', n), 'succeeded', 1
      from generate_series(1, %(count)s) as n
    returning id
)
insert into procrastinate_events (job_id, type)
select id, type::procrastinate_job_event_type
  from job, unnest(array['deferred', 'started', 'succeeded']) as type
""",
    setup="8 connections, concurrency 30; periodic tasks are declared in code: only those that "
    "are due",
    concurrency=30,
    schedules=Schedules(
        fired="select count(*) from procrastinate_jobs",
        lateness="""
select (extract(epoch from event.at)::float - (job.args ->> 'timestamp')::bigint) * 1000
  from procrastinate_jobs as job
  join procrastinate_events as event on event.job_id = job.id and event.type = 'deferred'
 order by event.at
""",
    ),
)

OBAN: Final = System(
    name="oban",
    module="oban_",
    package="oban",
    sizes=Sizes(single=1_500, bulk=10_000, drain=8_000, snapshot=50_000),
    finished="select count(*) from oban_jobs where state = 'completed'",
    unfinished="select count(*) from oban_jobs where state in ('available', 'executing')",
    seed_finished="""
insert into oban_jobs (state, queue, worker, attempt, args, attempted_at, completed_at)
select 'completed', 'bench', 'bench.systems.oban_.Noop', 1, jsonb_build_object('n', n),
       timezone('utc', now()), timezone('utc', now())
  from generate_series(1, %(count)s) as n
""",
    seed_queued="""
insert into oban_jobs (queue, worker, args)
select 'bench', 'bench.systems.oban_.Noop', jsonb_build_object('n', n)
  from generate_series(1, %(count)s) as n
""",
    setup="uvloop, queue limit 1,000",
    concurrency=1_000,
)

APSCHEDULER: Final = System(
    name="apscheduler",
    module="apscheduler_",
    package="apscheduler",
    sizes=Sizes(single=0, bulk=0, drain=0),
    finished="select count(*) from bench_fired",
    setup="SQLAlchemy job store on psycopg, 10 threads, no misfire grace; it has no queue, so a "
    "schedule's function inserts one row",
    schedules=Schedules(
        fired="select count(*) from bench_fired",
        # Due on every whole second, and not run at all if more than one second late.
        lateness="select extract(epoch from at)::numeric % 1 * 1000 from bench_fired order by at",
    ),
    is_queue=False,
)

SYSTEMS: Final[Mapping[str, System]] = {
    system.name: system
    for system in (
        MAINSPRING,
        PGQUEUER,
        AWA,
        CHANCY,
        PROCRASTINATE,
        OBAN,
        APSCHEDULER,
        SYSTEM_RAW,
    )
}
