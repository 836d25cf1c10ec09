-- Cancellations: queued jobs end at once, running ones are asked to stop.

-- Cancels a job, whoever asks; nothing is written to the audit.
create or replace function mainspring.stop_job(job_id bigint, reason text, tenant text)
returns mainspring.job_state
language plpgsql
as $$
#variable_conflict use_column
declare
    found_job mainspring.jobs;
    final_state mainspring.job_state;
begin
    select * into found_job from mainspring.jobs as job
     where job.job_id = stop_job.job_id and job.tenant_id = stop_job.tenant for update;
    if not found then
        select state into final_state from mainspring.jobs_history as job
         where job.job_id = stop_job.job_id and job.tenant_id = stop_job.tenant;
        if not found then
            perform mainspring.refuse_job(stop_job.job_id);
        elsif final_state <> 'canceled' then
            perform mainspring.refuse_move(stop_job.job_id, final_state, 'canceled');
        end if;
        return final_state;
    end if;
    perform mainspring.stop_jobs(array[stop_job.job_id], stop_job.reason);
    return case when found_job.state = 'running' then 'running' else 'canceled' end;
end
$$;

-- Cancels live jobs whose rows the caller has locked; asks those that run to stop.
create or replace function mainspring.stop_jobs(job_ids bigint[], reason text)
returns void
language plpgsql
as $$
begin
    update mainspring.jobs as job
       set cancel_requested_at = coalesce(job.cancel_requested_at, clock_timestamp()),
           last_error = stop_jobs.reason
     where job.job_id = any (stop_jobs.job_ids);
    perform mainspring.notify_cancel(running.worker_id)
       from (select distinct job.worker_id from mainspring.jobs as job
              where job.job_id = any (stop_jobs.job_ids) and job.state = 'running') as running;
    perform mainspring.settle_cancels(stop_jobs.job_ids);
end
$$;

-- Moves a job that is asked to cancel and does not run into history. Returns whether it did.
create or replace function mainspring.settle_cancel(job_id bigint)
returns boolean
language plpgsql
as $$
begin
    return mainspring.settle_cancels(array[job_id]) > 0;
end
$$;

-- The same of many jobs; says how many it moved.
create or replace function mainspring.settle_cancels(job_ids bigint[])
returns bigint
language plpgsql
as $$
declare
    moved bigint;
    ended_at timestamptz := clock_timestamp();
begin
    -- Sent when the transaction is committed.
    perform mainspring.notify_limit(freed.limit_name, freed.limit_key, freed.tenant_id)
       from (select distinct job.limit_name, job.limit_key, job.tenant_id
               from mainspring.jobs as job
              where job.job_id = any (settle_cancels.job_ids) and job.state <> 'running'
                and job.cancel_requested_at is not null
                and job.limit_name is not null and job.waits_for is null) as freed;
    with ended as (
        delete from mainspring.jobs as job
         where job.job_id = any (settle_cancels.job_ids) and job.state <> 'running'
           and job.cancel_requested_at is not null
        returning job, job.tenant_id, job.queue, job.definition
    ), changed as (
        insert into mainspring.changes (
            tenant_id, queue, definition, moved, state, day, count)
        select tenant_id, queue, definition, 'ended', 'canceled', mainspring.day_of(ended_at),
               count(*)
          from ended group by tenant_id, queue, definition
    )
    insert into mainspring.jobs_history
    select past.* from ended, lateral mainspring.history_of(
        ended.job, 'canceled', started_at => (ended.job).started_at,
        finished_at => ended_at) as past;
    get diagnostics moved = row_count;
    if moved > 0 and exists (
        select from mainspring.dependencies as d
         where d.parent_id = any (settle_cancels.job_ids) and d.outcome is null) then
        perform mainspring.notify_parents();
    end if;
    return moved;
end
$$;
