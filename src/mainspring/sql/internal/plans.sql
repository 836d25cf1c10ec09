-- Plans: what the scheduler decided for a schedule, carried out in one transaction.

-- The schedule that a plan is for, locked with its clock; null if it was fired or changed by
-- someone else since it was read, or is being changed right now. A plan that waits waits for that
-- change.
create or replace function mainspring.lock_for_plan(plan jsonb)
returns mainspring.schedules
language plpgsql
as $$
#variable_conflict use_column
declare
    schedule mainspring.schedules;
begin
    if plan ->> 'waits' = 'true' then
        perform from mainspring.schedules as s
          where s.schedule_id = (plan ->> 'schedule_id')::bigint for update;
        perform from mainspring.clocks as c
          where c.schedule_id = (plan ->> 'schedule_id')::bigint for update;
    end if;
    select * into schedule from mainspring.schedules as s
     where s.schedule_id = (plan ->> 'schedule_id')::bigint and s.enabled
       for update skip locked;
    perform from mainspring.clocks as c
      where c.schedule_id = schedule.schedule_id and c.revision = (plan ->> 'revision')::bigint
        for update skip locked;
    return case when found then schedule end;
end
$$;

-- Writes the slots of a plan and enqueues their jobs, in the order of time. The outcome of a slot
-- that a backfill or a person has claimed before is null.
create or replace function mainspring.write_slots(schedule mainspring.schedules, plan jsonb)
returns table (
    slot_at timestamptz, outcome mainspring.slot_outcome, reason text, lateness interval
)
language plpgsql
as $$
#variable_conflict use_column
declare
    planned record;
    started record;
begin
    for planned in
        select * from jsonb_to_recordset(plan -> 'slots') as slot (
            at timestamptz, outcome mainspring.slot_outcome, source mainspring.slot_trigger,
            missed integer, reason text, payload jsonb, job_id bigint, gauge_value float)
         order by slot.at
    loop
        select planned.outcome, null::bigint as job_id, planned.reason into started;
        if exists (select from mainspring.slots as slot
                    where slot.schedule_id = schedule.schedule_id
                      and slot.scheduled_for = planned.at) then
            started.outcome := null;
        elsif planned.outcome = 'enqueued' then
            select * into started from mainspring.start_slot(
                schedule, planned.at, planned.source, planned.missed,
                coalesce(planned.payload, plan -> 'payload'), plan ->> 'definition',
                coalesce((plan ->> 'in_line')::boolean, false), planned.job_id);
        end if;
        if started.outcome is not null then
            insert into mainspring.slots
                (schedule_id, scheduled_for, outcome, trigger, job_id, missed, reason, gauge_value)
            values (schedule.schedule_id, planned.at, started.outcome, planned.source,
                    started.job_id, planned.missed, started.reason, planned.gauge_value);
        end if;
        slot_at := planned.at;
        outcome := started.outcome;
        reason := started.reason;
        lateness := case when outcome in ('enqueued', 'skipped') then greatest(
            '0', now() - mainspring.run_instant(schedule.schedule_id, planned.at, schedule.jitter))
            end;
        return next;
    end loop;
end
$$;

-- Carries out what the scheduler decided for one schedule: writes its slots, enqueues their
-- jobs, and moves the schedule on or, after a failure, back. Answers what came of the newest
-- slot; null if lock_for_plan gives no schedule, and then nothing is written.
create or replace function mainspring.apply_plan(plan jsonb)
returns mainspring.slot_outcome
language plpgsql
as $$
#variable_conflict use_column
declare
    schedule mainspring.schedules := mainspring.lock_for_plan(plan);
    next_slot timestamptz := (plan ->> 'next_slot_at')::timestamptz;
    failures integer;
    fired record;
begin
    if schedule.schedule_id is null then
        return null;
    end if;
    select count(*) filter (where slot.outcome = 'enqueued') as enqueued,
           count(*) filter (where slot.outcome = 'skipped') as skipped,
           count(*) filter (where slot.outcome in ('missed', 'coalesced')) as missed,
           coalesce(sum(slot.lateness), '0') as late, max(slot.lateness) as latest,
           (array_agg(slot.outcome order by slot.slot_at desc)
                filter (where slot.outcome is not null))[1] as outcome,
           coalesce((array_agg(slot.reason order by slot.slot_at desc)
                         filter (where slot.outcome = 'failed'))[1], plan ->> 'failure') as failure,
           max(slot.slot_at) as newest_at
      into fired
      from mainspring.write_slots(schedule, plan) as slot;
    select c.retry_count + 1 into failures from mainspring.clocks as c
     where c.schedule_id = schedule.schedule_id;
    update mainspring.clocks as c
       set revision = c.revision + 1, checking_until = null, checking_by = null, retry_count = 0,
           next_slot_at = next_slot,
           schema_key = coalesce((plan ->> 'schema_key')::uuid, c.schema_key),
           next_run_at = mainspring.run_instant(c.schedule_id, next_slot, schedule.jitter),
           last_slot_at = coalesce(fired.newest_at, c.last_slot_at),
           last_enqueued_at = case when fired.enqueued > 0 then now() else c.last_enqueued_at end,
           last_skipped_at = case when fired.skipped > 0 then now() else c.last_skipped_at end,
           enqueued_count = c.enqueued_count + fired.enqueued,
           skipped_count = c.skipped_count + fired.skipped,
           missed_count = c.missed_count + fired.missed,
           lateness_total = c.lateness_total + fired.late,
           lateness_worst = greatest(c.lateness_worst, fired.latest),
           gauge_is_high = coalesce((plan ->> 'gauge_is_high')::boolean, c.gauge_is_high),
           gauge_value = coalesce((plan ->> 'gauge_value')::float, c.gauge_value),
           gauge_read_at = case when plan ? 'gauge_value' then now() else c.gauge_read_at end
     where c.schedule_id = schedule.schedule_id;
    if fired.failure is not null then
        perform mainspring.note_failure(schedule, failures, fired.failure);
    end if;
    if fired.failure is not null and plan ->> 'is_permanent' = 'true' then
        -- The slot is not tried again; the schedule goes on with its next one.
        update mainspring.clocks as c
           set next_slot_at = next_slot,
               next_run_at = mainspring.run_instant(c.schedule_id, next_slot, schedule.jitter)
         where c.schedule_id = schedule.schedule_id;
    end if;
    return coalesce(fired.outcome, 'coalesced');
end
$$;

-- A launch that failed: another try in 2, 4, 8 ... 60 minutes, and none after max_retries.
create or replace function mainspring.note_failure(
    schedule mainspring.schedules, failures integer, problem text
)
returns void
language plpgsql
as $$
declare
    again_at timestamptz := now() + least(2 ^ least(failures, 6), 60) * interval '1 minute';
begin
    update mainspring.clocks as c
       set retry_count = failures, failed_count = c.failed_count + 1, last_failed_at = now(),
           last_error = left(problem, 2000), next_slot_at = again_at, next_run_at = again_at
     where c.schedule_id = schedule.schedule_id;
    if failures >= schedule.max_retries then
        update mainspring.schedules as s
           set enabled = false,
               disabled_reason = case failures when 1 then 'failed once'
                                     else 'failed ' || failures || ' times in a row' end
                                 || '; last error: ' || left(problem, 1000)
         where s.schedule_id = schedule.schedule_id;
    end if;
end
$$;

-- Why the newest of these slots that failed did so; null if none has. Volatile, so that it sees
-- what a plan has just written.
create or replace function mainspring.failure_of_slots(schedule_id bigint, slots timestamptz[])
returns text
language plpgsql volatile
as $$
#variable_conflict use_column
begin
    return (
        select slot.reason from mainspring.slots as slot
         where slot.schedule_id = failure_of_slots.schedule_id and slot.outcome = 'failed'
           and slot.scheduled_for = any (failure_of_slots.slots)
         order by slot.scheduled_for desc limit 1);
end
$$;

-- The slots of a schedule, of those given, that this transaction has fired, with their jobs, as log
-- lines name them; null if there are none. Volatile, so that it sees what a plan has just written.
create or replace function mainspring.fired_slots(schedule_id bigint, slots timestamptz[])
returns jsonb
language plpgsql volatile
as $$
#variable_conflict use_column
begin
    return (
        select jsonb_build_object(
                   'tenant', schedule.tenant_id, 'definition', schedule.definition,
                   'schedule', schedule.name,
                   'slots', jsonb_agg(slot.scheduled_for order by slot.scheduled_for),
                   'job_ids', jsonb_agg(slot.job_id order by slot.scheduled_for))
          from mainspring.slots as slot
          join mainspring.schedules as schedule using (schedule_id)
         where slot.schedule_id = fired_slots.schedule_id
           and slot.scheduled_for = any (fired_slots.slots)
           and slot.outcome = 'enqueued' and slot.fired_at = now()
         group by schedule.schedule_id);
end
$$;

-- Carries out what the scheduler decided for a slot that a person asked for. Answers null if
-- it was decided before.
create or replace function mainspring.apply_trigger(plan jsonb)
returns mainspring.slot_outcome
language plpgsql
as $$
#variable_conflict use_column
declare
    schedule mainspring.schedules;
    decided record;
    slot timestamptz := (plan ->> 'slot_at')::timestamptz;
begin
    select * into schedule from mainspring.schedules as s
     where s.schedule_id = (plan ->> 'schedule_id')::bigint for update;
    perform from mainspring.clocks as c where c.schedule_id = schedule.schedule_id for update;
    if not found or not exists (
        select from mainspring.slots as s where s.schedule_id = schedule.schedule_id
           and s.scheduled_for = slot and s.outcome = 'pending') then
        return null;
    end if;
    select (plan ->> 'outcome')::mainspring.slot_outcome as outcome, null::bigint as job_id,
           plan ->> 'reason' as reason into decided;
    if decided.outcome = 'enqueued' then
        select * into decided from mainspring.start_slot(
            schedule, slot, 'manual', 0, plan -> 'payload', plan ->> 'definition',
            reserved => (plan ->> 'job_id')::bigint);
    end if;
    update mainspring.slots as s
       set outcome = decided.outcome, job_id = decided.job_id, reason = decided.reason,
           gauge_value = (plan ->> 'gauge_value')::float,
           fired_at = now(), checking_until = null, checking_by = null
     where s.schedule_id = schedule.schedule_id and s.scheduled_for = slot;
    update mainspring.clocks as c
       set revision = c.revision + 1, checking_until = null, checking_by = null,
           gauge_is_high = coalesce((plan ->> 'gauge_is_high')::boolean, c.gauge_is_high),
           gauge_value = coalesce((plan ->> 'gauge_value')::float, c.gauge_value),
           gauge_read_at = case when plan ? 'gauge_value' then now() else c.gauge_read_at end,
           last_enqueued_at = case when decided.outcome = 'enqueued' then now()
                                   else c.last_enqueued_at end,
           last_skipped_at = case when decided.outcome = 'skipped' then now()
                                  else c.last_skipped_at end,
           last_failed_at = case when decided.outcome = 'failed' then now()
                                 else c.last_failed_at end,
           last_error = case when decided.outcome = 'failed' then left(decided.reason, 2000)
                             else c.last_error end,
           enqueued_count = c.enqueued_count + (decided.outcome = 'enqueued')::integer,
           skipped_count = c.skipped_count + (decided.outcome = 'skipped')::integer,
           failed_count = c.failed_count + (decided.outcome = 'failed')::integer
     where c.schedule_id = schedule.schedule_id;
    return decided.outcome;
end
$$;
