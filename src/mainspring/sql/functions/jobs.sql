-- The public SQL API of jobs. Every function runs with the schema owner's rights under a
-- pinned search_path, so a caller needs USAGE on the schema and EXECUTE on what it calls.
-- Errors carry SQLSTATEs of class MS; domain/errors knows them by the same number.

create or replace function mainspring.refuse(code text, message text, detail jsonb default '{}')
returns void
language plpgsql
as $$
begin
    raise exception using errcode = code, message = message, detail = detail::text;
end
$$;

create or replace function mainspring.max_payload_bytes()
returns integer
language sql stable
as $$
    select coalesce(nullif(current_setting('mainspring.max_payload_bytes', true), '')::integer,
                    1048576)
$$;

-- The message that tells workers of a job: q and its queue when it is ready, d when it is due
-- before they would look for such jobs by themselves; null when there is nothing to tell.
create or replace function mainspring.message_for(queue text, due_at timestamptz)
returns text
language sql stable
return case when due_at <= now() then 'q:' || queue
            when due_at < now() + interval '15 seconds' then 'd:' end;

create or replace function mainspring.wake(queue text, due_at timestamptz default now())
returns void
language plpgsql
as $$
begin
    -- NOTIFY takes a lock that serialises commits, so it is sent only to who asked for it.
    if exists (select from mainspring.workers as worker
                where worker.wants_wake and wake.queue = any (worker.queues))
       and mainspring.message_for(queue, due_at) is not null then
        perform pg_notify('mainspring', mainspring.message_for(queue, due_at));
    end if;
end
$$;

-- Tells busy workers of jobs that are ready in a lane (queue, priority, tenant) from this id on, if
-- the lane looks empty otherwise. They know where work was, and find the rest within a second;
-- until then they may start tens of thousands of jobs of another tenant. Only the last thousand
-- ids are looked at: a lane may begin with any number of dead entries, and it does no harm to be
-- told of one that has work from before.
create or replace function mainspring.tell_busy(
    queue text, priority integer, tenant text, first_id bigint
)
returns void
language plpgsql
as $$
begin
    if length(tell_busy.queue) <= 500 and length(tell_busy.tenant) <= 500 and not exists (
        select from mainspring.jobs as job
         where job.queue = tell_busy.queue and job.priority = tell_busy.priority
           and job.tenant_id = tell_busy.tenant
           and job.job_id between tell_busy.first_id - 1000 and tell_busy.first_id - 1
           and job.state = 'queued' and job.waits_for is null) then
        perform pg_notify('mainspring', 'n:' || json_build_array(
            tell_busy.queue, tell_busy.priority, tell_busy.tenant, tell_busy.first_id, t.weight))
           from mainspring.tenants as t where t.tenant_id = tell_busy.tenant;
    end if;
end
$$;

-- Tells workers of jobs that were enqueued, the first of them with this id.
create or replace function mainspring.announce(
    queue text, priority integer, tenant text, first_id bigint, due_at timestamptz
)
returns void
language plpgsql
as $$
begin
    if exists (select from mainspring.workers as worker
                where worker.wants_wake and announce.queue = any (worker.queues)) then
        perform mainspring.wake(announce.queue, announce.due_at);
    elsif announce.due_at <= now() and exists (
        select from mainspring.workers as worker where announce.queue = any (worker.queues)) then
        perform mainspring.tell_busy(
            announce.queue, announce.priority, announce.tenant, announce.first_id);
    end if;
end
$$;

create or replace function mainspring.check_text(option text, value text)
returns void
language plpgsql immutable
as $$
begin
    if length(value) not between 1 and 500 then
        perform mainspring.refuse('MS003',
            option || case when value = '' then ' must not be empty'
                           else ' must be 500 characters at most' end,
            jsonb_build_object('option', option));
    end if;
end
$$;

create or replace function mainspring.check_enqueue(
    payload jsonb, priority integer, max_attempts integer, delay interval,
    scheduled_for timestamptz, deadline timestamptz, dedupe_window interval
)
returns void
language plpgsql stable
as $$
declare
    size integer := pg_column_size(payload);
begin
    if payload is null or jsonb_typeof(payload) <> 'object' then
        perform mainspring.refuse('MS001', 'the payload must be a JSON object, not '
            || coalesce(jsonb_typeof(payload), 'null'));
    end if;
    -- A value that comes from a table may be compressed, which pg_column_size does not undo.
    if size > 65536 or pg_column_compression(payload) is not null then
        size := octet_length(payload::text);
        if size > mainspring.max_payload_bytes() then
            perform mainspring.refuse('MS002', 'the payload is too large',
                jsonb_build_object('size', size, 'limit', mainspring.max_payload_bytes()));
        end if;
    end if;
    if priority not between 0 and 1000 then
        perform mainspring.refuse('MS003', 'priority must be from 0 (first) to 1000 (last), not '
            || priority, '{"option": "priority"}');
    end if;
    if max_attempts not between 1 and 1000 then
        perform mainspring.refuse('MS003', 'max_attempts must be from 1 to 1000, not '
            || max_attempts, '{"option": "max_attempts"}');
    end if;
    if delay < '0' then
        perform mainspring.refuse('MS003', 'delay must not be negative', '{"option": "delay"}');
    end if;
    if delay > '1000 years' then
        perform mainspring.refuse('MS003', 'delay must be 1000 years at most',
            '{"option": "delay"}');
    end if;
    -- What other clients cannot represent they could not read either.
    if scheduled_for not between '0001-01-02T00:00:00Z' and '9999-12-30T00:00:00Z' then
        perform mainspring.refuse('MS003', 'scheduled_for must be in the years 1 to 9999',
            '{"option": "scheduled_for"}');
    end if;
    if deadline > '9999-12-30T00:00:00Z' then
        perform mainspring.refuse('MS003', 'deadline must be in the years 1 to 9999',
            '{"option": "deadline"}');
    end if;
    if delay is not null and scheduled_for is not null then
        perform mainspring.refuse('MS003',
            'delay and scheduled_for exclude each other; give one', '{"option": "delay"}');
    end if;
    if dedupe_window <= '0' then
        perform mainspring.refuse('MS003', 'dedupe_window must be more than zero',
            '{"option": "dedupe_window"}');
    end if;
    if deadline <= now() then
        perform mainspring.refuse('MS003', 'deadline ' || deadline || ' has passed',
            '{"option": "deadline"}');
    end if;
    if coalesce(scheduled_for, now() + delay) >= deadline then
        perform mainspring.refuse('MS003',
            'scheduled_for is not before the deadline; the job could never run',
            '{"option": "scheduled_for"}');
    end if;
end
$$;

-- Reserves a key that outlives its job. Returns the job that holds it: the given one if the
-- key was free or expired.
create or replace function mainspring.reserve_key(
    tenant text, kind text, key text, job_id bigint, lifetime interval, fingerprint text
)
returns mainspring.enqueue_keys
language plpgsql
as $$
#variable_conflict use_column
declare
    holder mainspring.enqueue_keys;
begin
    loop
        insert into mainspring.enqueue_keys (tenant_id, kind, key, job_id, expires_at, fingerprint)
        values (reserve_key.tenant, reserve_key.kind, reserve_key.key, reserve_key.job_id,
                now() + reserve_key.lifetime, reserve_key.fingerprint)
        on conflict do nothing
        returning * into holder;
        exit when found;
        select * into holder from mainspring.enqueue_keys as held
         where held.tenant_id = reserve_key.tenant and held.kind = reserve_key.kind
           and held.key = reserve_key.key and held.expires_at > now();
        exit when found;
        delete from mainspring.enqueue_keys as held
         where held.tenant_id = reserve_key.tenant and held.kind = reserve_key.kind
           and held.key = reserve_key.key and held.expires_at <= now();
    end loop;
    return holder;
end
$$;

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
                or (enqueue_job.delay between '0' and '1000 years'
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

-- What a bulk enqueue is to write, decided before its first row: checks what is common to all
-- jobs, fills in the definition's defaults, and takes an id for each.
create or replace function mainspring.prepare_bulk(
    definition text, count integer, tenant text, queue text, priority integer,
    max_attempts integer, scheduled_for timestamptz, delay interval, deadline timestamptz,
    out job_version integer, out job_queue text, out job_priority integer,
    out job_max_attempts integer, out due_at timestamptz, out is_plain boolean,
    out first_id bigint, out last_id bigint, out job_ids bigint[]
)
language plpgsql
as $$
#variable_conflict use_column
begin
    perform mainspring.ensure_visible(tenant);
    perform mainspring.ensure_open(prepare_bulk.definition);
    select d.version, coalesce(prepare_bulk.queue, d.queue),
           coalesce(prepare_bulk.priority, d.priority),
           coalesce(prepare_bulk.max_attempts, d.max_attempts), d.is_plain
      into job_version, job_queue, job_priority, job_max_attempts, is_plain
      from mainspring.definitions as d
     where d.key = prepare_bulk.definition and d.is_active;
    if not found then
        perform mainspring.refuse('MS010', 'no active definition has the key '
            || coalesce(quote_literal(prepare_bulk.definition), 'null'),
            jsonb_build_object('key', prepare_bulk.definition));
    end if;
    if not exists (select from mainspring.tenants as t where t.tenant_id = prepare_bulk.tenant) then
        perform mainspring.refuse('MS003', 'tenant does not exist: '
            || coalesce(quote_literal(prepare_bulk.tenant), 'null'), '{"option": "tenant"}');
    end if;
    perform mainspring.check_enqueue(
        '{}', prepare_bulk.priority, prepare_bulk.max_attempts, prepare_bulk.delay,
        prepare_bulk.scheduled_for, prepare_bulk.deadline, null);
    perform mainspring.check_text('queue', prepare_bulk.queue);
    due_at := coalesce(prepare_bulk.scheduled_for, now() + prepare_bulk.delay, now());
    is_plain := is_plain and not exists (
        select from mainspring.tenants as t
         where t.tenant_id = prepare_bulk.tenant and t.max_running is not null);
    if not is_plain then
        return;
    end if;
    select array_agg(nextval('mainspring.job_ids')) into job_ids
      from generate_series(1, prepare_bulk.count);
    first_id := job_ids[1];
    last_id := job_ids[prepare_bulk.count];
    if last_id - first_id + 1 = prepare_bulk.count then
        job_ids := null;  -- An unbroken run, which is quicker to send as its two ends.
    end if;
end
$$;

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

-- Cancels a job, whoever asks; nothing is written down but the reason.
create or replace function mainspring.stop_job(job_id bigint, reason text, tenant text)
returns mainspring.job_state
language plpgsql
as $$
#variable_conflict use_column
declare
    found_job mainspring.jobs;
    final_state mainspring.job_state;
begin
    select * into found_job from mainspring.jobs as job
     where job.job_id = stop_job.job_id and job.tenant_id = stop_job.tenant for update;
    if not found then
        select state into final_state from mainspring.jobs_history as job
         where job.job_id = stop_job.job_id and job.tenant_id = stop_job.tenant;
        if not found then
            perform mainspring.refuse('MS030',
                'there is no job ' || coalesce(stop_job.job_id::text, 'null'),
                jsonb_build_object('job_id', stop_job.job_id));
        elsif final_state <> 'canceled' then
            perform mainspring.refuse('MS031', 'job ' || stop_job.job_id || ' is ' || final_state
                || '; it cannot become canceled', jsonb_build_object(
                'job_id', stop_job.job_id, 'state', final_state, 'target', 'canceled'));
        end if;
        return final_state;
    end if;
    perform mainspring.stop_jobs(array[stop_job.job_id], stop_job.reason);
    return case when found_job.state = 'running' then 'running' else 'canceled' end;
end
$$;

-- Cancels live jobs whose rows the caller has locked; asks those that run to stop.
create or replace function mainspring.stop_jobs(job_ids bigint[], reason text)
returns void
language plpgsql
as $$
begin
    update mainspring.jobs as job
       set cancel_requested_at = coalesce(job.cancel_requested_at, now()),
           last_error = stop_jobs.reason
     where job.job_id = any (stop_jobs.job_ids);
    perform pg_notify('mainspring', 'c:' || running.worker_id)
       from (select distinct job.worker_id from mainspring.jobs as job
              where job.job_id = any (stop_jobs.job_ids) and job.state = 'running') as running;
    perform mainspring.settle_cancels(stop_jobs.job_ids);
end
$$;

create or replace function mainspring.cancel(
    job_id bigint, reason text default 'canceled by request', tenant text default 'default'
)
returns mainspring.job_state
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    was mainspring.job_state := mainspring.visible_state(job_id, tenant);
    became mainspring.job_state := mainspring.stop_job(job_id, reason, tenant);
begin
    if was <> 'canceled' then
        perform mainspring.note_action(tenant, 'cancel', 'job', job_id::text, reason,
            jsonb_build_object('state', was), jsonb_build_object('state', became));
    end if;
    return became;
end
$$;

comment on function mainspring.cancel is
    'Cancels a job that has not started at once; asks a running one to stop and says running.';

-- Moves a job that is asked to cancel and does not run into history. Returns whether it did.
create or replace function mainspring.settle_cancel(job_id bigint)
returns boolean
language plpgsql
as $$
begin
    return mainspring.settle_cancels(array[job_id]) > 0;
end
$$;

-- The same of many jobs; says how many it moved.
create or replace function mainspring.settle_cancels(job_ids bigint[])
returns bigint
language plpgsql
as $$
declare
    moved bigint;
begin
    -- Heard when the transaction is committed.
    perform mainspring.wake_limits(room.limit_name, room.limit_key, room.tenant_id)
       from (select distinct job.limit_name, job.limit_key, job.tenant_id
               from mainspring.jobs as job
              where job.job_id = any (settle_cancels.job_ids) and job.state <> 'running'
                and job.cancel_requested_at is not null
                and job.limit_name is not null and job.waits_for is null) as room;
    with ended as (
        delete from mainspring.jobs as job
         where job.job_id = any (settle_cancels.job_ids) and job.state <> 'running'
           and job.cancel_requested_at is not null
        returning job.*
    ), tallied as (
        insert into mainspring.tally_changes (tenant_id, state, count)
        select tenant_id, 'canceled', count(*) from ended group by tenant_id
    )
    insert into mainspring.jobs_history (
        job_id, created_at, scheduled_for, started_at, finished_at, deadline_at,
        cancel_requested_at, attempt, failures, losses, max_attempts, state, priority, tenant_id,
        queue, definition, definition_version, payload, dedupe_key, correlation_id, tags,
        progress, checkpoint, last_error, schedule_id, slot_at, origin, created_by)
    select job_id, created_at, scheduled_for, started_at, now(), deadline_at,
           cancel_requested_at, attempt, failures, losses, max_attempts, 'canceled', priority,
           tenant_id, queue, definition, definition_version, payload, dedupe_key,
           correlation_id, tags, progress, checkpoint, last_error, schedule_id, slot_at, origin, created_by
      from ended;
    get diagnostics moved = row_count;
    if moved > 0 and exists (
        select from mainspring.dependencies as d
         where d.parent_id = any (settle_cancels.job_ids) and d.outcome is null) then
        perform pg_notify('mainspring', 'p:');
    end if;
    return moved;
end
$$;

-- Puts an ended job back, whoever asks; nothing is written down.
create or replace function mainspring.put_back(job_id bigint, payload jsonb, tenant text)
returns bigint
language plpgsql
as $$
#variable_conflict use_column
declare
    ended mainspring.jobs_history;
    live_state mainspring.job_state;
    holder bigint;
    defined mainspring.definitions;
    room record;
    waits mainspring.waits_for;
    needed integer;
begin
    if put_back.payload is not null then
        perform mainspring.check_enqueue(put_back.payload, null, null, null, null, null, null);
    end if;
    delete from mainspring.jobs_history as job
     where job.job_id = put_back.job_id and job.tenant_id = put_back.tenant
       and job.state in ('failed', 'dead_letter', 'canceled')
    returning * into ended;
    if not found then
        select state into live_state from mainspring.job_status as job
         where job.job_id = put_back.job_id and job.tenant_id = put_back.tenant;
        if not found then
            perform mainspring.refuse('MS030',
                'there is no job ' || coalesce(put_back.job_id::text, 'null'),
                jsonb_build_object('job_id', put_back.job_id));
        end if;
        perform mainspring.refuse('MS031', 'job ' || put_back.job_id || ' is ' || live_state
            || '; it cannot become queued', jsonb_build_object(
            'job_id', put_back.job_id, 'state', live_state, 'target', 'queued'));
    end if;
    if put_back.payload is not null then
        perform mainspring.ensure_open(ended.definition);
    end if;
    perform mainspring.untally(ended.tenant_id, ended.state, ended.finished_at);
    -- Who edits a payload has seen a redacted one.
    payload := mainspring.restored(put_back.payload, ended.payload, mainspring.paths_of(
        ended.definition, ended.definition_version));
    -- A key of the content goes with the content.
    if ended.dedupe_key = 'content:' || md5(ended.definition || e'\n' || ended.payload::text) then
        ended.dedupe_key := 'content:' || md5(ended.definition || e'\n'
            || coalesce(put_back.payload, ended.payload)::text);
    end if;
    select * into defined from mainspring.definitions as d where d.key = ended.definition;
    select * into room from mainspring.room_of(
        defined, ended.tenant_id, coalesce(put_back.payload, ended.payload), null);
    -- What was not approved, or not like this, has to be approved first.
    select asked.needed into needed from mainspring.approvals as asked
     where asked.job_id = ended.job_id
       and (asked.decision is distinct from 'approved' or put_back.payload <> ended.payload);
    waits := case when needed > 0 then 'approval'
                  when exists (select from mainspring.dependencies as d
                                where d.job_id = ended.job_id and d.outcome is null)
                  then 'parents'
                  when ended.slot_at is not null then 'turn'
                  else mainspring.wait_of(room.limit_name) end;
    loop
        insert into mainspring.jobs (
            job_id, created_at, scheduled_for, attempt, max_attempts, priority, tenant_id, queue,
            definition, definition_version, payload, dedupe_key, correlation_id, tags, checkpoint,
            last_error, schedule_id, slot_at, origin, created_by, state, waits_for, limit_name, limit_key)
        values (
            ended.job_id, ended.created_at, now(), ended.attempt, ended.max_attempts,
            ended.priority, ended.tenant_id, ended.queue, ended.definition,
            ended.definition_version, coalesce(put_back.payload, ended.payload), ended.dedupe_key,
            ended.correlation_id, ended.tags, ended.checkpoint, ended.last_error,
            ended.schedule_id, ended.slot_at, ended.origin, ended.created_by,
            mainspring.state_of(waits), waits,
            room.limit_name, room.limit_key)
        on conflict (tenant_id, dedupe_key) where dedupe_key is not null do nothing;
        exit when found;
        select job.job_id into holder from mainspring.jobs as job
         where job.tenant_id = ended.tenant_id and job.dedupe_key = ended.dedupe_key;
        if found then
            perform mainspring.refuse('MS020', 'job ' || holder || ' already holds the dedupe key '
                || quote_literal(ended.dedupe_key),
                jsonb_build_object('key', ended.dedupe_key, 'job_id', holder));
        end if;
    end loop;
    update mainspring.slots as slot set run_state = null, started_at = null, finished_at = null
     where slot.schedule_id = ended.schedule_id and slot.scheduled_for = ended.slot_at
       and slot.job_id = ended.job_id;
    if waits = 'approval' then
        perform mainspring.ask_approval(ended.job_id, ended.tenant_id, defined, needed);
    elsif waits = 'turn' then
        perform mainspring.release_turn(ended.schedule_id);
    elsif waits = 'parents' then
        perform pg_notify('mainspring', 'p:');
    elsif waits = 'limit' then
        perform mainspring.wake_limits(room.limit_name, room.limit_key, ended.tenant_id);
    else
        perform mainspring.wake(ended.queue);
    end if;
    return ended.job_id;
end
$$;

create or replace function mainspring.retry(
    job_id bigint, payload jsonb default null, tenant text default 'default'
)
returns bigint
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    was mainspring.job_state := mainspring.visible_state(job_id, tenant);
    put bigint := mainspring.put_back(job_id, payload, tenant);
begin
    perform mainspring.note_action(tenant, 'retry', 'job', job_id::text,
        case when payload is not null then 'with another payload' end,
        jsonb_build_object('state', was),
        (select jsonb_build_object('state', job.state) from mainspring.jobs as job
          where job.job_id = put));
    return put;
end
$$;

comment on function mainspring.retry is
    'Puts a failed, dead-lettered or canceled job back to queued, with another payload if given.';

-- Removes those of the jobs that do not run, with all that belongs to them, whoever asks; gives the
-- state that each was in. Nothing is written down.
create or replace function mainspring.remove_jobs(job_ids bigint[], tenant text)
returns table (job_id bigint, state mainspring.job_state)
language plpgsql
as $$
#variable_conflict use_column
declare
    removed bigint[];
    states mainspring.job_state[];
    schedule_ids bigint[];
begin
    perform mainspring.wake_limits(room.limit_name, room.limit_key, room.tenant_id)
       from (select distinct job.limit_name, job.limit_key, job.tenant_id
               from mainspring.jobs as job
              where job.job_id = any (remove_jobs.job_ids)
                and job.tenant_id = remove_jobs.tenant and job.state <> 'running'
                and job.limit_name is not null and job.waits_for is null) as room;
    with gone as (
        delete from mainspring.jobs as job
         where job.job_id = any (remove_jobs.job_ids) and job.tenant_id = remove_jobs.tenant
           and job.state <> 'running'
        returning job.job_id, job.state, job.schedule_id, job.slot_at
    ), closed as (
        update mainspring.slots as slot
           set run_state = 'canceled', finished_at = now(), reason = 'its job was deleted'
          from gone
         where slot.schedule_id = gone.schedule_id and slot.scheduled_for = gone.slot_at
    ), past as (
        delete from mainspring.jobs_history as job
         where job.job_id = any (remove_jobs.job_ids) and job.tenant_id = remove_jobs.tenant
        returning job.job_id, job.state, job.tenant_id, job.finished_at
    ), untallied as (
        insert into mainspring.tally_changes (tenant_id, state, day, count)
        select tenant_id, state, mainspring.day_of(finished_at), -count(*) from past
         group by tenant_id, state, mainspring.day_of(finished_at)
    ), every as (
        select gone.job_id, gone.state, gone.schedule_id, gone.slot_at from gone
        union all
        select past.job_id, past.state, null, null from past
    )
    select array_agg(every.job_id), array_agg(every.state),
           array_agg(distinct every.schedule_id) filter (where every.slot_at is not null)
      into removed, states, schedule_ids
      from every;
    perform mainspring.release_turn(schedule_id) from unnest(schedule_ids) as schedule_id;
    delete from mainspring.attempts as attempt where attempt.job_id = any (removed);
    delete from mainspring.outputs as output where output.job_id = any (removed);
    delete from mainspring.approvals as asked where asked.job_id = any (removed);
    delete from mainspring.dependencies as d where d.job_id = any (removed);
    if exists (select from mainspring.dependencies as d
                where d.parent_id = any (removed) and d.outcome is null) then
        perform pg_notify('mainspring', 'p:');
    end if;
    return query select * from unnest(removed, states);
end
$$;

create or replace function mainspring.delete_job(job_id bigint, tenant text default 'default')
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    was mainspring.job_state := mainspring.visible_state(delete_job.job_id, tenant);
begin
    if not exists (select from mainspring.remove_jobs(array[delete_job.job_id], tenant)) then
        if exists (select from mainspring.jobs as job where job.job_id = delete_job.job_id
                      and job.tenant_id = delete_job.tenant) then
            perform mainspring.refuse('MS031', 'job ' || delete_job.job_id
                || ' is running; it cannot become deleted', jsonb_build_object(
                'job_id', delete_job.job_id, 'state', 'running', 'target', 'deleted'));
        end if;
        perform mainspring.refuse('MS030',
            'there is no job ' || coalesce(delete_job.job_id::text, 'null'),
            jsonb_build_object('job_id', delete_job.job_id));
    end if;
    perform mainspring.note_action(tenant, 'delete', 'job', delete_job.job_id::text, null,
        jsonb_build_object('state', was), null);
end
$$;

comment on function mainspring.delete_job is
    'Removes a job that is not running, with its attempts.';
