-- name: list_audit
-- scope: system
-- What was changed, the newest first, before an entry if given, of a tenant or of all, with the
-- filters that are given.
select audit_id, at, tenant_id, actor, actor_id, action, noun, subject, reason, before, after
  from mainspring.audit_status
 where (%(tenant_id)s::text is null or tenant_id = %(tenant_id)s::text)
   and (%(before)s::bigint is null or audit_id < %(before)s::bigint)
   and (%(actors)s::text[] is null or actor = any (%(actors)s::text[])
        or actor_id = any (%(actors)s::text[]))
   and (%(actions)s::text[] is null or action = any (%(actions)s::text[]))
   and (%(nouns)s::text[] is null or noun = any (%(nouns)s::text[]))
   and (%(subjects)s::text[] is null or subject = any (%(subjects)s::text[]))
 order by audit_id desc limit %(limit)s;
