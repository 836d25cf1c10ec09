-- name: create_schedule
-- scope: tenant
-- Adds a schedule; its tenant is in the spec.
select mainspring.create_schedule(
    %(spec)s::jsonb || jsonb_build_object('tenant_id', %(tenant_id)s::text));

-- name: update_schedule
-- scope: tenant
-- Changes the given parts of a schedule.
select mainspring.update_schedule(%(tenant_id)s, %(name)s, %(changes)s::jsonb);

-- name: declare_schedules
-- scope: system
-- Stores what code declares; says created, changed, unchanged or kept for each.
select spec ->> 'name', mainspring.declare_schedule(spec - 'overwrite',
                                                    (spec ->> 'overwrite')::boolean)
  from jsonb_array_elements(%(specs)s::jsonb) as spec;

-- name: delete_schedule
-- scope: tenant
-- Removes a schedule with its slots; its jobs stay.
delete from mainspring.schedules where tenant_id = %(tenant_id)s and name = %(name)s
returning schedule_id;

-- name: get_schedule
-- scope: tenant
-- One schedule by its name, with its figures, as JSON text that every driver carries alike;
-- durations are in seconds.
select (to_jsonb(clock) || to_jsonb(schedule) || jsonb_build_object(
           'every', extract(epoch from schedule.every),
           'jitter', extract(epoch from schedule.jitter),
           'misfire_grace', extract(epoch from schedule.misfire_grace),
           'catch_up_max_age', extract(epoch from schedule.catch_up_max_age),
           'run_timeout', extract(epoch from schedule.run_timeout),
           'condition_timeout', extract(epoch from schedule.condition_timeout),
           'payload', mainspring.shown_payload(schedule.definition, schedule.payload),
           'figures', to_jsonb(status)))::text
  from mainspring.schedules as schedule
  join mainspring.clocks as clock using (schedule_id)
  join mainspring.schedule_status as status using (schedule_id)
 where schedule.tenant_id = %(tenant_id)s and schedule.name = %(name)s;

-- name: list_schedules
-- scope: tenant
-- Schedules by name, of all tenants if none is given, after a name if given, with the filters that
-- are given.
select schedule.*, mainspring.shown_payload(schedule.definition, schedule.payload) as payload,
       clock.next_run_at, clock.next_slot_at, clock.retry_count, clock.last_error,
       clock.last_slot_at, clock.last_enqueued_at, clock.last_skipped_at, clock.last_failed_at,
       clock.gauge_value, clock.gauge_is_high, clock.gauge_read_at, to_jsonb(status) as figures
  from (select * from mainspring.schedules
         where (%(tenant_id)s::text is null or tenant_id = %(tenant_id)s::text)
           and (name, tenant_id) > (coalesce(%(after)s::text, ''), coalesce(
                   %(after_tenant)s::text, %(tenant_id)s::text, ''))
           and (%(enabled)s::boolean is null or enabled = %(enabled)s::boolean)
           and (%(definitions)s::text[] is null or definition = any (%(definitions)s::text[]))
         order by name, tenant_id limit %(limit)s) as schedule
  join mainspring.clocks as clock using (schedule_id)
  join mainspring.schedule_status as status using (schedule_id)
 order by schedule.name, schedule.tenant_id;

-- name: schedule_names
-- scope: tenant
-- The names of schedules, to suggest one that was meant.
select name from mainspring.schedules where tenant_id = %(tenant_id)s order by name limit 1000;

-- name: trigger_schedule
-- scope: tenant
-- Fires a schedule now, in a slot of its own or in the given one.
select mainspring.trigger_scheduled_job(
    %(name)s, %(tenant_id)s, %(force)s::boolean, %(slot)s::timestamptz);
