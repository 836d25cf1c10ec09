-- Schedules: what follows from the columns of one.

-- When the job of a slot is due: a fixed part of the jitter after the slot, chosen by both.
create or replace function mainspring.run_instant(
    schedule_id bigint, slot timestamptz, jitter interval
)
returns timestamptz
-- Stable, as what it adds up is; only so is it a part of the statement that calls it.
language sql stable
return case when jitter = '0' then slot
            else slot + jitter * ((hashint8extended(schedule_id, extract(epoch from slot)::bigint)
                                   & 65535) / 65536.0) end;

-- The jobs of a schedule that count as its runs: live, and not closed as timed out.
create or replace function mainspring.live_runs(schedule_id bigint)
returns bigint
language sql stable
return (select count(*) from mainspring.jobs as job
         where job.schedule_id = live_runs.schedule_id and job.slot_at is not null);

-- The instant that a fixed interval counts from; null for other timings.
create or replace function mainspring.counted_from(schedule mainspring.schedules)
returns timestamptz
language sql immutable
return case when schedule.cron ~* '^\s*@every' or schedule.every is not null
            then schedule.anchor_at end;

-- What `H` in a cron expression is chosen by, if there is one.
create or replace function mainspring.spread_by(schedule mainspring.schedules)
returns text
language sql immutable
return case when schedule.cron ~* '(^|[\s,])h' then schedule.name end;

-- A hash of all that decides which slots a schedule has and what becomes of them.
create or replace function mainspring.plan_key(schedule mainspring.schedules)
returns uuid
language plpgsql immutable
as $$
declare
    facts record := row(
        schedule.cron, schedule.every, schedule.at, schedule.zone, schedule.dst_gap,
        schedule.dst_fold, schedule.calendar, schedule.starts_at, schedule.ends_at,
        schedule.paused_until, schedule.misfire_grace, schedule.catch_up, schedule.catch_up_limit,
        schedule.catch_up_max_age, schedule.definition,
        mainspring.counted_from(schedule), mainspring.spread_by(schedule));
begin
    return (lpad(to_hex(hash_record_extended(facts, 0)), 16, '0')
            || lpad(to_hex(hash_record_extended(facts, 1)), 16, '0'))::uuid;
end
$$;

-- Whether a slot can be fired by one statement: nothing decides about its job but its columns.
create or replace function mainspring.is_plain(schedule mainspring.schedules)
returns boolean
language sql stable
return num_nonnulls(schedule.launcher, schedule.condition_sql, schedule.gauge_sql,
                    schedule.delivery) = 0
       and not schedule.is_templated
       and not exists (select from mainspring.tenants as t
                        where t.tenant_id = schedule.tenant_id and t.max_running is not null);

-- An instant that a person gave is a slot of its own; with epoch the next one is computed.
create or replace function mainspring.given_instant(schedule mainspring.schedules)
returns timestamptz
language plpgsql
as $$
begin
    if schedule.run_at is not null and not schedule.enabled then
        perform mainspring.refuse_schedule('run_at', 'the schedule is disabled; enable it first');
    end if;
    if schedule.run_at > '9999-12-30T00:00:00Z' then
        perform mainspring.refuse_schedule('run_at', 'must be in the years 1 to 9999');
    end if;
    return case when schedule.run_at is not null then greatest(schedule.run_at, 'epoch') end;
end
$$;

-- What a person decides about a schedule, without what the scheduler keeps there.
create or replace function mainspring.schedule_facts(schedule mainspring.schedules)
returns jsonb
language sql stable
-- What one session stored, another compares, and their settings may differ.
set timezone = 'UTC'
set intervalstyle = 'postgres'
return (select jsonb_object_agg(key, value) from jsonb_each(to_jsonb(schedule)
    - array['schedule_id', 'run_at', 'created_at', 'updated_at', 'anchor_at', 'disabled_reason',
            'declared', 'origin', 'is_templated']) where value <> 'null');
