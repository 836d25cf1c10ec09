-- name: enqueue_flow
-- scope: tenant
-- Enqueues jobs that wait for each other, in the caller's transaction.
select flow_id, job_ids from mainspring.enqueue_flow(
    %(name)s, %(steps)s::jsonb, %(tenant_id)s);

-- name: settle
-- scope: system
-- Lets the children of the given parents go, or of any that nobody has settled.
select is_ours, settled from mainspring.settle_parents(%(parents)s::bigint[], %(limit)s);

-- name: cancel_flow
-- scope: tenant
-- Cancels what is live of a flow.
select mainspring.cancel_flow(%(flow_id)s::bigint, %(reason)s, %(tenant_id)s);

-- name: retry_flow
-- scope: tenant
-- Puts what failed or was canceled in a flow back.
select mainspring.retry_flow(%(flow_id)s::bigint, %(tenant_id)s);

-- name: get_flow
-- scope: tenant
-- One flow with what its jobs came to.
select flow_id, tenant_id, name, state, jobs, live, blocked, running, succeeded, failed,
       dead_letter, canceled, extract(epoch from created_at)::float,
       extract(epoch from finished_at)::float
  from mainspring.flow_status
 where flow_id = %(flow_id)s::bigint and tenant_id = %(tenant_id)s;

-- name: list_flows
-- scope: tenant
-- The newest flows first, before a flow id if given.
select flow_id, tenant_id, name, state, jobs, live, blocked, running, succeeded, failed,
       dead_letter, canceled, extract(epoch from created_at)::float,
       extract(epoch from finished_at)::float
  from mainspring.flow_status
 where tenant_id = %(tenant_id)s
   and (%(before)s::bigint is null or flow_id < %(before)s::bigint)
 order by flow_id desc limit %(limit)s;

-- name: list_flows_everywhere
-- scope: system
-- The same over all tenants.
select flow_id, tenant_id, name, state, jobs, live, blocked, running, succeeded, failed,
       dead_letter, canceled, extract(epoch from created_at)::float,
       extract(epoch from finished_at)::float
  from mainspring.flow_status
 where (%(before)s::bigint is null or flow_id < %(before)s::bigint)
 order by flow_id desc limit %(limit)s;

-- name: flow_jobs
-- scope: tenant
-- The jobs of a flow in the order of their steps.
select job_id, step, definition, state::text, waits_for::text, parent_ids, last_error
  from mainspring.flow_job_status
 where flow_id = %(flow_id)s::bigint and tenant_id = %(tenant_id)s
   and job_id > coalesce(%(after)s::bigint, 0)
 order by job_id limit %(limit)s;

-- name: parents_of
-- scope: system
-- The parents of a job that runs, with what they gave.
select parent.parent_id, member.step, past.state::text, past.result::text
  from mainspring.dependencies as parent
  join mainspring.jobs_history as past on past.job_id = parent.parent_id
  left join mainspring.flow_jobs as member on member.job_id = parent.parent_id
 where parent.job_id = %(job_id)s::bigint order by parent.parent_id;

-- name: prune_flows
-- scope: system
-- Removes flows none of whose jobs is left.
delete from mainspring.flows as flow
 where flow.ctid = any (array(
    select old.ctid from mainspring.flows as old
     where old.created_at < now() - interval '1 hour'
       and not exists (select from mainspring.flow_jobs as member
                        join mainspring.job_status as job using (job_id)
                       where member.flow_id = old.flow_id)
     limit %(limit)s for update skip locked));

-- name: prune_dependencies
-- scope: system
-- Removes what is known of the parents of jobs that are gone for good.
delete from mainspring.dependencies as known
 where known.ctid = any (array(
    select old.ctid from mainspring.dependencies as old
     where old.outcome is not null
       and not exists (select from mainspring.job_status as job where job.job_id = old.job_id)
     limit %(limit)s for update skip locked));
