-- Flows: how their steps are read and checked.

-- The steps of a flow as rows, numbered from 1.
create or replace function mainspring.read_steps(steps jsonb)
returns table (
    step text, definition text, payload jsonb, queue text, priority integer,
    max_attempts integer, correlation_id text, tags text[], limit_key text,
    approvals_needed integer, on_parent_failure text, scheduled_for timestamptz,
    delay double precision, after jsonb, after_jobs jsonb, created_by text, source text,
    delivery text, number bigint
)
language sql stable
as $$
    select given.* from rows from (jsonb_to_recordset(steps) as (
        step text, definition text, payload jsonb, queue text, priority integer,
        max_attempts integer, correlation_id text, tags text[], limit_key text,
        approvals_needed integer, on_parent_failure text, scheduled_for timestamptz,
        delay double precision, after jsonb, after_jobs jsonb, created_by text, source text,
        delivery text)) with ordinality as given
$$;

-- Refuses a flow with a step that is wrong; names it by its number from 0.
create or replace function mainspring.check_steps(steps jsonb, tenant text)
returns void
language plpgsql
as $$
begin
    perform mainspring.check_step_shapes(steps);
    perform mainspring.check_step_count(steps);
    perform mainspring.check_step_order(steps);
    perform mainspring.ensure_open(step.definition) from mainspring.read_steps(steps) as step;
    perform mainspring.check_step(given.number - 1, d, to_jsonb(given))
       from mainspring.read_steps(steps) as given
       left join mainspring.definitions as d on d.key = given.definition and d.is_active
      where d.key is null or given.priority not between 0 and 1000
         or given.max_attempts not between 1 and 1000
         or mainspring.are_plain_words(
                given.queue, given.correlation_id, given.tags) is not true
         or length(given.limit_key) not between 1 and 500 or length(given.step) > 500
         or given.approvals_needed not between 0 and 100
         or given.on_parent_failure not in ('cancel', 'continue', 'wait')
         or pg_column_size(given.payload) > 65536 or mainspring.has_mark(given.payload)
         or (given.limit_key is not null and d.limit_name is null)
         or num_nonnulls(given.created_by, given.source, given.delivery, given.max_attempts) > 0;
    perform mainspring.check_step_jobs(steps, tenant);
end
$$;

-- Refuses steps that are not objects with the right kinds of values.
create or replace function mainspring.check_step_shapes(steps jsonb)
returns void
language plpgsql
as $$
begin
    perform mainspring.refuse_option('steps', 'steps: step ' || number - 1 || ' must be an object '
        || 'with a definition, a payload that is an object and an array after')
       from jsonb_array_elements(steps) with ordinality as item (value, number)
      where jsonb_typeof(value) <> 'object'
         or jsonb_typeof(coalesce(value -> 'payload', '{}')) <> 'object'
         or jsonb_typeof(coalesce(value -> 'after', '[]')) <> 'array'
         or jsonb_typeof(coalesce(value -> 'after_jobs', '[]')) <> 'array';
end
$$;

-- Refuses steps that have too many parents together.
create or replace function mainspring.check_step_count(steps jsonb)
returns void
language plpgsql
as $$
declare
    dependencies bigint := (
        select sum(jsonb_array_length(coalesce(step.value -> 'after', '[]'))
                   + jsonb_array_length(coalesce(step.value -> 'after_jobs', '[]')))
          from jsonb_array_elements(steps) as step);
begin
    if dependencies > mainspring.most_dependencies() then
        perform mainspring.refuse_option('steps', format(
            'the steps of a flow can have at most %s parents together, not %s; '
            'put a step in between that many others wait for',
            mainspring.most_dependencies(), dependencies));
    end if;
end
$$;

-- Refuses a step that does not come after earlier steps, so that no circle can be written down.
create or replace function mainspring.check_step_order(steps jsonb)
returns void
language plpgsql
as $$
begin
    perform mainspring.refuse_option('steps', 'steps: step ' || item.number - 1 || ' comes after '
        || parent.value::text || ', which is not the number of a step before it')
       from jsonb_array_elements(steps) with ordinality as item (value, number),
            lateral jsonb_array_elements(coalesce(item.value -> 'after', '[]')) as parent
      where jsonb_typeof(parent.value) <> 'number'
         or parent.value::text !~ '^[0-9]{1,9}$'
         or (parent.value)::text::bigint >= item.number - 1;
end
$$;

-- The texts of a JSON array; null if it is none.
create or replace function mainspring.texts_of(texts jsonb)
returns text[]
language sql immutable
return case when jsonb_typeof(texts) = 'array'
            then array(select jsonb_array_elements_text(texts)) end;

-- Refuses a step that looks wrong, by its number from 0 and its definition, which is null if there
-- is none.
create or replace function mainspring.check_step(
    number bigint, defined mainspring.definitions, step jsonb
)
returns void
language plpgsql
as $$
declare
    needed integer := (step ->> 'approvals_needed')::integer;
    problem text;
begin
    if defined.key is null then
        perform mainspring.active_definition(step ->> 'definition');
    end if;
    perform mainspring.check_payload(coalesce(nullif(step -> 'payload', 'null'), '{}'));
    perform mainspring.check_numbers(
        (step ->> 'priority')::integer, (step ->> 'max_attempts')::integer);
    perform mainspring.check_words(
        step ->> 'queue', step ->> 'correlation_id', mainspring.texts_of(step -> 'tags'));
    perform mainspring.check_text('limit_key', step ->> 'limit_key');
    perform mainspring.check_text('step', nullif(step ->> 'step', ''));
    perform mainspring.check_origin(step ->> 'created_by', step ->> 'source');
    perform mainspring.check_delivery(
        step ->> 'delivery', (step ->> 'max_attempts')::integer, defined);
    problem := case
        when needed not between 0 and 100 then 'approvals_needed must be from 0 to 100'
        when step ->> 'on_parent_failure' not in ('cancel', 'continue', 'wait')
        then 'on_parent_failure must be ''cancel'', ''continue'' or ''wait'''
        when step ->> 'limit_key' is not null and defined.limit_name is null
        then 'limit_key is given, but ' || defined.key || ' has no limit' end;
    if problem is not null then
        perform mainspring.refuse_option('steps', 'steps: step ' || number || ': ' || problem);
    end if;
end
$$;

-- Refuses parents outside of the flow that there are not.
create or replace function mainspring.check_step_jobs(steps jsonb, tenant text)
returns void
language plpgsql
as $$
begin
    perform mainspring.refuse('MS030', 'there is no job ' || parent.value::text,
                              jsonb_build_object('job_id', parent.value))
       from mainspring.read_steps(steps) as step,
            lateral jsonb_array_elements(coalesce(step.after_jobs, '[]')) as parent
      where jsonb_typeof(parent.value) <> 'number' or parent.value::text !~ '^[0-9]{1,18}$'
         or not exists (select from mainspring.job_status as job
                         where job.job_id = parent.value::text::bigint
                           and job.tenant_id = check_step_jobs.tenant);
end
$$;

-- Adds the jobs of a flow, one a step, with the given ids, as a set.
create or replace function mainspring.add_steps(
    flow_id bigint, job_ids bigint[], steps jsonb, tenant text
)
returns void
language plpgsql
as $$
#variable_conflict use_column
begin
    insert into mainspring.jobs
    select added.*
      from mainspring.read_steps(add_steps.steps) as step
      join mainspring.definitions as d on d.key = step.definition,
           lateral mainspring.asked_job(
               step.definition, step.payload, add_steps.tenant, step.queue, step.priority,
               step.max_attempts,
               coalesce(step.scheduled_for,
                        clock_timestamp() + make_interval(secs => step.delay)), null, null,
               coalesce(step.correlation_id, 'flow:' || add_steps.flow_id), step.tags,
               step.limit_key, add_steps.job_ids[step.number], step.created_by, step.source,
               step.delivery) as asked,
           lateral mainspring.new_job(
               asked, mainspring.with_approvals(d, step.approvals_needed),
               coalesce(jsonb_array_length(step.after), 0)
                   + coalesce(jsonb_array_length(step.after_jobs), 0) > 0) as added;
    insert into mainspring.approvals
        (job_id, tenant_id, needed, approvers, requested_at, expires_at)
    select add_steps.job_ids[step.number], add_steps.tenant, defined.approvals_needed,
           defined.approvers, clock_timestamp(), clock_timestamp() + defined.approval_expiry
      from mainspring.read_steps(add_steps.steps) as step
      join mainspring.definitions as d on d.key = step.definition,
           lateral mainspring.with_approvals(d, step.approvals_needed) as defined
     where defined.approvals_needed > 0;
    perform mainspring.notify_enqueued(
        lane.queue, lane.priority, add_steps.tenant, lane.first_id, lane.due_at)
       from (select job.queue, job.priority, min(job.job_id) as first_id,
                    min(job.scheduled_for) as due_at
               from mainspring.jobs as job
              where job.job_id = any (add_steps.job_ids)
                and coalesce(job.waits_for, 'time') = 'time'
              group by job.queue, job.priority) as lane;
    if exists (select from mainspring.jobs as job
                where job.job_id = any (add_steps.job_ids) and job.waits_for = 'limit') then
        perform mainspring.notify_limit();
    end if;
end
$$;

-- Refuses a flow that there is not, or that the caller may not see.
create or replace function mainspring.ensure_flow(flow_id bigint, tenant text)
returns void
language plpgsql
as $$
begin
    if not exists (select from mainspring.flows as flow
                    where flow.flow_id = ensure_flow.flow_id and flow.tenant_id = tenant
                      and mainspring.is_visible(tenant)
                      and mainspring.is_own(flow.created_by)) then
        perform mainspring.refuse('MS070',
            'there is no flow ' || coalesce(flow_id::text, 'null'),
            jsonb_build_object('flow_id', flow_id));
    end if;
end
$$;
