-- name: list_audit
-- scope: system
-- What was changed, the newest first, before an entry if given, of a tenant or of all, with the
-- filters that are given.
select audit_id, at, tenant_id, actor, actor_id, action, noun, subject, reason, before, after
  from mainspring.audit_status
 where (%(tenant_id)s::text is null or tenant_id = %(tenant_id)s::text)
   and (%(before)s::bigint is null or audit_id < %(before)s::bigint)
   and (%(actor)s::text is null or %(actor)s::text in (actor, actor_id))
   and (%(noun)s::text is null or noun = %(noun)s::text)
   and (%(subject)s::text is null or subject = %(subject)s::text)
 order by audit_id desc limit %(limit)s;
