-- Flows: how their steps are read and checked.

-- The steps of a flow as rows, numbered from 1, with what follows from their definitions.
create or replace function mainspring.read_steps(steps jsonb, tenant text)
returns table (
    number bigint, step text, definition text, payload jsonb, queue text, priority integer,
    max_attempts integer, correlation_id text, tags text[], limit_name text, limit_key text,
    needed integer, on_parent_failure text, due_at timestamptz, after jsonb, after_jobs jsonb,
    waits mainspring.waits_for
)
language plpgsql stable
as $$
#variable_conflict use_column
begin
    return query
    select given.number, given.step, given.definition, given.payload, given.queue, given.priority,
           given.max_attempts, given.correlation_id, given.tags, room.limit_name, given.limit_key,
           greatest(given.approvals_needed, d.approvals_needed)::integer,
           coalesce(given.on_parent_failure, 'cancel'),
           coalesce(given.scheduled_for, now() + make_interval(secs => given.delay), now()),
           coalesce(given.after, '[]'), coalesce(given.after_jobs, '[]'),
           mainspring.first_wait(
               greatest(given.approvals_needed, d.approvals_needed) > 0,
               coalesce(jsonb_array_length(given.after), 0)
                   + coalesce(jsonb_array_length(given.after_jobs), 0) > 0,
               coalesce(given.scheduled_for, now() + make_interval(secs => given.delay)),
               room.limit_name)
      from rows from (jsonb_to_recordset(read_steps.steps) as (
               step text, definition text, payload jsonb, queue text, priority integer,
               max_attempts integer, correlation_id text, tags text[], limit_key text,
               approvals_needed integer, on_parent_failure text, scheduled_for timestamptz,
               delay double precision, after jsonb, after_jobs jsonb)) with ordinality
           as given (step, definition, payload, queue, priority, max_attempts, correlation_id,
                     tags, limit_key, approvals_needed, on_parent_failure, scheduled_for, delay,
                     after, after_jobs, number)
      left join mainspring.definitions as d on d.key = given.definition and d.is_active
      left join mainspring.tenants as t on t.tenant_id = read_steps.tenant,
           lateral (select coalesce(d.limit_name, case when t.max_running is not null then '' end)
                           as limit_name) as room;
end
$$;

-- Refuses a flow with a step that is wrong; names it by its number from 0, and its name if any.
create or replace function mainspring.check_steps(steps jsonb, tenant text)
returns void
language plpgsql
as $$
declare
    given record;
    problem text;
begin
    for given in
        select number - 1 as number, value as step
          from jsonb_array_elements(steps) with ordinality as item (value, number)
         where jsonb_typeof(value) <> 'object'
            or jsonb_typeof(coalesce(value -> 'payload', '{}')) <> 'object'
            or jsonb_typeof(coalesce(value -> 'after', '[]')) <> 'array'
            or jsonb_typeof(coalesce(value -> 'after_jobs', '[]')) <> 'array'
         limit 1
    loop
        perform mainspring.refuse('MS003', 'steps: step ' || given.number || ' must be an object '
            || 'with a definition, a payload that is an object and an array after',
            '{"option": "steps"}');
    end loop;
    for given in
        select item.number - 1 as number, parent.value as parent
          from jsonb_array_elements(steps) with ordinality as item (value, number),
               lateral jsonb_array_elements(coalesce(item.value -> 'after', '[]')) as parent
         where jsonb_typeof(parent.value) <> 'number'
            or parent.value::text !~ '^[0-9]{1,9}$'
            or (parent.value)::text::bigint >= item.number - 1
         limit 1
    loop
        perform mainspring.refuse('MS003', 'steps: step ' || given.number || ' comes after '
            || given.parent::text || ', which is not the number of a step before it',
            '{"option": "steps"}');
    end loop;
    perform mainspring.ensure_open(step.definition)
       from mainspring.read_steps(steps, tenant) as step;
    for given in select step.*, d.key from mainspring.read_steps(steps, tenant) as step
                   left join mainspring.definitions as d on d.key = step.definition and d.is_active
                  where d.key is null or step.priority not between 0 and 1000
                     or step.max_attempts not between 1 and 1000
                     or length(step.queue) not between 1 and 500
                     or step.needed not between 0 and 100
                     or step.on_parent_failure not in ('cancel', 'continue', 'wait')
                     or pg_column_size(step.payload) > 65536
                     or (step.limit_key is not null and d.limit_name is null)
    loop
        if given.key is null then
            perform mainspring.refuse('MS010', 'no active definition has the key '
                || coalesce(quote_literal(given.definition), 'null'),
                jsonb_build_object('key', given.definition));
        end if;
        perform mainspring.check_enqueue(coalesce(given.payload, '{}'), given.priority,
                                         given.max_attempts, null, null, null, null);
        perform mainspring.check_text('queue', given.queue);
        problem := case
            when given.needed not between 0 and 100 then 'approvals_needed must be from 0 to 100'
            when given.on_parent_failure not in ('cancel', 'continue', 'wait')
            then 'on_parent_failure must be ''cancel'', ''continue'' or ''wait'''
            when given.limit_key is not null and given.limit_name is null
            then 'limit_key is given, but ' || given.key || ' has no limit' end;
        if problem is not null then
            perform mainspring.refuse('MS003', 'steps: step ' || given.number - 1 || ': ' || problem,
                '{"option": "steps"}');
        end if;
    end loop;
    for given in
        select parent.value as parent
          from mainspring.read_steps(steps, tenant) as step,
               lateral jsonb_array_elements(step.after_jobs) as parent
         where jsonb_typeof(parent.value) <> 'number' or parent.value::text !~ '^[0-9]{1,18}$'
            or not exists (select from mainspring.job_status as job
                            where job.job_id = parent.value::text::bigint
                              and job.tenant_id = tenant)
         limit 1
    loop
        perform mainspring.refuse('MS030', 'there is no job ' || given.parent::text,
            jsonb_build_object('job_id', given.parent));
    end loop;
end
$$;

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
