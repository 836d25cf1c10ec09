-- name: name_jobs
-- scope: system
-- What log lines call jobs: tenant, definition, queue, attempt, worker, and the schedule and slot
-- that made them.
select job_id, tenant_id, definition, queue, attempt, worker_id, origin->>'schedule', slot_at
  from mainspring.all_jobs where job_id = any (%(job_ids)s::bigint[]);
