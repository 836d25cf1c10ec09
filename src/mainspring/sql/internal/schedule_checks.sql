-- Schedules: what is checked when one is written.

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
