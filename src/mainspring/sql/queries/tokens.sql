-- name: create_token
-- scope: system
-- Adds a token for programs; no row if the name is taken.
insert into mainspring.tokens (
    name, prefix, digest, role, tenant_id, tenants, scopes, expires_at, person, person_id, voter,
    created_by, created_by_id)
values (%(name)s, %(prefix)s, %(digest)s, %(role)s, %(tenant_id)s, %(tenants)s::text[],
        %(scopes)s::text[],
        least(now() + %(life)s::interval, %(ends_by)s::timestamptz), %(person)s,
        %(person_id)s::bigint, %(voter)s::text, mainspring.actor(), (mainspring.identity())[2])
on conflict (tenant_id, name) where revoked_at is null and kind = 'token' do nothing
returning token_id;

-- name: get_token
-- scope: system
-- One token by its id.
select to_jsonb(t)::text from mainspring.token_status as t where t.token_id = %(token_id)s::bigint;

-- name: find_tokens
-- scope: system
-- The tokens of a name in a tenant, or in all; in each the newest if the name was given anew.
select distinct on (t.tenant_id) to_jsonb(t)::text from mainspring.token_status as t
 where t.name = %(name)s and (%(tenant_id)s::text is null or t.tenant_id = %(tenant_id)s::text)
 order by t.tenant_id nulls first, t.token_id desc limit 100;

-- name: list_tokens
-- scope: system
-- Tokens by name, after a name, or after one token of a name, if given, with the filters that are
-- given.
select to_jsonb(t)::text from mainspring.token_status as t
 where (t.name, t.token_id) > (coalesce(%(after)s::text, ''),
                               coalesce(%(after_id)s::bigint, 9223372036854775807))
   and (%(states)s::text[] is null or t.state = any (%(states)s::text[]))
   and (%(roles)s::text[] is null or t.role = any (%(roles)s::text[]))
   and (%(tenant_id)s::text is null or t.tenant_id = %(tenant_id)s::text)
 order by t.name, t.token_id limit %(limit)s;

-- name: token_names
-- scope: system
-- The names of tokens, to suggest one that was meant.
select distinct name from mainspring.token_status
 where %(tenant_id)s::text is null or tenant_id = %(tenant_id)s::text
 order by name limit 1000;

-- name: revoke_token
-- scope: system
-- Takes a token back; one that was taken back before stays so.
update mainspring.tokens set revoked_at = now()
 where token_id = %(token_id)s::bigint and revoked_at is null and kind in ('token', 'console')
returning token_id;

-- name: find_token
-- scope: system
-- Who the bearer of a token is, and notes its use once a minute; no row unless the token is valid.
with used as (
    update mainspring.tokens as t set last_used_at = now()
     where t.digest = %(digest)s
       and (t.last_used_at is null or t.last_used_at < now() - interval '1 minute')
)
select actor, role, tenant_id, scopes, kind, token_id, actor_id, voter, person_id, person, ends_by,
       ends_by - now(), tenants
  from mainspring.bearer_of(%(digest)s);

-- name: why_no_bearer
-- scope: system
-- Why a token lets nobody in.
select mainspring.why_no_bearer(%(digest)s);

-- name: enter
-- scope: system
-- Authenticates the bearer of a token for the rest of the transaction.
select mainspring.enter(%(digest)s);

-- name: act_as_owner
-- scope: system
-- Goes on with the rights of the login after a bearer was authenticated, who stays the actor.
select set_config('role', 'none', true);

-- name: open_to_app
-- scope: system
-- Gives the role that requests run as the rights it needs; makes it where it is missing. One at a
-- time: of two that grant the same at once, PostgreSQL refuses one.
with locked as materialized (
    select pg_advisory_xact_lock(hashtextextended('mainspring.open_to_app', 0)) is not null as ours
)
select mainspring.open_to_app() from locked;

-- name: open_login
-- scope: system
-- Adds a login of a person that is used once; false if there is no such person.
select mainspring.open_login(%(person_id)s::bigint, %(prefix)s, %(digest)s, %(life)s::interval,
                             %(ends_by)s::timestamptz, %(is_link)s::boolean, %(tenant_id)s::text);

-- name: use_login
-- scope: system
-- Trades a login for a session; null if it is unknown, used or too old.
select mainspring.use_login(%(login)s, %(prefix)s, %(digest)s, %(life)s::interval);

-- name: cookie_key
-- scope: system
-- The key of this installation that cookies are signed with.
select key from mainspring.installation_keys where name = 'cookies';

-- name: is_login_key_used
-- scope: system
-- Whether a login through a provider was completed before.
select exists (select from mainspring.login_keys where digest = %(digest)s);

-- name: use_login_key
-- scope: system
-- Notes that a login through a provider is completed; no row if it was before.
insert into mainspring.login_keys (digest, expires_at)
values (%(digest)s, now() + %(life)s::interval)
on conflict (digest) do nothing returning digest;

-- name: prune_login_keys
-- scope: system
-- Removes completed logins whose cookie has expired.
delete from mainspring.login_keys where expires_at <= now();

-- name: log_out
-- scope: system
-- Ends a session or a console at once.
select mainspring.log_out(%(digest)s);

-- name: open_console
-- scope: system
-- Adds a token for whoever has the database's own credentials: an operator who acts as the database
-- user. One with a name of its own is listed.
insert into mainspring.tokens (kind, name, prefix, digest, role, expires_at, created_by)
values ('console', coalesce(%(name)s::text, mainspring.actor()), %(prefix)s, %(digest)s, 'operator',
        now() + %(life)s::interval, mainspring.actor())
returning token_id;

-- name: renew_console
-- scope: system
-- Gives a console another life, also one that has expired; says what became of one that is revoked
-- or was pruned.
with renewed as (
    update mainspring.tokens set expires_at = now() + %(life)s::interval
     where digest = %(digest)s and kind = 'console' and revoked_at is null
    returning token_id
)
select case when exists (select from renewed) then 'renewed'
            when exists (select from mainspring.tokens where digest = %(digest)s) then 'revoked'
            else 'pruned' end;

-- name: prune_tokens
-- scope: system
-- Removes sessions, consoles and logins that have ended.
delete from mainspring.tokens where kind <> 'token' and expires_at <= now();
