-- name: create_tenant
-- scope: system
-- Adds a tenant; no row if the name is taken.
insert into mainspring.tenants (tenant_id, weight, max_running, zone)
values (%(tenant_id)s, %(weight)s::integer, %(max_running)s::integer, %(zone)s)
on conflict (tenant_id) do nothing
returning tenant_id;

-- name: update_tenant
-- scope: system
-- Changes the given columns of a tenant; no row if there is none.
update mainspring.tenants as t
   set weight = changed.weight, zone = changed.zone,
       disabled_at = case when wanted.is_enabled then null
                          else coalesce(known.disabled_at, now()) end,
       max_running = case when wanted.is_enabled then wanted.max_running else 0 end,
       enabled_max_running = case when wanted.is_enabled then null else wanted.max_running end
  from mainspring.tenants as known,
       lateral jsonb_populate_record(known, %(changes)s::jsonb) as changed,
       lateral (select coalesce((%(changes)s::jsonb ->> 'is_enabled')::boolean,
                                known.disabled_at is null) as is_enabled,
                       case when %(changes)s::jsonb ? 'max_running'
                                 or known.disabled_at is null then changed.max_running
                            else known.enabled_max_running end as max_running) as wanted
 where t.tenant_id = %(tenant_id)s and known.tenant_id = t.tenant_id
returning t.tenant_id;

-- name: tenant_contents
-- scope: system
-- How many of each thing a tenant has, as JSON text.
select mainspring.contents_of_tenant(%(tenant_id)s)::text;

-- name: start_tenant_deletion
-- scope: system
-- Disables a tenant and enqueues the job that deletes it.
select mainspring.start_tenant_deletion(%(tenant_id)s);

-- name: get_tenant_deletion
-- scope: system
-- Which tenant a running job is to delete, and in whose name; no row for a job that
-- start_tenant_deletion did not make.
select payload ->> 'tenant', origin ->> 'actor', origin ->> 'identity' from mainspring.jobs
 where job_id = %(job_id)s::bigint and origin ->> 'operation' = 'delete_tenant';

-- name: delete_from_tenant
-- scope: system
-- Deletes the next part of a tenant in the name of whoever asked for it.
select done.what, done.deleted, done.running, done.is_done
  from (select set_config('mainspring.actor', %(actor)s, true),
               set_config('mainspring.identity', coalesce(%(identity)s::text, ''), true)) as acting,
       lateral mainspring.delete_from_tenant(%(tenant_id)s, %(most)s::integer) as done
 where acting is not null;

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
