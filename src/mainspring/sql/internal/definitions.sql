-- Definitions: how one is read, and what is checked when one is written.

-- A definition as JSON text, which every driver carries alike; durations are in seconds.
create or replace function mainspring.definition_text(definition mainspring.definitions)
returns text
language sql stable
return (to_jsonb(definition) || jsonb_build_object(
    'timeout', extract(epoch from definition.timeout),
    'backoff_base', extract(epoch from definition.backoff_base),
    'backoff_cap', extract(epoch from definition.backoff_cap),
    'backoff_jitter', extract(epoch from definition.backoff_jitter),
    'retention', extract(epoch from definition.retention),
    'rate_period', extract(epoch from definition.rate_period),
    'approval_expiry', extract(epoch from definition.approval_expiry)))::text;

-- What a version of a definition keeps of it: the columns that both tables have.
create or replace function mainspring.version_of(definition mainspring.definitions)
returns mainspring.definition_versions
language sql stable
return jsonb_populate_record(
    null::mainspring.definition_versions,
    to_jsonb(definition) || jsonb_build_object('created_at', now()));

-- Stands for a JSON Schema, or for none.
create or replace function mainspring.schema_key_of(arg_schema jsonb)
returns uuid
language sql immutable
return md5(coalesce(arg_schema::text, ''))::uuid;

-- The JSON Schemas that live workers have for a definition whose own is another: a deployment is
-- under way. One that takes any payload has an empty one. Null if there are none.
create or replace function mainspring.other_schemas(definition mainspring.definitions)
returns jsonb
language sql stable
security definer
set search_path = pg_catalog, pg_temp
as $$
select jsonb_agg(distinct coalesce(known.arg_schema, '{}'))
  from mainspring.worker_schemas as known join mainspring.workers as worker using (worker_id)
 where known.key = definition.key and known.arg_schema is distinct from definition.arg_schema
   and worker.expires_at > now() and not worker.is_stopping
$$;

-- The backoff of a version as JSON, by the names of its columns; durations are in seconds.
create or replace function mainspring.backoff_of(version mainspring.definition_versions)
returns text
language sql stable
return (select jsonb_object_agg(field.key, field.value)::text
          from jsonb_each(to_jsonb(version) || jsonb_build_object(
              'backoff_base', extract(epoch from version.backoff_base),
              'backoff_cap', extract(epoch from version.backoff_cap),
              'backoff_jitter', extract(epoch from version.backoff_jitter))) as field
         where field.key like 'backoff_%');

-- Raises the error for a definition with a field that is wrong.
create or replace function mainspring.refuse_definition(key text, field text, problem text)
returns void
language plpgsql
as $$
begin
    perform mainspring.refuse('MS050', key || ': ' || field || ' ' || problem,
        jsonb_build_object('key', key, 'field', field, 'problem', problem));
end
$$;

-- The end of a sentence about a definition that there is not; empty if none is like it.
create or replace function mainspring.meant_definition(key text)
returns text
language plpgsql stable
as $$
begin
    return mainspring.did_you_mean(meant_definition.key, array(
        select quote_literal(known.key) from mainspring.definitions as known
         where known.is_active and known.key not like 'mainspring.%'));
end
$$;

-- Warns whoever writes a schedule or a trigger of a definition that takes no jobs. It is allowed:
-- the program that has the definition may start later.
create or replace function mainspring.warn_of_definition(definition text, noun text)
returns void
language plpgsql
as $$
begin
    if not exists (select from mainspring.definitions as known
                    where known.key = definition and known.is_active) then
        raise warning using message = mainspring.why_unknown(definition), hint = format(
            'Until the definition is there, the %s fails. To run a SQL function by cron, call '
            'mainspring.schedule_function.', noun);
    end if;
end
$$;

-- Refuses a key that cannot be, or that belongs to what comes with Mainspring.
create or replace function mainspring.check_definition_key(definition mainspring.definitions)
returns void
language plpgsql
as $$
begin
    if definition.key !~ '^[A-Za-z_][A-Za-z0-9_.:-]{0,199}$' then
        perform mainspring.refuse_definition(definition.key, 'key', 'must start with a letter or _ '
            || 'and contain only letters, digits and _ . : - (at most 200 characters)');
    end if;
    if definition.kind is null then
        perform mainspring.refuse_definition(definition.key, 'kind', 'is missing; to run a SQL '
            || 'function, call mainspring.schedule_function, or give kind ''sql'' and spec '
            || '{"function": "..."}; definitions of Python jobs are stored by the program');
    elsif definition.kind not in ('python', 'sql', 'command', 'remote') then
        perform mainspring.refuse_definition(definition.key, 'kind', format(
            'must be python, sql, command or remote, not %L', definition.kind));
    end if;
    if definition.key like 'mainspring.%' and definition.kind <> 'python' then
        perform mainspring.refuse_definition(definition.key, 'key',
            'is reserved, like all keys that start with mainspring.; choose another');
    end if;
end
$$;

-- The name of the limit that a definition is under: its key if the limit is its own. Refuses one
-- that is shared beside one of its own.
create or replace function mainspring.limit_name_of(
    definition mainspring.definitions, is_new boolean
)
returns text
language plpgsql
as $$
begin
    if num_nonnulls(definition.concurrency, definition.key_concurrency, definition.rate_count) > 0
    then
        if definition.limit_name <> definition.key then
            perform mainspring.refuse_definition(definition.key, 'limit',
                'names a shared limit, so concurrency, key_concurrency and rate cannot be set');
        end if;
        return definition.key;
    elsif definition.limit_name = definition.key then
        if is_new then
            perform mainspring.refuse_definition(definition.key, 'limit',
                'must differ from the key; set concurrency, key_concurrency or rate for a limit '
                || 'of its own');
        end if;
        return null;
    end if;
    return definition.limit_name;
end
$$;

-- Whether nothing but the definition decides about an enqueue for the default tenant.
create or replace function mainspring.is_plain_definition(definition mainspring.definitions)
returns boolean
language sql stable
return definition.limit_name is null and definition.approvals_needed = 0
       and definition.delivery = 'at_least_once'
       and definition.key not like 'mainspring.%'
       and not exists (select from mainspring.tenants as t
                        where t.tenant_id = 'default' and t.max_running is not null);

-- A field with a queue, a duration or a count that is wrong, and what is wrong with it; null if
-- none is.
create or replace function mainspring.wrong_default(definition mainspring.definitions)
returns text[]
language sql stable
return coalesce(
    (select array['queue', problem]
       -- An empty one is refused by a constraint.
       from mainspring.wrong_queue(nullif(definition.queue, '')) as problem
      where problem is not null),
    (select array[field, 'must be from 0 to 36500 days']
       from (values ('timeout', definition.timeout), ('retention', definition.retention),
                    ('backoff_base', definition.backoff_base),
                    ('backoff_cap', definition.backoff_cap),
                    ('backoff_jitter', definition.backoff_jitter),
                    ('approval_expiry', definition.approval_expiry)) as bound (field, value)
      where value not between '0' and mainspring.longest_delay()
      limit 1),
    case when definition.delivery not in ('at_least_once', 'at_most_once')
         then '{delivery,must be at_least_once or at_most_once}'::text[]
         when definition.backoff_factor > 1e9 then '{backoff_factor,must be at most 1e9}'
         when greatest(definition.concurrency, definition.key_concurrency, definition.rate_count,
                       definition.burst) > mainspring.largest_count()
         then '{limit,must be at most 1000000000}' end);

-- A field that is too large, and what is wrong with it; null if none is.
create or replace function mainspring.wrong_definition_size(definition mainspring.definitions)
returns text[]
language sql stable
return case
    when length(definition.description) > mainspring.longest_text()
    then '{description,must be at most 10000 characters}'::text[]
    when cardinality(definition.tags) > 50 then '{tags,must have at most 50 entries}'
    when exists (select from unnest(definition.tags) as tag
                  where coalesce(length(tag), 0) not between 1 and 500)
    then '{tags,must have 1 to 500 characters each}'
    when cardinality(definition.approvers) > 100 then '{approvers,must have at most 100 entries}'
    when exists (select from unnest(definition.approvers) as approver
                  where coalesce(length(approver), 0) not between 1 and 500)
    then '{approvers,must have 1 to 500 characters each}'
    when octet_length(definition.arg_schema::text) > 1048576
    then '{arg_schema,must be at most 1048576 bytes}'
    when octet_length(definition.spec::text) > 1048576
    then '{spec,must be at most 1048576 bytes}' end;

-- Refuses what the kind of a definition cannot run.
create or replace function mainspring.check_definition_spec(definition mainspring.definitions)
returns void
language plpgsql
as $$
declare
    wrong text[];
begin
    if definition.kind = 'sql' then
        wrong := mainspring.wrong_function(definition.spec);
        if wrong is not null then
            perform mainspring.refuse_definition(definition.key, wrong[1], wrong[2]);
        end if;
        -- For workers of the release before this one. Only who may become a role can give it a
        -- function.
        if mainspring.may_set_role(mainspring.owner_name(), definition.spec ->> 'role') then
            perform mainspring.ensure_caller(definition.spec ->> 'role');
        end if;
    elsif definition.kind = 'command'
          and jsonb_typeof(definition.spec -> 'argv') is distinct from 'array' then
        perform mainspring.refuse_definition(
            definition.key, 'argv', 'must be an array of arguments');
    elsif definition.kind = 'remote' and (definition.spec - 'revision' <> '{}'
          or jsonb_typeof(definition.spec -> 'revision') <> 'number') then
        perform mainspring.refuse_definition(definition.key, 'spec',
            'must be {} or have a number as revision: a remote worker knows what it runs');
    end if;
end
$$;
