-- Tokens that programs of the release before make: these name a person and know no id.

-- Finds the person of the name in the tenant of the token.
create or replace function mainspring.find_person()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    select person.person_id into new.person_id from mainspring.people as person
     where person.name = new.person and person.tenant_id is not distinct from new.tenant_id;
    return new;
end
$$;

create or replace trigger tokens_person before insert on mainspring.tokens
    for each row when (new.person is not null and new.person_id is null)
    execute function mainspring.find_person();
