-- Jobs: which one the caller may see, how one is put back, and how one is removed.

-- What lists show of an error: its first line, up to 1,000 characters, of which the last one is an
-- ellipsis where more was cut. Reads no more of a long error than that.
create or replace function mainspring.error_line(error text)
returns text
language sql immutable
return case when length(split_part(left(error, 1001), E'\n', 1)) > 1000
            then left(error, 999) || '…'
            else split_part(left(error, 1001), E'\n', 1) end;

-- Puts jobs that were claimed back to queued: the one shape of that change. Those that have not
-- begun are as if they had not been claimed; those that have keep their attempt. A job is due at
-- another instant if one is given. One that is given a number of losses has lost the process that
-- ran it, and is a suspect from then on. One that waits for nothing else waits for its limit again.
-- One that runs at most once and has had its run is not put back but ended. The caller has locked
-- them.
create or replace function mainspring.requeue_jobs(
    job_ids bigint[], waits mainspring.waits_for[], have_begun boolean default true,
    due_ats timestamptz[] default null, failures integer[] default null,
    losses integer[] default null, errors text[] default null
)
returns void
language plpgsql
as $$
declare
    freed record;
begin
    perform mainspring.end_spent_jobs(job_ids, have_begun);
    with requeued as (
        update mainspring.jobs as job
           set state = 'queued', fence = null, worker_id = null, started_at = null,
               progress = null,
               waits_for = coalesce(held.waits_for, mainspring.wait_of(job.limit_name)),
               scheduled_for = coalesce(held.due_at, job.scheduled_for),
               -- Due at another instant, or at once after a run, or as it was.
               ready_at = case when held.due_at is not null then null
                               when have_begun then now() else job.ready_at end,
               attempt = job.attempt - (not have_begun)::integer,
               failures = job.failures + coalesce(held.failed, 0),
               losses = coalesce(held.losses, job.losses),
               suspected_at = case when held.losses is null then job.suspected_at
                                   else coalesce(job.suspected_at, now()) end,
               last_error = coalesce(held.error, job.last_error)
          from unnest(requeue_jobs.job_ids, requeue_jobs.waits, requeue_jobs.due_ats,
                      requeue_jobs.failures, requeue_jobs.losses, requeue_jobs.errors)
               as held (job_id, waits_for, due_at, failed, losses, error)
         where job.job_id = held.job_id
        returning job.limit_name, job.limit_key, job.tenant_id
    )
    select array_agg(limit_name) as names, array_agg(limit_key) as keys,
           array_agg(tenant_id) as tenants
      into freed
      from (select distinct * from requeued where limit_name is not null) as limited;
    perform mainspring.notify_limit(place.limit_name, place.limit_key, place.tenant_id)
       from unnest(freed.names, freed.keys, freed.tenants)
            as place (limit_name, limit_key, tenant_id);
end
$$;

-- A job that this very statement has enqueued, as JSON text; null if the caller may not see it.
-- Volatile, so that it sees what the statement has done so far.
create or replace function mainspring.enqueued_text(job_id bigint)
returns text
language plpgsql volatile
as $$
begin
    return (select to_jsonb(job)::text from mainspring.job_status as job
             where job.job_id = enqueued_text.job_id);
end
$$;

-- The texts of a filter, which is one text or a list, as patterns that find them anywhere.
create or replace function mainspring.parts_sought(asked jsonb)
returns text[]
language sql immutable
as $$
    select array_agg('%' || replace(replace(replace(
               lower(part), '\', '\\'), '%', '\%'), '_', '\_') || '%')
      from jsonb_array_elements_text(
               case jsonb_typeof(asked) when 'array' then asked
                                        else jsonb_build_array(asked) end) as part
$$;

-- Whether a job is one of those that a filter means: it has one of the values of each name, a text
-- or a list of texts; what the filter does not name matches. Lists and bulk operations use it, so
-- that they mean the same. A single expression, so that it becomes a part of the statement that
-- calls it. Programs of the previous release write `status`.
create or replace function mainspring.job_matches(
    filter jsonb, state mainspring.job_state, queue text, definition text, source text,
    tags text[], created_at timestamptz, last_error text
)
returns boolean
language sql stable
return (coalesce(filter -> 'state', filter -> 'status') is null
        or coalesce(filter -> 'state', filter -> 'status') ? state::text)
   and (filter -> 'queue' is null or filter -> 'queue' ? queue)
   and (filter -> 'definition' is null or filter -> 'definition' ? definition)
   and (filter -> 'source' is null or filter -> 'source' ? source)
   and (filter -> 'tag' is null or filter -> 'tag' ?| tags)
   and (filter ->> 'created_after' is null
        or created_at >= (filter ->> 'created_after')::timestamptz)
   and (filter ->> 'created_before' is null
        or created_at < (filter ->> 'created_before')::timestamptz)
   and (filter -> 'error' is null
        or lower(last_error) like any (mainspring.parts_sought(filter -> 'error')));

-- The state of a job that the caller may see; refuses any other as if it were not there.
create or replace function mainspring.visible_state(job_id bigint, tenant text)
returns mainspring.job_state
language plpgsql stable
as $$
declare
    found_state mainspring.job_state;
begin
    select job.state into found_state from mainspring.job_status as job
     where job.job_id = visible_state.job_id and job.tenant_id = visible_state.tenant;
    if found_state is null then
        perform mainspring.refuse_job(visible_state.job_id);
    end if;
    return found_state;
end
$$;

-- Removes those of the jobs that do not run, with all that belongs to them, whoever asks; gives
-- the state that each was in. Nothing is written to the audit.
create or replace function mainspring.remove_jobs(job_ids bigint[], tenant text)
returns table (job_id bigint, state mainspring.job_state)
language plpgsql
as $$
#variable_conflict use_column
declare
    removed bigint[];
    states mainspring.job_state[];
    schedule_ids bigint[];
begin
    perform mainspring.notify_limit(freed.limit_name, freed.limit_key, freed.tenant_id)
       from (select distinct job.limit_name, job.limit_key, job.tenant_id
               from mainspring.jobs as job
              where job.job_id = any (remove_jobs.job_ids)
                and job.tenant_id = remove_jobs.tenant and job.state <> 'running'
                and job.limit_name is not null and job.waits_for is null) as freed;
    with gone as (
        delete from mainspring.jobs as job
         where job.job_id = any (remove_jobs.job_ids) and job.tenant_id = remove_jobs.tenant
           and job.state <> 'running'
        returning job.job_id, job.state, job.schedule_id, job.slot_at, job.tenant_id, job.queue,
                  job.definition
    ), closed as (
        update mainspring.slots as slot
           set run_state = 'canceled', finished_at = clock_timestamp(),
               reason = 'its job was deleted'
          from gone
         where slot.schedule_id = gone.schedule_id and slot.scheduled_for = gone.slot_at
    ), past as (
        delete from mainspring.jobs_history as job
         where job.job_id = any (remove_jobs.job_ids) and job.tenant_id = remove_jobs.tenant
        returning job.job_id, job.state, job.tenant_id, job.finished_at
    ), deleted as (
        insert into mainspring.changes (tenant_id, queue, definition, moved, count)
        select tenant_id, queue, definition, 'deleted', count(*) from gone
         group by tenant_id, queue, definition
    ), pruned as (
        insert into mainspring.changes (tenant_id, moved, state, day, count)
        select tenant_id, 'pruned', state, mainspring.day_of(finished_at), count(*) from past
         group by tenant_id, state, mainspring.day_of(finished_at)
    ), every as (
        select gone.job_id, gone.state, gone.schedule_id, gone.slot_at from gone
        union all select past.job_id, past.state, null, null from past
    )
    select array_agg(every.job_id), array_agg(every.state),
           array_agg(distinct every.schedule_id) filter (where every.slot_at is not null)
      into removed, states, schedule_ids
      from every;
    perform mainspring.release_turn(schedule_id) from unnest(schedule_ids) as schedule_id;
    delete from mainspring.attempts as attempt where attempt.job_id = any (removed);
    delete from mainspring.outputs as output where output.job_id = any (removed);
    delete from mainspring.approvals as asked where asked.job_id = any (removed);
    delete from mainspring.dependencies as d where d.job_id = any (removed);
    if exists (select from mainspring.dependencies as d
                where d.parent_id = any (removed) and d.outcome is null) then
        perform mainspring.notify_parents();
    end if;
    return query select * from unnest(removed, states);
end
$$;

-- Why the jobs of a worker were taken back, as their attempts say it.
create or replace function mainspring.why_lost(worker_id bigint)
returns text
language sql stable
return coalesce(
    (select case when worker.process_identity like 'api:%'
                 then format('remote worker %s (worker %s) ', worker.name, worker.worker_id)
                 else format('worker %s (pid %s on %s) ', worker.worker_id, worker.pid,
                             worker.host) end
            || case when worker.died_at is not null
                    then 'died: its process was killed or crashed'
                    when worker.survived
                    then 'could not reach the database in time to renew its lease'
                    else 'stopped renewing its lease: its process or host is down, or it hangs'
                    end
       from mainspring.workers as worker where worker.worker_id = why_lost.worker_id),
    'worker ' || why_lost.worker_id || ' is gone');
