-- name: enqueue
-- scope: tenant
-- Enqueues one job in the caller's transaction.
select job_id, is_new from mainspring.enqueue_job(
    definition => %(definition)s, payload => %(payload)s::jsonb);

-- name: enqueue_plainly
-- scope: tenant
-- Enqueues one job with the definition's defaults, on a connection of our own: a function call
-- would cost a quarter more server time. Inserts nothing if anything is wrong; then enqueue says
-- what. A fast path of internal/enqueue.sql.
insert into mainspring.jobs (
    queue, definition, definition_version, priority, payload, max_attempts)
select defined.queue, defined.key, defined.version, defined.priority, %(payload)s::jsonb,
       defined.max_attempts
  from mainspring.definitions as defined
 where defined.key = %(definition)s and defined.is_active and defined.is_plain
   and jsonb_typeof(%(payload)s::jsonb) = 'object'
returning job_id, true, case when exists (
    select from mainspring.workers as worker
     where worker.wants_wake and jobs.queue = any (worker.queues))
    then mainspring.send_message(mainspring.ready_message(jobs.queue, jobs.scheduled_for))
    when exists (
    select from mainspring.workers as worker where jobs.queue = any (worker.queues))
    then mainspring.notify_lane(jobs.queue, jobs.priority, jobs.tenant_id, jobs.job_id) end;

-- name: enqueue_with_options
-- scope: tenant
-- Enqueues one job in the caller's transaction, with everything an enqueue may say.
select job_id, is_new from mainspring.enqueue_job(
    definition => %(definition)s,
    payload => %(payload)s::jsonb,
    tenant => %(tenant_id)s,
    queue => %(queue)s,
    priority => %(priority)s::integer,
    max_attempts => %(max_attempts)s::integer,
    scheduled_for => %(scheduled_for)s::timestamptz,
    delay => %(delay)s::interval,
    deadline => %(deadline)s::timestamptz,
    dedupe_key => %(dedupe_key)s,
    dedupe_by => %(dedupe_by)s,
    dedupe_window => %(dedupe_window)s::interval,
    idempotency_key => %(idempotency_key)s,
    on_duplicate => %(on_duplicate)s,
    correlation_id => %(correlation_id)s,
    tags => %(tags)s::text[],
    limit_key => %(limit_key)s,
    approvals_needed => %(approvals_needed)s::integer,
    after => %(after)s::bigint[],
    on_parent_failure => %(on_parent_failure)s,
    created_by => %(created_by)s,
    source => %(source)s,
    delivery => %(delivery)s);

-- name: enqueue_as
-- scope: tenant
-- The same for the bearer of a token, who is let in by the statement itself: two statements in a
-- transaction would cost a server of the API half as much again. The job comes along as JSON text.
with entered as materialized (select mainspring.enter(%(digest)s) as is_in)
select job_id, is_new, mainspring.enqueued_text(job_id)
  from entered, lateral mainspring.enqueue_job(
    definition => %(definition)s,
    payload => %(payload)s::jsonb,
    tenant => case when entered.is_in then %(tenant_id)s::text end,
    queue => %(queue)s,
    priority => %(priority)s::integer,
    max_attempts => %(max_attempts)s::integer,
    scheduled_for => %(scheduled_for)s::timestamptz,
    delay => %(delay)s::interval,
    deadline => %(deadline)s::timestamptz,
    dedupe_key => %(dedupe_key)s,
    dedupe_by => %(dedupe_by)s,
    dedupe_window => %(dedupe_window)s::interval,
    idempotency_key => %(idempotency_key)s,
    on_duplicate => %(on_duplicate)s,
    correlation_id => %(correlation_id)s,
    tags => %(tags)s::text[],
    limit_key => %(limit_key)s,
    approvals_needed => %(approvals_needed)s::integer,
    after => %(after)s::bigint[],
    on_parent_failure => %(on_parent_failure)s,
    created_by => %(created_by)s,
    source => %(source)s,
    delivery => %(delivery)s);

-- name: enqueue_many
-- scope: tenant
-- Enqueues one job per payload; the payloads come as one text array, the cheapest way in.
select mainspring.enqueue_many(
    definition => %(definition)s,
    payloads => %(payloads)s::text[]::jsonb[],
    tenant => %(tenant_id)s,
    queue => %(queue)s,
    priority => %(priority)s::integer,
    max_attempts => %(max_attempts)s::integer,
    scheduled_for => %(scheduled_for)s::timestamptz,
    delay => %(delay)s::interval,
    deadline => %(deadline)s::timestamptz,
    dedupe_keys => %(dedupe_keys)s::text[],
    correlation_id => %(correlation_id)s,
    tags => %(tags)s::text[],
    limit_key => %(limit_key)s,
    approvals_needed => %(approvals_needed)s::integer,
    created_by => %(created_by)s,
    source => %(source)s,
    delivery => %(delivery)s) as job_id;

-- name: prepare_bulk
-- scope: tenant
-- Decides what the rows of a bulk enqueue have in common and takes their ids. Who creates them is
-- asked here, since COPY would ask for each row.
select job_version, job_queue, job_priority, job_max_attempts, due_at::text,
       due_at > clock_timestamp() as waits, mainspring.creator() as created_by, is_plain, first_id,
       last_id, job_ids
  from mainspring.prepare_bulk(
       %(definition)s, %(count)s::integer, %(tenant_id)s, %(queue)s, %(priority)s::integer,
       %(max_attempts)s::integer, %(scheduled_for)s::timestamptz, %(delay)s::interval,
       %(deadline)s::timestamptz);

-- name: copy_jobs
-- scope: tenant
-- Writes the rows of a bulk enqueue; about twice as fast as an insert of arrays. A fast path of
-- internal/enqueue.sql.
copy mainspring.jobs (
    job_id, payload, tenant_id, queue, definition, definition_version, priority, max_attempts,
    scheduled_for, waits_for, deadline_at, correlation_id, tags, created_by)
from stdin;

-- name: announce
-- scope: tenant
-- Informs workers of jobs that were enqueued.
select mainspring.notify_enqueued(
    %(queue)s, %(priority)s::integer, %(tenant_id)s, %(first_id)s::bigint,
    %(due_at)s::timestamptz);

-- name: cancel
-- scope: tenant
-- Cancels a job that has not started; asks a running one to stop.
select mainspring.cancel(%(job_id)s::bigint, %(reason)s, %(tenant_id)s) as state;

-- name: retry
-- scope: tenant
-- Puts a failed, dead-lettered or canceled job back to queued.
select mainspring.retry(%(job_id)s::bigint, %(payload)s::jsonb, %(tenant_id)s) as job_id;

-- name: delete
-- scope: tenant
-- Removes a job that is not running, with its attempts.
select mainspring.delete_job(%(job_id)s::bigint, %(tenant_id)s);

-- name: get
-- scope: tenant
-- One job, live or finished, and the worker of the last attempt of one that has finished.
select job.*, last.worker_id as last_worker_id
  from mainspring.job_status as job
  left join lateral (
           select attempt.worker_id from mainspring.attempt_status as attempt
            where attempt.job_id = job.job_id
              and job.finished_at is not null and job.attempt > 0
              and attempt.finished_at >= coalesce(job.started_at, job.created_at)
            order by attempt.number desc, attempt.finished_at desc limit 1) as last on true
 where job.job_id = %(job_id)s::bigint and job.tenant_id = %(tenant_id)s;

-- name: list_jobs
-- scope: tenant
-- Newest first, before a job id if given, of those that match the filter. It looks at so many jobs
-- at the most, however rare those are that match; list_jobs_edge says where it would go on. The
-- columns are named, so that the whole last_error does not leave the database.
select job_id, tenant_id, definition, queue, state, waits_for, priority, source, created_by,
       created_at, scheduled_for, started_at, finished_at, deadline_at, cancel_requested_at,
       attempt, failures, max_attempts, dedupe_key, correlation_id, tags, progress, error_line,
       delivery, schedule, slot_at, trigger, worker_id, definition_version
  from (
    select * from mainspring.job_summaries
     where tenant_id = %(tenant_id)s and (%(before)s::bigint is null or job_id < %(before)s::bigint)
     order by job_id desc
     limit %(most)s) as seen
 where mainspring.job_matches(
           %(filter)s::jsonb, state, queue, definition, source, tags, created_at, last_error)
   and mainspring.origin_matches(
           %(filter)s::jsonb, created_by, schedule, slot_at, trigger, worker_id,
           definition_version)
   and mainspring.error_matches(
           %(filter)s::jsonb, job_id, state, attempt, created_at, finished_at)
 order by job_id desc
 limit %(limit)s;

-- name: list_jobs_edge
-- scope: tenant
-- The last job that list_jobs looks at; no row if it sees all there are.
select job_id from mainspring.job_status
 where tenant_id = %(tenant_id)s and (%(before)s::bigint is null or job_id < %(before)s::bigint)
 order by job_id desc
offset %(most)s::bigint - 1 limit 1;

-- name: list_unsuccessful_jobs
-- scope: tenant
-- The same of jobs that ended in one state without success, which are rare and have an index.
select job_id, tenant_id, definition, queue, state, waits_for, priority, source, created_by,
       created_at, scheduled_for, started_at, finished_at, deadline_at, cancel_requested_at,
       attempt, failures, max_attempts, dedupe_key, correlation_id, tags, progress, error_line,
       delivery, schedule, slot_at, trigger, worker_id, definition_version
  from (
    select * from mainspring.job_summaries
     where tenant_id = %(tenant_id)s and (%(before)s::bigint is null or job_id < %(before)s::bigint)
       and finished_at is not null and state <> 'succeeded'
       and state = %(state)s::text::mainspring.job_state
     order by job_id desc
     limit %(most)s) as seen
 where mainspring.job_matches(
           %(filter)s::jsonb, state, queue, definition, source, tags, created_at, last_error)
   and mainspring.origin_matches(
           %(filter)s::jsonb, created_by, schedule, slot_at, trigger, worker_id,
           definition_version)
   and mainspring.error_matches(
           %(filter)s::jsonb, job_id, state, attempt, created_at, finished_at)
 order by job_id desc
 limit %(limit)s;

-- name: list_unsuccessful_jobs_edge
-- scope: tenant
-- The last job that list_unsuccessful_jobs looks at; no row if it sees all there are.
select job_id from mainspring.job_status
 where tenant_id = %(tenant_id)s and (%(before)s::bigint is null or job_id < %(before)s::bigint)
   and finished_at is not null and state <> 'succeeded'
   and state = %(state)s::text::mainspring.job_state
 order by job_id desc
offset %(most)s::bigint - 1 limit 1;

-- name: list_created_jobs
-- scope: tenant
-- The same of jobs that someone created, in any tenant if none is given.
select job_id, tenant_id, definition, queue, state, waits_for, priority, source, created_by,
       created_at, scheduled_for, started_at, finished_at, deadline_at, cancel_requested_at,
       attempt, failures, max_attempts, dedupe_key, correlation_id, tags, progress, error_line,
       delivery, schedule, slot_at, trigger, worker_id, definition_version
  from (
    select * from mainspring.job_summaries
     where (%(tenant_id)s::text is null or tenant_id = %(tenant_id)s::text)
       and (%(before)s::bigint is null or job_id < %(before)s::bigint)
       and creator = %(created_by)s
     order by job_id desc
     limit %(most)s) as seen
 where mainspring.job_matches(
           %(filter)s::jsonb, state, queue, definition, source, tags, created_at, last_error)
   and mainspring.origin_matches(
           %(filter)s::jsonb, created_by, schedule, slot_at, trigger, worker_id,
           definition_version)
   and mainspring.error_matches(
           %(filter)s::jsonb, job_id, state, attempt, created_at, finished_at)
 order by job_id desc
 limit %(limit)s;

-- name: list_created_jobs_edge
-- scope: tenant
-- The last job that list_created_jobs looks at; no row if it sees all there are.
select job_id from mainspring.job_status
 where (%(tenant_id)s::text is null or tenant_id = %(tenant_id)s::text)
   and (%(before)s::bigint is null or job_id < %(before)s::bigint)
   and creator = %(created_by)s
 order by job_id desc
offset %(most)s::bigint - 1 limit 1;

-- name: list_scheduled_jobs
-- scope: tenant
-- The same of jobs of a schedule, in any tenant if none is given. So ordered, and not for one
-- value, no index but that of schedules fits: along the others a rare schedule is a long walk. The
-- tenant is looked at last for the same reason; a schedule has only one.
select job_id, tenant_id, definition, queue, state, waits_for, priority, source, created_by,
       created_at, scheduled_for, started_at, finished_at, deadline_at, cancel_requested_at,
       attempt, failures, max_attempts, dedupe_key, correlation_id, tags, progress, error_line,
       delivery, schedule, slot_at, trigger, worker_id, definition_version
  from (
    select * from mainspring.job_summaries
     where (%(before)s::bigint is null or job_id < %(before)s::bigint)
       and schedule_id between %(schedule_id)s::bigint and %(schedule_id)s::bigint
     order by schedule_id desc, job_id desc
     limit %(most)s) as seen
 where (%(tenant_id)s::text is null or tenant_id = %(tenant_id)s::text)
   and mainspring.job_matches(
           %(filter)s::jsonb, state, queue, definition, source, tags, created_at, last_error)
   and mainspring.origin_matches(
           %(filter)s::jsonb, created_by, schedule, slot_at, trigger, worker_id,
           definition_version)
   and mainspring.error_matches(
           %(filter)s::jsonb, job_id, state, attempt, created_at, finished_at)
 order by schedule_id desc, job_id desc
 limit %(limit)s;

-- name: list_scheduled_jobs_edge
-- scope: tenant
-- The last job that list_scheduled_jobs looks at; no row if it sees all there are.
select job_id from mainspring.job_status
 where (%(before)s::bigint is null or job_id < %(before)s::bigint)
   and schedule_id between %(schedule_id)s::bigint and %(schedule_id)s::bigint
 order by schedule_id desc, job_id desc
offset %(most)s::bigint - 1 limit 1;

-- name: list_chosen_jobs
-- scope: tenant
-- The same of jobs whose ids are given, in any tenant if none is given.
select job_id, tenant_id, definition, queue, state, waits_for, priority, source, created_by,
       created_at, scheduled_for, started_at, finished_at, deadline_at, cancel_requested_at,
       attempt, failures, max_attempts, dedupe_key, correlation_id, tags, progress, error_line,
       delivery, schedule, slot_at, trigger, worker_id, definition_version
  from (
    select * from mainspring.job_summaries
     where (%(tenant_id)s::text is null or tenant_id = %(tenant_id)s::text)
       and job_id = any (%(job_ids)s::bigint[])) as seen
 where mainspring.job_matches(
           %(filter)s::jsonb, state, queue, definition, source, tags, created_at, last_error)
   and mainspring.origin_matches(
           %(filter)s::jsonb, created_by, schedule, slot_at, trigger, worker_id,
           definition_version)
   and mainspring.error_matches(
           %(filter)s::jsonb, job_id, state, attempt, created_at, finished_at)
 order by job_id desc
 limit %(limit)s;

-- name: related_jobs
-- scope: tenant
-- The newest jobs of flows, of events, of parents or of a worker, before a job id if given.
select job_id from mainspring.job_relations
 where relation = %(relation)s and id = any (%(ids)s::bigint[])
   and (%(before)s::bigint is null or job_id < %(before)s::bigint)
 order by job_id desc limit %(most)s;

-- name: follow_ups
-- scope: tenant
-- The newest jobs that some jobs enqueued while they ran, before a job id if given.
select job_id from mainspring.job_status
 where creator = any (%(creators)s::text[])
   and (%(before)s::bigint is null or job_id < %(before)s::bigint)
 order by job_id desc limit %(most)s;

-- name: schedules_named
-- scope: tenant
-- The schedules of some names, in any tenant if none is given.
select name, schedule_id from mainspring.schedules
 where name = any (%(names)s::text[])
   and (%(tenant_id)s::text is null or tenant_id = %(tenant_id)s::text);

-- name: list_jobs_everywhere
-- scope: system
-- The same over all tenants.
select job_id, tenant_id, definition, queue, state, waits_for, priority, source, created_by,
       created_at, scheduled_for, started_at, finished_at, deadline_at, cancel_requested_at,
       attempt, failures, max_attempts, dedupe_key, correlation_id, tags, progress, error_line,
       delivery, schedule, slot_at, trigger, worker_id, definition_version
  from (
    select * from mainspring.job_summaries
     where (%(before)s::bigint is null or job_id < %(before)s::bigint)
     order by job_id desc
     limit %(most)s) as seen
 where mainspring.job_matches(
           %(filter)s::jsonb, state, queue, definition, source, tags, created_at, last_error)
   and mainspring.origin_matches(
           %(filter)s::jsonb, created_by, schedule, slot_at, trigger, worker_id,
           definition_version)
   and mainspring.error_matches(
           %(filter)s::jsonb, job_id, state, attempt, created_at, finished_at)
 order by job_id desc
 limit %(limit)s;

-- name: list_jobs_everywhere_edge
-- scope: system
-- The last job that list_jobs_everywhere looks at; no row if it sees all there are.
select job_id from mainspring.job_status
 where (%(before)s::bigint is null or job_id < %(before)s::bigint)
 order by job_id desc
offset %(most)s::bigint - 1 limit 1;

-- name: list_unsuccessful_jobs_everywhere
-- scope: system
-- The same over all tenants of jobs that ended in one state without success.
select job_id, tenant_id, definition, queue, state, waits_for, priority, source, created_by,
       created_at, scheduled_for, started_at, finished_at, deadline_at, cancel_requested_at,
       attempt, failures, max_attempts, dedupe_key, correlation_id, tags, progress, error_line,
       delivery, schedule, slot_at, trigger, worker_id, definition_version
  from (
    select * from mainspring.job_summaries
     where (%(before)s::bigint is null or job_id < %(before)s::bigint)
       and finished_at is not null and state <> 'succeeded'
       and state = %(state)s::text::mainspring.job_state
     order by job_id desc
     limit %(most)s) as seen
 where mainspring.job_matches(
           %(filter)s::jsonb, state, queue, definition, source, tags, created_at, last_error)
   and mainspring.origin_matches(
           %(filter)s::jsonb, created_by, schedule, slot_at, trigger, worker_id,
           definition_version)
   and mainspring.error_matches(
           %(filter)s::jsonb, job_id, state, attempt, created_at, finished_at)
 order by job_id desc
 limit %(limit)s;

-- name: list_unsuccessful_jobs_everywhere_edge
-- scope: system
-- The last job that list_unsuccessful_jobs_everywhere looks at; no row if it sees all there are.
select job_id from mainspring.job_status
 where (%(before)s::bigint is null or job_id < %(before)s::bigint)
   and finished_at is not null and state <> 'succeeded'
   and state = %(state)s::text::mainspring.job_state
 order by job_id desc
offset %(most)s::bigint - 1 limit 1;

-- name: load_listed_jobs
-- scope: tenant
-- Jobs of a list with all that is kept of them.
select * from mainspring.job_status
 where job_id = any (%(job_ids)s::bigint[])
   and (%(tenant_id)s::text is null or tenant_id = %(tenant_id)s::text);

-- name: load_relations
-- scope: tenant
-- The event, the flow, the parents and the error key of jobs of a list. Not a part of the list,
-- which may look at many more jobs than it shows.
select job_id, event_id, flow_id, parent_ids, error_key from mainspring.job_status
 where job_id = any (%(job_ids)s::bigint[]);

-- name: attempts
-- scope: tenant
-- The attempts of a job, first to last, a running one included: the latest 1000. Of all but the
-- latest 20, there is no output and only the beginning of the error.
with listed as (
    select attempt.*, row_number() over (
               order by attempt.number desc, attempt.started_at desc) as age
      from mainspring.attempt_status as attempt
      join mainspring.job_status as job using (job_id)
     where attempt.job_id = %(job_id)s::bigint and job.tenant_id = %(tenant_id)s
     order by age limit 1000
)
select job_id, number, status, worker_id, pid, started_at, finished_at, exit_code,
       case when age <= 20 then error else left(error, 200) end as error,
       case when age <= 20 then stdout_tail end as stdout_tail,
       case when age <= 20 then stderr_tail end as stderr_tail, late_report, late_report_at,
       error_key
  from listed order by number, started_at;
