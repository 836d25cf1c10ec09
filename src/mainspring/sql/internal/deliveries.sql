-- Delivery: jobs that run at most once.
--
-- Such a job is marked with its fencing number just before it begins (mark_begun). What is not
-- marked when its worker dies or leaves has not begun, and is put back like any other job. What is
-- marked has had its run: it ends in dead_letter, with a lost attempt, and only a person can put it
-- back. Definitions and schedules that say so are not plain: no fast path enqueues for them.

-- Refuses a delivery that there is not, and several attempts of a job that runs at most once.
create or replace function mainspring.check_delivery(
    delivery text, max_attempts integer, defined mainspring.definitions
)
returns void
language plpgsql immutable
as $$
begin
    if delivery not in ('at_least_once', 'at_most_once') then
        perform mainspring.refuse_option('delivery', 'delivery must be at_least_once or '
            || 'at_most_once, not ' || quote_literal(delivery));
    end if;
    if coalesce(delivery, defined.delivery) = 'at_most_once' and max_attempts > 1 then
        perform mainspring.refuse_option('max_attempts', 'max_attempts must be 1 with delivery '
            || 'at_most_once, not ' || max_attempts);
    end if;
end
$$;

-- Whether a claimed job has had the only run it may have: it said so before it began, or its worker
-- died and is of a release that does not say it. A receipt proves that its work is done, and then
-- another attempt reports that and does nothing else.
create or replace function mainspring.is_spent(job mainspring.jobs, is_worker_dead boolean)
returns boolean
language sql stable
return job.delivery = 'at_most_once'
   and (job.begun_fence is not distinct from job.fence
        or (is_worker_dead and not exists (
            select from mainspring.workers as worker
             where worker.worker_id = job.worker_id and worker.records_starts)))
   and not exists (select from mainspring.receipts as receipt where receipt.job_id = job.job_id);

-- Whether a job that has ended was lost: its only run had neither a success nor a failure.
create or replace function mainspring.was_lost(
    delivery text, state mainspring.job_state, failures integer
)
returns boolean
language sql immutable
return coalesce(delivery = 'at_most_once' and state = 'dead_letter' and failures = 0, false);

-- Ends those of the jobs in dead_letter that have had their only run. If the worker is dead,
-- whoever takes its jobs back records the attempts too; a worker that hands back what it has begun
-- does not.
create or replace function mainspring.end_spent_jobs(job_ids bigint[], is_worker_dead boolean)
returns void
language plpgsql
as $$
#variable_conflict use_column
declare
    ended mainspring.jobs;
    reason text;
begin
    for ended in
        delete from mainspring.jobs as job
         where job.job_id = any (end_spent_jobs.job_ids) and job.delivery is not null
           and mainspring.is_spent(job, is_worker_dead)
        returning job.*
    loop
        reason := case when is_worker_dead then mainspring.why_lost(ended.worker_id)
                       else 'worker ' || ended.worker_id || ' left before the job was done' end;
        insert into mainspring.jobs_history
        select past.* from mainspring.history_of(
            ended, 'dead_letter', started_at => ended.started_at,
            error => 'lost, and not run again because it runs at most once: ' || reason) as past;
        insert into mainspring.changes (
            tenant_id, queue, definition, moved, state, attempt, count)
        values (ended.tenant_id, ended.queue, ended.definition, 'ended', 'dead_letter', 'lost', 1);
        if not is_worker_dead then
            insert into mainspring.attempts
                (job_id, fence, worker_id, started_at, finished_at, number, status, error,
                 error_key)
            values (ended.job_id, ended.fence, ended.worker_id, ended.started_at, now(),
                    ended.attempt, 'lost', reason, mainspring.lost_worker_key());
            insert into mainspring.failures
                (tenant_id, queue, definition, error_key, sample, count, job_ids, tags)
            values (ended.tenant_id, ended.queue, ended.definition, mainspring.lost_worker_key(),
                    reason, 1, array[ended.job_id], ended.tags);
        end if;
        if ended.limit_name is not null then
            perform mainspring.notify_limit(ended.limit_name, ended.limit_key, ended.tenant_id);
        end if;
        if exists (select from mainspring.dependencies as d
                    where d.parent_id = ended.job_id and d.outcome is null) then
            perform mainspring.notify_parents();
        end if;
    end loop;
end
$$;
