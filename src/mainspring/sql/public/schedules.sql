-- Schedules: running one now.

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
    if schedule.launcher is not null or schedule.is_templated
       or (num_nonnulls(schedule.condition_sql, schedule.gauge_sql) > 0 and not force) then
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
           last_enqueued_at = case when started.outcome = 'enqueued' then now()
                                   else c.last_enqueued_at end,
           last_skipped_at = case when started.outcome = 'skipped' then now()
                                  else c.last_skipped_at end,
           enqueued_count = c.enqueued_count + (started.outcome = 'enqueued')::integer,
           skipped_count = c.skipped_count + (started.outcome = 'skipped')::integer
     where c.schedule_id = schedule.schedule_id;
    return jsonb_build_object(
        'success', started.outcome in ('enqueued', 'pending'), 'job_name', schedule.name,
        'outcome', started.outcome, 'slot_at', slot_at, 'job_id', started.job_id,
        'message', coalesce(started.reason, 'job ' || started.job_id || ' is enqueued'));
end
$$;
comment on function mainspring.trigger_scheduled_job is
    'Fires a schedule now, in a slot of its own or in the given past one, which must have no job;'
    ' checks its condition unless forced.';
