-- Flows: many jobs that wait for each other, as a whole.

-- Enqueues many jobs that wait for each other, in one transaction. A step is an object with a
-- definition, a payload, and the numbers (from 0) of the steps before it that it comes after; as
-- every step can only come after earlier ones, no circle can be written down.
create or replace function mainspring.enqueue_flow(
    name text, steps jsonb, tenant text default 'default',
    out flow_id bigint, out job_ids bigint[]
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    perform mainspring.ensure_visible(tenant);
    perform mainspring.check_text('name', coalesce(enqueue_flow.name, ''));
    if jsonb_typeof(steps) is distinct from 'array' or jsonb_array_length(steps) = 0 then
        perform mainspring.refuse_option('steps',
            'steps must be a JSON array with at least one step');
    end if;
    if jsonb_array_length(steps) > mainspring.most_steps() then
        perform mainspring.refuse_option('steps', format(
            'a flow can have at most %s steps, not %s; split it into several flows',
            mainspring.most_steps(), jsonb_array_length(steps)));
    end if;
    if pg_column_size(steps) > mainspring.most_flow_bytes() then
        perform mainspring.refuse_option('steps', format(
            'the steps of a flow can have at most %s bytes together; split it into several flows',
            mainspring.most_flow_bytes()));
    end if;
    perform mainspring.ensure_tenant(tenant);
    perform mainspring.check_steps(steps, tenant);
    insert into mainspring.flows as flow (tenant_id, name, created_at)
    values (tenant, enqueue_flow.name, clock_timestamp()) returning flow.flow_id into flow_id;
    select array_agg(nextval('mainspring.job_ids')) into job_ids
      from generate_series(1, jsonb_array_length(steps));
    perform mainspring.add_steps(flow_id, job_ids, steps, tenant);
    insert into mainspring.flow_jobs (flow_id, job_id, step)
    select enqueue_flow.flow_id, job_ids[step.number], coalesce(step.step, '')
      from mainspring.read_steps(steps) as step;
    insert into mainspring.dependencies (job_id, parent_id, on_failure)
    select distinct job_ids[step.number], parent.id, coalesce(step.on_parent_failure, 'cancel')
      from mainspring.read_steps(steps) as step,
           lateral (
               select job_ids[value::integer + 1]
                 from jsonb_array_elements_text(coalesce(step.after, '[]'))
               union
               select value::bigint
                 from jsonb_array_elements_text(coalesce(step.after_jobs, '[]'))
           ) as parent (id);
    if found then
        perform mainspring.notify_parents();
    end if;
end
$$;
comment on function mainspring.enqueue_flow is
    'Enqueues jobs that wait for each other, in the caller''s transaction.';

-- Cancels the live jobs of a flow.
create or replace function mainspring.cancel_flow(
    flow_id bigint, reason text default 'its flow was canceled', tenant text default 'default'
)
returns integer
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    live bigint[];
begin
    perform mainspring.ensure_flow(cancel_flow.flow_id, tenant);
    perform mainspring.check_reason(reason);
    -- All at once: no child may start because a parent of it was canceled.
    select array_agg(locked.job_id) into live
      from (select job.job_id from mainspring.jobs as job
             where job.job_id = any (array(
                       select member.job_id from mainspring.flow_jobs as member
                        where member.flow_id = cancel_flow.flow_id))
               and job.tenant_id = tenant
             order by job.job_id for update) as locked;
    perform mainspring.stop_jobs(live, reason);
    return coalesce(cardinality(live), 0);
end
$$;
comment on function mainspring.cancel_flow is
    'Cancels the live jobs of a flow; returns how many there were.';

-- Puts the jobs of a flow that did not succeed back.
create or replace function mainspring.retry_flow(flow_id bigint, tenant text default 'default')
returns integer
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    retried bigint[];
begin
    perform mainspring.ensure_flow(retry_flow.flow_id, tenant);
    select array_agg(past.job_id order by past.job_id) into retried
      from mainspring.flow_jobs as member
      join mainspring.jobs_history as past using (job_id)
     where member.flow_id = retry_flow.flow_id
       and past.state <> 'succeeded';
    update mainspring.dependencies as known set outcome = null
     where known.parent_id = any (retried) and known.job_id = any (retried);
    perform mainspring.put_back(job_id, null, tenant) from unnest(retried) as job_id;
    return coalesce(cardinality(retried), 0);
end
$$;
comment on function mainspring.retry_flow is
    'Puts the failed and canceled jobs of a flow back to queued; returns how many there were.';
