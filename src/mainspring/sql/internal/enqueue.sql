-- Enqueue: what is checked and reserved before a job is inserted.

create or replace function mainspring.max_payload_bytes()
returns integer
language sql stable
as $$
    select coalesce(nullif(current_setting('mainspring.max_payload_bytes', true), '')::integer,
                    1048576)
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
    if delay > mainspring.longest_delay() then
        perform mainspring.refuse('MS003', 'delay must be 36500 days at most',
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
    if dedupe_window > mainspring.longest_delay() then
        perform mainspring.refuse('MS003', 'dedupe_window must be 36500 days at most',
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
