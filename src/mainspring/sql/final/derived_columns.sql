-- What functions and triggers derive, brought up to date in rows that an older release wrote.

-- Those that were stored before it mattered.
update mainspring.definitions set is_plain = false where key like 'mainspring.%' and is_plain;

-- Definitions that were written before their secrets were looked for.
update mainspring.definition_versions set secret_paths = mainspring.secret_paths(arg_schema)
 where arg_schema is not null
   and secret_paths is distinct from mainspring.secret_paths(arg_schema);
update mainspring.definitions set schema_key = mainspring.schema_key_of(arg_schema)
 where schema_key <> mainspring.schema_key_of(arg_schema);
update mainspring.definitions set secret_paths = mainspring.secret_paths(arg_schema)
 where arg_schema is not null
   and secret_paths is distinct from mainspring.secret_paths(arg_schema);

-- Keys of live jobs by content, which were a plain digest of the payload. One that someone holds is
-- about to end; to wait for it could be a deadlock.
with held as materialized (
    select job_id, mainspring.renewed_key(
               dedupe_key, mainspring.earlier_contents(tenant_id, definition, payload, payload),
               mainspring.content_digest(tenant_id, definition, payload)) as dedupe_key
      from mainspring.jobs
     where dedupe_key ~ '^(content|trigger:[0-9]+):[0-9a-f]{32}$'
       for update skip locked
)
update mainspring.jobs as job set dedupe_key = held.dedupe_key
  from held
 where job.job_id = held.job_id and not exists (
    select from mainspring.jobs as other
     where other.tenant_id = job.tenant_id and other.dedupe_key = held.dedupe_key);

-- The same of windows that are still open.
with held as materialized (
    select kept.tenant_id, kept.key, mainspring.renewed_key(
               kept.key, mainspring.earlier_contents(
                   job.tenant_id, job.definition, job.payload, job.payload),
               mainspring.content_digest(job.tenant_id, job.definition, job.payload)) as new_key
      from mainspring.enqueue_keys as kept,
           lateral (select tenant_id, definition, payload from mainspring.jobs as live
                     where live.job_id = kept.job_id
                    union all
                    select tenant_id, definition, payload from mainspring.jobs_history as ended
                     where ended.job_id = kept.job_id) as job
     where kept.kind = 'window' and kept.expires_at > now()
       and kept.key ~ '^(content|trigger:[0-9]+):[0-9a-f]{32}$'
)
update mainspring.enqueue_keys as kept set key = held.new_key
  from held
 where kept.tenant_id = held.tenant_id and kept.kind = 'window' and kept.key = held.key
   and not exists (
    select from mainspring.enqueue_keys as other
     where other.tenant_id = kept.tenant_id and other.kind = 'window'
       and other.key = held.new_key);

-- Schedules whose jobs do not say yet which launcher created them.
update mainspring.schedules
   set origin = jsonb_build_object('schedule', name, 'launcher', launcher)
 where launcher is not null and origin ->> 'launcher' is distinct from launcher;
