-- Schedules: what is checked when one is written.

-- Raises the error for a schedule with a field that is wrong.
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
-- if it is a rule such as UTC+3. All rules have a digit; few names have one. Beside the zones there
-- are files for what a machine is set to, for nothing, and with leap seconds.
create or replace function mainspring.is_zone(name text)
returns boolean
language plpgsql strict
set timezone = 'UTC'
as $$
begin
    return name = 'UTC' or (
        length(name) <= 64 and name !~ '^(localtime|posixrules|Factory|posix/|right/)'
        and set_config('timezone', name, true) = name and (
        name !~ '[0-9]'
        or exists (select from pg_timezone_names as known where known.name = is_zone.name)));
exception when invalid_parameter_value then
    return false;
end
$$;

-- The zones that an abbreviation may stand for: names for an offset in some part of the year, which
-- many places share. The same as in domain/schedules/zones.py; test_words_agree.py compares them.
create or replace function mainspring.zones_of_abbreviation(name text)
returns text[]
language sql immutable
return (
    select string_to_array(known.zones, ' ')
      from (values
        ('ACST', 'Australia/Adelaide'), ('AEDT', 'Australia/Sydney'),
        ('AEST', 'Australia/Sydney Australia/Brisbane'),
        ('AST', 'America/Halifax Asia/Riyadh'), ('AWST', 'Australia/Perth'),
        ('BRT', 'America/Sao_Paulo'), ('BST', 'Europe/London Asia/Dhaka'),
        ('CDT', 'America/Chicago'), ('CEST', 'Europe/Berlin Europe/Paris'),
        ('CST', 'America/Chicago Asia/Shanghai'), ('EDT', 'America/New_York'),
        ('EEST', 'Europe/Helsinki Europe/Athens'), ('EST', 'America/New_York'),
        ('IST', 'Asia/Kolkata Europe/Dublin Asia/Jerusalem'), ('JST', 'Asia/Tokyo'),
        ('KST', 'Asia/Seoul'), ('MDT', 'America/Denver'), ('MSK', 'Europe/Moscow'),
        ('MST', 'America/Denver'),
        ('NZDT', 'Pacific/Auckland'), ('NZST', 'Pacific/Auckland'),
        ('PDT', 'America/Los_Angeles'), ('PST', 'America/Los_Angeles Asia/Manila'),
        ('SAST', 'Africa/Johannesburg'), ('SGT', 'Asia/Singapore'), ('WEST', 'Europe/Lisbon'))
           as known (name, zones)
     where known.name = upper(zones_of_abbreviation.name));

-- What to say of an offset that is no zone, such as UTC+3 or EST5; null for any other name. The
-- same as in domain/schedules/zones.py; test_words_agree.py compares them.
create or replace function mainspring.hint_of_offset(name text)
returns text
language plpgsql immutable
as $$
declare
    parts text[] := regexp_match(upper(name), '^([A-Z]{0,4})([+-]?)([0-9]{1,2})(:?00)?$');
    hours integer := parts[3]::integer;
    is_ahead boolean := parts[2] = '+';
    meant text[] := mainspring.zones_of_abbreviation(parts[1]);
begin
    if meant is not null then
        return format('did you mean ''%s''?', array_to_string(meant, ''' or '''));
    elsif parts[1] in ('', 'UTC', 'GMT') and parts[2] <> ''
          and hours between 1 and (case when is_ahead then 14 else 12 end) then
        return format('did you mean ''Etc/GMT%s%s''? That is %s hours %s UTC: the signs of these '
                      || 'zones are reversed', case when is_ahead then '-' else '+' end, hours,
                      hours, case when is_ahead then 'ahead of' else 'behind' end);
    end if;
    return null;
end
$$;

-- Refuses a time zone that does not exist, with the one that may be meant.
create or replace function mainspring.check_zone(zone text)
returns void
language plpgsql
as $$
begin
    if not mainspring.is_zone(zone) then
        perform mainspring.refuse_schedule('zone', 'there is no time zone '
            || quote_literal(zone) || coalesce('; did you mean ''' || array_to_string(
                mainspring.zones_of_abbreviation(zone), ''' or ''') || '''?',
            '; ' || mainspring.hint_of_offset(zone), (
            select '; did you mean ' || quote_literal(known.name) || '?'
              from pg_timezone_names as known
             where lower(zone) in (lower(known.name), lower(split_part(known.name, '/', -1)))
             order by known.name limit 1), mainspring.did_you_mean(zone, array(
            -- Nothing is like another offset.
            select quote_literal(known.name) from pg_timezone_names as known
             where zone !~ '[0-9]'
               and known.name !~ '^(localtime|posixrules|Factory|posix/|right/)'))));
    end if;
end
$$;

-- Each of the functions named wrong_ returns a field and what is wrong with it, or null.

-- Names and other texts, which may be left out but not blank, and words out of a list.
create or replace function mainspring.wrong_word(schedule mainspring.schedules)
returns text[]
language plpgsql immutable
as $$
begin
    return case
        when coalesce(schedule.name, '') !~ '\S' or length(schedule.name) > 200
        then '{name,must have 1 to 200 characters}'
        when schedule.definition !~ '\S' then '{definition,must name the definition to run}'
        when mainspring.wrong_queue(schedule.queue) is not null
        then array['queue', mainspring.wrong_queue(schedule.queue)]
        when schedule.dst_gap not in ('run_after', 'skip')
        then '{dst_gap,must be run_after or skip}'
        when schedule.dst_fold not in ('once', 'both')
        then '{dst_fold,must be once or both}'
        when schedule.overlap not in ('skip', 'queue', 'replace')
        then '{overlap,"must be skip, queue or replace"}'
        when schedule.catch_up not in ('none', 'latest', 'all')
        then '{catch_up,"must be none, latest or all"}'
        when schedule.delivery not in ('at_least_once', 'at_most_once')
        then '{delivery,must be at_least_once or at_most_once}'
        when schedule.delivery = 'at_most_once' and schedule.max_attempts > 1
        then '{max_attempts,must be 1 with delivery at_most_once}'
        when jsonb_typeof(schedule.payload) <> 'object'
        then '{payload,must be a JSON object}'
        when mainspring.has_foreign_mark(schedule.payload)
        then array['payload', mainspring.uses_mark()]
        when jsonb_typeof(schedule.calendar) <> 'object'
        then '{calendar,must be a JSON object}'
    end;
end
$$;

-- Counts, each with its least and its greatest value.
create or replace function mainspring.wrong_number(schedule mainspring.schedules)
returns text[]
language sql immutable
return (
    select array[field, format('must be from %s to %s', least, greatest)]
      from (values ('max_retries', schedule.max_retries, 1, 1000),
                   ('max_running', schedule.max_running, 1, 1000),
                   ('max_attempts', schedule.max_attempts, 1, 1000),
                   ('catch_up_limit', schedule.catch_up_limit, 1, 10000),
                   ('priority', schedule.priority, 0, 1000))
           as bound (field, value, least, greatest)
     where value not between bound.least and bound.greatest
     limit 1);

-- Durations. The programs that fire schedules cannot read what is far beyond their own calendar,
-- and one row that they cannot read would hold up all.
create or replace function mainspring.wrong_duration(schedule mainspring.schedules)
returns text[]
language sql stable
return (
    select array[field, format('must be from %s to %s', shortest, longest)]
      from (values ('every', schedule.every, '1 second', '36500 days'),
                   ('jitter', schedule.jitter, '0', '36500 days'),
                   ('misfire_grace', schedule.misfire_grace, '0', '36500 days'),
                   ('catch_up_max_age', schedule.catch_up_max_age, '1 second', '36500 days'),
                   ('run_timeout', schedule.run_timeout, '1 second', '36500 days'),
                   ('condition_timeout', schedule.condition_timeout, '1 millisecond', '1 day'))
           as bound (field, value, shortest, longest)
     where value not between shortest::interval and longest::interval
     limit 1);

-- Instants: in the years that every program can read, and in their order.
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

-- What is too large.
create or replace function mainspring.wrong_schedule_size(schedule mainspring.schedules)
returns text[]
language sql stable
return (
    select array[field, format('must be at most %s %s, not %s', most, unit, size)]
      from (values
               ('definition', length(schedule.definition), 200, 'characters'),
               ('description', length(schedule.description), 10000, 'characters'),
               ('launcher', length(schedule.launcher), 500, 'characters'),
               ('condition_role', length(schedule.condition_role), 500, 'characters'),
               ('condition_sql', length(schedule.condition_sql), 10000, 'characters'),
               ('gauge_sql', length(schedule.gauge_sql), 10000, 'characters'),
               ('calendar', octet_length(schedule.calendar::text), 262144, 'bytes'),
               ('payload', octet_length(schedule.payload::text),
                mainspring.max_payload_bytes(), 'bytes'))
           as bound (field, size, most, unit)
     where size > most
     limit 1);

-- The condition: one kind of it at most, and whole.
create or replace function mainspring.wrong_condition(schedule mainspring.schedules)
returns text[]
language plpgsql immutable
as $$
begin
    return case
        when num_nonnulls(schedule.launcher, schedule.condition_sql, schedule.gauge_sql) > 1
        then '{condition,"give at most one of launcher, condition_sql and gauge_sql"}'
        when schedule.launcher !~ '\S' then '{launcher,must not be empty}'
        when schedule.condition_sql !~ '\S' then '{condition_sql,must not be empty}'
        when schedule.gauge_sql !~ '\S' then '{gauge_sql,must not be empty}'
        when num_nonnulls(schedule.gauge_sql, schedule.gauge_lower, schedule.gauge_upper)
             not in (0, 3) or schedule.gauge_lower > schedule.gauge_upper
        then array['gauge',
                   'needs gauge_sql, gauge_lower and gauge_upper, the lower not above the upper']
        when 'NaN' in (schedule.gauge_lower, schedule.gauge_upper)
             or 'Infinity' in (abs(schedule.gauge_lower), abs(schedule.gauge_upper))
        then '{gauge,needs finite numbers for gauge_lower and gauge_upper}'
        when schedule.gauge_bounds is not null and schedule.gauge_sql is null
        then '{gauge_sql,is required with gauge_bounds}'
    end;
end
$$;

-- Refuses a schedule that cannot be.
create or replace function mainspring.check_schedule(schedule mainspring.schedules)
returns void
language plpgsql
as $$
declare
    wrong text[] := coalesce(
        mainspring.wrong_word(schedule), mainspring.wrong_number(schedule),
        mainspring.wrong_duration(schedule), mainspring.wrong_instant(schedule),
        mainspring.wrong_condition(schedule), mainspring.wrong_schedule_size(schedule));
begin
    if num_nonnulls(schedule.cron, schedule.every, schedule.at) <> 1 then
        perform mainspring.refuse_schedule('timing', 'give exactly one of cron, every and at');
    end if;
    if wrong is not null then
        perform mainspring.refuse_schedule(wrong[1], wrong[2]);
    end if;
    if mainspring.is_closed(schedule.definition) then
        perform mainspring.refuse_schedule(
            'definition', mainspring.why_closed(schedule.definition));
    end if;
    perform mainspring.check_cron(schedule.cron, schedule.name);
    perform mainspring.check_zone(schedule.zone);
end
$$;
