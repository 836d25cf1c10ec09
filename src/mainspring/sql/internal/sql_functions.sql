-- SQL functions: which one a definition names, and how it is called under a role.

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

-- The name of the function through which everything runs that is to run under a role.
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

-- What is wrong with the function or the role that a definition names: a field and a problem, or
-- null.
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
