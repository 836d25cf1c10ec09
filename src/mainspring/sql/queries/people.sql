-- name: create_person
-- scope: system
-- Adds a person; no row if the name is taken.
insert into mainspring.people (name, role, tenant_id, created_by)
values (%(name)s, %(role)s, %(tenant_id)s, mainspring.actor())
on conflict (name) do nothing
returning name;

-- name: get_person
-- scope: system
-- One person of a tenant, or of any.
select to_jsonb(p)::text from mainspring.person_status as p
 where p.name = %(name)s and (%(tenant_id)s::text is null or p.tenant_id = %(tenant_id)s::text);

-- name: list_people
-- scope: system
-- People by name, after a name if given.
select to_jsonb(p)::text from mainspring.person_status as p
 where p.name > coalesce(%(after)s::text, '')
   and (%(tenant_id)s::text is null or p.tenant_id = %(tenant_id)s::text)
 order by p.name limit %(limit)s;

-- name: person_names
-- scope: system
-- The names of people, to suggest one that was meant.
select name from mainspring.person_status
 where %(tenant_id)s::text is null or tenant_id = %(tenant_id)s::text
 order by name limit 1000;

-- name: change_person
-- scope: system
-- Changes what a person may do, from the next request on; no row if there is none.
update mainspring.people
   set role = coalesce(%(role)s, role),
       disabled_at = case when %(disabled)s::boolean then coalesce(disabled_at, now())
                          when not %(disabled)s::boolean then null else disabled_at end
 where name = %(name)s and (%(tenant_id)s::text is null or tenant_id = %(tenant_id)s::text)
returning name;

-- name: delete_person
-- scope: system
-- Removes a person with its tokens and sessions.
delete from mainspring.people
 where name = %(name)s and (%(tenant_id)s::text is null or tenant_id = %(tenant_id)s::text)
returning name;

-- name: has_people
-- scope: system
-- Whether there is anyone who could log in.
select exists (select from mainspring.people);
