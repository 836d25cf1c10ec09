-- name: discover
-- scope: system
-- The lanes (queue, priority, tenant) that hold ready jobs, each with its first and the weight of
-- its tenant: a loose scan over the ready index that costs one probe a lane, not one a job. Leaves
-- out paused queues.
with recursive lane as (
    select first.* from unnest(%(queues)s::text[]) as wanted (queue), lateral (
        select job.queue, job.priority, job.tenant_id, job.job_id from mainspring.jobs as job
         where job.queue = wanted.queue and job.state = 'queued' and job.waits_for is null
         order by job.priority, job.tenant_id, job.job_id limit 1) as first
     where wanted.queue <> all (array(select paused.name from mainspring.paused_queues as paused))
    union all
    select next.* from lane, lateral (
        select job.queue, job.priority, job.tenant_id, job.job_id from mainspring.jobs as job
         where job.queue = lane.queue
           and (job.priority, job.tenant_id) > (lane.priority, lane.tenant_id)
           and job.state = 'queued' and job.waits_for is null
         order by job.priority, job.tenant_id, job.job_id limit 1) as next
)
select lane.priority, lane.tenant_id, lane.queue, lane.job_id,
       coalesce((select tenant.weight from mainspring.tenants as tenant
                  where tenant.tenant_id = lane.tenant_id), 1)
  from lane;

-- name: claim
-- scope: system
-- Claims up to :limit jobs, lane by lane in the order given, of each its share from behind its
-- mark, up to an id. None of a paused queue: which those are is read once, from a tiny table. Rows
-- are addressed by ctid so that the plan cannot turn into a join over the whole table. A worker
-- whose lease ran out gets none: its jobs have been taken back, so these would be left. By the
-- clock, because the transaction of a speculative claim may have begun before a pause, and before
-- what the job waited for ended.
update mainspring.jobs as job
   set state = 'running', worker_id = %(worker_id)s::bigint,
       fence = (select nextval('mainspring.fences')), started_at = clock_timestamp(),
       attempt = job.attempt + 1, probed_at = null
 where (select expires_at > clock_timestamp() from mainspring.workers
         where worker_id = %(worker_id)s::bigint)
   and job.ctid = any (array(
    select ready.ctid
      from unnest(%(queues)s::text[], %(priorities)s::smallint[], %(tenants)s::text[],
                  %(marks)s::bigint[], %(untils)s::bigint[], %(shares)s::integer[])
           as lane (queue, priority, tenant_id, mark, until, share),
           lateral (
               select waiting.ctid from mainspring.jobs as waiting
                where waiting.queue = lane.queue and waiting.priority = lane.priority
                  and waiting.tenant_id = lane.tenant_id
                  and waiting.job_id > lane.mark and waiting.job_id <= lane.until
                  and waiting.state = 'queued' and waiting.waits_for is null
                  and waiting.cancel_requested_at is null
                  and (waiting.deadline_at is null or waiting.deadline_at > clock_timestamp())
                order by waiting.job_id limit lane.share for update skip locked) as ready
     where lane.queue <> all (array(select paused.name from mainspring.paused_queues as paused))
     limit %(limit)s))
returning job.job_id, job.fence, job.definition, job.payload::text, job.attempt, job.failures,
          job.losses, job.max_attempts, job.queue, job.priority, job.tenant_id,
          case when job.checkpoint is null and job.correlation_id is null and job.tags is null
                    and job.origin is null and job.cancel_requested_at is null
                    and job.suspected_at is null and job.losses = 0 and job.delivery is null
                    and (job.limit_name is null
                         or job.limit_name <> all (array(
                             select known.name from mainspring.limits as known
                              where known.rate_count is not null)))
               then null
               else jsonb_build_object(
                   'checkpoint', job.checkpoint, 'correlation_id', job.correlation_id,
                   'tags', job.tags, 'origin', job.origin, 'slot_at', job.slot_at,
                   'is_suspect', job.suspected_at is not null or job.losses > 0,
                   'runs_once', job.delivery is not null,
                   'is_rated', job.limit_name = any (array(
                       select known.name from mainspring.limits as known
                        where known.rate_count is not null))) end::text,
          job.limit_name, job.limit_key,
          job.definition_version;

-- name: find_ready
-- scope: system
-- The jobs that claim would take; it is asked for after one of them made a claim fail. Leaves out
-- what is set aside.
select lane.priority, lane.tenant_id, lane.queue, ready.job_id
  from unnest(%(queues)s::text[], %(priorities)s::smallint[], %(tenants)s::text[],
              %(marks)s::bigint[], %(untils)s::bigint[], %(shares)s::integer[])
       as lane (queue, priority, tenant_id, mark, until, share),
       lateral (
           select waiting.job_id from mainspring.jobs as waiting
            where waiting.queue = lane.queue and waiting.priority = lane.priority
              and waiting.tenant_id = lane.tenant_id
              and waiting.job_id > lane.mark and waiting.job_id <= lane.until
              and waiting.state = 'queued' and waiting.waits_for is null
              and not exists (select from mainspring.set_aside as aside
                               where aside.duty = 'claim' and aside.key = waiting.job_id
                                 and aside.again_at > now() offset 0)
            order by waiting.job_id limit lane.share) as ready
 where lane.queue <> all (array(select paused.name from mainspring.paused_queues as paused))
 limit %(limit)s;

-- name: finish_succeeded
-- scope: system
-- Moves succeeded jobs to history with their attempt rows, and with the progress that is not
-- stored yet; of that there may be fewer than jobs. Returns null when all reports were
-- accepted, else the leases that were; the others' lease is not the newest. And which of the jobs
-- others wait for. A fence is set only while a job runs, so the state need not be asked, which
-- would tempt the planner to walk the index of all that run.
with reported as (
    select * from unnest(%(job_ids)s::bigint[], %(fences)s::bigint[], %(waits)s::bigint[],
                         %(runs)s::bigint[], %(results)s::text[], %(progress)s::text[])
        as report (job_id, fence, waited, ran, result, progress)
), ended as (
    delete from mainspring.jobs as job using reported
     where job.job_id = reported.job_id and job.fence = reported.fence
       and (select expires_at > clock_timestamp() from mainspring.workers
             where worker_id = %(worker_id)s::bigint)
    returning job, job.job_id, job.fence, job.worker_id, job.attempt, job.tenant_id, job.queue,
              job.definition,
              job.started_at + reported.waited * interval '1 microsecond' as began_at,
              job.started_at + (reported.waited + reported.ran) * interval '1 microsecond'
              as done_at, reported.result::jsonb as answer,
              reported.progress::jsonb as last_progress,
              greatest(0, date_part('epoch', job.started_at - coalesce(
                  job.ready_at, job.scheduled_for)) + reported.waited / 1e6::float8) as wait,
              reported.ran / 1e6::float8 as run
), archived as (
    insert into mainspring.jobs_history
    select past.* from ended, lateral mainspring.history_of(
        ended.job, 'succeeded', started_at => began_at, result => answer,
        finished_at => done_at, progress => last_progress) as past
), recorded as (
    insert into mainspring.attempts
        (job_id, fence, worker_id, started_at, finished_at, number, status)
    select job_id, fence, worker_id, began_at, done_at, attempt, 'succeeded' from ended
), changed as (
    insert into mainspring.changes (tenant_id, queue, definition, moved, state, attempt, count,
        day, wait_sum, wait_worst, run_sum, run_worst, stride, waits, runs)
    select tenant_id, queue, definition, 'ended', 'succeeded', 'succeeded', count(*),
           mainspring.day_of(done_at), sum(wait), max(wait), sum(run), max(run), stride,
           array_agg(mainspring.bucket_number(wait)) filter (where job_id %% stride = 0),
           array_agg(mainspring.bucket_number(run)) filter (where job_id %% stride = 0)
      from ended, mainspring.stride_of(%(count)s::bigint) as stride
     group by tenant_id, queue, definition, mainspring.day_of(done_at), stride
)
select case when count(*) < %(count)s
            then coalesce(array_agg(array[job_id, fence]), '{}') end,
       array(select parent_id from mainspring.dependencies as child
              where child.parent_id = any (%(job_ids)s::bigint[]) and child.outcome is null)
  from ended;

-- name: finish_ended
-- scope: system
-- Moves jobs that failed for good or were canceled to history with their attempt rows, and with
-- what a SQL function answered although it declined; and notes the failures by key, of each of
-- which there is one sample. Returns what finish_succeeded does.
with reported as (
    select * from unnest(%(job_ids)s::bigint[], %(fences)s::bigint[], %(waits)s::bigint[],
                         %(runs)s::bigint[], %(states)s::mainspring.job_state[],
                         %(statuses)s::mainspring.attempt_outcome[], %(errors)s::text[],
                         %(failures)s::integer[], %(losses)s::integer[], %(results)s::text[],
                         %(progress)s::text[], %(error_keys)s::text[])
        as report (job_id, fence, waited, ran, end_state, status, error, failed, lost, result,
                   progress, error_key)
), ended as (
    delete from mainspring.jobs as job using reported
     where job.job_id = reported.job_id and job.fence = reported.fence
       and (select expires_at > clock_timestamp() from mainspring.workers
             where worker_id = %(worker_id)s::bigint)
    returning job, job.job_id, job.fence, job.worker_id, job.attempt, job.tenant_id, job.queue,
              job.definition,
              job.started_at + reported.waited * interval '1 microsecond' as began_at,
              job.started_at + (reported.waited + reported.ran) * interval '1 microsecond'
              as done_at, reported.end_state, reported.status, reported.error, reported.failed,
              job.losses + reported.lost as losses, reported.result::jsonb as answer,
              reported.progress::jsonb as last_progress, reported.error_key, job.tags,
              date_part('epoch', job.started_at - coalesce(job.ready_at, job.scheduled_for))
              + reported.waited / 1e6::float8 as wait, reported.ran / 1e6::float8 as run
), archived as (
    insert into mainspring.jobs_history
    select past.* from ended, lateral mainspring.history_of(
        ended.job, end_state, started_at => began_at, result => answer, failed => ended.failed,
        losses => ended.losses, error => ended.error, finished_at => done_at,
        progress => last_progress) as past
), recorded as (
    insert into mainspring.attempts
        (job_id, fence, worker_id, started_at, finished_at, number, status, error, error_key)
    select job_id, fence, worker_id, began_at, done_at, attempt, status, error, error_key from ended
), changed as (
    insert into mainspring.changes
    select change.*
      from (select array_agg(tenant_id) as tenants, array_agg(queue) as queues,
                   array_agg(definition) as definitions, array_agg(end_state) as states,
                   array_agg(status) as attempts, array_agg(wait) as waits,
                   array_agg(run) as runs, array_agg(mainspring.day_of(done_at)) as days
              from ended) as all_ended,
           lateral mainspring.changes_of(
               tenants, queues, definitions, states, attempts, waits, runs, days) as change
), failed as (
    insert into mainspring.failures
        (tenant_id, queue, definition, error_key, sample, count, job_ids, tags)
    select tenant_id, queue, definition, error_key, min(sample), count(*),
           mainspring.newest_jobs(array_agg(job_id)),
           mainspring.tags_of(jsonb_agg(tags) filter (where tags is not null))
      from ended
      join unnest(%(known_keys)s::text[], %(samples)s::text[]) as known (error_key, sample)
           using (error_key)
     group by tenant_id, queue, definition, error_key
)
select case when count(*) < %(count)s
            then coalesce(array_agg(array[job_id, fence]), '{}') end,
       array(select parent_id from mainspring.dependencies as child
              where child.parent_id = any (%(job_ids)s::bigint[]) and child.outcome is null)
  from ended;

-- name: finish_requeued
-- scope: system
-- Puts jobs that failed with attempts left, were snoozed or interrupted, or lost a process of their
-- own back to queued, due after their delay in microseconds, with their attempt rows, and notes the
-- failures by key, with one sample of each; and notifies whom requeue_jobs would, and idle workers
-- of the queues that have ready work again. One that runs at most once and has begun is refused
-- unless its handler asks for another run. Returns what finish_succeeded does. A fast path of
-- requeue_jobs, which would lock each job and then look for it again; test_finishing.py compares
-- the two. When a job was ready and started is read beside the change, as it was before.
with reported as (
    select * from unnest(%(job_ids)s::bigint[], %(fences)s::bigint[], %(waits)s::bigint[],
                         %(runs)s::bigint[], %(statuses)s::mainspring.attempt_outcome[],
                         %(errors)s::text[], %(failures)s::integer[], %(losses)s::integer[],
                         %(delays)s::bigint[], %(error_keys)s::text[])
        as report (job_id, fence, waited, ran, status, error, failed, lost, delay, error_key)
), requeued as (
    update mainspring.jobs as job
       set state = 'queued', fence = null, worker_id = null, started_at = null, progress = null,
           waits_for = case when reported.delay > 0 then 'time'
                            else mainspring.wait_of(job.limit_name) end,
           scheduled_for = now() + reported.delay * interval '1 microsecond', ready_at = null,
           failures = job.failures + reported.failed, losses = job.losses + reported.lost,
           suspected_at = case when reported.lost = 0 then job.suspected_at
                               else coalesce(job.suspected_at, now()) end,
           last_error = coalesce(reported.error, job.last_error)
      from reported
     where job.job_id = reported.job_id and job.fence = reported.fence
       and (job.delivery is null or reported.status = 'snoozed'
            or job.begun_fence is distinct from job.fence)
       and (select expires_at > clock_timestamp() from mainspring.workers
             where worker_id = %(worker_id)s::bigint)
    returning job.job_id, reported.fence, job.attempt, reported.waited, reported.ran,
              reported.status, reported.error, job.queue, job.waits_for, job.limit_name,
              job.limit_key, job.tenant_id, job.definition, job.tags, reported.error_key,
              (select array[running.started_at, coalesce(running.ready_at, running.scheduled_for)]
                 from mainspring.jobs as running where running.job_id = job.job_id) as before
), recorded as (
    insert into mainspring.attempts
        (job_id, fence, worker_id, started_at, finished_at, number, status, error, error_key)
    select job_id, fence, %(worker_id)s::bigint, before[1] + waited * interval '1 microsecond',
           before[1] + (waited + ran) * interval '1 microsecond', attempt, status, error,
           error_key
      from requeued
), changed as (
    insert into mainspring.changes
    select change.*
      from (select array_agg(tenant_id) as tenants, array_agg(queue) as queues,
                   array_agg(definition) as definitions,
                   array_agg(null::mainspring.job_state) as states, array_agg(status) as attempts,
                   array_agg(date_part('epoch', before[1] - before[2]) + waited / 1e6::float8)
                       as waits,
                   array_agg(ran / 1e6::float8) as runs
              from requeued) as all_requeued,
           lateral mainspring.changes_of(
               tenants, queues, definitions, states, attempts, waits, runs) as change
), failed as (
    insert into mainspring.failures
        (tenant_id, queue, definition, error_key, sample, count, job_ids, tags)
    select tenant_id, queue, definition, error_key, min(sample), count(*),
           mainspring.newest_jobs(array_agg(job_id)),
           mainspring.tags_of(jsonb_agg(tags) filter (where tags is not null))
      from requeued
      join unnest(%(known_keys)s::text[], %(samples)s::text[]) as known (error_key, sample)
           using (error_key)
     group by tenant_id, queue, definition, error_key
), notified as (
    select mainspring.notify_limit(limit_name, limit_key, tenant_id)
      from (select distinct limit_name, limit_key, tenant_id from requeued
             where limit_name is not null) as freed
    union all
    select mainspring.notify_job_ready(queue)
      from (select distinct queue from requeued where waits_for is null) as ready
)
select case when count(*) < %(count)s
            then coalesce(array_agg(array[job_id, fence]), '{}') end,
       (select count(*) from notified)
  from requeued;

-- name: hand_back
-- scope: system
-- Puts claimed jobs that never began back to queued, as if they had not been claimed; with
-- :waits_for they wait for what it names.
with held as materialized (
    select job.job_id, job.queue
      from mainspring.jobs as job
      join unnest(%(job_ids)s::bigint[], %(fences)s::bigint[]) as claimed (job_id, fence)
        on claimed.job_id = job.job_id and claimed.fence = job.fence
       for update of job
), requeued as materialized (
    select array_agg(queue) as queues,
           mainspring.requeue_jobs(
               array_agg(job_id), array_agg(%(waits_for)s::mainspring.waits_for),
               have_begun => false)
      from held
)
select unnest(queues) from requeued;

-- name: record_late_reports
-- scope: system
-- Keeps what a worker reported after its lease was lost; it changes nothing else. Returns the
-- jobs whose reports were kept, and the reports of attempts that nobody has closed yet.
with report as (
    select * from unnest(%(job_ids)s::bigint[], %(fences)s::bigint[],
                         %(statuses)s::mainspring.attempt_outcome[])
        as report (job_id, fence, status)
), kept as (
    update mainspring.attempts as attempt
       set late_report = report.status, late_report_at = now()
      from report
     where attempt.job_id = report.job_id and attempt.fence = report.fence
       and attempt.status = 'lost'
    returning attempt.job_id
)
select array(select job_id from kept),
       array(select array[report.job_id, report.fence] from report
              where not exists (select from mainspring.attempts as attempt
                                 where attempt.job_id = report.job_id
                                   and attempt.fence = report.fence));

-- name: cancel_requests
-- scope: system
-- The running jobs of a worker that were asked to stop. The offset keeps the planner at the
-- small index of such jobs, away from the one of all that run.
select job_id, fence, last_error
  from (select * from mainspring.jobs where cancel_requested_at is not null offset 0) as asked
 where state = 'running' and worker_id = %(worker_id)s::bigint;

-- name: held_by
-- scope: system
-- The running jobs of a worker beyond those it knows of: claims whose answer was lost.
select job_id, fence from mainspring.jobs
 where state = 'running' and worker_id = %(worker_id)s::bigint
   and job_id <> all (%(known)s::bigint[]);

-- name: mark_alone
-- scope: system
-- Says that a suspect is about to begin with nothing beside it, so that the death of its worker is
-- its own fault.
update mainspring.jobs set alone_fence = fence
 where job_id = %(job_id)s::bigint and fence = %(fence)s::bigint
returning job_id;

-- name: mark_begun
-- scope: system
-- Says that jobs which run at most once are about to begin, so that they are not run again if their
-- worker dies. Returns those that are still under this lease.
update mainspring.jobs as job set begun_fence = job.fence
  from unnest(%(job_ids)s::bigint[], %(fences)s::bigint[]) as beginning (job_id, fence)
 where job.job_id = beginning.job_id and job.fence = beginning.fence
returning job.job_id;

-- name: lock_lease
-- scope: system
-- Keeps a job under this lease until the transaction ends; no row means that the lease was lost.
select job_id from mainspring.jobs
 where job_id = %(job_id)s::bigint and fence = %(fence)s::bigint for update;

-- name: end_with_lease
-- scope: system
-- Ends this session if its transaction is idle until the lease of its worker runs out.
select set_config('idle_in_transaction_session_timeout', (
    select greatest(1000, coalesce(least(2000000000,
               (extract(epoch from max(expires_at) - clock_timestamp()) * 1000)::bigint), 0))::text
      from mainspring.workers where worker_id = %(worker_id)s::bigint), true);

-- name: report_progress
-- scope: system
-- Stores how far running jobs are, many at a time; reports of older leases find no row. A handler
-- may hold its job's row locked for as long as its transaction lasts, so a locked row is left, and
-- its report returned.
with report as (
    select * from unnest(%(job_ids)s::bigint[], %(fences)s::bigint[], %(progress)s::text[])
        as report (job_id, fence, progress)
), held as materialized (
    select job.job_id, job.fence from mainspring.jobs as job join report using (job_id, fence)
       for update of job skip locked
), stored as (
    update mainspring.jobs as job set progress = report.progress::jsonb
      from report join held using (job_id, fence)
     where job.job_id = report.job_id and job.fence = report.fence
)
select job_id, fence from report
 where (job_id, fence) not in (select job_id, fence from held)
   and exists (select from mainspring.jobs as job
                where job.job_id = report.job_id and job.fence = report.fence);

-- name: store_progress
-- scope: system
-- Stores how far one running job is, once its row is free; no row means that the lease was lost.
update mainspring.jobs set progress = %(progress)s::jsonb
 where job_id = %(job_id)s::bigint and fence = %(fence)s::bigint
returning job_id;

-- name: save_checkpoint
-- scope: system
-- Stores where the next attempt may start from; no row means that the lease was lost.
update mainspring.jobs set checkpoint = %(checkpoint)s::jsonb
 where job_id = %(job_id)s::bigint and fence = %(fence)s::bigint
returning job_id;
