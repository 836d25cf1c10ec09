-- History: the one way out for a job, and the partitions by day that keep it.

-- The history row of a job that ends. Every statement that ends jobs inserts what this gives, so
-- that there is one list of columns; in the order of the table, which test_history.py holds it to.
-- Stable and a single query, so that it becomes a part of the statement that calls it.
create or replace function mainspring.history_of(
    job mainspring.jobs, state mainspring.job_state, started_at timestamptz,
    result jsonb default null, failed integer default 0, losses integer default null,
    error text default null
)
returns setof mainspring.jobs_history
language sql stable
as $$
    select job.job_id, null::bigint, null::bigint, job.created_at, job.scheduled_for,
           history_of.started_at, now(), job.deadline_at, job.cancel_requested_at,
           null::timestamptz, job.attempt, job.failures + failed,
           coalesce(history_of.losses, job.losses), job.max_attempts, history_of.state,
           null::mainspring.waits_for, job.priority, job.tenant_id, job.queue, job.definition,
           job.payload, job.dedupe_key, job.correlation_id, job.tags, job.progress,
           job.checkpoint, history_of.result, coalesce(error, job.last_error), job.schedule_id,
           job.slot_at, job.origin, job.definition_version, job.created_by
$$;

-- Makes the partitions of the days from today on.
create or replace function mainspring.ensure_partitions(days_ahead integer)
returns integer
language plpgsql
set lock_timeout = '2s'
as $$
declare
    parent text;
    day date;
    name text;
    is_free boolean;
    made integer := 0;
begin
    perform pg_advisory_xact_lock(hashtext('mainspring.partitions'));
    foreach parent in array array['jobs_history', 'attempts'] loop
        for day in select (now() at time zone 'utc')::date + step
                     from generate_series(0, days_ahead) as step loop
            name := parent || '_' || to_char(day, 'YYYYMMDD');
            continue when to_regclass('mainspring.' || name) is not null;
            -- Rows of the day that already lie in the default partition stay there.
            execute format(
                'select not exists (select from mainspring.%I '
                'where finished_at >= %L and finished_at < %L)',
                parent || '_default', day::text || 'T00:00:00Z', (day + 1)::text || 'T00:00:00Z')
               into is_free;
            continue when not is_free;
            execute format(
                'create table mainspring.%I partition of mainspring.%I '
                'for values from (%L) to (%L)',
                name, parent, day::text || 'T00:00:00Z', (day + 1)::text || 'T00:00:00Z');
            made := made + 1;
        end loop;
    end loop;
    return made;
end
$$;

-- Drops the partitions of days that are past every retention, and corrects the tallies.
create or replace function mainspring.drop_partitions()
returns integer
language plpgsql
set lock_timeout = '2s'
as $$
declare
    name text;
    dropped integer := 0;
    oldest date := ((now() at time zone 'utc')
                    - greatest((select max(keep) from mainspring.retention),
                               (select max(retention) from mainspring.definitions)))::date;
begin
    -- Without a policy for everyone some jobs are kept for ever.
    if not exists (select from mainspring.retention
                    where tenant_id is null and state is null) then
        return 0;
    end if;
    perform pg_advisory_xact_lock(hashtext('mainspring.partitions'));
    for name in
        select child.relname from pg_catalog.pg_inherits as link
          join pg_catalog.pg_class as child on child.oid = link.inhrelid
         where link.inhparent in ('mainspring.jobs_history'::regclass,
                                  'mainspring.attempts'::regclass)
           and substring(child.relname from '_(\d{8})$')::date < oldest loop
        if name like 'jobs_history_%' then
            execute format(
                'insert into mainspring.tally_changes (tenant_id, state, day, count) '
                'select tenant_id, state, mainspring.day_of(finished_at), -count(*) '
                'from mainspring.%I group by 1, 2, 3', name);
        end if;
        execute format('drop table mainspring.%I', name);
        dropped := dropped + 1;
    end loop;
    delete from mainspring.outputs where updated_at < oldest;
    return dropped;
end
$$;

-- The day that a job which ended then is counted under: that of its partition.
create or replace function mainspring.day_of(instant timestamptz)
returns date
language sql stable
return (instant at time zone 'UTC')::date;

-- Takes a job that leaves history out of the tallies.
create or replace function mainspring.untally(
    tenant text, state mainspring.job_state, finished_at timestamptz)
returns void
language plpgsql
as $$
begin
    if untally.tenant is not null then
        insert into mainspring.tally_changes (tenant_id, state, day, count)
        values (untally.tenant, untally.state, mainspring.day_of(untally.finished_at), -1);
    end if;
end
$$;
