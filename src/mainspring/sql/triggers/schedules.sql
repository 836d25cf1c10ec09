-- Triggers on mainspring.schedules.

-- Runs as whoever writes the row, who may have no other right here: nobody can have a condition
-- of theirs run under a role that is not theirs.
create or replace function mainspring.check_condition_role()
returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    problem text;
begin
    if tg_op = 'UPDATE' and (new.condition_role, new.condition_sql, new.gauge_sql)
       is not distinct from (old.condition_role, old.condition_sql, old.gauge_sql) then
        return new;
    end if;
    -- Nobody can log in as the role of requests. It is the role of schedules that tenants made, so
    -- whoever gives one of these a condition has it run as themselves.
    if new.condition_role in ('mainspring_app', 'pg_database_owner')
       and current_user not in ('mainspring_app', 'pg_database_owner') then
        new.condition_role := current_user;
    end if;
    if to_regrole(quote_ident(new.condition_role)) is null then
        problem := format('%s does not exist; create it, or name another role',
                          new.condition_role);
    elsif not mainspring.may_set_role(current_user, new.condition_role) then
        problem := format('%s may not become %s; ask an administrator to run: %s', current_user,
                          new.condition_role,
                          mainspring.grant_of(new.condition_role, current_user));
    end if;
    if problem is not null then
        raise exception using errcode = 'MS041', message = 'condition_role: ' || problem,
            detail = jsonb_build_object('field', 'condition_role', 'problem', problem);
    end if;
    return new;
end
$$;

create or replace trigger schedules_check_role
    before insert or update of condition_role, condition_sql, gauge_sql on mainspring.schedules
    for each row execute function mainspring.check_condition_role();

-- Runs as whoever changes or deletes a schedule of what is built in: without housekeeping the
-- database fills up for everyone.
create or replace function mainspring.keep_built_in_schedule()
returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    problem text := old.definition || ' is built in and for operators only';
begin
    if not mainspring.acts_as_owner() then
        raise exception using errcode = 'MS041', message = 'definition: ' || problem,
            detail = jsonb_build_object('field', 'definition', 'problem', problem);
    end if;
    return case when tg_op = 'DELETE' then old else new end;
end
$$;

create or replace trigger schedules_keep_built_in before update or delete on mainspring.schedules
    for each row when (old.definition like 'mainspring.%')
    execute function mainspring.keep_built_in_schedule();

-- Checks a schedule and sets the columns that follow from others.
create or replace function mainspring.prepare_schedule()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if tg_op = 'UPDATE' and new is not distinct from old then
        return new;
    end if;
    new.zone := coalesce(new.zone, (select t.zone from mainspring.tenants as t
                                     where t.tenant_id = new.tenant_id), 'UTC');
    -- What has gone wrong since it was written can still be stopped.
    if tg_op = 'INSERT' or new.enabled or not old.enabled then
        perform mainspring.check_schedule(new);
    end if;
    if tg_op = 'INSERT' then
        perform mainspring.ensure_known_tenant(new.tenant_id);
    end if;
    if tg_op = 'INSERT' or new.definition <> old.definition then
        perform mainspring.warn_of_definition(new.definition, 'schedule');
    end if;
    -- A launcher makes the payload of each job.
    if new.launcher is null and (
        tg_op = 'INSERT' or (new.definition, new.payload, new.launcher)
                            is distinct from (old.definition, old.payload, old.launcher)) then
        perform mainspring.check_saved_payload(new.definition, new.payload);
    end if;
    new.updated_at := now();
    new.is_templated := new.payload::text like '%{{%';
    new.origin := jsonb_strip_nulls(
        jsonb_build_object('schedule', new.name, 'launcher', new.launcher));
    if tg_op = 'UPDATE' and new.enabled and not old.enabled then
        new.disabled_reason := null;
    end if;
    return new;
end
$$;

create or replace trigger schedules_prepare before insert or update of
    name, cron, every, at, zone, dst_gap, dst_fold, starts_at, ends_at, calendar, enabled,
    paused_until, jitter, anchor_at, overlap, catch_up, launcher, condition_sql, gauge_sql,
    gauge_lower, gauge_upper, gauge_bounds, condition_role, payload, definition, misfire_grace,
    max_running, catch_up_limit, catch_up_max_age, run_timeout, max_retries, description, queue,
    priority, max_attempts, condition_timeout, delivery
    on mainspring.schedules
    for each row execute function mainspring.prepare_schedule();

-- Adds the clock of a new schedule, by which schedulers find what is due, and notifies them.
create or replace function mainspring.add_clock()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    due_at timestamptz := case when mainspring.may_fire(new) then
        coalesce(mainspring.given_instant(new), 'epoch') end;
begin
    insert into mainspring.clocks
        (schedule_id, next_run_at, next_slot_at, plan_key, is_plain, definition, schema_key,
         changed_at)
    values (new.schedule_id, due_at, nullif(due_at, 'epoch'), mainspring.plan_key(new),
            mainspring.is_plain(new), new.definition, mainspring.fitting_schema(new),
            clock_timestamp());
    if new.run_at is not null then
        update mainspring.schedules as schedule set run_at = null
         where schedule.schedule_id = new.schedule_id;
    end if;
    perform mainspring.notify_schedule();
    return null;
end
$$;

create or replace trigger schedules_add_clock after insert on mainspring.schedules
    for each row execute function mainspring.add_clock();

-- Sets the clock of a schedule that has changed, and notifies the schedulers.
create or replace function mainspring.set_clock()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    given timestamptz := mainspring.given_instant(new);
    is_moved boolean := given is not null or (
        new.cron, new.every, new.at, new.zone, new.dst_gap, new.dst_fold, new.starts_at,
        new.ends_at, new.calendar, new.enabled, new.paused_until, new.jitter, new.anchor_at)
        is distinct from (
        old.cron, old.every, old.at, old.zone, old.dst_gap, old.dst_fold, old.starts_at,
        old.ends_at, old.calendar, old.enabled, old.paused_until, old.jitter, old.anchor_at);
    due_at timestamptz := case when mainspring.may_fire(new) then coalesce(given, 'epoch') end;
    key uuid := mainspring.plan_key(new);
    plain boolean := mainspring.is_plain(new);
    fitting uuid := mainspring.fitting_schema(new);
begin
    update mainspring.clocks as clock
       set revision = clock.revision + 1, plan_key = key, is_plain = plain,
           definition = new.definition, schema_key = fitting,
           checking_until = null, checking_by = null,
           next_run_at = case when is_moved then due_at else clock.next_run_at end,
           next_slot_at = case when is_moved then nullif(due_at, 'epoch')
                               else clock.next_slot_at end,
           changed_at = case when is_moved then clock_timestamp() else clock.changed_at end,
           retry_count = case when new.enabled and not old.enabled then 0
                              else clock.retry_count end
     where clock.schedule_id = new.schedule_id
       and (is_moved or (clock.plan_key, clock.is_plain) <> (key, plain)
            or (new.definition, new.payload) is distinct from (old.definition, old.payload));
    if found then
        perform mainspring.notify_schedule();
    end if;
    new.run_at := null;
    return new;
end
$$;

-- By its name the last of those that prepare a row.
create or replace trigger schedules_set_clock before update of
    name, cron, every, at, zone, dst_gap, dst_fold, starts_at, ends_at, calendar, enabled,
    paused_until, jitter, anchor_at, run_at, catch_up, catch_up_limit, catch_up_max_age,
    misfire_grace, launcher, condition_sql, gauge_sql, payload, definition, delivery
    on mainspring.schedules
    for each row execute function mainspring.set_clock();

-- Removes what only a schedule has; its jobs stay.
create or replace function mainspring.forget_schedule()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    -- First of all: whoever fires it right now holds this row.
    delete from mainspring.clocks where schedule_id = old.schedule_id;
    delete from mainspring.slots where schedule_id = old.schedule_id;
    delete from mainspring.schedule_figures where schedule_id = old.schedule_id;
    return null;
end
$$;

create or replace trigger schedules_forget after delete on mainspring.schedules
    for each row execute function mainspring.forget_schedule();
