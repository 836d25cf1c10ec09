-- Flows: jobs that wait for others.
--
--   parent ends ─▶ settle: the dependency gets its outcome ─▶ all parents fine:   the child goes on
--                                                          └▶ one of them is not: cancel, continue
--                                                             or wait, as the dependency says
--
-- Whatever ends a parent leaves its children alone, so that no two of them wait for each other; the
-- children are settled afterwards, one transaction at a time under an advisory lock that is only
-- tried. What nobody settles, because a worker died in between, a sweep finds: a dependency without
-- an outcome whose parent is not live any more.

-- Writes down which parents a job waits for. Refuses parents that there are not.
create or replace function mainspring.add_parents(
    job_id bigint, parents bigint[], tenant text, on_failure text
)
returns void
language plpgsql
as $$
#variable_conflict use_column
declare
    unknown bigint;
begin
    if coalesce(add_parents.on_failure, '') not in ('cancel', 'continue', 'wait') then
        perform mainspring.refuse('MS003',
            'on_parent_failure must be ''cancel'', ''continue'' or ''wait''',
            '{"option": "on_parent_failure"}');
    end if;
    select parent.id into unknown from unnest(add_parents.parents) as parent (id)
     where not exists (select from mainspring.job_status as job
                        where job.job_id = parent.id and job.tenant_id = add_parents.tenant)
     limit 1;
    if found then
        perform mainspring.refuse('MS030', 'there is no job ' || coalesce(unknown::text, 'null'),
            jsonb_build_object('job_id', unknown));
    end if;
    insert into mainspring.dependencies (job_id, parent_id, on_failure)
    select distinct add_parents.job_id, parent.id, add_parents.on_failure
      from unnest(add_parents.parents) as parent (id);
    perform pg_notify('mainspring', 'p:');
end
$$;

-- Gives dependencies whose parent has ended their outcome, and their children what follows from it.
-- Looks at the children of the given parents, or, without any, at all that nobody has settled. Says
-- whether the lock was ours, and how many dependencies and children were settled; canceled children
-- are parents that have ended, so there may be more to do.
create or replace function mainspring.settle_parents(
    parents bigint[], most integer, out is_ours boolean, out settled integer
)
language plpgsql
as $$
#variable_conflict use_column
declare
    children bigint[];
    child record;
begin
    settled := 0;
    is_ours := pg_try_advisory_xact_lock(hashtext('mainspring.flows'));
    if not is_ours then
        return;
    end if;
    with ended as (
        select open.job_id, open.parent_id, open.on_failure
          from mainspring.dependencies as open
         where open.outcome is null and (parents is null or open.parent_id = any (parents))
           and not exists (select from mainspring.jobs as live where live.job_id = open.parent_id)
         limit most
    ), decided as (
        update mainspring.dependencies as known
           set outcome = coalesce(past.state, 'canceled')
          from ended
          left join lateral (
               select job.state from mainspring.jobs_history as job
                where job.job_id = ended.parent_id limit 1) as past on true
         where known.job_id = ended.job_id and known.parent_id = ended.parent_id
           and (past.state = 'succeeded' or ended.on_failure <> 'wait')
        returning known.job_id
    )
    select coalesce(array_agg(distinct job_id), '{}'), count(*) into children, settled
      from decided;
    if parents is null then
        -- Children that were left alone before because someone held their row.
        children := children || array(
            select job.job_id from mainspring.jobs as job
             where job.state in ('blocked', 'awaiting_approval')
               and (exists (select from mainspring.dependencies as failed
                             where failed.job_id = job.job_id and failed.outcome <> 'succeeded'
                               and failed.on_failure = 'cancel')
                    or (job.state = 'blocked'
                        and not exists (select from mainspring.dependencies as open
                                         where open.job_id = job.job_id
                                           and open.outcome is null)))
             limit most);
    end if;
    for child in
        select job.job_id, job.state, failed.parent_id, failed.outcome,
               exists (select from mainspring.dependencies as open
                        where open.job_id = job.job_id and open.outcome is null) as is_open
          from mainspring.jobs as job
          left join lateral (
               select known.parent_id, known.outcome from mainspring.dependencies as known
                where known.job_id = job.job_id and known.outcome <> 'succeeded'
                  and known.on_failure = 'cancel'
                order by known.parent_id limit 1) as failed on true
         where job.job_id = any (children) and job.state in ('blocked', 'awaiting_approval')
           for update of job skip locked
    loop
        if child.parent_id is not null then
            update mainspring.jobs as job
               set cancel_requested_at = coalesce(job.cancel_requested_at, now()),
                   last_error = 'its parent, job ' || child.parent_id || ', is ' || child.outcome
             where job.job_id = child.job_id;
            perform mainspring.settle_cancel(child.job_id);
            settled := settled + 1;
        elsif not child.is_open and child.state = 'blocked' then
            perform mainspring.move_on(child.job_id);
            settled := settled + 1;
        end if;
    end loop;
end
$$;

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
declare
    wrong record;
    queue text;
begin
    perform mainspring.ensure_visible(tenant);
    perform mainspring.check_text('name', coalesce(enqueue_flow.name, ''));
    if jsonb_typeof(steps) is distinct from 'array' or jsonb_array_length(steps) = 0 then
        perform mainspring.refuse('MS003', 'steps must be a JSON array with one step at least',
            '{"option": "steps"}');
    end if;
    if not exists (select from mainspring.tenants as t where t.tenant_id = tenant) then
        perform mainspring.refuse('MS003', 'tenant does not exist: '
            || coalesce(quote_literal(tenant), 'null'), '{"option": "tenant"}');
    end if;
    perform mainspring.check_steps(steps, tenant);
    insert into mainspring.flows as flow (tenant_id, name)
    values (tenant, enqueue_flow.name) returning flow.flow_id into flow_id;
    select array_agg(nextval('mainspring.job_ids')) into job_ids
      from generate_series(1, jsonb_array_length(steps));

    insert into mainspring.jobs (
        job_id, tenant_id, queue, definition, definition_version, priority, payload,
        max_attempts, scheduled_for, state, waits_for, correlation_id, tags, limit_name, limit_key)
    select job_ids[step.number], tenant, coalesce(step.queue, d.queue), d.key, d.version,
           coalesce(step.priority, d.priority), coalesce(step.payload, '{}'),
           coalesce(step.max_attempts, d.max_attempts), step.due_at,
           mainspring.state_of(step.waits), step.waits,
           coalesce(step.correlation_id, 'flow:' || flow_id), step.tags, step.limit_name,
           case when step.limit_name is not null then
               mainspring.limit_key_of(step.payload, d.limit_by, step.limit_key) end
      from mainspring.read_steps(steps, tenant) as step
      join mainspring.definitions as d on d.key = step.definition;
    insert into mainspring.flow_jobs (flow_id, job_id, step)
    select enqueue_flow.flow_id, job_ids[step.number], coalesce(step.step, '')
      from mainspring.read_steps(steps, tenant) as step;
    insert into mainspring.dependencies (job_id, parent_id, on_failure)
    select distinct job_ids[step.number], parent.id, step.on_parent_failure
      from mainspring.read_steps(steps, tenant) as step,
           lateral (
               select job_ids[value::integer + 1]
                 from jsonb_array_elements_text(step.after)
               union
               select value::bigint from jsonb_array_elements_text(step.after_jobs)
           ) as parent (id);
    insert into mainspring.approvals (job_id, tenant_id, needed, approvers, expires_at)
    select job_ids[step.number], tenant, step.needed, d.approvers, now() + d.approval_expiry
      from mainspring.read_steps(steps, tenant) as step
      join mainspring.definitions as d on d.key = step.definition
     where step.needed > 0;

    for queue in select distinct job.queue from mainspring.jobs as job
                  where job.job_id = any (job_ids) and job.state = 'queued' loop
        perform mainspring.wake(queue);
    end loop;
    if exists (select from mainspring.jobs as job
                where job.job_id = any (job_ids) and job.waits_for = 'limit') then
        perform mainspring.wake_limits();
    end if;
    perform pg_notify('mainspring', 'p:');
end
$$;

comment on function mainspring.enqueue_flow is
    'Enqueues jobs that wait for each other in the caller''s transaction.';

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
    canceled integer;
begin
    perform mainspring.ensure_flow(cancel_flow.flow_id, tenant);
    -- Children before parents: a child must not start because a parent of it was canceled.
    select count(mainspring.stop_job(job.job_id, reason, tenant)) into canceled
      from (select live.job_id from mainspring.flow_jobs as member
              join mainspring.jobs as live using (job_id)
             where member.flow_id = cancel_flow.flow_id
             order by live.job_id desc) as job;
    return canceled;
end
$$;

comment on function mainspring.cancel_flow is
    'Cancels what is live of a flow; says how many jobs that were.';

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
       and past.state in ('failed', 'dead_letter', 'canceled');
    update mainspring.dependencies as known set outcome = null
     where known.parent_id = any (retried) and known.job_id = any (retried);
    perform mainspring.put_back(job_id, null, tenant) from unnest(retried) as job_id;
    return coalesce(cardinality(retried), 0);
end
$$;

comment on function mainspring.retry_flow is
    'Puts what failed or was canceled in a flow back; says how many jobs that were.';
