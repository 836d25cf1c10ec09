"""Full tables for query plans: a million finished jobs, 200,000 queued."""

import psycopg

ALIVE = 7

QUIET = """
do $$ declare name text;
begin
    for name in select oid::regclass::text from pg_class
                 where relnamespace = 'mainspring'::regnamespace and relkind = 'r' loop
        execute 'alter table ' || name || ' set (autovacuum_enabled = false)';
    end loop;
end $$
"""

SEED = [
    "insert into mainspring.definitions (key, kind) values ('work', 'python')",
    # One whose payloads readers see redacted, which costs those of the others next to nothing.
    """
    insert into mainspring.definitions (key, kind, arg_schema)
    values ('login', 'python', '{"properties": {"word": {"writeOnly": true}}}')
    """,
    """
    insert into mainspring.workers
        (worker_id, expires_at, pid, concurrency, name, host, process_identity, queues, version)
    values (7, 'infinity', 1, 1, 'alive', 'h', '', '{a}', '0'),
           (8, '-infinity', 1, 1, 'dead', 'h', '', '{a}', '0')
    """,
    """
    insert into mainspring.jobs_history
        (job_id, definition, state, started_at, finished_at, schedule_id)
    select -n, 'work', 'succeeded', now(), now() - n * interval '1 second',
           case when n % 12500 = 3 then 3 end
      from generate_series(1, 1000000) as n
    """,
    """
    insert into mainspring.flows (flow_id, tenant_id, name)
    select n, 'default', 'f' from generate_series(1, 5000) as n
    """,
    """
    insert into mainspring.flow_jobs (flow_id, job_id)
    select 1 + n / 10, -n from generate_series(1, 49999) as n
    """,
    """
    insert into mainspring.dependencies (job_id, parent_id, outcome)
    select -n, -n - 1, 'succeeded' from generate_series(1, 50000) as n
    """,
    """
    insert into mainspring.attempts
        (job_id, fence, worker_id, started_at, finished_at, number, status)
    select -n, n, 7, now(), now() - n * interval '1 second', 1, 'lost'
      from generate_series(1, 100000) as n
    """,
    # Running jobs are older than all that is queued, as in life: ids 1 to 70.
    """
    insert into mainspring.jobs
        (job_id, definition, state, fence, worker_id, started_at, cancel_requested_at)
    select n, 'work', 'running', n, case when n <= 50 then 7 else 8 end, now(),
           case when n <= 5 then now() end
      from generate_series(1, 70) as n
    """,
    """
    insert into mainspring.jobs (job_id, definition, queue, priority, tenant_id)
    select n, 'work', case when n % 2 = 0 then 'a' else 'b' end, 100 + n % 3, 'tenant' || n % 5
      from generate_series(101, 200100) as n
    """,
    """
    insert into mainspring.jobs (job_id, definition, waits_for, scheduled_for)
    select 300000 + n, 'work', 'time', now() + (n - 100) * interval '1 minute'
      from generate_series(1, 20000) as n
    """,
    """
    insert into mainspring.jobs (job_id, definition, waits_for, limit_name, limit_key)
    select 500000 + n, 'work', 'limit', 'busy', 'key ' || n % 50
      from generate_series(1, 5000) as n
    """,
    """
    insert into mainspring.jobs (job_id, definition, waits_for, deadline_at, cancel_requested_at)
    select 400000 + n, 'work', 'handler', now() + (n - 100) * interval '1 minute',
           case when n <= 5 then now() end
      from generate_series(1, 1000) as n
    """,
]


def fill(connection: psycopg.Connection) -> None:
    connection.execute("set synchronous_commit = off")
    for statement in (QUIET, *SEED):
        connection.execute(statement)
