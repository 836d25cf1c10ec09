-- What is closed to everyone without a grant; this file is the last to be loaded.
revoke execute on all functions in schema mainspring from public;

do $$
declare
    kept record;
begin
    if to_regclass('mainspring.kept_grants') is null then
        return;
    end if;
    for kept in select name, grantee from mainspring.kept_grants loop
        execute format('grant execute on function mainspring.%I to %I', kept.name, kept.grantee);
    end loop;
    drop table mainspring.kept_grants;
end
$$;

-- Whoever reads a view needs the right to call what it calls. These look at nothing but what they
-- are given.
grant execute on function mainspring.redacted, mainspring.redacted_at, mainspring.is_visible,
    mainspring.is_own, mainspring.source_of to public;
