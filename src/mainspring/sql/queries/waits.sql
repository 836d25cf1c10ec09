-- name: promote
-- scope: system
-- Moves jobs whose instant has come to ready, or on to the wait for their limit; of some jobs only
-- if given. Leaves out what is set aside; here and below the offset makes that a probe for each job
-- that is looked at, so that the order of the index is kept.
update mainspring.jobs as job set waits_for = mainspring.wait_of(job.limit_name)
 where job.ctid = any (array(
    select due.ctid from mainspring.jobs as due
     where due.waits_for = 'time' and due.scheduled_for <= coalesce(%(now)s::timestamptz, now())
       and coalesce(due.job_id = any (%(chosen)s::bigint[]), true)
       and not exists (select from mainspring.set_aside as aside
                        where aside.duty = 'promote' and aside.key = due.job_id
                          and aside.again_at > now() offset 0)
     order by due.scheduled_for limit %(limit)s for update of due skip locked))
returning job.priority, job.tenant_id, job.queue, job.job_id, job.waits_for is not null;

-- name: find_due
-- scope: system
-- The jobs that promote would move.
select due.job_id from mainspring.jobs as due
 where due.waits_for = 'time' and due.scheduled_for <= coalesce(%(now)s::timestamptz, now())
   and not exists (select from mainspring.set_aside as aside
                    where aside.duty = 'promote' and aside.key = due.job_id
                      and aside.again_at > now() offset 0)
 order by due.scheduled_for limit %(limit)s;

-- name: next_due
-- scope: system
-- Seconds until the earliest waiting job is due; no row when none waits.
select extract(epoch from due.scheduled_for - now())::float from mainspring.jobs as due
 where due.waits_for = 'time'
   and not exists (select from mainspring.set_aside as aside
                    where aside.duty = 'promote' and aside.key = due.job_id
                      and aside.again_at > now() offset 0)
 order by due.scheduled_for limit 1;

-- name: release_known
-- scope: system
-- Moves jobs that waited for a worker who knows their definition, or its kind, to ready, or on to
-- the wait for their limit; of some jobs only if given. Leaves out what is set aside.
update mainspring.jobs as job
   set waits_for = mainspring.wait_of(job.limit_name), ready_at = clock_timestamp()
 where job.ctid = any (array(
    select known.ctid from mainspring.jobs as known
     where known.waits_for = 'handler'
       and known.definition = any (
           %(definitions)s::text[] || array(select key from mainspring.definitions
                                             where kind = any (%(kinds)s::text[])))
       and coalesce(known.job_id = any (%(chosen)s::bigint[]), true)
       and not exists (select from mainspring.set_aside as aside
                        where aside.duty = 'release_known' and aside.key = known.job_id
                          and aside.again_at > now() offset 0)
     limit %(limit)s for update of known skip locked))
returning job.priority, job.tenant_id, job.queue, job.job_id, job.waits_for is not null;

-- name: find_known
-- scope: system
-- The jobs that release_known would move.
select known.job_id from mainspring.jobs as known
 where known.waits_for = 'handler'
   and known.definition = any (
       %(definitions)s::text[] || array(select key from mainspring.definitions
                                         where kind = any (%(kinds)s::text[])))
   and not exists (select from mainspring.set_aside as aside
                    where aside.duty = 'release_known' and aside.key = known.job_id
                      and aside.again_at > now() offset 0)
 limit %(limit)s;

-- name: expire
-- scope: system
-- Cancels jobs that did not start before their deadline; some jobs only if given. Leaves out what
-- is set aside.
with late as (
    delete from mainspring.jobs as job
     where job.ctid = any (array(
        select due.ctid from mainspring.jobs as due
         where due.deadline_at <= coalesce(%(now)s::timestamptz, now()) and due.state <> 'running'
           and coalesce(due.job_id = any (%(chosen)s::bigint[]), true)
           and not exists (select from mainspring.set_aside as aside
                            where aside.duty = 'expire' and aside.key = due.job_id
                              and aside.again_at > now() offset 0)
         order by due.deadline_at limit %(limit)s for update of due skip locked))
    returning job, job.tenant_id, job.queue, job.definition
), changed as (
    insert into mainspring.changes (tenant_id, queue, definition, moved, state, count)
    select tenant_id, queue, definition, 'ended', 'canceled', count(*) from late
     group by tenant_id, queue, definition
)
insert into mainspring.jobs_history
select past.* from late, lateral mainspring.history_of(
    late.job, 'canceled', started_at => (late.job).started_at,
    error => 'its deadline passed before it could start') as past
returning job_id;

-- name: find_late
-- scope: system
-- The jobs that expire would cancel.
select due.job_id from mainspring.jobs as due
 where due.deadline_at <= coalesce(%(now)s::timestamptz, now()) and due.state <> 'running'
   and not exists (select from mainspring.set_aside as aside
                    where aside.duty = 'expire' and aside.key = due.job_id
                      and aside.again_at > now() offset 0)
 order by due.deadline_at limit %(limit)s;

-- name: settle_cancels
-- scope: system
-- Ends jobs that were asked to cancel while they ran and came back to queued instead; some jobs
-- only if given. Leaves out what is set aside.
select mainspring.settle_cancel(asked.job_id) from mainspring.jobs as asked
 where asked.cancel_requested_at is not null and asked.state <> 'running'
   and coalesce(asked.job_id = any (%(chosen)s::bigint[]), true)
   and not exists (select from mainspring.set_aside as aside
                    where aside.duty = 'settle_cancels' and aside.key = asked.job_id
                      and aside.again_at > now() offset 0)
 limit %(limit)s;

-- name: find_canceled
-- scope: system
-- The jobs that settle_cancels would end.
select asked.job_id from mainspring.jobs as asked
 where asked.cancel_requested_at is not null and asked.state <> 'running'
   and not exists (select from mainspring.set_aside as aside
                    where aside.duty = 'settle_cancels' and aside.key = asked.job_id
                      and aside.again_at > now() offset 0)
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
