-- Housekeeping: what is installed once, and how rows of other tables are removed.

-- Adds a schedule unless that was done before, or there is one of its name; says whether it did.
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

-- Removes up to so many rows whose column is older than so much; says how many. Oldest first
-- where an index begins with the column; otherwise a batch would mean to sort the table. Runs with
-- the rights of its caller.
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
