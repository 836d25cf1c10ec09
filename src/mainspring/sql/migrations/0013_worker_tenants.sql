-- Tokens of workers that serve several tenants, or all.
--
-- works with: 0001

alter table mainspring.tokens
    -- The tenants that a worker serves, if these are several; null with a null tenant_id is all.
    add column tenants text[] collate "C",
    drop constraint tokens_operators_have_no_tenant,
    add constraint tokens_tenant_of_role check (
        case role when 'operator' then tenant_id is null when 'worker' then true
                  else tenant_id is not null end),
    add constraint tokens_tenants_of_workers check (
        tenants is null
        or role = 'worker' and tenant_id is null and cardinality(tenants) between 1 and 100);
