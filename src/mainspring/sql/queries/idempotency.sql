-- name: lock_edit
-- scope: system
-- Waits until nobody else in the API holds the name, and holds it until the transaction ends.
select pg_advisory_xact_lock(hashtextextended('mainspring.edit/' || %(name)s, 0));

-- name: get_reply
-- scope: tenant
-- What was answered to a create with the caller's key.
select digest, status, body from mainspring.replies
 where tenant_id = %(tenant_id)s and actor = mainspring.actor() and key = %(key)s
   and expires_at > now();

-- name: keep_reply
-- scope: tenant
-- Keeps what was answered to a create, for a day.
insert into mainspring.replies as known (tenant_id, actor, key, digest, status, body, expires_at)
values (%(tenant_id)s, mainspring.actor(), %(key)s, %(digest)s, %(status)s, %(body)s,
        now() + interval '1 day')
on conflict (tenant_id, actor, key) do update
   set digest = excluded.digest, status = excluded.status, body = excluded.body,
       expires_at = excluded.expires_at;

-- name: prune_replies
-- scope: system
-- Removes answers that are older than a day.
delete from mainspring.replies where expires_at <= now();
