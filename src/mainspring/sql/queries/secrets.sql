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

-- name: real_payload
-- scope: tenant
-- The payload of a schedule as its jobs get it, for what is made from it; no person sees it.
select definition, payload::text from mainspring.schedules
 where tenant_id = %(tenant_id)s and name = %(name)s;

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
                         %(after)s::text[]::jsonb[]) as given (job_id, before, after)
), held as (
    select job.job_id, given.before, given.after, job.definition,
           'content:' || md5(job.definition || e'\n' || given.after::text) as content_key,
           job.dedupe_key = 'content:' || md5(job.definition || e'\n' || given.before::text)
           as is_by_content
      from mainspring.jobs as job join given using (job_id)
     where job.payload = given.before
       for update of job skip locked
), changed as (
    update mainspring.jobs as job
       set payload = held.after,
           dedupe_key = case when held.is_by_content and not exists (
                select from mainspring.jobs as other
                 where other.tenant_id = job.tenant_id and other.dedupe_key = held.content_key)
                then held.content_key else job.dedupe_key end
      from held where job.job_id = held.job_id
    returning job.job_id
), known as (
    update mainspring.enqueue_keys as kept
       set fingerprint = md5(held.definition || e'\n' || held.after::text)
      from held
     where kept.job_id = held.job_id
       and kept.fingerprint = md5(held.definition || e'\n' || held.before::text)
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
                         %(after)s::text[]::jsonb[]) as given (job_id, before, after)
), changed as (
    update mainspring.jobs_history as job
       set payload = given.after,
           dedupe_key = case when job.dedupe_key
                                  = 'content:' || md5(job.definition || e'\n' || job.payload::text)
                             then 'content:' || md5(job.definition || e'\n' || given.after::text)
                             else job.dedupe_key end
      from given where job.job_id = given.job_id and job.payload = given.before
    returning job.job_id, job.definition, given.before, given.after
), known as (
    update mainspring.enqueue_keys as kept
       set fingerprint = md5(changed.definition || e'\n' || changed.after::text)
      from changed
     where kept.job_id = changed.job_id
       and kept.fingerprint = md5(changed.definition || e'\n' || changed.before::text)
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
