-- Triggers: what is checked when one is written, and what is told of a change.

create or replace function mainspring.refuse_trigger(field text, problem text)
returns void
language plpgsql
as $$
begin
    perform mainspring.refuse('MS061', field || ': ' || problem,
        jsonb_build_object('field', field, 'problem', problem));
end
$$;

-- A field and what is wrong with it, or null.
create or replace function mainspring.wrong_trigger(trigger mainspring.triggers)
returns text[]
language plpgsql immutable
as $$
begin
    return case
        when coalesce(trigger.name, '') !~ '\S' or length(trigger.name) > 200
        then '{name,must have 1 to 200 characters}'
        when trigger.event is distinct from '*'
             and mainspring.is_event_name(regexp_replace(trigger.event, '\.\*$', '')) is not true
        then array['event', coalesce(quote_literal(left(trigger.event, 200)), 'null') || ' must be the name of an '
                   || 'event, or its first parts and .* such as provider.*, or * for all']
        when coalesce(trigger.definition, '') = ''
        then '{definition,must name what is to run}'
        when mainspring.is_closed(trigger.definition)
        then array['definition', mainspring.why_closed(trigger.definition)]
        when jsonb_typeof(trigger.payload) is distinct from 'object'
        then '{payload,must be a JSON object}'
        when trigger.unknown_paths is null or trigger.unknown_paths not in ('refuse', 'null')
        then '{unknown_paths,must be refuse or null}'
        when trigger.dedupe_window <= '0' or trigger.dedupe_window > '1000 years'
        then '{dedupe_window,must be more than 0 and 1000 years at most}'
        when length(trigger.queue) not between 1 and 500
        then '{queue,must have 1 to 500 characters}'
        when trigger.priority not between 0 and 1000
        then '{priority,must be from 0 to 1000}'
    end;
end
$$;

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
    if tg_op = 'UPDATE' and new is distinct from old then
        new.updated_at := now();
    end if;
    return new;
end
$$;

create or replace trigger triggers_prepare before insert or update on mainspring.triggers
    for each row execute function mainspring.prepare_trigger();

-- What a person decides about a trigger.
create or replace function mainspring.trigger_facts(trigger mainspring.triggers)
returns jsonb
language sql stable
set timezone = 'UTC'
set intervalstyle = 'postgres'
return (select jsonb_object_agg(key, value) from jsonb_each(to_jsonb(trigger)
    - array['trigger_id', 'created_at', 'updated_at']) where value <> 'null');

create or replace function mainspring.audit_trigger()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    was jsonb := case when tg_op <> 'INSERT' then mainspring.trigger_facts(old) else '{}' end;
    is_now jsonb := case when tg_op <> 'DELETE' then mainspring.trigger_facts(new) else '{}' end;
begin
    if was = is_now then
        return null;
    end if;
    insert into mainspring.audit (tenant_id, actor, action, noun, subject, before, after)
    values (
        coalesce(new.tenant_id, old.tenant_id),
        mainspring.actor(),
        case when tg_op = 'INSERT' then 'create' when tg_op = 'DELETE' then 'delete'
             when new.is_enabled and not old.is_enabled then 'enable'
             when old.is_enabled and not new.is_enabled then 'disable' else 'update' end,
        'trigger', coalesce(new.name, old.name),
        mainspring.differing_shown(was, is_now), mainspring.differing_shown(is_now, was));
    return null;
end
$$;

create or replace trigger triggers_audit after insert or update or delete on mainspring.triggers
    for each row execute function mainspring.audit_trigger();
