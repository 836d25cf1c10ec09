-- name: create_token
-- scope: system
-- Adds a token for programs; no row if the name is taken.
insert into mainspring.tokens (
    name, prefix, digest, role, tenant_id, scopes, expires_at, person, created_by)
values (%(name)s, %(prefix)s, %(digest)s, %(role)s, %(tenant_id)s, %(scopes)s::text[],
        now() + %(life)s::interval, %(person)s, mainspring.actor())
on conflict (name) where revoked_at is null and kind = 'token' do nothing
returning token_id;

-- name: get_token
-- scope: system
-- The token of a name in a tenant, or in any; the newest if the name was given anew.
select to_jsonb(t)::text from mainspring.token_status as t
 where t.name = %(name)s and (%(tenant_id)s::text is null or t.tenant_id = %(tenant_id)s::text)
 order by t.token_id desc limit 1;

-- name: list_tokens
-- scope: system
-- Tokens by name, after a name if given; those that are no longer valid only if asked for.
select to_jsonb(t)::text from mainspring.token_status as t
 where t.name > coalesce(%(after)s::text, '') and (%(all)s or t.state = 'active')
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
-- Takes a token back; no row if there is none that could be.
update mainspring.tokens set revoked_at = now()
 where name = %(name)s and revoked_at is null and kind = 'token'
   and (%(tenant_id)s::text is null or tenant_id = %(tenant_id)s::text)
returning token_id;

-- name: find_token
-- scope: system
-- Who the bearer of a token is, and notes its use once a minute; no row unless the token is valid.
with used as (
    update mainspring.tokens as t set last_used_at = now()
     where t.digest = %(digest)s
       and (t.last_used_at is null or t.last_used_at < now() - interval '1 minute')
)
select actor, role, tenant_id, scopes, kind from mainspring.bearers where digest = %(digest)s;

-- name: enter
-- scope: system
-- Authenticates the bearer of a token for the rest of the transaction.
select mainspring.enter(%(digest)s);

-- name: open_to_app
-- scope: system
-- Gives the role that requests run as the rights it needs; makes it where it is missing. One at a
-- time: of two that grant the same at once, PostgreSQL refuses one.
with locked as materialized (
    select pg_advisory_xact_lock(hashtextextended('mainspring.open_to_app', 0)) is not null as ours
)
select mainspring.open_to_app() from locked;

-- name: create_login
-- scope: system
-- Adds a login of a person that is used once; no row if there is no such person.
insert into mainspring.tokens (
    kind, name, prefix, digest, role, tenant_id, expires_at, person, created_by)
select 'login', person.name, %(prefix)s, %(digest)s, person.role, person.tenant_id,
       now() + %(life)s::interval, person.name, mainspring.actor()
  from mainspring.people as person
 where person.name = %(name)s and person.disabled_at is null
returning token_id;

-- name: use_login
-- scope: system
-- Trades a login for a session; no row if it is unknown, used or too old.
with used as (
    delete from mainspring.tokens as login
     where login.digest = %(login)s and login.kind = 'login' and login.expires_at > now()
       and login.revoked_at is null
    returning login.person
), seen as (
    update mainspring.people as person set last_seen_at = now() from used
     where person.name = used.person and person.disabled_at is null
    returning person.*
)
insert into mainspring.tokens (
    kind, name, prefix, digest, role, tenant_id, expires_at, person, created_by)
select 'session', seen.name, %(prefix)s, %(digest)s, seen.role, seen.tenant_id,
       now() + %(life)s::interval, seen.name, seen.name
  from seen
returning person;

-- name: keep_login_key
-- scope: system
-- Notes that a login through a provider was begun.
insert into mainspring.login_keys (digest, expires_at)
values (%(digest)s, now() + %(life)s::interval);

-- name: use_login_key
-- scope: system
-- Ends a login that was begun; no row if it is unknown, used or too old.
delete from mainspring.login_keys where digest = %(digest)s and expires_at > now()
returning expires_at;

-- name: prune_login_keys
-- scope: system
-- Removes logins that nobody has ended.
delete from mainspring.login_keys where expires_at <= now();

-- name: end_session
-- scope: system
-- Ends a session or a console at once.
delete from mainspring.tokens
 where digest = %(digest)s and kind in ('session', 'console') returning token_id;

-- name: open_console
-- scope: system
-- Adds a token for whoever has the database's own credentials: an operator with the name of the
-- database user.
insert into mainspring.tokens (kind, name, prefix, digest, role, expires_at, created_by)
values ('console', mainspring.actor(), %(prefix)s, %(digest)s, 'operator',
        now() + %(life)s::interval, mainspring.actor())
returning token_id;

-- name: prune_tokens
-- scope: system
-- Removes sessions, consoles and logins that have ended.
delete from mainspring.tokens where kind <> 'token' and expires_at <= now();
