-- name: create_tenant
-- scope: system
-- Adds a tenant; no row if the name is taken.
insert into mainspring.tenants (tenant_id, weight, max_running)
values (%(tenant_id)s, %(weight)s::integer, %(max_running)s::integer)
on conflict (tenant_id) do nothing
returning tenant_id;

-- name: update_tenant
-- scope: system
-- Changes the given columns of a tenant; no row if there is none.
update mainspring.tenants as t
   set weight = changed.weight, max_running = changed.max_running
  from mainspring.tenants as known,
       lateral jsonb_populate_record(known, %(changes)s::jsonb) as changed
 where t.tenant_id = %(tenant_id)s and known.tenant_id = t.tenant_id
returning t.tenant_id;

-- name: get_tenant
-- scope: system
-- One tenant, as JSON text that every driver carries alike.
select to_jsonb(t)::text from mainspring.tenant_status as t where t.tenant_id = %(tenant_id)s;

-- name: find_tenant
-- scope: system
-- Whether there is such a tenant, without counting its jobs.
select tenant_id from mainspring.tenants where tenant_id = %(tenant_id)s;

-- name: tenant_zone
-- scope: system
-- The zone of schedules that name none.
select zone from mainspring.tenants where tenant_id = %(tenant_id)s;

-- name: list_tenants
-- scope: system
-- Tenants by name, after a name if given.
select to_jsonb(t)::text from mainspring.tenant_status as t
 where t.tenant_id > coalesce(%(after)s::text, '')
 order by t.tenant_id limit %(limit)s;

-- name: tenant_names
-- scope: system
-- The names of all tenants.
select tenant_id from mainspring.tenants order by tenant_id;
