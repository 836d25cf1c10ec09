-- Schedules: of a SQL function, and running one now.

-- Up to migration 0018 it had neither max_attempts nor timeout; beside this one, no call would say
-- which of the two is meant.
drop function if exists mainspring.schedule_function(
    text, text, text, text, jsonb, text, text, text, boolean, text);

-- Runs as the caller, who needs the right to write definitions and schedules: the function runs
-- under a role of theirs. A name without a schema is looked for in the search path of the caller.
create or replace function mainspring.schedule_function(
    name text, function text, cron text, zone text default null, payload jsonb default '{}',
    description text default null, role text default null, tenant text default 'default',
    enabled boolean default null, on_conflict text default 'update',
    max_attempts integer default null, timeout interval default null
)
returns bigint
language plpgsql
as $$
#variable_conflict use_column
declare
    target text := (
        select format('%I.%I', n.nspname, p.proname)
          from pg_catalog.pg_proc as p join pg_catalog.pg_namespace as n on n.oid = p.pronamespace
         where p.proname = schedule_function.function and pg_catalog.pg_function_is_visible(p.oid)
         limit 1);
    made bigint;
begin
    if on_conflict is null or on_conflict not in ('update', 'nothing') then
        raise exception using errcode = 'MS003', detail = '{"option": "on_conflict"}',
            message = 'on_conflict must be update or nothing';
    end if;
    perform mainspring.check_function_name(schedule_function.function, target);
    target := coalesce(target, schedule_function.function);
    select schedule_id into made from mainspring.schedules as known
     where known.tenant_id = tenant and known.name = schedule_function.name;
    if made is not null and on_conflict = 'nothing' then
        return made;
    end if;
    if not exists (select from mainspring.definitions as known
                    where known.key = target and known.kind = 'sql'
                      and known.spec ->> 'function' = target
                      and known.spec ->> 'role' = coalesce(schedule_function.role,
                                                           known.spec ->> 'role')) then
        insert into mainspring.definitions as known (key, kind, spec, description)
        values (target, 'sql', jsonb_strip_nulls(jsonb_build_object(
                    'function', target, 'role', schedule_function.role)),
                coalesce(schedule_function.description, ''))
        on conflict (key) do update set spec = known.spec || excluded.spec;
    end if;
    update mainspring.definitions as known set timeout = schedule_function.timeout
     where known.key = target and known.timeout <> schedule_function.timeout;
    insert into mainspring.schedules as known (
        tenant_id, name, definition, cron, zone, payload, description, max_attempts, enabled)
    values (tenant, schedule_function.name, target, schedule_function.cron, schedule_function.zone,
            schedule_function.payload, coalesce(schedule_function.description, ''),
            schedule_function.max_attempts, coalesce(schedule_function.enabled, true))
    on conflict (tenant_id, name) do update
       set definition = excluded.definition, cron = excluded.cron, every = null, at = null,
           zone = coalesce(schedule_function.zone, known.zone), payload = excluded.payload,
           description = coalesce(schedule_function.description, known.description),
           max_attempts = coalesce(schedule_function.max_attempts, known.max_attempts),
           enabled = coalesce(schedule_function.enabled, known.enabled)
    returning schedule_id into made;
    return made;
end
$$;
comment on function mainspring.schedule_function is
    'Runs a SQL function by cron: stores its definition and the schedule, and returns its id.';

-- Fires a schedule at once; what has to be evaluated first waits for a scheduler. Without a slot it
-- is an extra one, of this instant.
create or replace function mainspring.trigger_scheduled_job(
    name text, tenant text default 'default', force boolean default false,
    slot timestamptz default null
)
returns jsonb
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    schedule mainspring.schedules;
    started record;
    slot_at timestamptz;
begin
    perform mainspring.ensure_visible(tenant);
    schedule := mainspring.find_schedule(tenant, name);
    perform from mainspring.clocks as c where c.schedule_id = schedule.schedule_id for update;
    slot_at := mainspring.free_slot(schedule, slot);
    if mainspring.needs_look(schedule, force) then
        select 'pending'::mainspring.slot_outcome as outcome, null::bigint as job_id,
               'waiting for a scheduler' as reason into started;
        perform mainspring.notify_schedule();
    else
        select * into started from mainspring.start_slot(schedule, slot_at, 'manual', 0);
    end if;
    if started.outcome = 'failed' then
        perform mainspring.refuse('MS010', started.reason,
                                  mainspring.unknown_facts(schedule.definition));
    end if;
    insert into mainspring.slots
        (schedule_id, scheduled_for, fired_at, outcome, trigger, job_id, reason, is_forced)
    values (schedule.schedule_id, slot_at,
            case when slot is null then slot_at else clock_timestamp() end,
            started.outcome, 'manual', started.job_id, started.reason, force)
    on conflict (schedule_id, scheduled_for) do update
       set fired_at = excluded.fired_at, outcome = excluded.outcome, trigger = 'manual',
           job_id = excluded.job_id, reason = excluded.reason, is_forced = excluded.is_forced;
    update mainspring.clocks as c
       set revision = c.revision + 1, checking_until = null, checking_by = null,
           last_enqueued_at = case when started.outcome = 'enqueued' then clock_timestamp()
                                   else c.last_enqueued_at end,
           last_skipped_at = case when started.outcome = 'skipped' then clock_timestamp()
                                  else c.last_skipped_at end,
           enqueued_count = c.enqueued_count + (started.outcome = 'enqueued')::integer,
           skipped_count = c.skipped_count + (started.outcome = 'skipped')::integer
     where c.schedule_id = schedule.schedule_id;
    if mainspring.creator() is not null then
        perform mainspring.note_action(
            schedule.tenant_id, 'trigger', 'schedule', schedule.name, null, null,
            jsonb_build_object('slot_at', slot_at, 'force', force));
    end if;
    return jsonb_build_object(
        'success', started.outcome in ('enqueued', 'pending'), 'job_name', schedule.name,
        'outcome', started.outcome, 'slot_at', slot_at, 'job_id', started.job_id,
        'message', coalesce(started.reason, 'job ' || started.job_id || ' is enqueued'));
end
$$;
comment on function mainspring.trigger_scheduled_job is
    'Fires a schedule now, in a slot of its own or in the given past one, which must have no job;'
    ' checks its condition unless forced.';
