-- name: emit_event
-- scope: tenant
-- Emits an event in the caller's transaction.
select mainspring.emit(
    name => %(name)s,
    context => %(context)s::jsonb,
    tenant => %(tenant_id)s,
    correlation_id => %(correlation_id)s);

-- name: replay_event
-- scope: tenant
-- Gives a handled event to its triggers once more, or to one of them.
select mainspring.replay_event(%(event_id)s::bigint, %(trigger)s, %(tenant_id)s);

-- name: get_event
-- scope: tenant
-- One event with what came of it, as JSON text that every driver carries alike.
select (to_jsonb(event) || jsonb_build_object('dispatches', array(
           select to_jsonb(dispatch) from mainspring.dispatch_status as dispatch
            where dispatch.event_id = event.event_id
            order by dispatch.replay, dispatch.trigger_name)))::text
  from mainspring.event_status as event
 where event.tenant_id = %(tenant_id)s and event.event_id = %(event_id)s::bigint;

-- name: list_events
-- scope: tenant
-- Events, newest first, before an event if given, with the filters that are given.
select (to_jsonb(event) || jsonb_build_object('dispatches', array(
           select to_jsonb(dispatch) from mainspring.dispatch_status as dispatch
            where dispatch.event_id = event.event_id
            order by dispatch.replay, dispatch.trigger_name)))::text
  from mainspring.event_status as event
 where event.tenant_id = %(tenant_id)s
   and (%(before)s::bigint is null or event.event_id < %(before)s::bigint)
   and (%(patterns)s::text[] is null or exists (
           select from unnest(%(patterns)s::text[]) as pattern
            where mainspring.event_matches(pattern, event.name)))
   and (%(handled)s::boolean is null
        or (event.handled_at is not null) = %(handled)s::boolean)
   and (%(failed)s::boolean is null or (event.failures > 0) = %(failed)s::boolean)
 order by event.event_id desc limit %(limit)s;

-- name: list_events_everywhere
-- scope: system
-- The same over all tenants.
select (to_jsonb(event) || jsonb_build_object('dispatches', array(
           select to_jsonb(dispatch) from mainspring.dispatch_status as dispatch
            where dispatch.event_id = event.event_id
            order by dispatch.replay, dispatch.trigger_name)))::text
  from mainspring.event_status as event
 where (%(before)s::bigint is null or event.event_id < %(before)s::bigint)
   and (%(patterns)s::text[] is null or exists (
           select from unnest(%(patterns)s::text[]) as pattern
            where mainspring.event_matches(pattern, event.name)))
   and (%(handled)s::boolean is null
        or (event.handled_at is not null) = %(handled)s::boolean)
   and (%(failed)s::boolean is null or (event.failures > 0) = %(failed)s::boolean)
 order by event.event_id desc limit %(limit)s;

-- name: next_events
-- scope: system
-- Events that wait and that nobody has locked. The tenants after the given one take an equal part
-- of the batch each, in events and in bytes, so that a burst of one delays no other. Contexts are
-- text: one that a program cannot read must not keep it from reading the others. Advisory locks, if
-- asked for, keep other dispatchers from rendering the same events; the row is locked to write.
with recursive waiting (tenant_id, number) as (
    (select tenant_id, 1 from mainspring.events
      where handled_at is null and tenant_id > %(after)s::text
      order by tenant_id limit 1)
    union all
    (select (select later.tenant_id from mainspring.events as later
              where later.handled_at is null and later.tenant_id > waiting.tenant_id
              order by later.tenant_id limit 1), waiting.number + 1
       from waiting where waiting.tenant_id is not null and waiting.number < %(limit)s::integer)
), tenant as materialized (
    select tenant_id, greatest(1, %(limit)s::integer / (count(*) over ())) as share,
           %(most_bytes)s::bigint / (count(*) over ()) as bytes
      from waiting where tenant_id is not null
), taken as materialized (
    select event.event_id, event.tenant_id, event.name, event.context::text as context,
           event.correlation_id, event.emitted_at, event.replays, event.replay_trigger,
           tenant.bytes
      from tenant,
           lateral (select * from mainspring.events as each
                     where each.tenant_id = tenant.tenant_id and each.handled_at is null
                       and (not %(holds)s::boolean
                            or pg_try_advisory_lock(hashtext('mainspring.events'),
                                                    (each.event_id %% 2147483647)::integer))
                     order by each.event_id limit tenant.share for update skip locked) as event
), sized as (
    select taken.*, sum(octet_length(taken.context)) over (
               partition by taken.tenant_id order by taken.event_id)
               - octet_length(taken.context) as bytes_before
      from taken
)
select event_id, tenant_id, name, context, correlation_id, emitted_at, replays, replay_trigger
  from sized where bytes_before = 0 or bytes_before < bytes
 order by event_id;

-- name: release_events
-- scope: system
-- Lets go of the events that next_events held.
select pg_advisory_unlock_all();

-- name: lock_events
-- scope: system
-- Locks those of some events that still wait, as they were read, and that nobody else has locked.
select event.event_id
  from unnest(%(event_ids)s::bigint[], %(replays)s::integer[]) as known (event_id, replays)
  join mainspring.events as event on event.event_id = known.event_id
 where event.handled_at is null and event.replays = known.replays
   for update of event skip locked;

-- name: dispatch
-- scope: system
-- Writes what was rendered for events, enqueues their jobs, and says that they are handled.
select trigger_name, event_id, outcome, job_id, error
  from mainspring.dispatch(%(event_ids)s::bigint[], %(plans)s::jsonb);

-- name: has_unhandled
-- scope: system
-- Whether events wait that another dispatcher may have locked.
select exists (select from mainspring.events where handled_at is null);
