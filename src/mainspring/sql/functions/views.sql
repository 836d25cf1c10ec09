-- The read-only views of the SQL door. Tables are private; these stay stable.

create or replace view mainspring.job_status as
select job_id, tenant_id, definition, queue, state, waits_for, priority, payload, created_at,
       scheduled_for, started_at, finished_at, deadline_at, cancel_requested_at, attempt, failures,
       losses, max_attempts, dedupe_key, correlation_id, tags, progress, checkpoint, result,
       last_error, worker_id
  from mainspring.jobs
union all
select job_id, tenant_id, definition, queue, state, waits_for, priority, payload, created_at,
       scheduled_for, started_at, finished_at, deadline_at, cancel_requested_at, attempt, failures,
       losses, max_attempts, dedupe_key, correlation_id, tags, progress, checkpoint, result,
       last_error, worker_id
  from mainspring.jobs_history;

create or replace view mainspring.attempt_status as
select attempt.job_id, attempt.number, attempt.status, attempt.worker_id, attempt.pid,
       attempt.started_at, attempt.finished_at, attempt.exit_code, attempt.error,
       attempt.stdout_tail, attempt.stderr_tail, attempt.late_report, attempt.late_report_at
  from mainspring.attempts as attempt
union all
select job.job_id, job.attempt, 'running'::mainspring.attempt_outcome, job.worker_id, worker.pid,
       job.started_at, null, null, null, null, null, null, null
  from mainspring.jobs as job
  left join mainspring.workers as worker using (worker_id)
 where job.state = 'running';

create or replace view mainspring.queue_status as
select tenant_id, queue,
       count(*) filter (where state = 'queued' and waits_for is null) as ready,
       count(*) filter (where state = 'queued' and waits_for is not null) as waiting,
       count(*) filter (where state = 'running') as running,
       count(*) filter (where state in ('blocked', 'awaiting_approval')) as held,
       min(scheduled_for) filter (where state = 'queued' and waits_for is null) as oldest_ready_at
  from mainspring.jobs
 group by tenant_id, queue;

create or replace view mainspring.worker_status as
select worker_id, name, host, pid, queues, concurrency, version, started_at, renewed_at, expires_at,
       is_stopping, expires_at > now() as is_alive
  from mainspring.workers;
