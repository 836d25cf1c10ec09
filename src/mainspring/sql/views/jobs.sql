-- Views are what SQL callers read. Tables are private; the views stay stable.
--
-- What workers write is redacted before it leaves them. Payloads and checkpoints are handed to
-- handlers as they are, so here is where their secrets are kept from readers. Jobs of definitions
-- without secrets pay for a look into a small set, made once a query.

-- Jobs of all tenants. For views and functions alone, which isolate tenants themselves.
create or replace view mainspring.all_jobs as
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
       attempt, failures, losses, max_attempts,
       -- Earlier releases made keys of content that a short secret could be guessed from.
       case when dedupe_key ~ '^(content|trigger:[0-9]+):[0-9a-f]{32}$'
            then regexp_replace(dedupe_key, '[^:]+$', '[redacted]') else dedupe_key end
       as dedupe_key,
       correlation_id, tags, progress,
       case when checkpoint is not null
                 and definition in (select key from mainspring.definition_versions
                                     where secret_paths is not null)
            then '"[redacted]"' else checkpoint end as checkpoint,
       result, last_error, worker_id, schedule_id, slot_at, origin, definition_version,
       created_by, mainspring.source_of(schedule_id, created_by) as source
  from (
    select job_id, tenant_id, definition, queue, state, waits_for, priority, payload, created_at,
           scheduled_for, started_at, finished_at, deadline_at, cancel_requested_at, attempt,
           failures, losses, max_attempts, dedupe_key, correlation_id, tags, progress, checkpoint,
           result, last_error, worker_id, schedule_id, slot_at, origin, definition_version,
           created_by
      from mainspring.jobs
    union all
    select job_id, tenant_id, definition, queue, state, waits_for, priority, payload, created_at,
           scheduled_for, started_at, finished_at, deadline_at, cancel_requested_at, attempt,
           failures, losses, max_attempts, dedupe_key, correlation_id, tags, progress, checkpoint,
           result, last_error, worker_id, schedule_id, slot_at, origin, definition_version,
           created_by
      from mainspring.jobs_history) as job;

-- Isolates tenants here and not in the view above: a part of a union that has a condition of its
-- own is read whole.
create or replace view mainspring.job_status as
select * from mainspring.all_jobs
 where mainspring.is_visible(tenant_id) and mainspring.is_own(created_by);

-- What lists show of a job: nothing that may be large. A list that names its columns does not read
-- the payload, the result or the checkpoint at all.
create or replace view mainspring.job_summaries as
select job_id, tenant_id, definition, queue, state, waits_for, priority, source, created_by,
       created_at, scheduled_for, started_at, finished_at, deadline_at, cancel_requested_at,
       attempt, failures, losses, max_attempts, dedupe_key, correlation_id, tags,
       case when progress is not null then jsonb_build_object(
                'current', progress->'current', 'total', progress->'total',
                'message', left(progress->>'message', 200)) end as progress,
       left(last_error, 200) as error_line, last_error
  from mainspring.job_status;
