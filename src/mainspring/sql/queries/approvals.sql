-- name: approve
-- scope: tenant
-- Approves a job in the name of someone.
select mainspring.approve(%(job_id)s::bigint, %(reason)s, %(tenant_id)s)::text
  from (select set_config('mainspring.actor', coalesce(%(actor)s::text, current_setting(
           'mainspring.actor', true), ''), true)) as acting;

-- name: reject
-- scope: tenant
-- Rejects a job in the name of someone.
select mainspring.reject(%(job_id)s::bigint, %(reason)s, %(tenant_id)s)::text
  from (select set_config('mainspring.actor', coalesce(%(actor)s::text, current_setting(
           'mainspring.actor', true), ''), true)) as acting;

-- name: open_approvals
-- scope: tenant
-- Jobs that await approval, the longest waiting first, after a job id if given.
select job_id, tenant_id, definition, payload::text, state::text, needed, approvers,
       extract(epoch from requested_at)::float, extract(epoch from expires_at)::float, decision,
       approvals, votes::text
  from mainspring.approval_status
 where tenant_id = %(tenant_id)s and state = 'awaiting_approval' and decided_at is null
   and job_id > coalesce(%(after)s::bigint, 0)
 order by job_id limit %(limit)s;

-- name: open_approvals_everywhere
-- scope: system
-- The same over all tenants.
select job_id, tenant_id, definition, payload::text, state::text, needed, approvers,
       extract(epoch from requested_at)::float, extract(epoch from expires_at)::float, decision,
       approvals, votes::text
  from mainspring.approval_status
 where state = 'awaiting_approval' and decided_at is null
   and job_id > coalesce(%(after)s::bigint, 0)
 order by job_id limit %(limit)s;

-- name: get_approval
-- scope: tenant
-- The approval of one job.
select job_id, tenant_id, definition, payload::text, state::text, needed, approvers,
       extract(epoch from requested_at)::float, extract(epoch from expires_at)::float, decision,
       approvals, votes::text
  from mainspring.approval_status
 where tenant_id = %(tenant_id)s and job_id = %(job_id)s::bigint;

-- name: expire_approvals
-- scope: system
-- Cancels jobs that nobody approved in time.
select mainspring.expire_approvals(%(limit)s);

-- name: prune_approvals
-- scope: system
-- Removes approvals whose job is gone for good.
delete from mainspring.approvals as asked
 where asked.ctid = any (array(
    select old.ctid from mainspring.approvals as old
     where old.requested_at < now() - interval '1 hour'
       and not exists (select from mainspring.job_status as job where job.job_id = old.job_id)
     limit %(limit)s for update skip locked));
