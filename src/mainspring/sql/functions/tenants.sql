-- Tenants: what changes about them is written down.

create or replace function mainspring.audit_tenant()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    unsaid text[] := array['created_at', 'updated_at'];
    was jsonb := case when tg_op <> 'INSERT' then to_jsonb(old) - unsaid else '{}' end;
    is_now jsonb := case when tg_op <> 'DELETE' then to_jsonb(new) - unsaid else '{}' end;
begin
    if was = is_now then
        return null;
    end if;
    insert into mainspring.audit (tenant_id, actor, action, noun, subject, before, after)
    values (
        coalesce(new.tenant_id, old.tenant_id),
        mainspring.actor(),
        case tg_op when 'INSERT' then 'create' when 'DELETE' then 'delete' else 'update' end,
        'tenant', coalesce(new.tenant_id, old.tenant_id),
        mainspring.differing(was, is_now), mainspring.differing(is_now, was));
    return null;
end
$$;

create or replace trigger tenants_audit after insert or update or delete on mainspring.tenants
    for each row execute function mainspring.audit_tenant();
