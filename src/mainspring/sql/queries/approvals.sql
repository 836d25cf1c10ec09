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
   and (%(definitions)s::text[] is null or definition = any (%(definitions)s::text[]))
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
   and (%(definitions)s::text[] is null or definition = any (%(definitions)s::text[]))
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
-- Cancels jobs that nobody approved in time; some jobs only if given.
select mainspring.expire_approvals(%(limit)s, %(chosen)s::bigint[]);

-- name: find_expired_approvals
-- scope: system
-- The jobs that expire_approvals would cancel.
select asked.job_id from mainspring.approvals as asked
 where asked.decided_at is null and asked.expires_at <= now()
   and not exists (select from mainspring.set_aside as aside
                    where aside.duty = 'expire_approvals' and aside.key = asked.job_id
                      and aside.again_at > now() offset 0)
 order by asked.expires_at limit %(limit)s;

-- name: prune_approvals
-- scope: system
-- Looks at one page of approvals and removes those whose job is gone for good; says how many there
-- were, how many it removed, and which was the last.
with page as (
    select asked.job_id, asked.requested_at from mainspring.approvals as asked
     where asked.job_id > %(job_id)s::bigint
     order by asked.job_id limit %(limit)s
), removed as (
    delete from mainspring.approvals as asked using page
     where asked.job_id = page.job_id and page.requested_at < now() - interval '1 hour'
       and not exists (select from mainspring.jobs as job where job.job_id = page.job_id)
       and not exists (select from mainspring.jobs_history as job where job.job_id = page.job_id)
    returning asked.job_id
)
select (select count(*) from page), (select count(*) from removed), page.job_id
  from page order by page.job_id desc limit 1;
