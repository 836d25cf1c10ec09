-- Schedules: what is checked when one is written, and how slots become jobs.
--
-- A slot is claimed by its row, which is written in the transaction that inserts its job and
-- moves the schedule's clock on. Everything that fires or edits a schedule adds one to the turn of
-- its clock, and whoever fires says which turn was read, so of any number of schedulers one gets
-- through. Whoever needs both rows locks the schedule first and then its clock.

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

create or replace function mainspring.refuse_schedule(field text, problem text)
returns void
language plpgsql
as $$
begin
    perform mainspring.refuse('MS041', field || ': ' || problem,
        jsonb_build_object('field', field, 'problem', problem));
end
$$;

-- Whether there is a zone with exactly this name, the only spelling that every program reads.
-- The server spells back what it takes for a zone: in its own letters if it has a file, as given
-- if it is a rule such as UTC+3. All rules have a digit; few names have one.
create or replace function mainspring.is_zone(name text)
returns boolean
language plpgsql strict
set timezone = 'UTC'
as $$
begin
    return name = 'UTC' or (set_config('timezone', name, true) = name and (
        name !~ '[0-9]'
        or exists (select from pg_timezone_names as known where known.name = is_zone.name)));
exception when invalid_parameter_value then
    return false;
end
$$;

-- Each of these answers with a field and what is wrong with it, or null.

create or replace function mainspring.wrong_word(schedule mainspring.schedules)
returns text[]
language plpgsql immutable
as $$
begin
    return case
        when coalesce(schedule.name, '') !~ '\S' or length(schedule.name) > 200
        then '{name,must have 1 to 200 characters}'
        when schedule.definition = ''
        then '{definition,must name what is to run}'
        when schedule.dst_gap not in ('run_after', 'skip')
        then '{dst_gap,must be run_after or skip}'
        when schedule.dst_fold not in ('once', 'both')
        then '{dst_fold,must be once or both}'
        when schedule.overlap not in ('skip', 'queue', 'replace')
        then '{overlap,"must be skip, queue or replace"}'
        when schedule.catch_up not in ('none', 'latest', 'all')
        then '{catch_up,"must be none, latest or all"}'
        when jsonb_typeof(schedule.payload) <> 'object'
        then '{payload,must be a JSON object}'
        when jsonb_typeof(schedule.calendar) <> 'object'
        then '{calendar,must be a JSON object}'
    end;
end
$$;

create or replace function mainspring.wrong_number(schedule mainspring.schedules)
returns text[]
language plpgsql immutable
as $$
begin
    return case
        when schedule.max_retries not between 1 and 1000
        then '{max_retries,must be from 1 to 1000}'
        when schedule.max_running not between 1 and 1000
        then '{max_running,must be from 1 to 1000}'
        when schedule.max_attempts not between 1 and 1000
        then '{max_attempts,must be from 1 to 1000}'
        when schedule.catch_up_limit not between 1 and 10000
        then '{catch_up_limit,must be from 1 to 10000}'
        when schedule.priority not between 0 and 1000
        then '{priority,must be from 0 to 1000}'
    end;
end
$$;

-- The programs that fire schedules cannot read what is far beyond their own calendar, and one
-- row that they cannot read would hold up all.
create or replace function mainspring.wrong_duration(schedule mainspring.schedules)
returns text[]
language plpgsql immutable
as $$
begin
    return case
        when schedule.every not between '1 second' and '1000 years'
        then '{every,must be from 1 second to 1000 years}'
        when schedule.jitter not between '0' and '1000 years'
        then '{jitter,must be from 0 to 1000 years}'
        when schedule.misfire_grace not between '0' and '1000 years'
        then '{misfire_grace,must be from 0 to 1000 years}'
        when schedule.catch_up_max_age <= '0' or schedule.catch_up_max_age > '1000 years'
        then '{catch_up_max_age,must be more than 0 and 1000 years at most}'
        when schedule.run_timeout <= '0' or schedule.run_timeout > '1000 years'
        then '{run_timeout,must be more than 0 and 1000 years at most}'
        when schedule.condition_timeout not between '1 millisecond' and '1 day'
        then '{condition_timeout,must be from 1 millisecond to 1 day}'
    end;
end
$$;

create or replace function mainspring.wrong_instant(schedule mainspring.schedules)
returns text[]
language plpgsql immutable
as $$
declare
    first timestamptz := '0001-01-02T00:00:00Z';
    last timestamptz := '9999-12-30T00:00:00Z';
    field text := case
        when schedule.at not between first and last then 'at'
        when schedule.starts_at not between first and last then 'starts_at'
        when schedule.ends_at not between first and last then 'ends_at'
        when schedule.paused_until not between first and last then 'paused_until'
        when schedule.anchor_at not between first and last then 'anchor_at'
    end;
begin
    return case
        when field = 'paused_until'
        then '{paused_until,"must be in the years 1 to 9999; to stop it for good, disable it"}'
        when field is not null then array[field, 'must be in the years 1 to 9999']
        when schedule.ends_at <= schedule.starts_at then '{ends_at,must be after starts_at}'
    end;
end
$$;

create or replace function mainspring.wrong_condition(schedule mainspring.schedules)
returns text[]
language plpgsql immutable
as $$
begin
    return case
        when num_nonnulls(schedule.launcher, schedule.condition_sql, schedule.gauge_sql) > 1
        then '{condition,"give at most one of launcher, condition_sql and gauge_sql"}'
        when num_nonnulls(schedule.gauge_sql, schedule.gauge_lower, schedule.gauge_upper)
             not in (0, 3) or schedule.gauge_lower > schedule.gauge_upper
        then array['gauge',
                   'needs gauge_sql, gauge_lower and gauge_upper, the lower not above the upper']
    end;
end
$$;

create or replace function mainspring.check_schedule(schedule mainspring.schedules)
returns void
language plpgsql
as $$
declare
    wrong text[] := coalesce(
        mainspring.wrong_word(schedule), mainspring.wrong_number(schedule),
        mainspring.wrong_duration(schedule), mainspring.wrong_instant(schedule),
        mainspring.wrong_condition(schedule));
begin
    if num_nonnulls(schedule.cron, schedule.every, schedule.at) <> 1 then
        perform mainspring.refuse_schedule('timing', 'give exactly one of cron, every and at');
    end if;
    if wrong is not null then
        perform mainspring.refuse_schedule(wrong[1], wrong[2]);
    end if;
    if mainspring.is_closed(schedule.definition) then
        perform mainspring.refuse_schedule('definition', mainspring.why_closed(schedule.definition));
    end if;
    perform mainspring.check_cron(schedule.cron, schedule.name);
    if not mainspring.is_zone(schedule.zone) then
        perform mainspring.refuse_schedule('zone', 'there is no time zone '
            || quote_literal(schedule.zone) || coalesce((
            select '; did you mean ' || quote_literal(known.name) || '?'
              from pg_timezone_names as known
             where lower(schedule.zone) in (lower(known.name),
                                            lower(split_part(known.name, '/', -1)))
             order by known.name limit 1), ''));
    end if;
end
$$;

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
    if to_regrole(quote_ident(new.condition_role)) is null then
        problem := format('there is no role %s', new.condition_role);
    elsif not pg_has_role(current_user, new.condition_role, 'MEMBER') then
        problem := format('%s is not a member of %s', current_user, new.condition_role);
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
    -- What has gone wrong since it was written can still be stopped.
    if tg_op = 'INSERT' or new.enabled or not old.enabled then
        perform mainspring.check_schedule(new);
    end if;
    new.updated_at := now();
    new.is_templated := new.payload::text like '%{{%';
    new.origin := jsonb_build_object('schedule', new.name);
    if tg_op = 'UPDATE' and new.enabled and not old.enabled then
        new.disabled_reason := null;
    end if;
    return new;
end
$$;

create or replace trigger schedules_prepare before insert or update of
    name, cron, every, at, zone, dst_gap, dst_fold, starts_at, ends_at, calendar, enabled,
    paused_until, jitter, anchor_at, overlap, catch_up, launcher, condition_sql, gauge_sql,
    gauge_lower, gauge_upper, condition_role, payload, definition, misfire_grace, max_running,
    catch_up_limit, catch_up_max_age, run_timeout, max_retries, description, queue, priority,
    max_attempts, condition_timeout
    on mainspring.schedules
    for each row execute function mainspring.prepare_schedule();

-- Where a rhythm begins to count, if it is one.
create or replace function mainspring.counted_from(schedule mainspring.schedules)
returns timestamptz
language sql immutable
return case when schedule.cron ~* '^\s*@every' or schedule.every is not null
            then schedule.anchor_at end;

-- What `H` is made of, if there is one.
create or replace function mainspring.spread_by(schedule mainspring.schedules)
returns text
language sql immutable
return case when schedule.cron ~* '(^|[\s,])h' then schedule.name end;

-- All that decides which slots a schedule has and what becomes of them, in one word of 128 bits.
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

create or replace function mainspring.is_plain(schedule mainspring.schedules)
returns boolean
language sql stable
return num_nonnulls(schedule.launcher, schedule.condition_sql, schedule.gauge_sql) = 0
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

create or replace function mainspring.add_clock()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    due_at timestamptz := case when new.enabled then
        coalesce(mainspring.given_instant(new), 'epoch') end;
begin
    insert into mainspring.clocks
        (schedule_id, next_run_at, next_slot_at, plan_key, is_plain, definition)
    values (new.schedule_id, due_at, nullif(due_at, 'epoch'), mainspring.plan_key(new),
            mainspring.is_plain(new), new.definition);
    if new.run_at is not null then
        update mainspring.schedules as schedule set run_at = null
         where schedule.schedule_id = new.schedule_id;
    end if;
    perform pg_notify('mainspring', 's:');
    return null;
end
$$;

create or replace trigger schedules_add_clock after insert on mainspring.schedules
    for each row execute function mainspring.add_clock();

-- Sets the clock of a schedule that has changed, and tells the schedulers.
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
    due_at timestamptz := case when new.enabled then coalesce(given, 'epoch') end;
    key uuid := mainspring.plan_key(new);
    plain boolean := mainspring.is_plain(new);
begin
    update mainspring.clocks as clock
       set turn = clock.turn + 1, plan_key = key, is_plain = plain, definition = new.definition,
           checking_until = null, checking_by = null,
           next_run_at = case when is_moved then due_at else clock.next_run_at end,
           next_slot_at = case when is_moved then nullif(due_at, 'epoch')
                               else clock.next_slot_at end,
           changed_at = case when is_moved then now() else clock.changed_at end,
           retry_count = case when new.enabled and not old.enabled then 0
                              else clock.retry_count end
     where clock.schedule_id = new.schedule_id
       and (is_moved or (clock.plan_key, clock.is_plain) <> (key, plain));
    if found then
        perform pg_notify('mainspring', 's:');
    end if;
    new.run_at := null;
    return new;
end
$$;

-- By its name the last of those that prepare a row.
create or replace trigger schedules_set_clock before update of
    name, cron, every, at, zone, dst_gap, dst_fold, starts_at, ends_at, calendar, enabled,
    paused_until, jitter, anchor_at, run_at, catch_up, catch_up_limit, catch_up_max_age,
    misfire_grace, launcher, condition_sql, gauge_sql, payload, definition
    on mainspring.schedules
    for each row execute function mainspring.set_clock();

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

create or replace function mainspring.audit_schedule()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    was jsonb := case when tg_op <> 'INSERT' then mainspring.schedule_facts(old) else '{}' end;
    is_now jsonb := case when tg_op <> 'DELETE' then mainspring.schedule_facts(new) else '{}' end;
begin
    if tg_op = 'UPDATE' and was = is_now then
        return null;
    end if;
    insert into mainspring.audit (tenant_id, actor, action, noun, subject, reason, before, after)
    values (
        coalesce(new.tenant_id, old.tenant_id),
        mainspring.actor(),
        case when tg_op = 'INSERT' then 'create' when tg_op = 'DELETE' then 'delete'
             when new.enabled and not old.enabled then 'enable'
             when old.enabled and not new.enabled then 'disable' else 'update' end,
        'schedule', coalesce(new.name, old.name), new.disabled_reason,
        mainspring.differing_shown(was, is_now), mainspring.differing_shown(is_now, was));
    return null;
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

create or replace trigger schedules_audit after insert or delete or update of
    name, cron, every, at, zone, dst_gap, dst_fold, starts_at, ends_at, calendar, enabled,
    paused_until, jitter, overlap, catch_up, launcher, condition_sql, gauge_sql, gauge_lower,
    gauge_upper, condition_role, payload, definition, misfire_grace, max_running, catch_up_limit,
    catch_up_max_age, run_timeout, max_retries, description, queue, priority, max_attempts,
    condition_timeout
    on mainspring.schedules
    for each row execute function mainspring.audit_schedule();

-- Lets as many waiting jobs of a schedule go as may run, the oldest slot first.
create or replace function mainspring.release_turn(schedule_id bigint)
returns void
language plpgsql
as $$
#variable_conflict use_column
declare
    room bigint;
    released mainspring.jobs;
begin
    select coalesce(max(schedule.max_running), 1) into room from mainspring.schedules as schedule
     where schedule.schedule_id = release_turn.schedule_id;
    select room - count(*) into room from mainspring.jobs as job
     where job.schedule_id = release_turn.schedule_id and job.slot_at is not null
       and job.waits_for is distinct from 'turn';
    if room > 0 then
        for released in
            update mainspring.jobs as job
               set waits_for = mainspring.wait_of(job.limit_name), scheduled_for = now()
             where job.job_id = any (array(
                select waiting.job_id from mainspring.jobs as waiting
                 where waiting.schedule_id = release_turn.schedule_id
                   and waiting.waits_for = 'turn'
                 order by waiting.slot_at limit room for update skip locked))
            returning job.*
        loop
            perform mainspring.wake_for(released);
        end loop;
    end if;
end
$$;

-- When a run ends, its slot says how, and the next in line may start.
create or replace function mainspring.settle_slot()
returns trigger
language plpgsql
as $$
begin
    update mainspring.slots as slot
       set run_state = new.state::text, started_at = new.started_at,
           finished_at = new.finished_at,
           reason = case when new.state <> 'succeeded' then left(new.last_error, 2000) end
     where slot.schedule_id = new.schedule_id and slot.scheduled_for = new.slot_at
       and slot.job_id = new.job_id;
    perform mainspring.release_turn(new.schedule_id);
    return null;
end
$$;

create or replace trigger jobs_history_settle_slot after insert on mainspring.jobs_history
    for each row when (new.schedule_id is not null) execute function mainspring.settle_slot();

-- Turns one slot into a job under the schedule's overlap rule. The caller holds the schedule's
-- row and writes the slot.
create or replace function mainspring.start_slot(
    schedule mainspring.schedules, slot timestamptz, source mainspring.slot_trigger,
    missed integer, payload jsonb default null, definition text default null,
    in_line boolean default false,
    out outcome mainspring.slot_outcome, out job_id bigint, out reason text
)
language plpgsql
as $$
#variable_conflict use_column
declare
    defined mainspring.definitions;
    live bigint := mainspring.live_runs(schedule.schedule_id);
    wanted text := coalesce(start_slot.definition, schedule.definition);
    room record;
    waits mainspring.waits_for;
begin
    select * into defined from mainspring.definitions as d where d.key = wanted and d.is_active;
    if not found then
        outcome := 'failed';
        reason := 'no active definition has the key ' || quote_literal(wanted);
        return;
    end if;
    if mainspring.is_closed(wanted) then
        outcome := 'failed';
        reason := 'definition ' || mainspring.why_closed(wanted);
        return;
    end if;
    if live >= schedule.max_running and schedule.overlap = 'skip' and in_line is not true then
        outcome := 'skipped';
        reason := 'an earlier run is still live (overlap = skip)';
        return;
    end if;
    if live >= schedule.max_running and schedule.overlap = 'replace' and in_line is not true then
        perform mainspring.stop_job(job.job_id, 'replaced by a newer slot of its schedule',
                                  job.tenant_id)
           from mainspring.jobs as job
          where job.schedule_id = schedule.schedule_id and job.slot_at is not null;
        live := mainspring.live_runs(schedule.schedule_id);
    end if;
    select * into room from mainspring.room_of(
        defined, schedule.tenant_id, coalesce(start_slot.payload, schedule.payload), null);
    waits := case when defined.approvals_needed > 0 then 'approval'
                  when live >= schedule.max_running then 'turn'
                  else mainspring.wait_of(room.limit_name) end;
    insert into mainspring.jobs as job (
        tenant_id, queue, definition, definition_version, priority, payload, max_attempts,
        state, waits_for, limit_name, limit_key, schedule_id, slot_at, origin)
    values (
        schedule.tenant_id, coalesce(schedule.queue, defined.queue), wanted, defined.version,
        coalesce(schedule.priority, defined.priority),
        coalesce(start_slot.payload, schedule.payload),
        coalesce(schedule.max_attempts, defined.max_attempts),
        mainspring.state_of(waits), waits, room.limit_name, room.limit_key,
        schedule.schedule_id, slot,
        schedule.origin || jsonb_build_object('trigger', source, 'missed', missed))
    returning job.job_id into job_id;
    outcome := 'enqueued';
    if waits = 'approval' then
        perform mainspring.ask_approval(job_id, schedule.tenant_id, defined);
    elsif waits = 'limit' then
        perform mainspring.wake_limits(room.limit_name, room.limit_key, schedule.tenant_id);
    elsif waits is null then
        perform mainspring.wake(coalesce(schedule.queue, defined.queue));
    end if;
end
$$;
