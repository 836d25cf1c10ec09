-- name: sync
-- scope: system
-- Stores the definitions a program declares in code; writes nothing where nothing changed. Returns
-- those whose key belongs to a definition of another kind.
with declared as materialized (
    select * from jsonb_populate_recordset(null::mainspring.definitions, %(facts)s::jsonb)
), stored as (
    insert into mainspring.definitions as d (
        key, kind, description, queue, priority, max_attempts, timeout, backoff_base,
        backoff_factor, backoff_cap, backoff_jitter, arg_schema, tags, retention, concurrency,
        key_concurrency, rate_count, rate_period, burst, limit_name, limit_by, approvals_needed,
        approval_expiry, approvers, delivery)
    select key, 'python', description, queue, priority, max_attempts, timeout, backoff_base,
           backoff_factor, backoff_cap, backoff_jitter, arg_schema, tags, retention, concurrency,
           key_concurrency, rate_count, rate_period, burst, limit_name, limit_by,
           approvals_needed, approval_expiry, approvers, coalesce(delivery, 'at_least_once')
      from declared
    on conflict (key) do update
       set description = excluded.description, queue = excluded.queue,
           priority = excluded.priority, max_attempts = excluded.max_attempts,
           timeout = excluded.timeout, backoff_base = excluded.backoff_base,
           backoff_factor = excluded.backoff_factor, backoff_cap = excluded.backoff_cap,
           backoff_jitter = excluded.backoff_jitter, arg_schema = excluded.arg_schema,
           tags = excluded.tags, retention = excluded.retention,
           concurrency = excluded.concurrency, key_concurrency = excluded.key_concurrency,
           rate_count = excluded.rate_count, rate_period = excluded.rate_period,
           burst = excluded.burst, limit_name = excluded.limit_name,
           limit_by = excluded.limit_by, approvals_needed = excluded.approvals_needed,
           approval_expiry = excluded.approval_expiry, approvers = excluded.approvers,
           delivery = excluded.delivery
     where d.kind = 'python'
       and (d.description, d.queue, d.priority, d.max_attempts, d.timeout, d.backoff_base,
            d.backoff_factor, d.backoff_cap, d.backoff_jitter, d.arg_schema, d.tags, d.retention,
            d.concurrency, d.key_concurrency, d.rate_count, d.rate_period, d.burst, d.limit_name,
            d.limit_by, d.approvals_needed, d.approval_expiry, d.approvers, d.delivery)
           is distinct from
           (excluded.description, excluded.queue, excluded.priority, excluded.max_attempts,
            excluded.timeout, excluded.backoff_base, excluded.backoff_factor, excluded.backoff_cap,
            excluded.backoff_jitter, excluded.arg_schema, excluded.tags, excluded.retention,
            excluded.concurrency, excluded.key_concurrency, excluded.rate_count,
            excluded.rate_period, excluded.burst, excluded.limit_name, excluded.limit_by,
            excluded.approvals_needed, excluded.approval_expiry, excluded.approvers,
            excluded.delivery)
)
select d.key, d.kind from mainspring.definitions as d join declared using (key)
 where d.kind <> 'python';

-- name: keys
-- scope: system
-- The keys of all definitions, and whether each is active.
select key, is_active from mainspring.definitions order by key;

-- name: schemas_of
-- scope: system
-- The JSON Schema that payloads of a definition are checked by, what stands for it, the other ones
-- that live workers have, and whether the definition changed a short while ago. Texts, which every
-- driver carries alike.
select d.arg_schema::text, d.schema_key::text, mainspring.other_schemas(d)::text,
       d.updated_at > now() - interval '1 hour'
  from mainspring.definitions as d where d.key = %(key)s;

-- name: create_definition
-- scope: system
-- Adds a definition from a JSON object with the names of the columns; no row if the key is taken.
insert into mainspring.definitions (
    key, kind, description, queue, priority, max_attempts, timeout, backoff_base, backoff_factor,
    backoff_cap, backoff_jitter, arg_schema, spec, tags, retention, concurrency, key_concurrency,
    rate_count, rate_period, burst, limit_name, limit_by, approvals_needed, approval_expiry,
    approvers, delivery)
select key, kind, description, queue, priority, max_attempts, timeout, backoff_base,
       backoff_factor, backoff_cap, backoff_jitter, arg_schema, spec, tags, retention,
       concurrency, key_concurrency, rate_count, rate_period, burst, limit_name, limit_by,
       approvals_needed, approval_expiry, approvers, delivery
  from jsonb_populate_record(null::mainspring.definitions, %(facts)s::jsonb)
on conflict (key) do nothing
returning key;

-- name: update_definition
-- scope: system
-- Changes the given columns of a definition; no row if there is none.
update mainspring.definitions as d
   set description = changed.description, queue = changed.queue, priority = changed.priority,
       max_attempts = changed.max_attempts, timeout = changed.timeout,
       backoff_base = changed.backoff_base, backoff_factor = changed.backoff_factor,
       backoff_cap = changed.backoff_cap, backoff_jitter = changed.backoff_jitter,
       arg_schema = changed.arg_schema, spec = changed.spec, tags = changed.tags,
       retention = changed.retention, is_active = changed.is_active,
       concurrency = changed.concurrency, key_concurrency = changed.key_concurrency,
       rate_count = changed.rate_count, rate_period = changed.rate_period,
       burst = changed.burst, limit_name = changed.limit_name, limit_by = changed.limit_by,
       approvals_needed = changed.approvals_needed, approval_expiry = changed.approval_expiry,
       approvers = changed.approvers, delivery = changed.delivery
  from mainspring.definitions as known,
       lateral jsonb_populate_record(known, %(changes)s::jsonb) as changed
 where d.key = %(key)s and known.key = d.key
returning d.key;

-- name: get_definition
-- scope: system
-- One definition, as JSON text.
select mainspring.definition_text(d) from mainspring.definitions as d where d.key = %(key)s;

-- name: list_definitions
-- scope: system
-- Definitions by key, as JSON text, after a key if given, with the filters that are given.
select mainspring.definition_text(d)
  from mainspring.definitions as d
 where d.key > coalesce(%(after)s::text, '')
   and (%(kinds)s::text[] is null or d.kind = any (%(kinds)s::text[]))
   and (%(active)s::boolean is null or d.is_active = %(active)s::boolean)
 order by d.key limit %(limit)s;

-- name: load_versions
-- scope: system
-- Versions of definitions without code, for the workers that run their jobs.
select asked.key, asked.version, v.kind, v.timeout, mainspring.backoff_of(v), v.arg_schema, v.spec
  from unnest(%(keys)s::text[], %(versions)s::integer[]) as asked (key, version)
  join mainspring.definition_versions as v using (key, version)
 where v.kind <> 'python';
