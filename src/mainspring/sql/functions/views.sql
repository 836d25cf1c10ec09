-- The read-only views of the SQL door. Tables are private; these stay stable.

create or replace view mainspring.job_status as
select job_id, tenant_id, definition, queue, state, waits_for, priority, payload, created_at,
       scheduled_for, started_at, finished_at, deadline_at, cancel_requested_at, attempt, failures,
       losses, max_attempts, dedupe_key, correlation_id, tags, progress, checkpoint, result,
       last_error, worker_id, schedule_id, slot_at, origin, definition_version
  from mainspring.jobs
union all
select job_id, tenant_id, definition, queue, state, waits_for, priority, payload, created_at,
       scheduled_for, started_at, finished_at, deadline_at, cancel_requested_at, attempt, failures,
       losses, max_attempts, dedupe_key, correlation_id, tags, progress, checkpoint, result,
       last_error, worker_id, schedule_id, slot_at, origin, definition_version
  from mainspring.jobs_history;

create or replace view mainspring.attempt_status as
select attempt.job_id, attempt.number, attempt.status, attempt.worker_id,
       coalesce(output.pid, worker.pid) as pid, attempt.started_at, attempt.finished_at,
       output.exit_code, attempt.error, output.stdout_tail, output.stderr_tail,
       attempt.late_report, attempt.late_report_at
  from mainspring.attempts as attempt
  left join mainspring.workers as worker using (worker_id)
  left join mainspring.outputs as output using (job_id, fence)
union all
select job.job_id, job.attempt, 'running'::mainspring.attempt_outcome, job.worker_id,
       coalesce(output.pid, worker.pid), job.started_at, null, output.exit_code, null,
       output.stdout_tail, output.stderr_tail, null, null
  from mainspring.jobs as job
  left join mainspring.workers as worker using (worker_id)
  left join mainspring.outputs as output using (job_id, fence)
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

create or replace view mainspring.tenant_status as
select tenant.tenant_id, tenant.weight, tenant.max_running,
       coalesce(live.ready, 0)::bigint as ready, coalesce(live.waiting, 0)::bigint as waiting,
       coalesce(live.running, 0)::bigint as running, coalesce(live.held, 0)::bigint as held,
       tenant.created_at
  from mainspring.tenants as tenant
  left join (
      select tenant_id, sum(ready) as ready, sum(waiting) as waiting, sum(running) as running,
             sum(held) as held
        from mainspring.queue_status group by tenant_id) as live using (tenant_id);

create or replace view mainspring.worker_status as
select worker_id, name, host, pid, queues, concurrency, version, started_at, renewed_at, expires_at,
       is_stopping, expires_at > now() as is_alive
  from mainspring.workers;

create or replace view mainspring.schedule_status as
select schedule.schedule_id, schedule.tenant_id, schedule.name, schedule.description,
       schedule.enabled, schedule.disabled_reason, schedule.paused_until,
       schedule.definition, schedule.cron, schedule.every, schedule.at, schedule.zone,
       schedule.launcher, schedule.overlap, schedule.catch_up,
       case when clock.next_run_at > 'epoch' then clock.next_run_at end as next_run_at,
       clock.last_enqueued_at as last_run_at,
       coalesce(fresh.last_run_state, figures.last_run_state) = 'succeeded' as last_run_success,
       runs.succeeded + runs.unsuccessful as total_runs,
       runs.succeeded as successful_runs,
       runs.unsuccessful as failed_runs,
       clock.skipped_count as skipped_slots,
       clock.missed_count as missed_slots,
       clock.failed_count as failed_launches,
       round(100.0 * runs.succeeded / nullif(runs.succeeded + runs.unsuccessful, 0), 1)
           as success_rate_percent,
       runs.seconds / nullif(runs.succeeded + runs.unsuccessful, 0) as average_seconds,
       greatest(figures.seconds_worst, fresh.seconds_worst) as worst_seconds,
       extract(epoch from clock.lateness_total)::float
           / nullif(clock.enqueued_count + clock.skipped_count, 0) as average_lateness_seconds,
       extract(epoch from clock.lateness_worst)::float as worst_lateness_seconds,
       clock.retry_count, schedule.max_retries, clock.last_error, clock.last_failed_at,
       schedule.created_at, schedule.updated_at
  from mainspring.schedules as schedule
  join mainspring.clocks as clock using (schedule_id)
  left join mainspring.schedule_figures as figures using (schedule_id),
       lateral (
           -- What has ended since the figures were last counted.
           select count(*) filter (where slot.run_state = 'succeeded')
                      - count(*) filter (where slot.counted_as = 'succeeded') as succeeded,
                  count(*) filter (where slot.run_state <> 'succeeded')
                      - count(*) filter (where slot.counted_as <> 'succeeded') as unsuccessful,
                  sum(extract(epoch from slot.finished_at - slot.started_at)) as seconds,
                  max(extract(epoch from slot.finished_at - slot.started_at))::float
                      as seconds_worst,
                  (array_agg(slot.run_state order by slot.finished_at desc)
                      filter (where slot.run_state is not null))[1] as last_run_state
             from mainspring.slots as slot
            where slot.schedule_id = schedule.schedule_id
              and slot.run_state is distinct from slot.counted_as) as fresh,
       lateral (
           select coalesce(figures.succeeded, 0) + fresh.succeeded as succeeded,
                  coalesce(figures.unsuccessful, 0) + fresh.unsuccessful as unsuccessful,
                  coalesce(figures.seconds_total, 0) + coalesce(fresh.seconds, 0) as seconds) as runs;

create or replace view mainspring.slot_status as
select slot.schedule_id, schedule.tenant_id, schedule.name, slot.scheduled_for, slot.outcome,
       slot.trigger, slot.reason, slot.missed, slot.job_id, slot.fired_at, slot.run_state,
       slot.started_at, slot.finished_at,
       extract(epoch from slot.fired_at - slot.scheduled_for)::float as lateness_seconds,
       extract(epoch from slot.finished_at - slot.started_at)::float as seconds
  from mainspring.slots as slot
  join mainspring.schedules as schedule using (schedule_id);

-- What is closed to everyone without a grant; this file is the last to be laid.
revoke execute on all functions in schema mainspring from public;
