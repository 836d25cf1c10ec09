-- name: why
-- scope: tenant
-- Explains the state of a job.
select mainspring.why(%(job_id)s::bigint, %(tenant_id)s::text);
