-- name: promote
-- scope: system
-- Moves jobs whose instant has come to ready, or on to the wait for their limit.
update mainspring.jobs as job set waits_for = mainspring.wait_of(job.limit_name)
 where job.ctid = any (array(
    select due.ctid from mainspring.jobs as due
     where due.waits_for = 'time' and due.scheduled_for <= coalesce(%(now)s::timestamptz, now())
     order by due.scheduled_for limit %(limit)s for update skip locked))
returning job.queue, job.waits_for is not null;

-- name: next_due
-- scope: system
-- Seconds until the earliest waiting job is due; null when none waits.
select extract(epoch from min(scheduled_for) - now())::float from mainspring.jobs
 where waits_for = 'time';

-- name: release_known
-- scope: system
-- Moves jobs that waited for a worker who knows their definition, or its kind, to ready, or on to
-- the wait for their limit.
update mainspring.jobs as job set waits_for = mainspring.wait_of(job.limit_name)
 where job.ctid = any (array(
    select known.ctid from mainspring.jobs as known
     where known.waits_for = 'handler'
       and known.definition = any (
           %(definitions)s::text[] || array(select key from mainspring.definitions
                                             where kind = any (%(kinds)s::text[])))
     limit %(limit)s for update skip locked))
returning job.queue, job.waits_for is not null;

-- name: expire
-- scope: system
-- Cancels jobs that did not start before their deadline.
with late as (
    delete from mainspring.jobs as job
     where job.ctid = any (array(
        select due.ctid from mainspring.jobs as due
         where due.deadline_at <= coalesce(%(now)s::timestamptz, now()) and due.state <> 'running'
         order by due.deadline_at limit %(limit)s for update skip locked))
    returning job, job.tenant_id
), tallied as (
    insert into mainspring.tally_changes (tenant_id, state, count)
    select tenant_id, 'canceled', count(*) from late group by tenant_id
)
insert into mainspring.jobs_history
select past.* from late, lateral mainspring.history_of(
    late.job, 'canceled', started_at => (late.job).started_at,
    error => 'its deadline passed before it could start') as past
returning job_id;

-- name: settle_cancels
-- scope: system
-- Ends jobs that were asked to cancel while they ran and came back to queued instead.
select mainspring.settle_cancel(job_id) from mainspring.jobs
 where cancel_requested_at is not null and state <> 'running'
 limit %(limit)s;

-- name: promote_next
-- scope: system
-- Moves the job whose instant comes first to ready, whether or not it has come; tests drain
-- with it. Of one queue if given.
update mainspring.jobs as job set waits_for = mainspring.wait_of(job.limit_name)
 where job.ctid = any (array(
    select due.ctid from mainspring.jobs as due
     where due.waits_for = 'time' and (%(queue)s::text is null or due.queue = %(queue)s::text)
     order by due.scheduled_for, due.job_id limit 1 for update skip locked))
returning job.queue;

-- name: ready_queues
-- scope: system
-- The queues that hold jobs which are ready or wait for a limit.
select distinct queue from mainspring.jobs
 where state = 'queued' and (waits_for is null or waits_for = 'limit')
 order by queue;
