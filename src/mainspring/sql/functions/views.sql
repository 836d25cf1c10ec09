-- The read-only views of the SQL door. Tables are private; these stay stable.
--
-- What workers write is redacted before it leaves them. Payloads and checkpoints are handed to
-- handlers as they are, so here is where their secrets are kept from readers. Jobs of definitions
-- without secrets pay for a look into a small set, made once a query.

-- For views alone, which build their own wall.
create or replace view mainspring.unwalled_jobs as
select job_id, tenant_id, definition, queue, state, waits_for, priority,
       case when definition in (select key from mainspring.definition_versions
                                 where secret_paths is not null)
            then mainspring.redacted(payload, (
                select jsonb_agg(distinct path)
                  from mainspring.definition_versions as kept
                  left join mainspring.definitions as defined using (key),
                       lateral jsonb_array_elements(kept.secret_paths) as path
                 where kept.key = job.definition
                   and kept.version in (job.definition_version, defined.version)))
            else payload end as payload,
       created_at, scheduled_for, started_at, finished_at, deadline_at, cancel_requested_at,
       attempt, failures, losses, max_attempts, dedupe_key, correlation_id, tags, progress,
       case when checkpoint is not null
                 and definition in (select key from mainspring.definition_versions
                                     where secret_paths is not null)
            then '"[redacted]"' else checkpoint end as checkpoint,
       result, last_error, worker_id, schedule_id, slot_at, origin, definition_version,
       created_by, mainspring.source_of(schedule_id, created_by) as source
  from mainspring.jobs as job
union all
select job_id, tenant_id, definition, queue, state, waits_for, priority,
       case when definition in (select key from mainspring.definition_versions
                                 where secret_paths is not null)
            then mainspring.redacted(payload, (
                select jsonb_agg(distinct path)
                  from mainspring.definition_versions as kept
                  left join mainspring.definitions as defined using (key),
                       lateral jsonb_array_elements(kept.secret_paths) as path
                 where kept.key = job.definition
                   and kept.version in (job.definition_version, defined.version)))
            else payload end as payload,
       created_at, scheduled_for, started_at, finished_at, deadline_at, cancel_requested_at,
       attempt, failures, losses, max_attempts, dedupe_key, correlation_id, tags, progress,
       case when checkpoint is not null
                 and definition in (select key from mainspring.definition_versions
                                     where secret_paths is not null)
            then '"[redacted]"' else checkpoint end as checkpoint,
       result, last_error, worker_id, schedule_id, slot_at, origin, definition_version,
       created_by, mainspring.source_of(schedule_id, created_by) as source
  from mainspring.jobs_history as job;

-- The wall is not in the view above: a part of a union that has a condition of its own is read whole.
create or replace view mainspring.job_status as
select * from mainspring.unwalled_jobs
 where mainspring.is_visible(tenant_id) and mainspring.is_own(created_by);

create or replace view mainspring.attempt_status as
select attempt.job_id, attempt.number, attempt.status, attempt.worker_id,
       coalesce(output.pid, worker.pid) as pid, attempt.started_at, attempt.finished_at,
       output.exit_code, attempt.error, output.stdout_tail, output.stderr_tail,
       attempt.late_report, attempt.late_report_at
  from mainspring.attempts as attempt
  left join mainspring.workers as worker using (worker_id)
  left join mainspring.outputs as output using (job_id, fence)
 where (select current_setting('role') <> 'mainspring_app')
    or exists (select from mainspring.job_status as seen where seen.job_id = attempt.job_id)
union all
select job.job_id, job.attempt, 'running'::mainspring.attempt_outcome, job.worker_id,
       coalesce(output.pid, worker.pid), job.started_at, null, output.exit_code, null,
       output.stdout_tail, output.stderr_tail, null, null
  from mainspring.jobs as job
  left join mainspring.workers as worker using (worker_id)
  left join mainspring.outputs as output using (job_id, fence)
 where job.state = 'running'
   and mainspring.is_visible(job.tenant_id) and mainspring.is_own(job.created_by);

create or replace view mainspring.queue_status as
select tenant_id, queue,
       count(*) filter (where state = 'queued' and waits_for is null) as ready,
       count(*) filter (where state = 'queued' and waits_for is not null) as waiting,
       count(*) filter (where state = 'running') as running,
       count(*) filter (where state in ('blocked', 'awaiting_approval')) as held,
       min(scheduled_for) filter (where state = 'queued' and waits_for is null) as oldest_ready_at
  from mainspring.jobs
 where mainspring.is_visible(tenant_id) and mainspring.is_own(created_by)
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
        from mainspring.queue_status group by tenant_id) as live using (tenant_id)
 where mainspring.is_visible(tenant.tenant_id);

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
                  coalesce(figures.seconds_total, 0) + coalesce(fresh.seconds, 0) as seconds) as runs
 where mainspring.is_visible(schedule.tenant_id);

create or replace view mainspring.slot_status as
select slot.schedule_id, schedule.tenant_id, schedule.name, slot.scheduled_for, slot.outcome,
       slot.trigger, slot.reason, slot.missed, slot.job_id, slot.fired_at, slot.run_state,
       slot.started_at, slot.finished_at,
       extract(epoch from slot.fired_at - slot.scheduled_for)::float as lateness_seconds,
       extract(epoch from slot.finished_at - slot.started_at)::float as seconds
  from mainspring.slots as slot
  join mainspring.schedules as schedule using (schedule_id)
 where mainspring.is_visible(schedule.tenant_id);

create or replace view mainspring.limit_status as
select known.name, known.concurrency, known.key_concurrency, known.rate_count,
       extract(epoch from known.rate_period)::float as rate_seconds, known.burst,
       (select count(*) from mainspring.jobs as job
         where job.limit_name = known.name and job.waits_for is null
           and job.state = 'running') as running,
       (select count(*) from mainspring.jobs as job
         where job.limit_name = known.name and job.waits_for = 'limit') as waiting,
       known.created_at, known.updated_at
  from mainspring.limits as known;

create or replace view mainspring.approval_status as
select approval.job_id, approval.tenant_id, job.definition, job.payload, job.state,
       approval.needed, approval.approvers, approval.requested_at, approval.expires_at,
       approval.decision, approval.decided_at,
       (select count(*) from mainspring.votes as vote
         where vote.job_id = approval.job_id and vote.is_approval) as approvals,
       (select coalesce(jsonb_agg(jsonb_build_object(
                   'actor', vote.actor, 'is_approval', vote.is_approval, 'reason', vote.reason,
                   'voted_at', vote.voted_at) order by vote.voted_at), '[]')
          from mainspring.votes as vote where vote.job_id = approval.job_id) as votes
  from mainspring.approvals as approval
  join mainspring.unwalled_jobs as job using (job_id)
 where mainspring.is_visible(approval.tenant_id)
   -- A member sees what it is asked to decide on as well, of which it may see no more than this.
   and (mainspring.is_own(job.created_by)
        or approval.approvers && nullif(current_setting('mainspring.approver', true), '')::text[]);

create or replace view mainspring.dependency_status as
select dependency.job_id, dependency.parent_id, dependency.on_failure, dependency.outcome,
       parent.tenant_id, parent.definition, parent.state, parent.result, parent.last_error,
       member.step
  from mainspring.dependencies as dependency
  left join mainspring.job_status as parent on parent.job_id = dependency.parent_id
  left join mainspring.flow_jobs as member on member.job_id = dependency.parent_id
 where (select current_setting('role') <> 'mainspring_app')
    or exists (select from mainspring.job_status as seen where seen.job_id = dependency.job_id);

create or replace view mainspring.flow_status as
select flow.flow_id, flow.tenant_id, flow.name, flow.created_at, counted.*,
       case when counted.live > 0 then 'running'
            when counted.failed + counted.dead_letter > 0 then 'failed'
            when counted.canceled > 0 then 'canceled'
            else 'succeeded' end as state
  from mainspring.flows as flow, lateral (
           select count(*) as jobs,
                  count(*) filter (where job.finished_at is null) as live,
                  count(*) filter (where job.state = 'blocked') as blocked,
                  count(*) filter (where job.state = 'running') as running,
                  count(*) filter (where job.state = 'succeeded') as succeeded,
                  count(*) filter (where job.state = 'failed') as failed,
                  count(*) filter (where job.state = 'dead_letter') as dead_letter,
                  count(*) filter (where job.state = 'canceled') as canceled,
                  case when bool_and(job.finished_at is not null) then max(job.finished_at) end
                      as finished_at
             from mainspring.flow_jobs as member
             join mainspring.job_status as job using (job_id)
            where member.flow_id = flow.flow_id) as counted
 where mainspring.is_visible(flow.tenant_id) and mainspring.is_own(flow.created_by);

create or replace view mainspring.flow_job_status as
select member.flow_id, member.step, job.job_id, job.tenant_id, job.definition, job.state,
       job.waits_for, job.started_at, job.finished_at, job.last_error,
       array(select dependency.parent_id from mainspring.dependencies as dependency
              where dependency.job_id = job.job_id order by 1) as parent_ids
  from mainspring.flow_jobs as member
  join mainspring.job_status as job using (job_id);

create or replace view mainspring.trigger_status as
select trigger.trigger_id, trigger.tenant_id, trigger.name, trigger.event, trigger.definition,
       case when trigger.definition in (select key from mainspring.definitions
                                         where secret_paths is not null)
            then mainspring.redacted(trigger.payload, (
                select defined.secret_paths from mainspring.definitions as defined
                 where defined.key = trigger.definition))
            else trigger.payload end as payload,
       trigger.unknown_paths, trigger.dedupe_window, trigger.queue,
       trigger.priority, trigger.is_enabled, trigger.created_at, trigger.updated_at,
       newest.dispatched_at as last_dispatched_at, newest.outcome as last_outcome,
       newest.event_id as last_event_id, newest.job_id as last_job_id, newest.error as last_error
  from mainspring.triggers as trigger
  left join lateral (
       select dispatch.dispatched_at, dispatch.outcome, dispatch.event_id, dispatch.job_id,
              dispatch.error
         from mainspring.dispatches as dispatch
        where dispatch.trigger_id = trigger.trigger_id
        -- What one batch wrote has one instant.
        order by dispatch.dispatched_at desc, dispatch.event_id desc limit 1) as newest on true
 where mainspring.is_visible(trigger.tenant_id);

create or replace view mainspring.dispatch_status as
select dispatch.event_id, event.tenant_id, event.name as event, dispatch.trigger_id,
       dispatch.trigger_name, dispatch.replay, dispatch.outcome, dispatch.job_id, dispatch.error,
       dispatch.dispatched_at
  from mainspring.dispatches as dispatch
  join mainspring.events as event using (event_id)
 where mainspring.is_visible(event.tenant_id);

create or replace view mainspring.event_status as
select event.event_id, event.tenant_id, event.name,
       mainspring.shown_value(event.context) as context, event.correlation_id,
       event.emitted_at, event.handled_at, event.replays, came.jobs, came.duplicates,
       came.failures, came.last_error
  from mainspring.events as event,
       lateral (
           select count(*) filter (where newest.outcome = 'enqueued') as jobs,
                  count(*) filter (where newest.outcome = 'duplicate') as duplicates,
                  count(*) filter (where newest.outcome = 'failed') as failures,
                  (array_agg(newest.error order by newest.dispatched_at desc, newest.trigger_id)
                      filter (where newest.outcome = 'failed'))[1] as last_error
             -- A replay that went well makes good for what failed before.
             from (select distinct on (dispatch.trigger_id) dispatch.*
                     from mainspring.dispatches as dispatch
                    where dispatch.event_id = event.event_id
                    order by dispatch.trigger_id, dispatch.replay desc) as newest) as came
 where mainspring.is_visible(event.tenant_id);

create or replace view mainspring.person_status as
select name, role, tenant_id, disabled_at is not null as is_disabled, created_at, created_by,
       last_seen_at
  from mainspring.people
 where mainspring.is_visible(tenant_id);

create or replace view mainspring.token_status as
select token.token_id, token.name, token.prefix, coalesce(person.role, token.role) as role,
       token.tenant_id, token.scopes, token.person,
       case when token.revoked_at is not null or person.disabled_at is not null then 'revoked'
            when token.expires_at <= now() then 'expired' else 'active' end as state,
       token.created_at, token.created_by, token.expires_at, token.last_used_at, token.revoked_at
  from mainspring.tokens as token
  left join mainspring.people as person on person.name = token.person
 where token.kind = 'token' and mainspring.is_visible(token.tenant_id);

-- Whom a token lets in now, for the API alone.
create or replace view mainspring.bearers as
select token.token_id, token.digest, token.kind, coalesce(person.role, token.role) as role,
       token.tenant_id, token.scopes, coalesce(token.person, token.name) as actor,
       -- As which approvers it counts. A token does not count as the person that it is named after.
       array['role:' || coalesce(person.role, token.role)]
       || case when token.person is not null then array[token.person]
               when not exists (select from mainspring.people as other
                                 where other.name = token.name) then array[token.name]
          end as approver
  from mainspring.tokens as token
  left join mainspring.people as person on person.name = token.person
 where token.kind <> 'login' and token.revoked_at is null and person.disabled_at is null
   and (token.expires_at is null or token.expires_at > now());

create or replace view mainspring.tally_status as
select tenant_id, day, state, count from mainspring.tallies where mainspring.is_visible(tenant_id)
union all
select tenant_id, day, state, count from mainspring.tally_changes
 where mainspring.is_visible(tenant_id);

create or replace view mainspring.audit_status as
select audit_id, at, tenant_id, actor, action, noun, subject, reason, before, after
  from mainspring.audit
 where mainspring.is_visible(tenant_id);

-- What is closed to everyone without a grant; this file is the last to be laid.
revoke execute on all functions in schema mainspring from public;

-- Whoever reads a view needs the right to call what it calls. These look at nothing but what they
-- are given.
grant execute on function mainspring.redacted, mainspring.redacted_at, mainspring.is_visible,
    mainspring.is_own, mainspring.source_of to public;
