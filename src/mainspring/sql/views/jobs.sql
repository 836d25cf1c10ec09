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
       mainspring.creator_of(created_by, schedule_id, origin) as created_by,
       coalesce(source, mainspring.source_of(schedule_id, created_by)) as source,
       coalesce(delivery, 'at_least_once') as delivery,
       -- As it is stored, by which it is found.
       created_by as creator,
       case when schedule_id is not null then coalesce(
           (select schedule.name from mainspring.schedules as schedule
             where schedule.schedule_id = job.schedule_id), origin ->> 'schedule') end as schedule,
       mainspring.trigger_of(created_by) as trigger,
       case when created_by like 'trigger:%' then (
           select dispatch.event_id from mainspring.dispatches as dispatch
            where dispatch.job_id = job.job_id and dispatch.outcome = 'enqueued'
            order by dispatch.dispatched_at limit 1) end as event_id,
       (select member.flow_id from mainspring.flow_jobs as member
         where member.job_id = job.job_id limit 1) as flow_id,
       array(select dependency.parent_id from mainspring.dependencies as dependency
              where dependency.job_id = job.job_id
             union
             select substr(created_by, 5)::bigint where created_by ~ '^job:[0-9]{1,18}$'
             order by 1) as parent_ids,
       -- Of the last failed attempt, as in has_error_key. The days are a bound for partitions.
       case when state <> 'canceled' and attempt > 0 then (
           select past.error_key from mainspring.attempts as past
            where past.job_id = job.job_id and past.error_key is not null
              and past.finished_at >= job.created_at - interval '1 minute'
              and past.finished_at <= coalesce(job.finished_at, now()) + interval '1 minute'
            order by past.number desc, past.finished_at desc limit 1) end as error_key
  from (
    select job_id, tenant_id, definition, queue, state, waits_for, priority, payload, created_at,
           scheduled_for, started_at, finished_at, deadline_at, cancel_requested_at, attempt,
           failures, losses, max_attempts, dedupe_key, correlation_id, tags, progress, checkpoint,
           result, last_error, worker_id, schedule_id, slot_at, origin, definition_version,
           created_by, source, delivery
      from mainspring.jobs
    union all
    select job_id, tenant_id, definition, queue, state, waits_for, priority, payload, created_at,
           scheduled_for, started_at, finished_at, deadline_at, cancel_requested_at, attempt,
           failures, losses, max_attempts, dedupe_key, correlation_id, tags, progress, checkpoint,
           result, last_error, worker_id, schedule_id, slot_at, origin, definition_version,
           created_by, source, delivery
      from mainspring.jobs_history) as job;

-- Isolates tenants here and not in the view above: a part of a union that has a condition of its
-- own is read whole.
create or replace view mainspring.job_status as
select * from mainspring.all_jobs
 where mainspring.is_visible(tenant_id) and mainspring.is_own(creator);

-- What lists show of a job: nothing that may be large. A list that names its columns does not read
-- the payload, the result or the checkpoint at all.
create or replace view mainspring.job_summaries as
select job_id, tenant_id, definition, queue, state, waits_for, priority, source, created_by,
       created_at, scheduled_for, started_at, finished_at, deadline_at, cancel_requested_at,
       attempt, failures, losses, max_attempts, dedupe_key, correlation_id, tags,
       case when progress is not null then jsonb_build_object(
                'current', progress->'current', 'total', progress->'total',
                'message', left(progress->>'message', 200)) end as progress,
       mainspring.error_line(last_error) as error_line, last_error, delivery, creator, schedule_id,
       schedule, slot_at, trigger, worker_id, definition_version
  from mainspring.job_status;

-- The jobs of a flow, of an event, those that wait or waited for a parent, and those that a worker
-- runs. Each part of the parents has an index of its own.
create or replace view mainspring.job_relations as
select known.relation, known.id, known.job_id
  from (select 'flow_id' as relation, flow_id as id, job_id from mainspring.flow_jobs
        union all
        select 'event_id', event_id, job_id from mainspring.dispatches where outcome = 'enqueued'
        union all
        select 'parent_id', parent_id, job_id from mainspring.dependencies where outcome is null
        union all
        select 'parent_id', parent_id, job_id from mainspring.dependencies
         where outcome is not null
        union all
        select 'worker_id', worker_id, job_id from mainspring.jobs where state = 'running'
       ) as known
 where (select not mainspring.is_isolated())
    or exists (select from mainspring.job_status as seen where seen.job_id = known.job_id);
