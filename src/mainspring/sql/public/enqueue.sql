-- Enqueue: one job, or many of one definition.

create or replace function mainspring.enqueue_job(
    definition text,
    payload jsonb default '{}',
    tenant text default 'default',
    queue text default null,
    priority integer default null,
    max_attempts integer default null,
    scheduled_for timestamptz default null,
    delay interval default null,
    deadline timestamptz default null,
    dedupe_key text default null,
    dedupe_by text default null,
    dedupe_window interval default null,
    idempotency_key text default null,
    on_duplicate text default 'raise',
    correlation_id text default null,
    tags text[] default null,
    limit_key text default null,
    approvals_needed integer default null,
    after bigint[] default null,
    on_parent_failure text default 'cancel',
    out job_id bigint,
    out is_new boolean
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    defined mainspring.definitions;
    job_queue text;
    due_at timestamptz;
    held_key text;
    woken text;
    held mainspring.enqueue_keys;
    holder bigint;
    room record;
    waits mainspring.waits_for;
begin
    -- The common case is one statement: plpgsql pays for every expression anew in each
    -- transaction. It inserts nothing if anything is wrong; then the checks below say what.
    if num_nonnulls(enqueue_job.dedupe_key, enqueue_job.dedupe_by, enqueue_job.dedupe_window,
                    enqueue_job.idempotency_key, enqueue_job.deadline, enqueue_job.limit_key,
                    enqueue_job.approvals_needed, enqueue_job.after) = 0 then
        insert into mainspring.jobs (
            tenant_id, queue, definition, definition_version, priority, payload, max_attempts,
            scheduled_for, waits_for, correlation_id, tags)
        select enqueue_job.tenant, coalesce(enqueue_job.queue, d.queue), d.key, d.version,
               coalesce(enqueue_job.priority, d.priority), enqueue_job.payload,
               coalesce(enqueue_job.max_attempts, d.max_attempts),
               coalesce(enqueue_job.scheduled_for, now() + enqueue_job.delay, now()),
               case when coalesce(enqueue_job.scheduled_for, now() + enqueue_job.delay) > now()
                    then 'time'::mainspring.waits_for end,
               enqueue_job.correlation_id, enqueue_job.tags
          from mainspring.definitions as d
         where d.key = enqueue_job.definition and d.is_active and d.is_plain
           and (enqueue_job.tenant = 'default' or exists (
                select from mainspring.tenants as t
                 where t.tenant_id = enqueue_job.tenant and t.max_running is null))
           and mainspring.is_visible(enqueue_job.tenant)
           and jsonb_typeof(enqueue_job.payload) = 'object'
           and pg_column_size(enqueue_job.payload) <= 65536
           and pg_column_compression(enqueue_job.payload) is null
           and enqueue_job.on_duplicate in ('raise', 'existing')
           and coalesce(length(enqueue_job.queue), 1) between 1 and 500
           and coalesce(enqueue_job.priority, 0) between 0 and 1000
           and coalesce(enqueue_job.max_attempts, 1) between 1 and 1000
           and (enqueue_job.delay is null
                or (enqueue_job.delay between '0' and '36500 days'
                    and enqueue_job.scheduled_for is null))
           and coalesce(enqueue_job.scheduled_for, now())
               between '0001-01-02T00:00:00Z' and '9999-12-30T00:00:00Z'
        returning job_id, true, case when exists (
            select from mainspring.workers as worker
             where worker.wants_wake and jobs.queue = any (worker.queues))
             and mainspring.message_for(jobs.queue, jobs.scheduled_for) is not null
            then pg_notify('mainspring',
                           mainspring.message_for(jobs.queue, jobs.scheduled_for))
            when jobs.waits_for is null and exists (
            select from mainspring.workers as worker where jobs.queue = any (worker.queues))
            then mainspring.tell_busy(
                jobs.queue, jobs.priority, jobs.tenant_id, jobs.job_id) end
        into job_id, is_new, woken;
        if found then
            return;
        end if;
    end if;

    select * into defined from mainspring.definitions as d where d.key = enqueue_job.definition;
    if not found or not defined.is_active then
        perform mainspring.refuse('MS010', 'no active definition has the key '
            || coalesce(quote_literal(enqueue_job.definition), 'null'),
            jsonb_build_object('key', enqueue_job.definition));
    end if;
    perform mainspring.ensure_open(enqueue_job.definition);
    perform mainspring.ensure_visible(tenant);
    if not exists (select from mainspring.tenants as t where t.tenant_id = enqueue_job.tenant) then
        perform mainspring.refuse('MS003', 'tenant does not exist: '
            || coalesce(quote_literal(enqueue_job.tenant), 'null'), '{"option": "tenant"}');
    end if;
    perform mainspring.check_enqueue(
        enqueue_job.payload, enqueue_job.priority, enqueue_job.max_attempts, enqueue_job.delay,
        enqueue_job.scheduled_for, enqueue_job.deadline, enqueue_job.dedupe_window);
    due_at := coalesce(enqueue_job.scheduled_for, now() + enqueue_job.delay, now());
    held_key := enqueue_job.dedupe_key;
    perform mainspring.check_text('queue', enqueue_job.queue);
    perform mainspring.check_text('dedupe_key', enqueue_job.dedupe_key);
    perform mainspring.check_text('idempotency_key', enqueue_job.idempotency_key);
    if coalesce(enqueue_job.on_duplicate, '') not in ('raise', 'existing') then
        perform mainspring.refuse('MS003', 'on_duplicate must be ''raise'' or ''existing''',
            '{"option": "on_duplicate"}');
    end if;
    if enqueue_job.dedupe_by is not null then
        if enqueue_job.dedupe_by <> 'content' or held_key is not null then
            perform mainspring.refuse('MS003',
                'dedupe_by must be ''content'' and excludes dedupe_key', '{"option": "dedupe_by"}');
        end if;
        held_key := 'content:' || md5(enqueue_job.definition || e'\n' || enqueue_job.payload::text);
    end if;
    if enqueue_job.dedupe_window is not null and held_key is null then
        perform mainspring.refuse('MS003', 'dedupe_window needs dedupe_key or dedupe_by',
            '{"option": "dedupe_window"}');
    end if;
    if enqueue_job.approvals_needed not between 0 and 100 then
        perform mainspring.refuse('MS003', 'approvals_needed must be from 0 to 100, not '
            || enqueue_job.approvals_needed, '{"option": "approvals_needed"}');
    end if;
    -- An enqueue can ask for more than the definition does, never for less.
    defined.approvals_needed := greatest(defined.approvals_needed, enqueue_job.approvals_needed);
    perform mainspring.check_text('limit_key', enqueue_job.limit_key);
    select * into room from mainspring.room_of(
        defined, enqueue_job.tenant, enqueue_job.payload, enqueue_job.limit_key);
    waits := mainspring.first_wait(defined.approvals_needed > 0,
        coalesce(cardinality(enqueue_job.after), 0) > 0, due_at, room.limit_name);
    job_queue := coalesce(enqueue_job.queue, defined.queue);
    job_id := nextval('mainspring.job_ids');
    is_new := true;

    if enqueue_job.idempotency_key is not null then
        held := mainspring.reserve_key(enqueue_job.tenant, 'idempotency',
            enqueue_job.idempotency_key, enqueue_job.job_id, interval '7 days',
            md5(enqueue_job.definition || e'\n' || enqueue_job.payload::text));
        if held.job_id <> enqueue_job.job_id then
            if held.fingerprint <> md5(enqueue_job.definition || e'\n' || enqueue_job.payload::text)
            then
                perform mainspring.refuse('MS021', 'the idempotency key '
                    || quote_literal(enqueue_job.idempotency_key) || ' belongs to job '
                    || held.job_id || ', which has another definition or payload',
                    jsonb_build_object('key', enqueue_job.idempotency_key, 'job_id', held.job_id));
            end if;
            job_id := held.job_id;
            is_new := false;
            return;
        end if;
    end if;

    if enqueue_job.dedupe_window is not null then
        held := mainspring.reserve_key(enqueue_job.tenant, 'window', held_key,
            enqueue_job.job_id, enqueue_job.dedupe_window, null);
        is_new := held.job_id = enqueue_job.job_id;
        job_id := held.job_id;
    end if;

    while is_new loop
        insert into mainspring.jobs (
            job_id, tenant_id, queue, definition, definition_version, priority, payload,
            max_attempts, scheduled_for, state, waits_for, deadline_at, dedupe_key,
            correlation_id, tags, limit_name, limit_key)
        values (
            enqueue_job.job_id, enqueue_job.tenant, job_queue, enqueue_job.definition,
            defined.version, coalesce(enqueue_job.priority, defined.priority),
            enqueue_job.payload, coalesce(enqueue_job.max_attempts, defined.max_attempts), due_at,
            mainspring.state_of(waits), waits, enqueue_job.deadline, held_key,
            enqueue_job.correlation_id, enqueue_job.tags, room.limit_name, room.limit_key)
        on conflict (tenant_id, dedupe_key) where dedupe_key is not null do nothing;
        exit when found;
        -- The holder may finish between the two statements; then the key is free again.
        select job.job_id into holder from mainspring.jobs as job
         where job.tenant_id = enqueue_job.tenant and job.dedupe_key = held_key;
        if found then
            job_id := holder;
            is_new := false;
        end if;
    end loop;

    if is_new then
        if coalesce(cardinality(enqueue_job.after), 0) > 0 then
            perform mainspring.add_parents(enqueue_job.job_id, enqueue_job.after,
                                           enqueue_job.tenant, enqueue_job.on_parent_failure);
        end if;
        if waits = 'approval' then
            perform mainspring.ask_approval(enqueue_job.job_id, enqueue_job.tenant, defined);
        elsif waits = 'limit' then
            perform mainspring.wake_limits(room.limit_name, room.limit_key, enqueue_job.tenant);
        elsif waits is distinct from 'parents' then
            perform mainspring.announce(
                job_queue, coalesce(enqueue_job.priority, defined.priority), enqueue_job.tenant,
                enqueue_job.job_id, due_at);
        end if;
    elsif enqueue_job.on_duplicate = 'raise' then
        perform mainspring.refuse('MS020', 'job ' || enqueue_job.job_id
            || ' already holds the dedupe key ' || quote_literal(held_key),
            jsonb_build_object('key', held_key, 'job_id', enqueue_job.job_id));
    else
        update mainspring.enqueue_keys as key set job_id = enqueue_job.job_id
         where key.tenant_id = enqueue_job.tenant
           and (key.kind, key.key) in (('idempotency', enqueue_job.idempotency_key),
                                       ('window', held_key))
           and key.job_id <> enqueue_job.job_id;
    end if;
end
$$;
comment on function mainspring.enqueue_job is
    'Enqueues one job in the caller''s transaction; says whether it is new or an earlier one.';

create or replace function mainspring.enqueue(
    definition text,
    payload jsonb default '{}',
    tenant text default 'default',
    queue text default null,
    priority integer default null,
    max_attempts integer default null,
    scheduled_for timestamptz default null,
    delay interval default null,
    deadline timestamptz default null,
    dedupe_key text default null,
    dedupe_by text default null,
    dedupe_window interval default null,
    idempotency_key text default null,
    on_duplicate text default 'raise',
    correlation_id text default null,
    tags text[] default null,
    limit_key text default null,
    approvals_needed integer default null,
    after bigint[] default null,
    on_parent_failure text default 'cancel'
)
returns bigint
language sql
security definer
set search_path = pg_catalog, pg_temp
as $$
    select job_id from mainspring.enqueue_job(
        definition, payload, tenant, queue, priority, max_attempts, scheduled_for, delay, deadline,
        dedupe_key, dedupe_by, dedupe_window, idempotency_key, on_duplicate, correlation_id, tags,
        limit_key, approvals_needed, after, on_parent_failure)
$$;
comment on function mainspring.enqueue is
    'Enqueues one job in the caller''s transaction and returns its id.';

create or replace function mainspring.enqueue_many(
    definition text,
    payloads jsonb[],
    tenant text default 'default',
    queue text default null,
    priority integer default null,
    max_attempts integer default null,
    scheduled_for timestamptz default null,
    delay interval default null,
    deadline timestamptz default null,
    dedupe_keys text[] default null,
    correlation_id text default null,
    tags text[] default null,
    limit_key text default null,
    approvals_needed integer default null
)
returns setof bigint
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    plan record;
    defined mainspring.definitions;
    room record;
    waits mainspring.waits_for;
    wrong integer;
    -- Below the first of the ids that the jobs will get.
    last_id bigint := (select last_value from mainspring.job_ids);
begin
    select * into plan from mainspring.prepare_bulk(
        enqueue_many.definition, 0, enqueue_many.tenant, enqueue_many.queue,
        enqueue_many.priority, enqueue_many.max_attempts, enqueue_many.scheduled_for,
        enqueue_many.delay, enqueue_many.deadline);
    select item.position into wrong
      from unnest(enqueue_many.payloads) with ordinality as item (payload, position)
     where jsonb_typeof(item.payload) is distinct from 'object'
        or (pg_column_size(item.payload) > 65536
            and octet_length(item.payload::text) > mainspring.max_payload_bytes())
     limit 1;
    if found then
        perform mainspring.check_enqueue(
            enqueue_many.payloads[wrong], null, null, null, null, null, null);
    end if;
    if enqueue_many.dedupe_keys is not null
       and cardinality(enqueue_many.dedupe_keys) <> cardinality(enqueue_many.payloads) then
        perform mainspring.refuse('MS003', 'dedupe_keys must have one entry per payload',
            '{"option": "dedupe_keys"}');
    end if;
    perform mainspring.check_text('dedupe_keys', item.key)
       from unnest(enqueue_many.dedupe_keys) as item (key)
      where length(item.key) not between 1 and 500;

    select * into defined from mainspring.definitions as d where d.key = enqueue_many.definition;
    if enqueue_many.approvals_needed not between 0 and 100 then
        perform mainspring.refuse('MS003', 'approvals_needed must be from 0 to 100, not '
            || enqueue_many.approvals_needed, '{"option": "approvals_needed"}');
    end if;
    defined.approvals_needed := greatest(defined.approvals_needed, enqueue_many.approvals_needed);
    perform mainspring.check_text('limit_key', enqueue_many.limit_key);
    select * into room from mainspring.room_of(
        defined, enqueue_many.tenant, '{}', enqueue_many.limit_key);
    waits := mainspring.first_wait(
        defined.approvals_needed > 0, false, plan.due_at, room.limit_name);

    return query
    with added as (
        insert into mainspring.jobs as job (
            tenant_id, queue, definition, definition_version, priority, payload, max_attempts,
            scheduled_for, state, waits_for, deadline_at, dedupe_key, correlation_id, tags,
            limit_name, limit_key)
        select enqueue_many.tenant, plan.job_queue, enqueue_many.definition, plan.job_version,
               plan.job_priority, item.payload, plan.job_max_attempts, plan.due_at,
               mainspring.state_of(waits), waits, enqueue_many.deadline, item.dedupe_key,
               enqueue_many.correlation_id, enqueue_many.tags, room.limit_name,
               case when room.limit_name is not null then mainspring.limit_key_of(
                   item.payload, defined.limit_by, enqueue_many.limit_key) end
          from unnest(enqueue_many.payloads, enqueue_many.dedupe_keys)
               as item (payload, dedupe_key)
        on conflict (tenant_id, dedupe_key) where dedupe_key is not null do nothing
        returning job.job_id
    ), asked as (
        insert into mainspring.approvals (job_id, tenant_id, needed, approvers, expires_at)
        select added.job_id, enqueue_many.tenant, defined.approvals_needed, defined.approvers,
               now() + defined.approval_expiry
          from added where defined.approvals_needed > 0
    )
    select added.job_id from added;

    if waits = 'limit' then
        perform mainspring.wake_limits();
    elsif waits is distinct from 'approval' then
        perform mainspring.announce(
            plan.job_queue, plan.job_priority, enqueue_many.tenant, last_id, plan.due_at);
    end if;
end
$$;
comment on function mainspring.enqueue_many is
    'Enqueues one job per payload; a payload whose dedupe key is taken is left out.';
