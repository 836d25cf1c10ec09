create or replace view mainspring.audit_status as
select audit_id, at, tenant_id, actor, action, noun, subject, reason, before, after, actor_id
  from mainspring.audit
 where mainspring.is_visible(tenant_id);
