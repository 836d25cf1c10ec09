-- name: enqueue_flow
-- scope: tenant
-- Enqueues jobs that wait for each other, in the caller's transaction.
select flow_id, job_ids from mainspring.enqueue_flow(
    %(name)s, %(steps)s::jsonb, %(tenant_id)s);

-- name: settle
-- scope: system
-- Lets the children of the given parents go, or of any that nobody has settled.
select is_ours, settled from mainspring.settle_parents(%(parents)s::bigint[], %(limit)s);

-- name: settle_page
-- scope: system
-- Lets children go that nobody has settled: those on one page of parents, and of children.
select is_ours, settled, next_parent, next_child
  from mainspring.settle_page(%(parent)s::bigint, %(child)s::bigint, %(limit)s);

-- name: decide_outcomes
-- scope: system
-- Gives dependencies their outcome, of the given parents or of a page of them, and names the
-- children that this and the page of children are about, without settling any.
select case when locked.is_ours
            then coalesce((mainspring.decide_outcomes(
                     coalesce(%(parents)s::bigint[],
                              mainspring.awaited_parents(%(parent)s::bigint, %(limit)s)),
                     %(limit)s)).children, '{}')
                 || mainspring.unsettled_among(
                     mainspring.waiting_children(%(child)s::bigint, %(limit)s)) end
  from (select mainspring.lock_settling() as is_ours) as locked;

-- name: settle_children
-- scope: system
-- Settles some children whose dependencies have their outcome.
select case when mainspring.lock_settling()
            then mainspring.settle_children(%(children)s::bigint[]) end;

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
   and (%(names)s::text[] is null or name = any (%(names)s::text[]))
 order by flow_id desc limit %(limit)s;

-- name: list_flows_everywhere
-- scope: system
-- The same over all tenants.
select flow_id, tenant_id, name, state, jobs, live, blocked, running, succeeded, failed,
       dead_letter, canceled, extract(epoch from created_at)::float,
       extract(epoch from finished_at)::float
  from mainspring.flow_status
 where (%(before)s::bigint is null or flow_id < %(before)s::bigint)
   and (%(names)s::text[] is null or name = any (%(names)s::text[]))
 order by flow_id desc limit %(limit)s;

-- name: flow_jobs
-- scope: tenant
-- The jobs of a flow in the order of their steps, with the first line of the last error.
select job_id, step, definition, state::text, waits_for::text, parent_ids,
       mainspring.error_line(last_error)
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

-- name: prune_flow_jobs
-- scope: system
-- Looks at one page of the jobs of flows and removes those that are gone for good; says how many
-- there were, how many it removed, and which was the last.
with page as (
    select member.flow_id, member.job_id from mainspring.flow_jobs as member
     where (member.flow_id, member.job_id) > (%(flow_id)s::bigint, %(job_id)s::bigint)
     order by member.flow_id, member.job_id limit %(limit)s
), removed as (
    delete from mainspring.flow_jobs as member using page
     where member.flow_id = page.flow_id and member.job_id = page.job_id
       and not exists (select from mainspring.jobs as job where job.job_id = page.job_id)
       and not exists (select from mainspring.jobs_history as job where job.job_id = page.job_id)
    returning member.job_id
)
select (select count(*) from page), (select count(*) from removed), page.flow_id, page.job_id
  from page order by page.flow_id desc, page.job_id desc limit 1;

-- name: prune_flows
-- scope: system
-- Looks at one page of flows and removes those none of whose jobs is left; says the same.
with page as (
    select flow.flow_id, flow.created_at from mainspring.flows as flow
     where flow.flow_id > %(flow_id)s::bigint
     order by flow.flow_id limit %(limit)s
), removed as (
    delete from mainspring.flows as flow using page
     where flow.flow_id = page.flow_id and page.created_at < now() - interval '1 hour'
       and not exists (select from mainspring.flow_jobs as member
                        where member.flow_id = page.flow_id)
    returning flow.flow_id
)
select (select count(*) from page), (select count(*) from removed), page.flow_id
  from page order by page.flow_id desc limit 1;

-- name: prune_dependencies
-- scope: system
-- Looks at one page of dependencies and removes those of jobs that are gone for good; says the
-- same. Each child is looked for once, however many parents it has, and what is removed is named by
-- a list and not by a join, so stale statistics cannot make it read the table once for each row.
with page as materialized (
    select known.job_id, known.parent_id from mainspring.dependencies as known
     where (known.job_id, known.parent_id) > (%(job_id)s::bigint, %(parent_id)s::bigint)
     order by known.job_id, known.parent_id limit %(limit)s
), last as materialized (
    select page.job_id, page.parent_id from page
     order by page.job_id desc, page.parent_id desc limit 1
), gone as materialized (
    select child.job_id from (select distinct page.job_id from page) as child
     where not exists (select from mainspring.jobs as job where job.job_id = child.job_id)
       and not exists (select from mainspring.jobs_history as job
                        where job.job_id = child.job_id)
), removed as (
    delete from mainspring.dependencies as known
     where known.job_id = any (array (select gone.job_id from gone))
       and (known.job_id, known.parent_id) > (%(job_id)s::bigint, %(parent_id)s::bigint)
       and (known.job_id, known.parent_id) <= (select last.job_id, last.parent_id from last)
    returning known.job_id
)
select (select count(*) from page), (select count(*) from removed), last.job_id, last.parent_id
  from last;
