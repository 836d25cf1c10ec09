-- How interfaces write schedules: as a JSON object with the names of the columns.

-- Inserts a schedule, or updates the one whose id it has. A row of nulls if the name is taken.
create or replace function mainspring.store_schedule(schedule mainspring.schedules)
returns mainspring.schedules
language plpgsql
as $$
#variable_conflict use_column
declare
    stored mainspring.schedules;
begin
    if schedule.schedule_id is null then
        insert into mainspring.schedules (
            tenant_id, name, description, enabled, cron, every, at, zone, dst_gap, dst_fold,
            calendar, starts_at, ends_at, jitter, definition, payload, queue, priority,
            max_attempts, delivery, misfire_grace, catch_up, catch_up_limit, catch_up_max_age,
            overlap, max_running, run_timeout, launcher, condition_sql, gauge_sql, gauge_lower,
            gauge_upper, gauge_bounds, condition_role, condition_timeout, max_retries,
            paused_until, declared)
        values (
            schedule.tenant_id, schedule.name, schedule.description, schedule.enabled,
            schedule.cron, schedule.every, schedule.at, schedule.zone, schedule.dst_gap,
            schedule.dst_fold, schedule.calendar, schedule.starts_at, schedule.ends_at,
            schedule.jitter, schedule.definition, schedule.payload, schedule.queue,
            schedule.priority, schedule.max_attempts, schedule.delivery, schedule.misfire_grace,
            schedule.catch_up, schedule.catch_up_limit, schedule.catch_up_max_age,
            schedule.overlap, schedule.max_running, schedule.run_timeout, schedule.launcher,
            schedule.condition_sql, schedule.gauge_sql, schedule.gauge_lower,
            schedule.gauge_upper, schedule.gauge_bounds,
            coalesce(schedule.condition_role, current_user),
            schedule.condition_timeout, schedule.max_retries, schedule.paused_until,
            schedule.declared)
        on conflict on constraint schedules_name_is_unique do nothing
        returning * into stored;
        return stored;
    end if;
    update mainspring.schedules as s
       set name = schedule.name, description = schedule.description,
           enabled = schedule.enabled, cron = schedule.cron, every = schedule.every,
           at = schedule.at, zone = schedule.zone, dst_gap = schedule.dst_gap,
           dst_fold = schedule.dst_fold, calendar = schedule.calendar,
           starts_at = schedule.starts_at, ends_at = schedule.ends_at,
           jitter = schedule.jitter, definition = schedule.definition,
           payload = schedule.payload, queue = schedule.queue, priority = schedule.priority,
           max_attempts = schedule.max_attempts, delivery = schedule.delivery,
           misfire_grace = schedule.misfire_grace, catch_up = schedule.catch_up,
           catch_up_limit = schedule.catch_up_limit,
           catch_up_max_age = schedule.catch_up_max_age, overlap = schedule.overlap,
           max_running = schedule.max_running, run_timeout = schedule.run_timeout,
           launcher = schedule.launcher, condition_sql = schedule.condition_sql,
           gauge_sql = schedule.gauge_sql, gauge_lower = schedule.gauge_lower,
           gauge_upper = schedule.gauge_upper, gauge_bounds = schedule.gauge_bounds,
           condition_role = schedule.condition_role,
           condition_timeout = schedule.condition_timeout, max_retries = schedule.max_retries,
           paused_until = schedule.paused_until, disabled_reason = schedule.disabled_reason,
           declared = schedule.declared
     where s.schedule_id = schedule.schedule_id
    returning * into stored;
    return stored;
end
$$;

-- The schedule of a name, locked; refuses one that does not exist.
create or replace function mainspring.find_schedule(tenant text, name text)
returns mainspring.schedules
language plpgsql
as $$
#variable_conflict use_column
declare
    found_schedule mainspring.schedules;
begin
    select * into found_schedule from mainspring.schedules as s
     where s.tenant_id = find_schedule.tenant and s.name = find_schedule.name for update;
    if not found then
        perform mainspring.refuse('MS040', 'there is no schedule '
            || coalesce(quote_literal(find_schedule.name), 'null')
            || mainspring.did_you_mean(find_schedule.name, array(
                select quote_literal(s.name) from mainspring.schedules as s
                 where s.tenant_id = find_schedule.tenant)),
            jsonb_build_object('name', find_schedule.name));
    end if;
    return found_schedule;
end
$$;

-- Adds a schedule and returns its id; refuses a name that is taken.
create or replace function mainspring.create_schedule(spec jsonb)
returns bigint
language plpgsql
as $$
declare
    stored mainspring.schedules := mainspring.store_schedule(
        jsonb_populate_record(null::mainspring.schedules, spec));
begin
    if stored.schedule_id is null then
        perform mainspring.refuse('MS042',
            'schedule ' || quote_literal(spec ->> 'name') || ' already exists',
            jsonb_build_object('name', spec ->> 'name'));
    end if;
    return stored.schedule_id;
end
$$;

-- Changes the given columns of a schedule and returns its id.
create or replace function mainspring.update_schedule(tenant text, name text, changes jsonb)
returns bigint
language plpgsql
as $$
declare
    schedule mainspring.schedules := mainspring.find_schedule(tenant, name);
begin
    -- Who edits a payload has seen a redacted one.
    if changes ? 'payload' then
        changes := changes || jsonb_build_object('payload', mainspring.restored(
            changes -> 'payload', schedule.payload,
            (select defined.secret_paths from mainspring.definitions as defined
              where defined.key = schedule.definition)));
    end if;
    schedule := mainspring.store_schedule(jsonb_populate_record(schedule, changes));
    return schedule.schedule_id;
exception when unique_violation then
    perform mainspring.refuse('MS042',
        'schedule ' || quote_literal(changes ->> 'name') || ' already exists',
        jsonb_build_object('name', changes ->> 'name'));
end
$$;

-- The parts that only make sense together are one: a person who changed one changed them all.
create or replace function mainspring.part_of(field text)
returns text
language sql immutable
return case when field in ('cron', 'every', 'at', 'zone') then 'timing'
            when field in ('starts_at', 'ends_at') then 'period'
            when field in ('launcher', 'condition_sql', 'gauge_sql', 'gauge_lower', 'gauge_upper',
                           'gauge_bounds')
            then 'condition' else field end;

-- What a new declaration changes of a schedule: all that differs when it overwrites, otherwise
-- the parts which the code changed and no person has touched since the last declaration. Null
-- if nothing.
create or replace function mainspring.declared_changes(
    wanted jsonb, known jsonb, current jsonb, overwrite boolean
)
returns jsonb
language sql immutable
return (
    with field as (
        select name, mainspring.part_of(name) as part
          from jsonb_object_keys(wanted || known || current) as name
    ), touched as (
        select part from field where current -> name is distinct from known -> name
    )
    select jsonb_object_agg(name, wanted -> name) from field
     where wanted -> name is distinct from current -> name
       and (overwrite or (wanted -> name is distinct from known -> name
                          and part not in (select part from touched)))
       -- Whoever runs the condition is not the code's to forget.
       and (name <> 'condition_role' or wanted ? name));

-- Stores what code declares, and says what came of it.
create or replace function mainspring.declare_schedule(spec jsonb, overwrite boolean)
returns text
language plpgsql
as $$
declare
    wanted jsonb := mainspring.schedule_facts(
        jsonb_populate_record(null::mainspring.schedules, spec));
    schedule mainspring.schedules;
    changes jsonb;
begin
    -- The common case by far: the same program starts once more.
    if not overwrite and exists (
        select from mainspring.schedules as s
         where s.tenant_id = spec ->> 'tenant_id' and s.name = spec ->> 'name'
           and s.declared = wanted) then
        return 'unchanged';
    end if;
    schedule := mainspring.store_schedule(jsonb_populate_record(
        null::mainspring.schedules, spec || jsonb_build_object('declared', wanted)));
    if schedule.schedule_id is not null then
        return 'created';
    end if;
    schedule := mainspring.find_schedule(spec ->> 'tenant_id', spec ->> 'name');
    if schedule.declared is null and not overwrite then
        return 'kept';
    end if;
    changes := mainspring.declared_changes(
        wanted, coalesce(schedule.declared, '{}'), mainspring.schedule_facts(schedule), overwrite);
    if changes is null and schedule.declared = wanted then
        return 'unchanged';
    end if;
    perform mainspring.store_schedule(jsonb_populate_record(
        schedule, coalesce(changes, '{}') || jsonb_build_object('declared', wanted)));
    return case when changes is null then 'kept' else 'changed' end;
end
$$;
