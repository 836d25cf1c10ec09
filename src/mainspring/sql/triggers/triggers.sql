-- Triggers on mainspring.triggers, the rules that turn events into jobs.

-- Refuses a trigger that could never work.
create or replace function mainspring.prepare_trigger()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    wrong text[] := mainspring.wrong_trigger(new);
begin
    if wrong is not null then
        perform mainspring.refuse_trigger(wrong[1], wrong[2]);
    end if;
    if tg_op = 'INSERT' then
        perform mainspring.ensure_known_tenant(new.tenant_id);
    end if;
    if tg_op = 'INSERT' or new.definition <> old.definition then
        perform mainspring.warn_of_definition(new.definition, 'trigger');
    end if;
    -- An older one that is larger can still be disabled.
    if octet_length(new.payload::text) > 65536
       and (tg_op = 'INSERT' or new.payload is distinct from old.payload) then
        perform mainspring.refuse_trigger('payload', format(
            'is %s bytes, the limit is 65536; put large values into the event',
            octet_length(new.payload::text)));
    end if;
    if tg_op = 'INSERT'
       or (new.definition, new.payload) is distinct from (old.definition, old.payload) then
        perform mainspring.check_saved_payload(new.definition, new.payload);
    end if;
    if tg_op = 'UPDATE' and new is distinct from old then
        new.updated_at := now();
    end if;
    return new;
end
$$;

create or replace trigger triggers_prepare before insert or update on mainspring.triggers
    for each row execute function mainspring.prepare_trigger();
