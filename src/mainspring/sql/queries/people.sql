-- name: create_person
-- scope: system
-- Adds a person; no row if the name is taken.
insert into mainspring.people (name, role, tenant_id, created_by)
values (%(name)s, %(role)s, %(tenant_id)s, mainspring.actor())
on conflict (tenant_id, name) do nothing
returning person_id;

-- name: get_person
-- scope: system
-- One person by their id.
select to_jsonb(p)::text from mainspring.known_people as p
 where p.person_id = %(person_id)s::bigint;

-- name: find_people
-- scope: system
-- The people of a name in a tenant, or in all; an operator first.
select to_jsonb(p)::text from mainspring.known_people as p
 where p.name = %(name)s and (%(tenant_id)s::text is null or p.tenant_id = %(tenant_id)s::text)
 order by p.tenant_id nulls first limit 100;

-- name: list_people
-- scope: system
-- People by name, after a name, or after one person of a name, if given.
select to_jsonb(p)::text from mainspring.known_people as p
 where (p.name, p.person_id) > (coalesce(%(after)s::text, ''),
                                coalesce(%(after_id)s::bigint, 9223372036854775807))
   and (%(tenant_id)s::text is null or p.tenant_id = %(tenant_id)s::text)
 order by p.name, p.person_id limit %(limit)s;

-- name: person_names
-- scope: system
-- The names of people, to suggest one that was meant.
select distinct name from mainspring.known_people
 where %(tenant_id)s::text is null or tenant_id = %(tenant_id)s::text
 order by name limit 1000;

-- name: change_person
-- scope: system
-- Changes what a person may do, from the next request on; no row if there is none.
update mainspring.people
   set role = coalesce(%(role)s, role),
       disabled_at = case when %(disabled)s::boolean then coalesce(disabled_at, now())
                          when not %(disabled)s::boolean then null else disabled_at end
 where person_id = %(person_id)s::bigint
returning person_id;

-- name: delete_person
-- scope: system
-- Removes a person with its tokens and sessions.
delete from mainspring.people where person_id = %(person_id)s::bigint returning person_id;

-- name: has_people
-- scope: system
-- Whether there is anyone who could log in.
select exists (select from mainspring.people);
