-- Events: how one is checked and dispatched to the triggers that match it.

-- Refuses a field of an event.
create or replace function mainspring.refuse_event(field text, problem text)
returns void
language plpgsql
as $$
begin
    perform mainspring.refuse('MS060', field || ': ' || problem,
        jsonb_build_object('field', field, 'problem', problem));
end
$$;

-- Whether a name can be that of an event; Python has the same rule.
create or replace function mainspring.is_event_name(name text)
returns boolean
language sql immutable
return length(name) <= 200 and name ~ '^[A-Za-z0-9_:-]+(\.[A-Za-z0-9_:-]+)*$';

-- Whether a pattern means an event: its name, the first parts of one and .*, or * alone.
create or replace function mainspring.event_matches(pattern text, name text)
returns boolean
language sql immutable
return pattern in ('*', name)
       or (right(pattern, 2) = '.*' and starts_with(name, left(pattern, -1)));

-- Refuses an event with a wrong name, or a context that is no object, too large or too deep.
create or replace function mainspring.check_event(name text, context jsonb)
returns void
language plpgsql
as $$
declare
    size integer := octet_length(context::text);
begin
    if mainspring.is_event_name(name) is not true then
        perform mainspring.refuse_event('name', coalesce(quote_literal(left(name, 200)), 'null')
            || ' must consist of letters, digits and _ : -, in parts separated by dots '
            || '(at most 200 characters)');
    end if;
    if context is null or jsonb_typeof(context) <> 'object' then
        perform mainspring.refuse_event('context', 'must be a JSON object, not '
            || coalesce(jsonb_typeof(context), 'null'));
    end if;
    if size > mainspring.max_payload_bytes() then
        perform mainspring.refuse_event('context', format(
            'is %s bytes, the limit is %s; store the data elsewhere and pass a reference to it',
            size, mainspring.max_payload_bytes()));
    end if;
    -- What no other program could read would have no trigger that can be rendered.
    if jsonb_path_exists(context, 'strict $.**{201}') then
        perform mainspring.refuse_event('context', 'is nested more than 200 deep');
    end if;
    if mainspring.has_mark(context) then
        perform mainspring.refuse_event('context', mainspring.uses_mark());
    end if;
end
$$;

-- One dispatcher that waits for a key of another would wait in a circle if their batches held the
-- same keys in another order. So a batch first takes a lock for each of its keys, in one order.
create or replace function mainspring.lock_windows(keys text[])
returns void
language plpgsql
as $$
begin
    perform pg_advisory_xact_lock(lock_id)
       from (select distinct hashtextextended('mainspring.' || key, 0) as lock_id
               from unnest(keys) as key where key is not null
              order by lock_id) as sorted;
end
$$;

-- The dedupe key of a trigger's jobs within its window: one for each payload.
create or replace function mainspring.window_key(
    trigger_id bigint, tenant text, definition text, payload text
)
returns text
language plpgsql stable
as $$
begin
    -- As jsonb, since the order in which a template names its fields makes no difference.
    return 'trigger:' || trigger_id || ':'
           || mainspring.content_digest(tenant, definition, payload::jsonb);
end
$$;

-- Carries out what was rendered for events that the caller has locked: a job or a failure for each
-- plan, each on its own, and the events are handled. In the order of the plans.
create or replace function mainspring.dispatch(event_ids bigint[], plans jsonb)
returns setof mainspring.dispatches
language plpgsql
as $$
#variable_conflict use_column
declare
    plan record;
    made record;
    result mainspring.dispatches;
begin
    perform mainspring.lock_windows(array(
        select mainspring.window_key(windowed.trigger_id, windowed.tenant_id,
                                     windowed.definition, windowed.payload)
          from jsonb_to_recordset(plans) as windowed (
               trigger_id bigint, tenant_id text, definition text, payload text,
               dedupe_window text)
         where windowed.dedupe_window is not null and windowed.payload is not null));
    for plan in
        select * from jsonb_to_recordset(plans) as planned (
            event_id bigint, replay integer, tenant_id text, correlation_id text,
            trigger_id bigint, trigger_name text, definition text, queue text, priority integer,
            dedupe_window text, payload text, error text)
    loop
        continue when exists (select from mainspring.dispatches as known
                               where known.event_id = plan.event_id
                                 and known.trigger_id = plan.trigger_id
                                 and known.replay = plan.replay);
        select plan.event_id, plan.trigger_id, null, now(), plan.replay, 'failed',
               plan.trigger_name, plan.error
          into result;
        if plan.error is null then
            begin
                perform set_config('mainspring.creator', 'trigger:' || plan.trigger_name, true);
                select * into made from mainspring.enqueue_job(
                    plan.definition, plan.payload::jsonb, plan.tenant_id, plan.queue,
                    plan.priority, dedupe_key => case when plan.dedupe_window is not null then
                        mainspring.window_key(plan.trigger_id, plan.tenant_id, plan.definition,
                                              plan.payload) end,
                    dedupe_window => plan.dedupe_window::interval, on_duplicate => 'existing',
                    correlation_id => plan.correlation_id);
                result.job_id := made.job_id;
                result.outcome := case when made.is_new then 'enqueued' else 'duplicate' end;
            exception when others then
                -- What another try or an operator may mend is no fault of the event. Python has
                -- the same rule (domain/sqlstates.py).
                if sqlstate ~ '^(08|40|53|57|58|0A|25|26|28|3D|3F|42)' or sqlstate = '55P03' then
                    raise;
                end if;
                result.error := left(sqlerrm, 2000);
            end;
        end if;
        insert into mainspring.dispatches values (result.*);
        return next result;
    end loop;
    update mainspring.events as event set handled_at = now(), replay_trigger = null
     where event.event_id = any (event_ids);
end
$$;
