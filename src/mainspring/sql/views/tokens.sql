create or replace view mainspring.token_status as
select token.token_id, token.name, token.prefix, coalesce(person.role, token.role) as role,
       token.tenant_id, token.scopes, token.person,
       case when token.revoked_at is not null or person.disabled_at is not null then 'revoked'
            when token.expires_at <= now() then 'expired' else 'active' end as state,
       token.created_at, token.created_by, token.expires_at, token.last_used_at, token.revoked_at
  from mainspring.tokens as token
  left join mainspring.people as person on person.name = token.person
 where token.kind = 'token' and mainspring.is_visible(token.tenant_id);

-- Who the bearers of valid tokens are, for the API alone.
create or replace view mainspring.bearers as
select token.token_id, token.digest, token.kind, coalesce(person.role, token.role) as role,
       token.tenant_id, token.scopes, coalesce(token.person, token.name) as actor,
       -- As which approvers it counts. A token does not count as the person that it is named after.
       array['role:' || coalesce(person.role, token.role)]
       || case when token.person is not null then array[token.person]
               when not exists (select from mainspring.people as other
                                 where other.name = token.name) then array[token.name]
          end as approver
  from mainspring.tokens as token
  left join mainspring.people as person on person.name = token.person
 where token.kind <> 'login' and token.revoked_at is null and person.disabled_at is null
   and (token.expires_at is null or token.expires_at > now());
