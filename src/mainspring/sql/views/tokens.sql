-- Tokens of programs, and the one of a `mainspring up` that runs.
create or replace view mainspring.token_status as
select token.token_id, token.name, token.prefix, token.role, token.tenant_id, token.scopes,
       token.person,
       case when token.revoked_at is not null or person.disabled_at is not null then 'revoked'
            when token.expires_at <= statement_timestamp() then 'expired'
            else 'active' end as state,
       token.created_at, token.created_by, token.expires_at, token.last_used_at, token.revoked_at,
       token.tenants
  from mainspring.tokens as token
  left join mainspring.people as person on person.person_id = token.person_id
 where (token.kind = 'token' or token.kind = 'console' and token.name <> token.created_by)
   and mainspring.is_visible(token.tenant_id);

-- Who is logged in. A session that has ended is deleted.
create or replace view mainspring.session_status as
select session.token_id as session_id, session.person_id, person.name as person,
       session.tenant_id, session.created_at, session.created_by, session.expires_at,
       session.last_used_at
  from mainspring.tokens as session
  join mainspring.people as person on person.person_id = session.person_id
 where session.kind = 'session' and session.expires_at > statement_timestamp()
   and mainspring.is_visible(session.tenant_id);

-- For programs of the release before, which find the bearers of valid tokens here.
create or replace view mainspring.bearers as
select token.token_id, token.digest, token.kind, held.role, token.tenant_id, token.scopes,
       held.actor collate "C" as actor, held.approver collate "C" as approver
  from mainspring.tokens as token
 cross join lateral mainspring.bearer(token.digest) as held;
