-- History: the one way out for a job, and the partitions by day that keep it.

-- The history row of a job that ends. Every statement that ends jobs inserts what this gives, so
-- that there is one list of columns; in the order of the table, which test_history.py holds it to.
-- Stable and a single query, so that it becomes a part of the statement that calls it. A job ends
-- when that statement is sent, however long ago its transaction began; inside a function, where
-- that may be long ago too, the caller gives the instant. Tallies are to name the day of the same.
create or replace function mainspring.history_of(
    job mainspring.jobs, state mainspring.job_state, started_at timestamptz,
    result jsonb default null, failed integer default 0, losses integer default null,
    error text default null, finished_at timestamptz default null, progress jsonb default null
)
returns setof mainspring.jobs_history
language sql stable
as $$
    select job.job_id, null::bigint, null::bigint, job.created_at, job.scheduled_for,
           history_of.started_at, coalesce(history_of.finished_at, statement_timestamp()),
           job.deadline_at, job.cancel_requested_at, null::timestamptz, job.attempt,
           job.failures + failed, coalesce(history_of.losses, job.losses), job.max_attempts,
           history_of.state, null::mainspring.waits_for, job.priority, job.tenant_id, job.queue,
           job.definition, job.payload, job.dedupe_key, job.correlation_id, job.tags,
           coalesce(history_of.progress, job.progress), job.checkpoint, history_of.result,
           coalesce(error, job.last_error), job.schedule_id, job.slot_at,
           job.origin, job.definition_version, job.created_by, job.delivery, job.source,
           job.ready_at
$$;

-- Makes the partitions of the days from today on. Each is made apart and then attached, which locks
-- out nobody who finishes a job: to create it in its place would lock the whole history.
create or replace function mainspring.ensure_partitions(days_ahead integer)
returns integer
language plpgsql
set lock_timeout = '200ms'
as $$
declare
    parent text;
    day date;
    name text;
    bounds text[];
    is_free boolean;
    made integer := 0;
begin
    perform pg_advisory_xact_lock(hashtext('mainspring.partitions'));
    foreach parent in array array['jobs_history', 'attempts'] loop
        for day in select (now() at time zone 'utc')::date + step
                     from generate_series(0, days_ahead) as step loop
            name := parent || '_' || to_char(day, 'YYYYMMDD');
            continue when to_regclass('mainspring.' || name) is not null;
            bounds := array[day::text || 'T00:00:00Z', (day + 1)::text || 'T00:00:00Z'];
            -- Rows of the day that already lie in the default partition stay there.
            execute format(
                'select not exists (select from mainspring.%I '
                'where finished_at >= %L and finished_at < %L)',
                parent || '_default', bounds[1], bounds[2]) into is_free;
            continue when not is_free;
            execute format('create table mainspring.%I (like mainspring.%I including all)',
                           name, parent);
            execute format(
                'alter table mainspring.%I attach partition mainspring.%I '
                'for values from (%L) to (%L)', parent, name, bounds[1], bounds[2]);
            made := made + 1;
        end loop;
    end loop;
    return made;
end
$$;

-- The partitions of days that are past every retention, the oldest first. Without a policy for
-- everyone some jobs are kept for ever, so there are none.
create or replace function mainspring.past_partitions()
returns setof text
language sql stable
as $$
    select child.relname::text
      from pg_catalog.pg_inherits as link
      join pg_catalog.pg_class as child on child.oid = link.inhrelid
     where link.inhparent in ('mainspring.jobs_history'::regclass, 'mainspring.attempts'::regclass)
       and exists (select from mainspring.retention as policy
                    where policy.tenant_id is null and policy.state is null)
       and substring(child.relname from '_(\d{8})$')::date < (
           (now() at time zone 'utc')
           - greatest((select max(policy.keep) from mainspring.retention as policy),
                      (select max(d.retention) from mainspring.definitions as d)))::date
     order by right(child.relname, 8), child.relname
$$;

-- The jobs of a partition of history that a live job has among its parents: what these gave, the
-- child can still ask for.
create or replace function mainspring.parents_in(partition_name text)
returns bigint[]
language plpgsql stable
as $$
declare
    first_id bigint;
    last_id bigint;
    parents bigint[];
begin
    execute format('select min(job_id), max(job_id) from mainspring.%I', partition_name)
       into first_id, last_id;
    execute format(
        'select array_agg(distinct known.parent_id) '
        'from (select job_id, parent_id from mainspring.dependencies '
        'where parent_id between $1 and $2 and outcome is null union all '
        'select job_id, parent_id from mainspring.dependencies '
        'where parent_id between $1 and $2 and outcome is not null) as known '
        'where exists (select from mainspring.jobs as child where child.job_id = known.job_id) '
        'and exists (select from mainspring.%I as past where past.job_id = known.parent_id)',
        partition_name) into parents using first_id, last_id;
    return coalesce(parents, '{}');
end
$$;

-- Drops a partition and corrects the tallies. Parents of live jobs move to the default partition,
-- where they are pruned later. All that takes time is done while readers and whoever finishes a job
-- go on: only then is the whole history locked, and not for long.
create or replace function mainspring.drop_partition(name text)
returns void
language plpgsql
as $$
declare
    parents bigint[] := '{}';
begin
    perform pg_advisory_xact_lock(hashtext('mainspring.partitions'));
    if name !~ '^(jobs_history|attempts)_\d{8}$' or to_regclass('mainspring.' || name) is null then
        return;
    end if;
    -- Against whoever retries one of its jobs.
    execute format('lock table mainspring.%I in share mode', name);
    if name like 'jobs_history_%' then
        parents := mainspring.parents_in(name);
        execute format(
            'insert into mainspring.changes (tenant_id, moved, state, day, count) '
            'select tenant_id, ''pruned'', state, mainspring.day_of(finished_at), count(*) '
            'from mainspring.%I where job_id <> all ($1) group by 1, 3, 4', name) using parents;
    end if;
    execute format('alter table mainspring.%I detach partition mainspring.%I',
                   regexp_replace(name, '_\d{8}$', ''), name);
    if cardinality(parents) > 0 then
        execute format('insert into mainspring.jobs_history '
                       'select * from mainspring.%I where job_id = any ($1)', name) using parents;
    end if;
    execute format('drop table mainspring.%I', name);
end
$$;

-- Drops the partitions of days that are past every retention; the previous release does it so.
create or replace function mainspring.drop_partitions()
returns integer
language plpgsql
set lock_timeout = '200ms'
as $$
declare
    past text;
    dropped integer := 0;
begin
    for past in select * from mainspring.past_partitions() loop
        perform mainspring.drop_partition(past);
        dropped := dropped + 1;
    end loop;
    return dropped;
end
$$;

-- When the oldest job that history may hold ended; no index answers that at once.
create or replace function mainspring.history_begins_at()
returns timestamptz
language sql stable
as $$
    select least(
        (select min(substring(child.relname from '_(\d{8})$')::date)::timestamp at time zone 'UTC'
           from pg_catalog.pg_inherits as link
           join pg_catalog.pg_class as child on child.oid = link.inhrelid
          where link.inhparent = 'mainspring.jobs_history'::regclass),
        (select min(past.finished_at) from mainspring.jobs_history_default as past))
$$;

-- The day that a job which ended then is counted under: that of its partition.
create or replace function mainspring.day_of(instant timestamptz)
returns date
language sql stable
return (instant at time zone 'UTC')::date;
