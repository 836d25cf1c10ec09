-- Enqueue: what is checked, and which keys are reserved, before a job is added.

-- The definition that a new job names; refuses one that is unknown or inactive.
create or replace function mainspring.active_definition(key text)
returns mainspring.definitions
language plpgsql stable
as $$
declare
    defined mainspring.definitions;
begin
    select * into defined from mainspring.definitions as d
     where d.key = active_definition.key and d.is_active;
    if not found then
        perform mainspring.refuse('MS010', mainspring.why_unknown(active_definition.key),
                                  mainspring.unknown_facts(active_definition.key));
    end if;
    return defined;
end
$$;

-- Whether a definition is there, but takes no jobs.
create or replace function mainspring.is_deactivated(key text)
returns boolean
language sql stable
return exists (select from mainspring.definitions as d
                where d.key = is_deactivated.key and not d.is_active);

-- Why there is no definition to enqueue: nobody registered it, or someone deactivated it.
create or replace function mainspring.why_unknown(key text)
returns text
language sql stable
return case when mainspring.is_deactivated(key)
            then 'definition ' || quote_literal(key) || ' is deactivated; activate it first'
            else 'unknown definition ' || coalesce(quote_literal(key), 'null')
                 || mainspring.meant_definition(key) end;

-- The same as facts for programs.
create or replace function mainspring.unknown_facts(key text)
returns jsonb
language sql stable
return jsonb_build_object('key', key)
       || case when mainspring.is_deactivated(key) then '{"is_deactivated": true}' else '{}' end
          ::jsonb;

-- Refuses a tenant that there is not.
create or replace function mainspring.ensure_tenant(tenant text)
returns void
language plpgsql stable
as $$
declare
    is_enabled boolean := (select t.disabled_at is null from mainspring.tenants as t
                            where t.tenant_id = ensure_tenant.tenant);
begin
    if is_enabled is null then
        perform mainspring.refuse('MS003', 'tenant does not exist: '
            || coalesce(quote_literal(tenant), 'null'), '{"option": "tenant"}');
    elsif not is_enabled then
        perform mainspring.refuse('MS003', 'tenant is disabled: ' || quote_literal(tenant)
            || '; enable it first', '{"option": "tenant"}');
    end if;
end
$$;

-- Refuses a payload that is not an object, too large, or that looks encrypted and is not.
create or replace function mainspring.check_payload(payload jsonb)
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
    if mainspring.has_foreign_mark(payload) then
        perform mainspring.refuse('MS001', 'the payload ' || mainspring.uses_mark());
    end if;
end
$$;

-- Refuses a priority or a number of attempts out of range.
create or replace function mainspring.check_numbers(priority integer, max_attempts integer)
returns void
language plpgsql immutable
as $$
begin
    if priority not between 0 and 1000 then
        perform mainspring.refuse('MS003', 'priority must be from 0 (first) to 1000 (last), not '
            || priority, '{"option": "priority"}');
    end if;
    if max_attempts not between 1 and 1000 then
        perform mainspring.refuse('MS003', 'max_attempts must be from 1 to 1000, not '
            || max_attempts, '{"option": "max_attempts"}');
    end if;
end
$$;

-- Refuses instants that exclude each other, have passed, or that other clients could not read.
create or replace function mainspring.check_times(
    delay interval, scheduled_for timestamptz, deadline timestamptz
)
returns void
language plpgsql stable
as $$
begin
    if delay < '0' then
        perform mainspring.refuse_option('delay', 'delay must not be negative');
    elsif delay > mainspring.longest_delay() then
        perform mainspring.refuse_option('delay', 'delay must be at most 36500 days');
    elsif scheduled_for not between '0001-01-02T00:00:00Z' and '9999-12-30T00:00:00Z' then
        perform mainspring.refuse_option('scheduled_for',
            'scheduled_for must be in the years 1 to 9999');
    elsif deadline > '9999-12-30T00:00:00Z' then
        perform mainspring.refuse_option('deadline', 'deadline must be in the years 1 to 9999');
    elsif delay is not null and scheduled_for is not null then
        perform mainspring.refuse_option('delay',
            'delay and scheduled_for cannot be used together; choose one');
    elsif deadline <= clock_timestamp() then
        perform mainspring.refuse_option('deadline', 'deadline ' || deadline || ' has passed');
    elsif coalesce(scheduled_for, clock_timestamp() + delay) >= deadline then
        perform mainspring.refuse_option('scheduled_for',
            'scheduled_for is not before the deadline; the job could never run');
    end if;
end
$$;

-- Refuses payloads and dedupe keys of a bulk enqueue, the first that is wrong.
create or replace function mainspring.check_bulk(payloads jsonb[], dedupe_keys text[])
returns void
language plpgsql stable
as $$
begin
    if cardinality(payloads) > mainspring.most_jobs() then
        perform mainspring.refuse_option('payloads', format(
            'payloads must have at most %s entries, not %s; enqueue them in several calls',
            mainspring.most_jobs(), cardinality(payloads)));
    end if;
    perform mainspring.check_payload(item.payload)
       from unnest(payloads) as item (payload)
      where jsonb_typeof(item.payload) is distinct from 'object'
         or (pg_column_size(item.payload) > 65536
             and octet_length(item.payload::text) > mainspring.max_payload_bytes())
         or mainspring.has_mark(item.payload);
    if dedupe_keys is not null and cardinality(dedupe_keys) <> cardinality(payloads) then
        perform mainspring.refuse_option('dedupe_keys',
            'dedupe_keys must have one entry per payload');
    end if;
    perform mainspring.check_text('dedupe_keys', item.key)
       from unnest(dedupe_keys) as item (key)
      where length(item.key) not between 1 and 500;
end
$$;

-- Whether one statement may insert such a job, because nothing about it needs a closer look.
-- Simple enough to become a part of that statement.
create or replace function mainspring.is_plain_request(
    payload jsonb, queue text, priority integer, max_attempts integer, delay interval,
    scheduled_for timestamptz, on_duplicate text
)
returns boolean
language sql stable
return jsonb_typeof(payload) = 'object'
   and pg_column_size(payload) <= 65536
   and pg_column_compression(payload) is null
   and strpos(payload::text, '"$mainspring": ') = 0
   and on_duplicate in ('raise', 'existing')
   and coalesce(length(queue), 1) between 1 and 500
   and coalesce(priority, 0) between 0 and 1000
   and coalesce(max_attempts, 1) between 1 and 1000
   and (delay is null or (delay between '0' and '36500 days' and scheduled_for is null))
   and coalesce(scheduled_for, now()) between '0001-01-02T00:00:00Z' and '9999-12-30T00:00:00Z';

-- A definition as it counts for a job that asks for approvals: for more than the definition does,
-- never for less.
create or replace function mainspring.with_approvals(
    defined mainspring.definitions, asked integer
)
returns mainspring.definitions
language plpgsql immutable
as $$
begin
    if asked not between 0 and 100 then
        perform mainspring.refuse_option('approvals_needed',
            'approvals_needed must be from 0 to 100, not ' || asked);
    end if;
    defined.approvals_needed := greatest(defined.approvals_needed, asked);
    return defined;
end
$$;

-- Identifies what a job is about: its tenant, definition and payload. Nobody without the key of the
-- installation can tell from it what is in the payload, however few values there are to try.
create or replace function mainspring.content_digest(tenant text, definition text, payload jsonb)
returns text
language sql stable
as $$
    select mainspring.keyed_digest('content', jsonb_build_array(tenant, definition)::text
                                              || mainspring.compared_by(payload))
$$;

-- The same of a job.
create or replace function mainspring.content_of(job mainspring.jobs)
returns text
language sql stable
as $$ select mainspring.content_digest(job.tenant_id, job.definition, job.payload) $$;

-- The keyed hash (two rounds, each with its half of a key of the installation) of a text.
create or replace function mainspring.keyed_digest(purpose text, content text)
returns text
language plpgsql stable
as $$
declare
    own_key bytea;
begin
    select own.key into strict own_key
      from mainspring.installation_keys as own where own.name = purpose;
    return encode(sha256(substr(own_key, 33) || sha256(
        substr(own_key, 1, 32) || convert_to(content, 'UTF8'))), 'hex');
end
$$;

-- What earlier releases had in place of content_of, for keys that they wrote.
create or replace function mainspring.legacy_content(definition text, payload jsonb)
returns text
language sql immutable
return md5(definition || e'\n' || payload::text);

-- All that a payload may have been known by before it was encrypted anew: as it was compared, as it
-- was stored, and as earlier releases made keys of content and of windows.
create or replace function mainspring.earlier_contents(
    tenant text, definition text, payload jsonb, was_compared_by jsonb
)
returns text[]
language sql stable
as $$
    select array[mainspring.content_digest(tenant, definition, was_compared_by),
                 mainspring.content_digest(tenant, definition, payload),
                 mainspring.legacy_content(definition, payload), md5(payload::text)]
$$;

-- A key that was made of a job's content, with what the content is known by now; other keys stay.
create or replace function mainspring.renewed_key(key text, earlier text[], content text)
returns text
language sql immutable
return case when key ~ '^(content|trigger:[0-9]+):[0-9a-f]+$'
                 and substring(key from '[^:]+$') = any (earlier)
            then regexp_replace(key, '[^:]+$', content) else key end;

-- The dedupe key of a new job: as given, or made of its content. Refuses options that contradict
-- each other.
create or replace function mainspring.dedupe_key_of(
    asked mainspring.jobs, dedupe_by text, dedupe_window interval, on_duplicate text
)
returns text
language plpgsql stable
as $$
begin
    if dedupe_window <= '0' then
        perform mainspring.refuse_option('dedupe_window',
            'dedupe_window must be more than zero');
    elsif dedupe_window > mainspring.longest_delay() then
        perform mainspring.refuse_option('dedupe_window',
            'dedupe_window must be at most 36500 days');
    end if;
    perform mainspring.check_text('dedupe_key', asked.dedupe_key);
    if coalesce(on_duplicate, '') not in ('raise', 'existing') then
        perform mainspring.refuse_option('on_duplicate',
            'on_duplicate must be ''raise'' or ''existing''');
    end if;
    if dedupe_by is not null then
        if dedupe_by <> 'content' or asked.dedupe_key is not null then
            perform mainspring.refuse_option('dedupe_by',
                'dedupe_by must be ''content'' and cannot be used with dedupe_key');
        end if;
        return 'content:' || mainspring.content_of(asked);
    end if;
    if dedupe_window is not null and asked.dedupe_key is null then
        perform mainspring.refuse_option('dedupe_window',
            'dedupe_window needs dedupe_key or dedupe_by');
    end if;
    return asked.dedupe_key;
end
$$;

-- Reserves a key that outlives its job. Returns the job that holds it: the given one if the
-- key was free or expired.
create or replace function mainspring.reserve_key(
    tenant text, kind text, key text, job_id bigint, lifetime interval,
    fingerprint text default null
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
                clock_timestamp() + reserve_key.lifetime, reserve_key.fingerprint)
        on conflict do nothing
        returning * into holder;
        exit when found;
        select * into holder from mainspring.enqueue_keys as held
         where held.tenant_id = reserve_key.tenant and held.kind = reserve_key.kind
           and held.key = reserve_key.key and held.expires_at > clock_timestamp();
        exit when found;
        delete from mainspring.enqueue_keys as held
         where held.tenant_id = reserve_key.tenant and held.kind = reserve_key.kind
           and held.key = reserve_key.key and held.expires_at <= clock_timestamp();
    end loop;
    return holder;
end
$$;

-- What is kept of a request with an idempotency key; requests of equal content have different ones.
create or replace function mainspring.request_digest(key text, content text)
returns text
language sql stable
as $$ select mainspring.keyed_digest('content', key || e'\n' || content) $$;

-- What is kept of a request whose payload was encrypted anew, if it was made of the payload before.
create or replace function mainspring.renewed_request(
    kept mainspring.enqueue_keys, earlier text[], content text
)
returns text
language sql stable
as $$
    select case when kept.fingerprint = any (earlier) or exists (
                    select from unnest(earlier) as known
                     where kept.fingerprint = mainspring.request_digest(kept.key, known))
                then mainspring.request_digest(kept.key, content) else kept.fingerprint end
$$;

-- Reserves the idempotency key of a new job for a week. Returns the job that holds it; refuses a
-- key that belongs to a job with another definition or payload, which its content tells.
create or replace function mainspring.reserve_idempotency(
    asked mainspring.jobs, key text, content text
)
returns bigint
language plpgsql
as $$
declare
    request text := mainspring.request_digest(key, content);
    held mainspring.enqueue_keys := mainspring.reserve_key(
        asked.tenant_id, 'idempotency', key, asked.job_id, interval '7 days', request);
begin
    -- A request that an earlier release took is known by what that kept of it.
    if held.fingerprint not in (
        request, mainspring.legacy_content(asked.definition, asked.payload)) then
        perform mainspring.refuse('MS021', 'the idempotency key ' || quote_literal(key)
            || ' belongs to job ' || held.job_id || ', which has a different definition or payload',
            jsonb_build_object('key', key, 'job_id', held.job_id));
    end if;
    return held.job_id;
end
$$;

-- Refuses a job whose dedupe key another holds; or makes its keys those of the other.
create or replace function mainspring.note_duplicate(
    asked mainspring.jobs, holder bigint, idempotency_key text, on_duplicate text
)
returns void
language plpgsql
as $$
begin
    if on_duplicate = 'raise' then
        perform mainspring.refuse_duplicate(asked.dedupe_key, holder);
    end if;
    update mainspring.enqueue_keys as known set job_id = holder
     where known.tenant_id = asked.tenant_id
       and (known.kind, known.key) in (('idempotency', idempotency_key),
                                       ('window', asked.dedupe_key))
       and known.job_id <> holder;
end
$$;

-- Refuses a dedupe key that a live job holds.
create or replace function mainspring.refuse_duplicate(key text, holder bigint)
returns void
language plpgsql
as $$
begin
    perform mainspring.refuse('MS020', 'job ' || holder || ' already has the dedupe key '
        || quote_literal(key), jsonb_build_object('key', key, 'job_id', holder));
end
$$;
