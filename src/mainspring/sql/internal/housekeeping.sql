-- Housekeeping: what is installed once, and how rows of other tables are removed.

-- Adds a schedule unless that was done before, or there is one of its name; says whether it did.
-- One that replaces another is not added where that was: it goes on, as people have made it. Where
-- it was not, a program of an earlier release is not to add it beside the new one.
create or replace function mainspring.install_schedule(spec jsonb)
returns boolean
language plpgsql
as $$
declare
    stored mainspring.schedules;
begin
    insert into mainspring.installed (name) values ('schedule ' || (spec ->> 'name'))
    on conflict do nothing;
    if not found then
        return false;
    end if;
    if spec ->> 'replaces' is not null then
        insert into mainspring.installed (name) values ('schedule ' || (spec ->> 'replaces'))
        on conflict do nothing;
        if not found then
            return false;
        end if;
    end if;
    stored := mainspring.store_schedule(jsonb_populate_record(null::mainspring.schedules, spec));
    return stored.schedule_id is not null;
end
$$;

-- The table that a name such as 'civic.sessions' stands for, if rows of it may be removed by age.
create or replace function mainspring.prunable_table(full_name text)
returns regclass
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    parts text[];
    found_table oid;
    kind "char";
begin
    begin
        parts := parse_ident(full_name);
    exception when invalid_parameter_value then
        parts := '{}';
    end;
    if coalesce(cardinality(parts), 0) <> 2 then
        perform mainspring.refuse('MS003', format(
            'table %s must be a name with its schema, such as civic.sessions',
            coalesce(quote_literal(full_name), 'null')), '{"option": "table"}');
    end if;
    if parts[1] in ('mainspring', 'mainspring_calls', 'information_schema')
       or starts_with(parts[1], 'pg_') then
        perform mainspring.refuse('MS003', format(
            'table %s is in a schema that cannot be pruned', full_name), '{"option": "table"}');
    end if;
    select c.oid, c.relkind into found_table, kind
      from pg_class as c join pg_namespace as n on n.oid = c.relnamespace
     where n.nspname = parts[1] and c.relname = parts[2];
    if kind is distinct from 'r' then
        perform mainspring.refuse('MS003', format('table %s %s', full_name,
            case when kind is null then 'does not exist'
                 when kind = 'p' then 'is partitioned; name one of its partitions, or drop them'
                 else 'is not a table' end), '{"option": "table"}');
    end if;
    return found_table;
end
$$;

-- The tables whose rows a delete from a table removes or changes: itself, and others by foreign
-- keys.
create or replace function mainspring.tables_of_delete(pruned regclass)
returns setof regclass
language sql stable
set search_path = pg_catalog, pg_temp
as $$
with recursive reached (id) as (
    select pruned::oid
    union
    select key.conrelid from reached join pg_constraint as key on key.confrelid = reached.id
     where key.contype = 'f' and key.confdeltype in ('c', 'n', 'd')
)
select id::regclass from reached
$$;

-- Functions that statements on a table may call: its triggers, rules, policies, constraints,
-- indexes and defaults name them.
create or replace function mainspring.functions_of_table(id regclass)
returns setof regprocedure
language sql stable
set search_path = pg_catalog, pg_temp
as $$
select distinct coalesce(sign.oprcode, used.refobjid)::regprocedure
  from pg_depend as part
  join pg_depend as used on used.classid = part.classid and used.objid = part.objid
  left join pg_operator as sign
    on used.refclassid = 'pg_operator'::regclass and sign.oid = used.refobjid
 where part.refclassid = 'pg_class'::regclass and part.refobjid = functions_of_table.id
   -- Other dependencies are those of views and functions that read the table.
   and part.deptype in ('a', 'i', 'S')
   and used.refclassid in ('pg_proc'::regclass, 'pg_operator'::regclass)
$$;

-- Why a delete from a table could run code of a role that has fewer rights than we have, with our
-- rights, and what to do about it. Whoever owns a schema can put another table in the place of one.
-- A role that inherits our rights, such as a superuser, needs no such detour.
create or replace function mainspring.risks_of_delete(pruned regclass)
returns table (reason text, remedy text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
with held as (
    select id, c.relowner, c.relacl, n.nspname, n.nspowner
      from mainspring.tables_of_delete(risks_of_delete.pruned) as id
      join pg_class as c on c.oid = id join pg_namespace as n on n.oid = c.relnamespace
), risks (place, role, before, after, remedy) as (
    select 1, relowner, format('%s belongs to ', id), '', format('alter table %s owner to', id)
      from held
    union all
    select 2, nspowner, format('schema %I belongs to ', nspname), '',
           format('alter schema %I owner to', nspname)
      from held where nspowner <> 'pg_database_owner'::regrole
    union all
    select 3, given.grantee, '', format(' may create triggers on %s', id),
           format('revoke trigger on %s from', id)
      from held, aclexplode(relacl) as given where given.privilege_type = 'TRIGGER'
    union all
    select 4, called.proowner, format('%s calls %s of ', held.id, code.id), '',
           format('alter function %s owner to', code.id)
      from held, mainspring.functions_of_table(held.id) as code (id)
      join pg_proc as called on called.oid = code.id
)
select before || shown.name || after,
       remedy || ' ' || case place when 3 then shown.name else quote_ident(current_user) end
  from risks, lateral (
       select case role when 0 then 'public' else role::regrole::text end) as shown (name)
 where role = 0 or not pg_has_role(role, current_user, 'USAGE')
 order by place, before
$$;

-- Refuses a table from which a delete could run code of others with our rights.
create or replace function mainspring.ensure_safe_delete(pruned regclass)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    risk record;
begin
    select * into risk from mainspring.risks_of_delete(pruned) limit 1;
    if found then
        perform mainspring.refuse('MS003', format(
            'table %s cannot be pruned with the rights of %s: %s, whose code a delete could run; '
            'run `%s`, or delete the rows in a definition of kind sql under a role of its own',
            pruned, current_user, risk.reason, risk.remedy), '{"option": "table"}');
    end if;
end
$$;

-- Removes up to so many rows whose column is older than so much; says how many. Oldest first
-- where an index begins with the column; otherwise a batch would mean to sort the table. Runs with
-- the rights of its caller, and so does whatever code the table has.
create or replace function mainspring.prune_table(
    full_name text, column_name text, age interval, batch integer
)
returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    -- As text it is quoted and has its schema, since that is not in the search path.
    pruned regclass := mainspring.prunable_table(full_name);
    attribute record;
    is_indexed boolean;
    removed bigint;
begin
    select a.attnum, format_type(a.atttypid, null) as type into attribute
      from pg_attribute as a
     where a.attrelid = pruned and a.attname = column_name and a.attnum > 0
       and not a.attisdropped;
    if attribute.type is null or attribute.type not in (
        'date', 'timestamp without time zone', 'timestamp with time zone') then
        perform mainspring.refuse('MS003', format('column %s of %s %s',
            coalesce(quote_literal(column_name), 'null'), full_name,
            case when attribute.type is null then 'does not exist'
                 else 'is ' || attribute.type || ', neither a date nor a timestamp' end),
            '{"option": "column"}');
    end if;
    if age is null or age <= '0' then
        perform mainspring.refuse('MS003', 'age must be more than zero', '{"option": "age"}');
    end if;
    if batch is null or batch not between 1 and 100000 then
        perform mainspring.refuse('MS003', 'batch must be from 1 to 100000',
            '{"option": "batch"}');
    end if;
    perform mainspring.ensure_safe_delete(pruned);
    is_indexed := exists (
        select from pg_index as i
         where i.indrelid = pruned and i.indisvalid and i.indpred is null
           and i.indkey[0] = attribute.attnum);
    execute format(
        'delete from only %1$s where ctid = any (array(
             select ctid from only %1$s where %2$I < $1::%3$s %4$s limit $2
                for update skip locked))',
        pruned, column_name, attribute.type,
        case when is_indexed then format('order by %I', column_name) else '' end)
      using now() - age, batch;
    get diagnostics removed = row_count;
    return removed;
end
$$;

-- Checks a constraint of one of our tables for the rows that were there before it. Neither who
-- reads the table nor who writes to it waits for that.
create or replace function mainspring.validate_constraint(table_name text, constraint_name text)
returns void
language plpgsql
as $$
begin
    execute format('alter table mainspring.%I validate constraint %I',
                   table_name, constraint_name);
end
$$;
