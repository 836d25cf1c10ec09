-- name: create_trigger
-- scope: tenant
-- Adds a trigger from a JSON object with the names of the columns; no row if the name is taken.
insert into mainspring.triggers (
    tenant_id, name, event, definition, payload, unknown_paths, dedupe_window, queue, priority,
    is_enabled)
select %(tenant_id)s, name, event, definition, payload, unknown_paths, dedupe_window, queue,
       priority, is_enabled
  from jsonb_populate_record(null::mainspring.triggers, %(facts)s::jsonb)
on conflict on constraint triggers_name_is_unique do nothing
returning trigger_id;

-- name: update_trigger
-- scope: tenant
-- Changes the given columns of a trigger; no row if there is none.
update mainspring.triggers as t
   set event = changed.event, definition = changed.definition, payload = changed.payload,
       unknown_paths = changed.unknown_paths, dedupe_window = changed.dedupe_window,
       queue = changed.queue, priority = changed.priority, is_enabled = changed.is_enabled
  from mainspring.triggers as known,
       lateral jsonb_populate_record(known, %(changes)s::jsonb) as changed
 where t.tenant_id = %(tenant_id)s and t.name = %(name)s and known.trigger_id = t.trigger_id
returning t.trigger_id;

-- name: delete_trigger
-- scope: tenant
-- Removes a trigger; what came of it stays with the events.
delete from mainspring.triggers where tenant_id = %(tenant_id)s and name = %(name)s
returning trigger_id;

-- name: get_trigger
-- scope: tenant
-- One trigger, as JSON text that every driver carries alike; its window is in seconds.
select (to_jsonb(trigger) || jsonb_build_object(
           'dedupe_window', extract(epoch from trigger.dedupe_window)))::text
  from mainspring.trigger_status as trigger
 where trigger.tenant_id = %(tenant_id)s and trigger.name = %(name)s;

-- name: list_triggers
-- scope: tenant
-- Triggers by name, of all tenants if none is given, after a name if given, with the filters that
-- are given.
select (to_jsonb(trigger) || jsonb_build_object(
           'dedupe_window', extract(epoch from trigger.dedupe_window)))::text
  from mainspring.trigger_status as trigger
 where (%(tenant_id)s::text is null or trigger.tenant_id = %(tenant_id)s::text)
   and (trigger.name, trigger.tenant_id) > (coalesce(%(after)s::text, ''), coalesce(
           %(after_tenant)s::text, %(tenant_id)s::text, ''))
   and (%(enabled)s::boolean is null or trigger.is_enabled = %(enabled)s::boolean)
   and (%(events)s::text[] is null or exists (
           select from unnest(%(events)s::text[]) as event
            where mainspring.event_matches(trigger.event, event)))
   and (%(definitions)s::text[] is null or trigger.definition = any (%(definitions)s::text[]))
 order by trigger.name, trigger.tenant_id limit %(limit)s;

-- name: trigger_names
-- scope: tenant
-- The names of triggers, to suggest one that was meant.
select name from mainspring.triggers where tenant_id = %(tenant_id)s order by name limit 1000;

-- name: matching_triggers
-- scope: system
-- The enabled triggers of tenants for patterns, the oldest of each, with the schemas that their
-- payloads must fit. Texts, so that one which a program cannot read does not keep it from reading
-- the others.
select trigger.trigger_id, trigger.tenant_id, trigger.name, trigger.event, trigger.definition,
       trigger.payload::text as payload, trigger.unknown_paths,
       trigger.dedupe_window::text as dedupe_window, trigger.queue, trigger.priority,
       defined.version, defined.arg_schema::text as arg_schema,
       mainspring.other_schemas(defined)::text as other_schemas
  from unnest(%(tenants)s::text[], %(patterns)s::text[]) as wanted (tenant_id, event)
 cross join lateral (
    select * from mainspring.triggers as each
     where each.tenant_id = wanted.tenant_id and each.event = wanted.event and each.is_enabled
     order by each.trigger_id limit %(most)s::integer) as trigger
  left join mainspring.definitions as defined on defined.key = trigger.definition
 order by trigger.trigger_id;
