-- Triggers that set updated_at.

-- Sets updated_at, which an update may leave out.
create or replace function mainspring.touch()
returns trigger
language plpgsql
as $$
begin
    new.updated_at := now();
    return new;
end
$$;

create or replace trigger limits_touch before update on mainspring.limits
    for each row execute function mainspring.touch();
create or replace trigger tenants_touch before update on mainspring.tenants
    for each row execute function mainspring.touch();
