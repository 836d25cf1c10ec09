-- Since PostgreSQL 16 a role can be a member of another without having its rights: a member by
-- CREATEROLE alone, or one that was granted without INHERIT and SET. Such a session is not the
-- program itself.
--
-- works with: 0001

-- Whether the program itself is connected, and not someone with a login of their own.
create or replace function mainspring.is_program()
returns boolean
language sql stable
return (select pg_has_role(session_user, own.nspowner, 'USAGE')
            or pg_has_role(session_user, own.nspowner,
                           case when current_setting('server_version_num')::integer >= 160000
                                then 'SET' else 'MEMBER' end)
          from pg_catalog.pg_namespace as own where own.nspname = 'mainspring');
