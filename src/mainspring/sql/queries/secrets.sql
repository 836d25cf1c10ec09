-- name: paths_of_definitions
-- scope: system
-- Where payloads hold secrets, by definition; those that hold none are left out.
select key, secret_paths::text from mainspring.definitions
 where key = any (%(keys)s::text[]) and secret_paths is not null;

-- name: paths_of_job
-- scope: tenant
-- The definition of a job and where its payload holds secrets.
select definition, coalesce(mainspring.paths_of(definition, definition_version), '[]')::text
  from mainspring.job_status
 where job_id = %(job_id)s::bigint and tenant_id = %(tenant_id)s;

-- name: secrets_of_job
-- scope: tenant
-- The definition of a live job, where its payload holds secrets, and the payload as its handler
-- gets it, for what is kept free of them; no row for a job without any.
select job.definition, coalesce(known.paths, '[]')::text, job.payload::text
  from mainspring.jobs as job,
       lateral (select mainspring.paths_of(job.definition, job.definition_version)) as known (paths)
 where job.job_id = %(job_id)s::bigint and job.tenant_id = %(tenant_id)s
   and (known.paths is not null or job.payload::text like '%%"$mainspring": "encrypted"%%');

-- name: real_payload
-- scope: tenant
-- The payload of a schedule as its jobs get it, for what is made from it; no person sees it.
select definition, payload::text from mainspring.schedules
 where tenant_id = %(tenant_id)s and name = %(name)s;

-- name: stored_payloads
-- scope: tenant
-- The payloads of schedules as their jobs get them, and as code declared them; no person sees them.
select schedule.tenant_id, schedule.name, schedule.payload::text,
       (schedule.declared -> 'payload')::text
  from unnest(%(tenant_ids)s::text[], %(names)s::text[]) as given (tenant_id, name)
  join mainspring.schedules as schedule using (tenant_id, name);

-- name: encrypted_jobs
-- scope: system
-- Live jobs with encrypted values, by id, after one if given.
select job_id, tenant_id, definition, payload::text from mainspring.jobs
 where job_id > %(after)s::bigint and payload::text like '%%"$mainspring": "encrypted"%%'
 order by job_id limit %(limit)s;

-- name: reencrypt_jobs
-- scope: system
-- Replaces payloads of live jobs that are still as they were read, and what is made of them: keys
-- by content, and fingerprints of requests. One that someone holds right now is left out.
with given as (
    select * from unnest(%(job_ids)s::bigint[], %(before)s::text[]::jsonb[],
                         %(after)s::text[]::jsonb[], %(was_compared_by)s::text[]::jsonb[],
                         %(is_compared_by)s::text[]::jsonb[])
                  as given (job_id, before, after, was_compared_by, is_compared_by)
), held as materialized (
    select job.job_id, job.tenant_id, given.before, given.after, job.dedupe_key,
           mainspring.content_digest(job.tenant_id, job.definition, given.is_compared_by)
           as content,
           mainspring.earlier_contents(
               job.tenant_id, job.definition, given.before, given.was_compared_by) as earlier
      from mainspring.jobs as job join given using (job_id)
     where job.payload = given.before
       for update of job skip locked
), renewed as (
    select job_id, tenant_id, after,
           mainspring.renewed_key(dedupe_key, earlier, content) as dedupe_key,
           row_number() over (partition by tenant_id, content order by job_id) as turn
      from held
), changed as (
    update mainspring.jobs as job
       set payload = renewed.after,
           dedupe_key = case when renewed.turn > 1 or exists (
                select from mainspring.jobs as other
                 where other.tenant_id = job.tenant_id and other.dedupe_key = renewed.dedupe_key)
                then job.dedupe_key else renewed.dedupe_key end
      from renewed where job.job_id = renewed.job_id
    returning job.job_id
), known as (
    update mainspring.enqueue_keys as kept
       set fingerprint = mainspring.renewed_request(kept, held.earlier, held.content),
           key = mainspring.renewed_key(kept.key, held.earlier, held.content)
      from held
     where kept.job_id = held.job_id and kept.tenant_id = held.tenant_id
       and not exists (
           select from mainspring.enqueue_keys as other
            where other.tenant_id = kept.tenant_id and other.kind = kept.kind
              and other.key <> kept.key
              and other.key = mainspring.renewed_key(kept.key, held.earlier, held.content))
)
select count(*) from changed;

-- name: encrypted_history
-- scope: system
-- Finished jobs with encrypted values, by id, after one if given.
select job_id, tenant_id, definition, payload::text from mainspring.jobs_history
 where job_id > %(after)s::bigint and payload::text like '%%"$mainspring": "encrypted"%%'
 order by job_id limit %(limit)s;

-- name: reencrypt_history
-- scope: system
-- Replaces payloads of finished jobs that are still as they were read.
with given as (
    select * from unnest(%(job_ids)s::bigint[], %(before)s::text[]::jsonb[],
                         %(after)s::text[]::jsonb[], %(was_compared_by)s::text[]::jsonb[],
                         %(is_compared_by)s::text[]::jsonb[])
                  as given (job_id, before, after, was_compared_by, is_compared_by)
), held as materialized (
    select job.job_id, job.tenant_id, given.before, given.after, job.dedupe_key,
           mainspring.content_digest(job.tenant_id, job.definition, given.is_compared_by)
           as content,
           mainspring.earlier_contents(
               job.tenant_id, job.definition, given.before, given.was_compared_by) as earlier
      from mainspring.jobs_history as job join given using (job_id)
     where job.payload = given.before
), changed as (
    update mainspring.jobs_history as job
       set payload = held.after,
           dedupe_key = mainspring.renewed_key(job.dedupe_key, held.earlier, held.content)
      from held where job.job_id = held.job_id and job.payload = held.before
    returning job.job_id
), known as (
    update mainspring.enqueue_keys as kept
       set fingerprint = mainspring.renewed_request(kept, held.earlier, held.content),
           key = mainspring.renewed_key(kept.key, held.earlier, held.content)
      from held
     where kept.job_id = held.job_id and kept.tenant_id = held.tenant_id
       and not exists (
           select from mainspring.enqueue_keys as other
            where other.tenant_id = kept.tenant_id and other.kind = kept.kind
              and other.key <> kept.key
              and other.key = mainspring.renewed_key(kept.key, held.earlier, held.content))
)
select count(*) from changed;

-- name: encrypted_schedules
-- scope: system
-- Schedules with encrypted values, by id, after one if given, with the payload that code declared.
select schedule_id, tenant_id, definition, payload::text, (declared -> 'payload')::text,
       declared ->> 'definition'
  from mainspring.schedules
 where schedule_id > %(after)s::bigint
   and (payload::text like '%%"$mainspring": "encrypted"%%'
        or (declared -> 'payload')::text like '%%"$mainspring": "encrypted"%%')
 order by schedule_id limit %(limit)s;

-- name: reencrypt_schedules
-- scope: system
-- Replaces payloads of schedules that are still as they were read, and those that code declared.
update mainspring.schedules as schedule
   set payload = given.after,
       declared = case when given.declared is null then schedule.declared
                       else jsonb_set(schedule.declared, '{payload}', given.declared) end
  from unnest(%(schedule_ids)s::bigint[], %(before)s::text[]::jsonb[],
              %(after)s::text[]::jsonb[], %(declared)s::text[]::jsonb[])
       as given (schedule_id, before, after, declared)
 where schedule.schedule_id = given.schedule_id and schedule.payload = given.before
returning schedule.schedule_id;
