-- Triggers on mainspring.limits.

-- What a change of a limit has to do besides: tell the workers, and write it down.
create or replace function mainspring.note_limit()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    unsaid text[] := array['created_at', 'updated_at'];
    was jsonb := case when tg_op <> 'INSERT' then to_jsonb(old) - unsaid else '{}' end;
    is_now jsonb := case when tg_op <> 'DELETE' then to_jsonb(new) - unsaid else '{}' end;
begin
    insert into mainspring.audit (tenant_id, actor, action, noun, subject, before, after)
    values ('', mainspring.actor(),
            case tg_op when 'INSERT' then 'create' when 'DELETE' then 'delete' else 'update' end,
            'limit', coalesce(new.name, old.name),
            mainspring.differing(was, is_now), mainspring.differing(is_now, was));
    perform mainspring.notify_limits_changed();
    return null;
end
$$;

create or replace trigger limits_note after insert or update or delete on mainspring.limits
    for each row execute function mainspring.note_limit();
