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

-- name: ask_as_reader
-- scope: system
-- The first column of the first row of the condition, for a login that is a superuser.
select mainspring.ask_as_reader(%(condition)s::text);

-- name: unlock
-- scope: system
-- Gives back what no rollback does; through a pooler others use the session after us.
select pg_catalog.pg_advisory_unlock_all();

-- name: may_run_as
-- scope: system
-- Whether whoever asks may have a condition run as the role.
select mainspring.may_set_role(current_user, %(role)s::name);
