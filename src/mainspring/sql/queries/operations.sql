-- name: start_bulk
-- scope: tenant
-- Enqueues an operation in the name of the caller.
select mainspring.start_bulk(
    %(action)s, %(asked)s::jsonb, %(reason)s, %(tenant_id)s, %(total)s::bigint);

-- name: get_operation
-- scope: system
-- What a running operation is to do; no row for a job that start_bulk did not make.
select payload, created_at, tenant_id, origin ->> 'identity' from mainspring.jobs
 where job_id = %(job_id)s::bigint and origin ->> 'operation' is not null;

-- name: seek_jobs
-- scope: tenant
-- The next jobs of a section that match, how many it looked at, and the id to go on behind.
select job_ids, seen, edge from mainspring.seek_jobs(
    %(section)s, %(states)s::text[]::mainspring.job_state[], %(asked)s::jsonb, %(tenant_id)s,
    %(behind)s::bigint, %(up_to)s::bigint, %(ended_before)s::timestamptz, %(most_seen)s::integer,
    %(most_found)s::integer);

-- name: count_jobs
-- scope: tenant
-- The same without the jobs: how many match.
select cardinality(job_ids), seen, edge from mainspring.seek_jobs(
    %(section)s, %(states)s::text[]::mainspring.job_state[], %(asked)s::jsonb, %(tenant_id)s,
    %(behind)s::bigint, %(up_to)s::bigint, %(ended_before)s::timestamptz, %(most_seen)s::integer,
    %(most_seen)s::integer);

-- name: change_jobs
-- scope: tenant
-- Cancels, retries or deletes jobs that still can be, in the name of whoever asked for it.
select mainspring.change_jobs(
    %(action)s, %(job_ids)s::bigint[], %(states)s::text[]::mainspring.job_state[], %(tenant_id)s,
    %(reason)s, %(actor)s, %(is_patient)s::boolean)
  from (select set_config('mainspring.identity', coalesce(%(identity)s::text, ''), true)) as acting;
