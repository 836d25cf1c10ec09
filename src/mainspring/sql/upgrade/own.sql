-- Makes the role mainspring the owner of a database of the embedded server and of all that its
-- superuser has made there, which the application logged in as before. Run by the superuser.
do $$
declare
    statement text;
begin
    for statement in
        select format('alter database %I owner to mainspring', datname)
          from pg_catalog.pg_database
         where datname = current_database() and datdba <> 'mainspring'::regrole
        union all
        -- So that it may still run SQL under every role that it could run it under before.
        select format('grant %I to mainspring with admin option', granted.rolname)
          from pg_catalog.pg_roles as granted
         where not granted.rolsuper and granted.rolname !~ '^pg_'
           and granted.oid <> 'mainspring'::regrole
           and not exists (select from pg_catalog.pg_auth_members as known
                            where known.roleid = granted.oid
                              and known.member = 'mainspring'::regrole)
    loop
        execute statement;
    end loop;
end
$$;

do $$
declare
    statement text;
begin
    for statement in
        with made as (
            select 'pg_namespace'::regclass as class, oid, oid as namespace,
                   format('schema %I', nspname) as what
              from pg_catalog.pg_namespace where nspowner = current_user::regrole
            union all
            select 'pg_class', oid, relnamespace,
                   format('%s %s', case relkind when 'v' then 'view' when 'S' then 'sequence'
                                                when 'm' then 'materialized view'
                                                when 'f' then 'foreign table' else 'table' end,
                          oid::regclass)
              from pg_catalog.pg_class as made
             where relowner = current_user::regrole and relkind in ('r', 'p', 'v', 'm', 'S', 'f')
               -- The sequence of a column goes with its table.
               and not (relkind = 'S' and exists (
                   select from pg_catalog.pg_depend as owned
                    where owned.classid = 'pg_class'::regclass and owned.objid = made.oid
                      and owned.deptype in ('a', 'i')))
            union all
            select 'pg_proc', oid, pronamespace, format('routine %s', oid::regprocedure)
              from pg_catalog.pg_proc where proowner = current_user::regrole
            union all
            select 'pg_type', made.oid, typnamespace,
                   format('%s %s', case typtype when 'd' then 'domain' else 'type' end,
                          made.oid::regtype)
              from pg_catalog.pg_type as made
              left join pg_catalog.pg_class as row on row.oid = made.typrelid
             where typowner = current_user::regrole
               and (typtype in ('d', 'e', 'r') or row.relkind = 'c')
        )
        select format('alter %s owner to mainspring', made.what)
          from made join pg_catalog.pg_namespace as own on own.oid = made.namespace
         where own.nspname !~ '^pg_' and own.nspname <> 'information_schema'
           and not exists (select from pg_catalog.pg_depend as part
                            where part.classid = made.class and part.objid = made.oid
                              and part.deptype = 'e')
    loop
        execute statement;
    end loop;
end
$$;

-- What ran as the superuser runs as the owner from now on.
do $$
begin
    if to_regclass('mainspring.schedules') is null then
        return;
    end if;
    set local session_replication_role = replica;
    update mainspring.schedules set condition_role = 'mainspring'
     where condition_role = current_user;
    update mainspring.definitions set spec = spec || '{"role": "mainspring"}'
     where spec ->> 'role' = current_user;
    update mainspring.definition_versions set spec = spec || '{"role": "mainspring"}'
     where spec ->> 'role' = current_user;
end
$$;
