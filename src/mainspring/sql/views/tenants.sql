create or replace view mainspring.tenant_status as
select tenant.tenant_id, tenant.weight, tenant.max_running,
       coalesce(live.ready, 0)::bigint as ready, coalesce(live.waiting, 0)::bigint as waiting,
       coalesce(live.running, 0)::bigint as running, coalesce(live.held, 0)::bigint as held,
       tenant.created_at
  from mainspring.tenants as tenant
  left join (
      select tenant_id, sum(ready) as ready, sum(waiting) as waiting, sum(running) as running,
             sum(held) as held
        from mainspring.queue_status group by tenant_id) as live using (tenant_id)
 where mainspring.is_visible(tenant.tenant_id);
