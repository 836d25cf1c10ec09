do $$
declare
    statement text;
begin
    for statement in
        select format('grant %s on function %s to %I', kept.privilege,
                      called.oid::regprocedure, kept.grantee)
          from mainspring.grants_to_restore as kept
          join pg_catalog.pg_roles as role on role.rolname = kept.grantee
          join pg_catalog.pg_proc as called
            on called.proname = kept.name and called.pronamespace = 'mainspring'::regnamespace
         where kept.kind = 'function'
           and not has_function_privilege(role.oid, called.oid, kept.privilege)
        union all
        select format('grant %s on mainspring.%I to %I', kept.privilege, seen.relname, kept.grantee)
          from mainspring.grants_to_restore as kept
          join pg_catalog.pg_roles as role on role.rolname = kept.grantee
          join pg_catalog.pg_class as seen
            on seen.relname = kept.name and seen.relnamespace = 'mainspring'::regnamespace
           and seen.relkind = 'v'
         where kept.kind = 'view'
           and not has_table_privilege(role.oid, seen.oid, kept.privilege)
    loop
        execute statement;
    end loop;
end
$$;
