-- Conditions of schedules, where the login that asks them is a superuser.

-- The first column of the first row of a condition, asked with the right to read everything and no
-- other. It runs in a function of pg_read_all_data, inside which PostgreSQL lets nobody change the
-- role; the caller rolls the transaction back, so nothing is left that would run later with the
-- rights of the login. Only a superuser can make such a function.
create or replace function mainspring.ask_as_reader(condition text)
returns json
language plpgsql
as $$
declare
    answer json;
begin
    create function pg_temp.ask(condition text, path text) returns json
    language plpgsql security definer set search_path = pg_catalog, pg_temp
    as $ask$
    declare
        answers refcursor;
        first record;
    begin
        perform set_config('search_path', path, true);
        -- A cursor takes a single query.
        open answers no scroll for execute condition;
        fetch answers into first;
        return (select field.value from json_each(row_to_json(first)) as field limit 1);
    end
    $ask$;
    alter function pg_temp.ask owner to pg_read_all_data;
    set local transaction_read_only = on;
    execute 'select pg_temp.ask($1, $2)' into answer
      using ask_as_reader.condition, current_setting('search_path');
    return answer;
end
$$;
