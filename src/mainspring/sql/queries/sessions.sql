-- name: list_sessions
-- scope: system
-- Who is logged in, the newest first, before a session if given: some people, or all of a tenant,
-- or all.
select session_id, person_id, person, tenant_id, created_at, created_by, expires_at, last_used_at
  from mainspring.session_status
 where (%(tenant_id)s::text is null or tenant_id = %(tenant_id)s::text)
   and (%(person_ids)s::bigint[] is null or person_id = any (%(person_ids)s::bigint[]))
   and (%(before)s::bigint is null or session_id < %(before)s::bigint)
 order by session_id desc limit %(limit)s;

-- name: get_session
-- scope: system
-- One session of a tenant, or of any.
select session_id, person_id, person, tenant_id, created_at, created_by, expires_at, last_used_at
  from mainspring.session_status
 where session_id = %(session_id)s::bigint
   and (%(tenant_id)s::text is null or tenant_id = %(tenant_id)s::text);

-- name: end_sessions
-- scope: system
-- Ends one session of a person, or all of them.
select mainspring.end_sessions(
    %(person_id)s::bigint, %(session_id)s::bigint, %(tenant_id)s::text);
