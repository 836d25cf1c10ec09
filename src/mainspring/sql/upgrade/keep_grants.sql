insert into mainspring.grants_to_restore (kind, name, privilege, grantee)
select 'function', called.proname, acl.privilege_type, pg_get_userbyid(acl.grantee)
  from pg_catalog.pg_proc as called, pg_catalog.aclexplode(called.proacl) as acl
 where called.pronamespace = 'mainspring'::regnamespace
   and acl.grantee not in (0, called.proowner)
union
select 'view', seen.relname, acl.privilege_type, pg_get_userbyid(acl.grantee)
  from pg_catalog.pg_class as seen, pg_catalog.aclexplode(seen.relacl) as acl
 where seen.relnamespace = 'mainspring'::regnamespace and seen.relkind = 'v'
   and acl.grantee not in (0, seen.relowner)
    on conflict do nothing;
