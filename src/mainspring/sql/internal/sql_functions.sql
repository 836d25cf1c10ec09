-- SQL functions: which one a definition names, who could change it, and how it is called.

-- The function that a name such as 'civic.daily_cleanup' stands for: the one that takes the
-- payload, or else the one that takes nothing. No row if there is none. `argument` is the type of
-- the payload, null without one; `guardian` who could change it, null if its schema is another's.
create or replace function mainspring.find_function(
    full_name text, out namespace text, out name text, out argument text, out guardian text
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
    select n.nspname, p.proname, case when p.pronargs = 1 then t.typname end,
           -- Whoever owns the schema can replace what is in it.
           case when s.rolsuper or s.oid = p.proowner or s.rolname = 'pg_database_owner'
                then o.rolname end
      into find_function.namespace, find_function.name, find_function.argument,
           find_function.guardian
      from pg_catalog.pg_proc as p
      join pg_catalog.pg_namespace as n on n.oid = p.pronamespace
      join pg_catalog.pg_roles as o on o.oid = p.proowner
      join pg_catalog.pg_roles as s on s.oid = n.nspowner
      left join pg_catalog.pg_type as t on t.oid = p.proargtypes[0]
     where n.nspname = parts[1] and p.proname = parts[2] and p.prokind = 'f' and not p.proretset
       and p.prorettype = any ('{jsonb,json}'::pg_catalog.regtype[])
       and (p.pronargs = 0 or (p.pronargs = 1
                               and p.proargtypes[0] = any ('{jsonb,json}'::pg_catalog.regtype[])))
     order by p.pronargs desc limit 1;
end
$$;

-- The statement that calls a function with its payload, for a connection of the role it runs as:
-- every name has its schema, so nothing in that session decides what it stands for. An answer that
-- is too large is not sent, only its size.
create or replace function mainspring.call_text(
    namespace text, name text, argument text, most_bytes integer
)
returns text
language sql immutable
return format(
    'select case when pg_catalog.octet_length(called.answer) operator(pg_catalog.<=) %s '
    'then called.answer end, pg_catalog.octet_length(called.answer) '
    'from (select (%I.%I(%s))::pg_catalog.text as answer offset 0) as called',
    most_bytes, namespace, name,
    case when argument is null then '' else '$1::pg_catalog.' || argument end);

-- The name of the function through which workers of the release before this one run everything
-- that is to run under a role.
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

-- Calls a function that a definition names, under the role it names; for workers of the release
-- before this one, which run it on a connection of their own.
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
       into answer using target.namespace, target.name, payload, target.argument is not null;
    return answer;
end
$$;

-- The role that owns this installation.
create or replace function mainspring.owner_name()
returns text
language sql stable
return (select owner.rolname from pg_catalog.pg_roles as owner
          join pg_catalog.pg_namespace as own on own.nspowner = owner.oid
         where own.nspname = 'mainspring');

-- What is wrong with the role under which a function is to run: a field and a problem, or null.
-- One with the rights of the owner runs only what nobody else can change; one that is reached
-- through the owner's login must be open to it.
create or replace function mainspring.wrong_role(spec jsonb, guardian text)
returns text[]
language plpgsql stable
as $$
declare
    owner text := mainspring.owner_name();
    role text := spec ->> 'role';
begin
    if not exists (select from pg_catalog.pg_roles where rolname = role) then
        return array['role', format('%s does not exist; create it, or name another role',
                                    coalesce(role, 'null'))];
    elsif spec ? 'trusted' and jsonb_typeof(spec -> 'trusted') <> 'boolean' then
        return array['trusted', 'must be true or false'];
    elsif coalesce((spec -> 'trusted')::boolean, false) then
        if mainspring.may_set_role(owner, role) then
            return null;
        end if;
        return array['role', format('%s may not become %s; ask an administrator to run: %s', owner,
                                    role, mainspring.grant_of(role, owner))];
    -- Every member: one without the right to become the owner may be able to grant it.
    elsif pg_has_role(role, owner, 'MEMBER') and guardian is distinct from role
          and not exists (select from pg_catalog.pg_roles where rolname = guardian and rolsuper)
    then
        return array['role', format(
            '%s has the rights of the owner of Mainspring, and %s can be changed by others; '
            || 'name a role with fewer rights, or accept it with trusted', role,
            spec ->> 'function')];
    end if;
    return null;
end
$$;

-- The end of a sentence about a function that does not exist: those that may have been meant, of
-- the same name in other schemas or one of a name like it; empty if there is none.
create or replace function mainspring.meant_function(full_name text, name text)
returns text
language plpgsql stable
as $$
declare
    named text[] := array(
        select distinct format('%I.%I', n.nspname, p.proname)
          from pg_catalog.pg_proc as p join pg_catalog.pg_namespace as n on n.oid = p.pronamespace
         where n.nspname !~ '^(pg_|information_schema$|mainspring)' and p.prokind = 'f'
           and p.prorettype = any ('{jsonb,json}'::pg_catalog.regtype[]));
begin
    return coalesce(
        (select '; did you mean ' || string_agg(same.known, ' or ' order by same.known) || '?'
           from (select known from unnest(named) as known
                  where split_part(known, '.', 2) = meant_function.name
                  order by known limit 3) as same),
        mainspring.did_you_mean(full_name, named));
end
$$;

-- What to do about the name of a function that does not exist.
create or replace function mainspring.why_unknown_function(full_name text, parts text[])
returns text
language sql stable
return full_name || case when cardinality(parts) = 2 then ' does not exist'
                         else ' needs its schema and nothing else: write it as schema.name' end
    || coalesce(nullif(mainspring.meant_function(full_name, parts[cardinality(parts)]), ''),
                case when cardinality(parts) = 2 then '; create it' else '' end);

-- Refuses the name of a function, as given to schedule_function, that stands for none; `visible` is
-- what the search path of the caller has by it. That runs as its caller, so everyone may call this;
-- it reads nothing but the catalogue.
create or replace function mainspring.check_function_name(given text, visible text)
returns void
language plpgsql stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    problem text := case
        when coalesce(given, '') = ''
        then 'function is missing; give the name of a function, such as civic.cleanup'
        when given ~ '\('
        then 'function: write the name without parentheses, as '
             || rtrim(split_part(given, '(', 1))
        when coalesce(visible, given) like 'mainspring.%'
        then format('function: %s belongs to Mainspring; give a function of your own, such as '
                    || 'civic.cleanup', coalesce(visible, given))
        when visible is null and given !~ '\.'
        then format('there is no function %s in your search path%s', given,
                    mainspring.meant_function(given, given))
    end;
begin
    if problem is not null then
        perform mainspring.refuse('MS050', problem, jsonb_build_object(
            'key', coalesce(given, 'null'), 'field', 'function', 'problem', problem));
    end if;
end
$$;

-- Why a name stands for no function that can be run, for people.
create or replace function mainspring.why_no_function(full_name text)
returns text
language plpgsql stable
as $$
declare
    parts text[];
    near record;
begin
    begin
        parts := parse_ident(full_name);
    exception when invalid_parameter_value then
        return format('%s is not the name of a function; write it as schema.name, without '
                      || 'arguments', full_name);
    end;
    select p.prokind, p.proretset, p.prorettype, p.prorettype::regtype as returned,
           pg_get_function_identity_arguments(p.oid) as taken into near
      from pg_catalog.pg_proc as p
      join pg_catalog.pg_namespace as n on n.oid = p.pronamespace
     where cardinality(parts) = 2 and n.nspname = parts[1] and p.proname = parts[2]
     order by (p.prorettype = any ('{jsonb,json}'::regtype[])) desc, p.pronargs limit 1;
    return case
        when not found then mainspring.why_unknown_function(full_name, parts)
        when near.prokind = 'p'
        then full_name || ' is a procedure; make it a function that returns jsonb'
        when near.prokind <> 'f' then full_name || ' is an aggregate or window function'
        when near.proretset
        then format('%s returns a set of %s; it must return one jsonb', full_name, near.returned)
        when near.prorettype <> all ('{jsonb,json}'::regtype[])
        then format('%s returns %s; it must return jsonb', full_name, near.returned)
        else format('%s takes (%s); it must take one jsonb or nothing', full_name, near.taken)
    end;
end
$$;

-- What is wrong with the function or the role that a definition names: a field and a problem, or
-- null.
create or replace function mainspring.wrong_function(spec jsonb)
returns text[]
language plpgsql
as $$
declare
    target record;
begin
    if coalesce(spec ->> 'function', '') = '' then
        return array['function', 'is missing; give the name of a function, such as civic.cleanup'];
    end if;
    select * into target from mainspring.find_function(spec ->> 'function');
    if target.name is null then
        return array['function', mainspring.why_no_function(spec ->> 'function')];
    end if;
    return mainspring.wrong_role(spec, target.guardian);
end
$$;
