-- Why a job that could be claimed is not.

-- The live workers, and whether each serves the queue of a job. What a worker over HTTP is known by
-- names its tenant; * is several.
create or replace function mainspring.why_workers(
    job mainspring.jobs, out worker_id bigint, out concurrency integer, out queues text[],
    out is_stopping boolean, out is_served boolean
)
returns setof record
language sql stable
as $$
select worker.worker_id, worker.concurrency, worker.queues, worker.is_stopping,
       job.queue = any (worker.queues)
  from mainspring.workers as worker
 where worker.expires_at > clock_timestamp()
   and coalesce(substring(worker.process_identity from '^api:(.*):[^:]*$'), '*')
       in ('*', job.tenant_id)
$$;

-- What nobody can do anything about a job before.
create or replace function mainspring.why_stopped(job mainspring.jobs)
returns setof jsonb
language plpgsql stable
as $$
declare
    aside mainspring.set_aside;
begin
    if pg_is_in_recovery() or current_setting('default_transaction_read_only')::boolean then
        return next mainspring.why_reason('read_only', 'The database takes no writes'
            || case when pg_is_in_recovery() then ': it is a standby' else '' end
            || ', so nobody can claim anything.',
            fix => case when not pg_is_in_recovery() then format(
                'begin read write; alter database %I set default_transaction_read_only = off; '
                'commit;', current_database()) end);
    end if;
    if job.cancel_requested_at is not null then
        return next mainspring.why_reason('stopping', 'It was asked to cancel at '
            || mainspring.why_instant(job.cancel_requested_at)
            || ' and is ended by the next worker that looks.', since => job.cancel_requested_at);
    end if;
    if job.deadline_at <= clock_timestamp() then
        return next mainspring.why_reason('deadline', 'It had to start before '
            || mainspring.why_instant(job.deadline_at) || ', and is canceled by the next worker '
            || 'that looks.', until => job.deadline_at);
    end if;
    select * into aside from mainspring.set_aside as kept
     where kept.key = job.job_id and kept.again_at > clock_timestamp()
       and kept.duty = any (case job.waits_for
           when 'time' then '{promote}' when 'handler' then '{release_known}'
           when 'approval' then '{expire_approvals}' when 'parents' then '{settle}'
           when 'turn' then '{release_turns}' else '{claim}' end::text[])
     order by kept.again_at desc limit 1;
    if found then
        return next mainspring.why_reason('set_aside', 'It was set aside because it makes '
            || aside.duty || ' fail (' || mainspring.why_error(aside.reason) || '), ' || aside.tries
            || case when aside.tries = 1 then ' time' else ' times' end || '; the next try is at '
            || mainspring.why_instant(aside.again_at) || '.',
            since => aside.failed_at, until => aside.again_at, facts => jsonb_build_object(
                'duty', aside.duty, 'tries', aside.tries, 'error', aside.reason));
    end if;
end
$$;

-- Why no worker claims the job: its queue is paused or served by nobody and, if it waits for
-- nothing else, what is before it.
create or replace function mainspring.why_unclaimed(job mainspring.jobs, is_claimable boolean)
returns setof jsonb
language plpgsql stable
as $$
declare
    pause mainspring.queues;
begin
    select * into pause from mainspring.paused_queues as paused where paused.name = job.queue;
    if found then
        return next mainspring.why_reason('queue_paused', 'Its queue ' || pause.name
            || ' was paused by ' || pause.paused_by || ' at '
            || mainspring.why_instant(pause.paused_at)
            || coalesce(' (' || nullif(mainspring.why_error(pause.reason), '') || ')', '')
            || coalesce(' until ' || mainspring.why_instant(pause.paused_until), '') || '.',
            since => pause.paused_at, until => pause.paused_until,
            facts => jsonb_build_object('queue', pause.name, 'by', pause.paused_by,
                                        'reason', pause.reason),
            fix => mainspring.why_command('queues resume ' || mainspring.why_word(pause.name)));
    end if;
    return query select * from mainspring.why_unserved(job);
    if is_claimable then
        return query select * from mainspring.why_locked(job);
        if job.waits_for is null and job.state = 'queued' then
            return query select * from mainspring.why_behind(job);
        end if;
        return query select * from mainspring.why_full(job);
    end if;
end
$$;

-- No worker that goes on serves the queue.
create or replace function mainspring.why_unserved(job mainspring.jobs)
returns setof jsonb
language plpgsql stable
as $$
declare
    going bigint;
    stopping bigint;
    is_remote boolean := exists (select from mainspring.definitions as defined
                                  where defined.key = job.definition and defined.kind = 'remote');
    near text := mainspring.closest(job.queue, array(
        select distinct served.queue
          from mainspring.worker_status as worker, unnest(worker.queues) as served (queue)
         where worker.is_alive));
begin
    select count(*) filter (where not worker.is_stopping),
           count(*) filter (where worker.is_stopping)
      into going, stopping
      from mainspring.why_workers(job) as worker where worker.is_served;
    if going = 0 then
        return next mainspring.why_reason(
            case when stopping > 0 then 'all_stopping' else 'nobody_serves' end,
            case when stopping = 1 then 'The only worker of its queue ' || job.queue
                                        || ' is stopping.'
                 when stopping > 0 then 'All workers of its queue ' || job.queue || ' are stopping.'
                 else 'No live worker serves its queue ' || job.queue
                      || coalesce('; did you mean ' || near || '?', case when is_remote
                             then '; start the program that runs ' || job.definition
                                  || ', which claims its jobs over the API.' else '.' end) end,
            since => greatest(job.created_at, job.scheduled_for),
            facts => jsonb_build_object('queue', job.queue, 'stopping', stopping, 'near', near),
            fix => case when not is_remote then 'mainspring worker --queues '
                                                || mainspring.why_word(job.queue) end);
    end if;
end
$$;

-- Someone else holds a lock on the row, as a claim does for a moment.
create or replace function mainspring.why_locked(job mainspring.jobs)
returns setof jsonb
language plpgsql stable
as $$
declare
    held record;
begin
    select activity.pid, activity.application_name, activity.xact_start into held
      from mainspring.jobs as row
      join pg_catalog.pg_locks as lock
        on lock.locktype = 'transactionid' and lock.granted and lock.mode = 'ExclusiveLock'
       and lock.transactionid = row.xmax
      join pg_catalog.pg_stat_activity as activity on activity.pid = lock.pid
     where row.job_id = job.job_id and row.xmax <> '0' and activity.pid <> pg_backend_pid();
    if found then
        return next mainspring.why_reason('locked', 'A session'
            || case when mainspring.is_isolated() then ''
                    else coalesce(' of ' || nullif(held.application_name, ''), '')
                         || ' (pid ' || held.pid || ')' end
            || ' has locked its row'
            || coalesce(', in a transaction since ' || mainspring.why_instant(held.xact_start), '')
            || '.', since => held.xact_start,
            facts => case when mainspring.is_isolated() then '{}'
                          else jsonb_build_object('pid', held.pid) end,
            fix => case when not mainspring.is_isolated()
                        then 'select pg_terminate_backend(' || held.pid || ');' end);
    end if;
end
$$;

-- How many jobs of other tenants are ready in the queue and priority of a job: of those before and
-- those behind its tenant, whose own may be any number.
create or replace function mainspring.why_of_others(job mainspring.jobs)
returns bigint
language sql stable
as $$
select (select count(*) from (
            select from mainspring.jobs as other
             where other.queue = job.queue and other.priority = job.priority
               and other.tenant_id < job.tenant_id
               and other.state = 'queued' and other.waits_for is null
             order by other.tenant_id, other.job_id limit mainspring.why_most()) as before)
     + (select count(*) from (
            select from mainspring.jobs as other
             where other.queue = job.queue and other.priority = job.priority
               and other.tenant_id > job.tenant_id
               and other.state = 'queued' and other.waits_for is null
             order by other.tenant_id, other.job_id limit mainspring.why_most()) as behind)
$$;

-- Other jobs of the queue come first: those of better priority, and of the same one those of its
-- tenant that are older, and those of other tenants, with which it shares the workers by weight.
create or replace function mainspring.why_behind(job mainspring.jobs)
returns setof jsonb
language plpgsql stable
as $$
declare
    better bigint;
    own bigint;
    others bigint;
    places bigint := (select sum(worker.concurrency) from mainspring.why_workers(job) as worker
                       where worker.is_served and not worker.is_stopping);
begin
    -- In the order of the index, which the planner would not use for so large a part of the table.
    select count(*) into better from (
        select from mainspring.jobs as first
         where first.queue = job.queue and first.priority < job.priority
           and first.state = 'queued' and first.waits_for is null
         order by first.priority, first.tenant_id, first.job_id
         limit mainspring.why_most()) as first;
    select count(*) into own from (
        select from mainspring.jobs as first
         where first.queue = job.queue and first.priority = job.priority
           and first.tenant_id = job.tenant_id and first.job_id < job.job_id
           and first.state = 'queued' and first.waits_for is null
         order by first.job_id limit mainspring.why_most()) as first;
    others := mainspring.why_of_others(job);
    if better > 0 then
        return next mainspring.why_reason('behind_priority', mainspring.why_count(better)
            || ' jobs of better priority are ready in its queue ' || job.queue || '.',
            facts => jsonb_build_object('ahead', better, 'places', places,
                                        'priority', job.priority));
    end if;
    if own + others > 0 then
        return next mainspring.why_reason('behind', mainspring.why_count(own)
            || ' jobs of its tenant are before it in its queue ' || job.queue
            || case when others > 0 then ', and ' || mainspring.why_count(others)
                    || ' of other tenants share the workers with them' else '' end || '.',
            facts => jsonb_build_object('ahead', least(own + others, mainspring.why_most()),
                'own', own, 'others', others, 'places', places));
    end if;
end
$$;

-- All places of the workers that serve the queue are taken.
create or replace function mainspring.why_full(job mainspring.jobs)
returns setof jsonb
language plpgsql stable
as $$
declare
    places bigint;
    taken bigint;
    oldest_id bigint;
    oldest mainspring.jobs;
    is_seen boolean;
begin
    select sum(worker.concurrency), sum(running.count),
           (array_agg(running.first_id order by running.first_at))[1]
      into places, taken, oldest_id
      from mainspring.why_workers(job) as worker, lateral (
           select count(*) as count, min(held.started_at) as first_at,
                  (array_agg(held.job_id order by held.started_at))[1] as first_id
             from (select running.job_id, running.started_at
                     from mainspring.jobs as running
                    where running.state = 'running' and running.worker_id = worker.worker_id
                    limit worker.concurrency) as held) as running
     where worker.is_served and not worker.is_stopping;
    if taken < places or coalesce(places, 0) = 0 then
        return;
    end if;
    select * into oldest from mainspring.jobs as running where running.job_id = oldest_id;
    is_seen := mainspring.why_is_seen(oldest.tenant_id, oldest.created_by);
    return next mainspring.why_reason('places_full', 'All ' || places
        || ' places of the workers of its queue ' || job.queue || ' are taken'
        || case when is_seen then '; the oldest job in them is ' || oldest_id || ', since '
                    || mainspring.why_instant(oldest.started_at) else '' end || '.',
        facts => jsonb_build_object('places', places, 'ahead', 0,
                                    'oldest', case when is_seen then oldest_id::text end),
        fix => coalesce(case when is_seen
                             then mainspring.why_command('why ' || oldest_id, oldest.tenant_id) end,
                        'mainspring worker --queues ' || mainspring.why_word(job.queue)));
end
$$;

-- Nothing holds the job.
create or replace function mainspring.why_soon(job mainspring.jobs)
returns jsonb
language sql stable
return mainspring.why_reason('soon', 'Nothing holds it up: a worker looks within a second or so.',
    since => greatest(job.created_at, job.scheduled_for));

-- What does not hold the job yet.
create or replace function mainspring.why_later(job mainspring.jobs)
returns setof jsonb
language plpgsql stable
as $$
begin
    if job.deadline_at > clock_timestamp()
       and job.deadline_at <= clock_timestamp() + interval '1 hour' then
        return next mainspring.why_reason('deadline', 'It must start before '
            || mainspring.why_instant(job.deadline_at) || '; else it is canceled.',
            until => job.deadline_at);
    end if;
end
$$;
