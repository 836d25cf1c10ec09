-- Events: emitting one, and giving a handled one to its triggers again.

-- Emits an event; a dispatcher makes jobs of it.
create or replace function mainspring.emit(
    name text,
    context jsonb default '{}',
    tenant text default 'default',
    correlation_id text default null
)
returns bigint
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    emitted bigint;
begin
    perform mainspring.ensure_visible(tenant);
    perform mainspring.check_event(emit.name, emit.context);
    perform mainspring.check_text('correlation_id', emit.correlation_id);
    perform mainspring.ensure_tenant(emit.tenant);
    insert into mainspring.events (tenant_id, name, context, correlation_id, emitted_at)
    values (emit.tenant, emit.name, emit.context, emit.correlation_id, clock_timestamp())
    returning event_id into emitted;
    perform mainspring.notify_event();
    return emitted;
end
$$;
comment on function mainspring.emit is
    'Emits an event in the caller''s transaction and returns its id.';

-- Makes an event wait for its dispatcher once more.
create or replace function mainspring.replay_event(
    event_id bigint, trigger text default null, tenant text default 'default'
)
returns integer
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    known mainspring.events;
    chosen mainspring.triggers;
begin
    perform mainspring.ensure_visible(tenant);
    select * into known from mainspring.events as event
     where event.event_id = replay_event.event_id and event.tenant_id = replay_event.tenant
       for update;
    if not found then
        perform mainspring.refuse('MS062',
            'there is no event ' || coalesce(replay_event.event_id::text, 'null'),
            jsonb_build_object('event_id', replay_event.event_id));
    end if;
    if known.handled_at is null then
        perform mainspring.refuse('MS063', 'event ' || known.event_id
            || ' has not been handled yet; it will be as soon as a scheduler runs',
            jsonb_build_object('event_id', known.event_id));
    end if;
    if replay_event.trigger is not null then
        select * into chosen from mainspring.triggers as t
         where t.tenant_id = replay_event.tenant and t.name = replay_event.trigger;
        if not found then
            perform mainspring.refuse('MS064',
                'there is no trigger ' || quote_literal(replay_event.trigger),
                jsonb_build_object('name', replay_event.trigger));
        end if;
        if not mainspring.event_matches(chosen.event, known.name) then
            perform mainspring.refuse('MS003', format(
                'trigger %L is for %L, which does not match %L',
                chosen.name, chosen.event, known.name), '{"option": "trigger"}');
        end if;
        if not chosen.is_enabled then
            perform mainspring.refuse('MS003',
                format('trigger %L is disabled; enable it first', chosen.name),
                '{"option": "trigger"}');
        end if;
    end if;
    update mainspring.events as event
       set handled_at = null, replays = event.replays + 1, replay_trigger = replay_event.trigger
     where event.event_id = known.event_id;
    perform mainspring.notify_event();
    return known.replays + 1;
end
$$;
comment on function mainspring.replay_event is
    'Dispatches a handled event again, to one trigger or all; returns the replay''s number.';
