-- Definitions: what is checked when one is written, and how a SQL function is called.

create or replace function mainspring.refuse_definition(key text, field text, problem text)
returns void
language plpgsql
as $$
begin
    perform mainspring.refuse('MS050', key || ': ' || field || ' ' || problem,
        jsonb_build_object('key', key, 'field', field, 'problem', problem));
end
$$;

-- The function that a name such as 'civic.daily_cleanup' stands for: the one that takes the
-- payload, or else the one that takes nothing. No row if there is none.
create or replace function mainspring.find_function(
    full_name text, out namespace text, out name text, out takes_payload boolean
)
language plpgsql stable
as $$
declare
    parts text[];
begin
    begin
        parts := parse_ident(full_name);
    exception when invalid_parameter_value then
        return;
    end;
    if cardinality(parts) <> 2 then
        return;
    end if;
    select n.nspname, p.proname, p.pronargs = 1
      into find_function.namespace, find_function.name, find_function.takes_payload
      from pg_catalog.pg_proc as p
      join pg_catalog.pg_namespace as n on n.oid = p.pronamespace
     where n.nspname = parts[1] and p.proname = parts[2] and p.prokind = 'f' and not p.proretset
       and p.prorettype = any ('{jsonb,json}'::pg_catalog.regtype[])
       and (p.pronargs = 0 or (p.pronargs = 1
                               and p.proargtypes[0] = any ('{jsonb,json}'::pg_catalog.regtype[])))
     order by p.pronargs desc limit 1;
end
$$;

create or replace function mainspring.caller_of(role text)
returns text
language sql immutable
return 'call_' || md5(role);

-- Makes the function through which everything runs that is to run under a role. It belongs to the
-- role and runs with its rights, and inside such a function PostgreSQL lets nobody change the role:
-- unlike after SET ROLE there is no way back to the rights of the worker.
create or replace function mainspring.ensure_caller(role text)
returns void
language plpgsql
as $$
declare
    caller text := mainspring.caller_of(role);
begin
    if to_regproc('mainspring_calls.' || caller) is not null then
        return;
    end if;
    execute format($create$
        create function mainspring_calls.%I(
            namespace text, name text, payload jsonb, takes_payload boolean)
        returns jsonb
        language plpgsql
        security definer
        set search_path = pg_catalog, pg_temp
        as $body$
        declare
            answer jsonb;
        begin
            perform set_config('search_path', format('pg_catalog, %%I, pg_temp', namespace), true);
            execute format('select to_jsonb(%%I.%%I(%%s))', namespace, name,
                           case when takes_payload then '$1' else '' end)
               into answer using payload;
            return answer;
        end
        $body$
        $create$, caller);
    execute format('revoke execute on function mainspring_calls.%I from public', caller);
    if role <> current_user then
        -- Whoever owns a function must be able to create one there at that moment.
        execute format('grant create on schema mainspring_calls to %I', role);
        execute format('alter function mainspring_calls.%I owner to %I', caller, role);
        execute format('revoke create on schema mainspring_calls from %I', role);
    end if;
end
$$;

-- Calls a function that a definition names, under the role it names.
create or replace function mainspring.call_function(full_name text, role text, payload jsonb)
returns jsonb
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    target record;
    answer jsonb;
begin
    select * into target from mainspring.find_function(full_name);
    if target.name is null then
        raise exception using errcode = 'undefined_function', message =
            format('there is no function %s that takes one jsonb or nothing and returns jsonb',
                   full_name);
    end if;
    execute format('select mainspring_calls.%I($1, $2, $3, $4)', mainspring.caller_of(role))
       into answer using target.namespace, target.name, payload, target.takes_payload;
    return answer;
end
$$;

create or replace function mainspring.wrong_function(spec jsonb)
returns text[]
language plpgsql
as $$
declare
    owner_name text := (select rolname from pg_catalog.pg_roles where oid = (
        select nspowner from pg_catalog.pg_namespace where nspname = 'mainspring'));
    role text := spec ->> 'role';
begin
    if coalesce(spec ->> 'function', '') = '' then
        return array['function', 'is missing; give the name of a function, such as civic.cleanup'];
    end if;
    if (select name from mainspring.find_function(spec ->> 'function')) is null then
        return array['function', format(
            'there is no function %s that takes one jsonb or nothing and returns jsonb; '
            || 'write its name with its schema', spec ->> 'function')];
    end if;
    if not exists (select from pg_catalog.pg_roles where rolname = role) then
        return array['role', format('there is no role %s', coalesce(role, 'null'))];
    end if;
    if not pg_has_role(owner_name, role, 'USAGE') then
        return array['role', format('%s must be a member of %s: grant %I to %I',
                                    owner_name, role, role, owner_name)];
    end if;
    return null;
end
$$;

-- Runs as whoever writes the row: nobody can have something run under a role that is not theirs.
create or replace function mainspring.check_definition_role()
returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    role text;
begin
    if tg_op = 'UPDATE' and new.spec is not distinct from old.spec then
        return new;
    end if;
    if new.kind = 'sql' then
        role := coalesce(new.spec ->> 'role', current_user);
        if exists (select from pg_roles where rolname = role)
           and not pg_has_role(current_user, role, 'MEMBER') then
            raise exception using errcode = 'MS050',
                message = format('%s: role: %s is not a member of %s', new.key, current_user, role),
                detail = jsonb_build_object('key', new.key, 'field', 'role', 'problem',
                    format('%s is not a member of %s', current_user, role));
        end if;
        new.spec := new.spec || jsonb_build_object('role', role);
    end if;
    return new;
end
$$;

create or replace trigger definitions_check_role before insert or update of kind, spec
    on mainspring.definitions
    for each row execute function mainspring.check_definition_role();

create or replace function mainspring.prepare_definition()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    wrong text[];
begin
    if new.key !~ '^[A-Za-z_][A-Za-z0-9_.:-]{0,199}$' then
        perform mainspring.refuse_definition(new.key, 'key', 'must start with a letter or _ and '
            || 'hold only letters, digits and _ . : - (200 at most)');
    end if;
    if new.key like 'mainspring.%' and new.kind <> 'python' then
        perform mainspring.refuse_definition(new.key, 'key',
            'is built in, like all that start with mainspring.; choose another');
    end if;
    if tg_op = 'UPDATE' and new.kind <> old.kind then
        perform mainspring.refuse_definition(new.key, 'kind', format('is %s and stays so', old.kind));
    end if;
    if num_nonnulls(new.concurrency, new.key_concurrency, new.rate_count) > 0 then
        if new.limit_name <> new.key then
            perform mainspring.refuse_definition(new.key, 'limit', 'names a limit that is shared, '
                || 'which excludes concurrency, key_concurrency and rate');
        end if;
        new.limit_name := new.key;
    elsif new.limit_name = new.key then
        if tg_op = 'INSERT' then
            perform mainspring.refuse_definition(new.key, 'limit', 'must be another name than the '
                || 'key; give concurrency, key_concurrency or rate for a limit of its own');
        end if;
        new.limit_name := null;
    end if;
    new.is_plain := new.limit_name is null and new.approvals_needed = 0
                    and new.key not like 'mainspring.%'
                    and not exists (select from mainspring.tenants as t
                                     where t.tenant_id = 'default' and t.max_running is not null);
    if tg_op = 'UPDATE' and new is not distinct from old then
        return new;
    end if;
    if new.limit_by is not null and new.limit_name is null then
        perform mainspring.refuse_definition(new.key, 'limit_by',
            'needs a limit: give concurrency, key_concurrency, rate or limit');
    end if;
    if new.kind = 'sql' and (tg_op = 'INSERT' or new.spec is distinct from old.spec) then
        wrong := mainspring.wrong_function(new.spec);
        if wrong is not null then
            perform mainspring.refuse_definition(new.key, wrong[1], wrong[2]);
        end if;
        perform mainspring.ensure_caller(new.spec ->> 'role');
    end if;
    if new.kind = 'command' and jsonb_typeof(new.spec -> 'argv') is distinct from 'array' then
        perform mainspring.refuse_definition(new.key, 'argv', 'must be an array of arguments');
    end if;
    new.updated_at := now();
    new.secret_paths := mainspring.secret_paths(new.arg_schema);
    if tg_op = 'INSERT' then
        -- Of one that was deleted there may still be jobs.
        new.version := 1 + coalesce((select max(kept.version)
                                       from mainspring.definition_versions as kept
                                      where kept.key = new.key), 0);
    elsif (
        new.timeout, new.backoff_base, new.backoff_factor, new.backoff_cap, new.backoff_jitter,
        new.arg_schema, new.spec) is distinct from (
        old.timeout, old.backoff_base, old.backoff_factor, old.backoff_cap, old.backoff_jitter,
        old.arg_schema, old.spec) then
        new.version := old.version + 1;
    end if;
    return new;
end
$$;

create or replace trigger definitions_prepare before insert or update on mainspring.definitions
    for each row execute function mainspring.prepare_definition();

create or replace function mainspring.keep_version()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    insert into mainspring.definition_versions (
        key, version, kind, timeout, backoff_base, backoff_factor, backoff_cap, backoff_jitter,
        arg_schema, spec, secret_paths)
    values (
        new.key, new.version, new.kind, new.timeout, new.backoff_base, new.backoff_factor,
        new.backoff_cap, new.backoff_jitter, new.arg_schema, new.spec, new.secret_paths)
    on conflict (key, version) do nothing;
    return null;
end
$$;

-- Keeps the limit that a definition has of its own.
create or replace function mainspring.keep_limit()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if tg_op <> 'INSERT' and old.limit_name = old.key
       and (tg_op = 'DELETE' or new.limit_name is distinct from new.key) then
        delete from mainspring.limits as known where known.name = old.key;
    end if;
    if tg_op <> 'DELETE' and new.limit_name = new.key then
        perform mainspring.write_limit(
            new.key, new.concurrency, new.key_concurrency, new.rate_count, new.rate_period,
            coalesce(new.burst, 1));
    end if;
    return null;
end
$$;

create or replace trigger definitions_keep_limit after insert or update or delete
    on mainspring.definitions
    for each row execute function mainspring.keep_limit();

create or replace trigger definitions_keep_version after insert or update on mainspring.definitions
    for each row execute function mainspring.keep_version();

-- What a person decides about a definition.
create or replace function mainspring.definition_facts(definition mainspring.definitions)
returns jsonb
language sql stable
set timezone = 'UTC'
set intervalstyle = 'postgres'
return (select jsonb_object_agg(key, value)
          from jsonb_each(to_jsonb(definition) - array['key', 'version', 'is_plain', 'created_at',
                                                       'updated_at', 'secret_paths'])
         where value <> 'null');

create or replace function mainspring.audit_definition()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    was jsonb := case when tg_op <> 'INSERT' then mainspring.definition_facts(old) else '{}' end;
    is_now jsonb := case when tg_op <> 'DELETE' then mainspring.definition_facts(new) else '{}' end;
begin
    if was = is_now then
        return null;
    end if;
    insert into mainspring.audit (tenant_id, actor, action, noun, subject, before, after)
    values (
        '', mainspring.actor(),
        case when tg_op = 'INSERT' then 'create' when tg_op = 'DELETE' then 'delete'
             when new.is_active and not old.is_active then 'activate'
             when old.is_active and not new.is_active then 'deactivate' else 'update' end,
        'definition', coalesce(new.key, old.key),
        mainspring.differing(was, is_now), mainspring.differing(is_now, was));
    return null;
end
$$;

create or replace trigger definitions_audit after insert or update or delete
    on mainspring.definitions
    for each row execute function mainspring.audit_definition();
