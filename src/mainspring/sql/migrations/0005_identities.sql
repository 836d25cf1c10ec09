-- Who acts is a kind and an id. People have ids, so that names are each tenant's own; a token knows
-- whose it is; the audit and votes keep kind and id beside the name.
--
-- works with: 0001

alter table mainspring.tokens drop constraint tokens_person_fkey;
alter table mainspring.people drop constraint people_pkey;
alter table mainspring.people
    add column person_id bigint generated always as identity primary key;
drop index mainspring.people_tenant;
-- Serves create_person. One of a name in each tenant, and one among operators, who have none.
create unique index people_name on mainspring.people (tenant_id, name) nulls not distinct;
-- Serves find_people and list_people.
create index people_names on mainspring.people (name, person_id);

alter table mainspring.tokens
    -- Whose it is: who is logged in by it, or who made it, directly or with another token.
    add column person_id bigint references mainspring.people on delete cascade,
    -- Who made it, by kind and id.
    add column created_by_id text,
    -- As whom it votes where it is no person's: the token that made it. Null for itself.
    add column voter text,
    -- When all that is made with it ends, for a session whose login link was made by a token that
    -- expires.
    add column ends_by timestamptz;
update mainspring.tokens as token set person_id = person.person_id
  from mainspring.people as person
 where person.name = token.person;
drop index mainspring.tokens_person;
-- Serves delete_person, with which its tokens are deleted, and list_sessions.
create index tokens_person on mainspring.tokens (person_id) where person_id is not null;
drop index mainspring.tokens_name;
-- Serves create_token. The name of a revoked token may be given again.
create unique index tokens_name on mainspring.tokens (tenant_id, name) nulls not distinct
    where revoked_at is null and kind = 'token';
-- Serves find_tokens and list_tokens.
create index tokens_names on mainspring.tokens (name, token_id) where kind in ('token', 'console');
-- Serves list_sessions.
create index tokens_sessions on mainspring.tokens (token_id) where kind = 'session';

-- By kind and id, such as person:7. Null in rows from before there were ids.
alter table mainspring.audit add column actor_id text;

-- What the voter is called; `actor` says by kind and id who counts as one voter.
alter table mainspring.votes add column name text;
update mainspring.votes as vote
   set name = vote.actor,
       actor = coalesce(
           (select 'person:' || person.person_id from mainspring.people as person
             where person.name = vote.actor),
           (select 'token:' || max(token.token_id) from mainspring.tokens as token
             where token.name = vote.actor and token.kind = 'token'),
           'name:' || vote.actor);
