-- History by day: partitions are made ahead and dropped when their retention has passed.

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
                'select not exists (select from mainspring.%I where finished_at >= %L and finished_at < %L)',
                parent || '_default', day::text || 'T00:00:00Z', (day + 1)::text || 'T00:00:00Z')
               into is_free;
            continue when not is_free;
            execute format(
                'create table mainspring.%I partition of mainspring.%I for values from (%L) to (%L)',
                name, parent, day::text || 'T00:00:00Z', (day + 1)::text || 'T00:00:00Z');
            made := made + 1;
        end loop;
    end loop;
    return made;
end
$$;

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

-- Counts a job that leaves history.
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
