create or replace view mainspring.tenant_status as
select tenant.tenant_id, tenant.weight,
       case when tenant.disabled_at is null then tenant.max_running
            else tenant.enabled_max_running end as max_running,
       coalesce(live.ready, 0)::bigint as ready, coalesce(live.waiting, 0)::bigint as waiting,
       coalesce(live.running, 0)::bigint as running, coalesce(live.held, 0)::bigint as held,
       tenant.created_at, tenant.zone, tenant.disabled_at is null as is_enabled
  from mainspring.tenants as tenant
  left join (
      select tenant_id, sum(ready) as ready, sum(waiting) as waiting, sum(running) as running,
             sum(held) as held
        from mainspring.queue_status group by tenant_id) as live using (tenant_id)
 where mainspring.is_visible(tenant.tenant_id);
