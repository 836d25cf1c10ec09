-- name: read_only
-- scope: system
-- Makes the transaction unable to write, for good.
set transaction read only;

-- name: limits
-- scope: system
-- Makes the transaction run under a role and end after a while, and looks in temporary objects
-- last.
select pg_catalog.set_config('statement_timeout', %(timeout)s::pg_catalog.text, true),
       pg_catalog.set_config('role', %(role)s::pg_catalog.text, true),
       pg_catalog.set_config(
           'search_path', pg_catalog.concat_ws(
               ', ', nullif(pg_catalog.current_setting('search_path'), ''), 'pg_temp'), true);

-- name: open_condition
-- scope: system
-- Takes a query and nothing else: a cursor is made for one statement that only reads.
declare condition no scroll cursor for {condition};

-- name: first_row
-- scope: system
-- The first row of the condition.
fetch next from condition;

-- name: make_judge
-- scope: system
-- For a login that is a superuser: a function that asks with the rights to read everything and no
-- others. Inside it PostgreSQL lets nobody change the role, and the transaction is rolled back, so
-- nothing is left that would run later with the rights of the login.
create function pg_temp.judge(condition text, path text) returns json
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    answers refcursor;
    answer record;
begin
    perform set_config('search_path', path, true);
    open answers no scroll for execute condition;
    fetch answers into answer;
    return (select first.value from json_each(row_to_json(answer)) as first limit 1);
end
$$;

-- name: bind_judge
-- scope: system
-- Takes the rights of the superuser from the function.
alter function pg_temp.judge owner to pg_read_all_data;

-- name: judge
-- scope: system
-- The first column of the first row of the condition.
select pg_temp.judge(%(condition)s::pg_catalog.text, pg_catalog.current_setting('search_path'));

-- name: unlock
-- scope: system
-- Gives back what no rollback does; through a pooler others use the session after us.
select pg_catalog.pg_advisory_unlock_all();
