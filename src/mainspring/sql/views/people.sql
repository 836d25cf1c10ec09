-- For programs of the release before, which know no ids of people.
create or replace view mainspring.person_status as
select name, role, tenant_id, disabled_at is not null as is_disabled, created_at, created_by,
       last_seen_at
  from mainspring.people
 where mainspring.is_visible(tenant_id);

create or replace view mainspring.known_people as
select person_id, name, role, tenant_id, disabled_at is not null as is_disabled, created_at,
       created_by, last_seen_at
  from mainspring.people
 where mainspring.is_visible(tenant_id);
