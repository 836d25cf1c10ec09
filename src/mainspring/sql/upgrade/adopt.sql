-- Makes a database of the last unreleased version, with its 17 migrations, one at the baseline:
-- the tables are the same but for one name. Views, triggers and functions are dropped and
-- installed anew, so that no function of an old signature stays behind. What others built on them
-- is not dropped along: then this fails, and nothing has changed.
alter table mainspring.migrations add column works_with integer;
delete from mainspring.migrations;
alter table mainspring.migrations alter column works_with set not null;
alter table mainspring.clocks rename column turn to revision;

do $$
declare
    statement text;
begin
    -- From PostgreSQL 18 on the constraint has a name of its own.
    if exists (select from pg_catalog.pg_constraint
                where conrelid = 'mainspring.clocks'::regclass
                  and conname = 'clocks_turn_not_null') then
        alter table mainspring.clocks
            rename constraint clocks_turn_not_null to clocks_revision_not_null;
    end if;
    for statement in
        select 'drop view ' || string_agg(seen.oid::regclass::text, ', ')
          from pg_catalog.pg_class as seen
         where seen.relnamespace = 'mainspring'::regnamespace and seen.relkind = 'v'
        having count(*) > 0
    loop
        execute statement;
    end loop;
    -- A trigger of a partition goes with that of the partitioned table.
    for statement in
        select format('drop trigger %I on %s', fired.tgname, fired.tgrelid::regclass)
          from pg_catalog.pg_trigger as fired
          join pg_catalog.pg_class as changed on changed.oid = fired.tgrelid
         where changed.relnamespace = 'mainspring'::regnamespace
           and not fired.tgisinternal and fired.tgparentid = 0
    loop
        execute statement;
    end loop;
    -- The policies of the tables call the two that stay.
    for statement in
        select 'drop function ' || string_agg(called.oid::regprocedure::text, ', ')
          from pg_catalog.pg_proc as called
         where called.pronamespace = 'mainspring'::regnamespace
           and called.proname not in ('is_visible', 'is_own')
        having count(*) > 0
    loop
        execute statement;
    end loop;
end
$$;
