-- Cron expressions in SQL, so that an insert into mainspring.schedules without our programs is
-- refused at once, in the field that is wrong. This refuses what domain/schedules/cron refuses,
-- with the same fields and words; tests/store/test_cron_checks.py compares the two. Nothing here
-- computes when an expression fires. docs/decisions/0018-cron-checks-in-sql.md says why it exists.
--
-- The fields have the numbers 1 to 5. What an item matches is a list of numbers: values of the
-- field (Sunday is 0), and beyond them
--
--     -1 the last day (L)           10 n + weekday   the n-th of the month (MON#1)
--     -2 the last workday (LW)      100 + weekday    the last of the month (5L)

-- What a field may hold; FIELDS in domain/schedules/cron_fields.py has the same. A bare H chooses
-- from low to spread_high: every month has the first 28 days, and Sunday is both 0 and 7.
create or replace function mainspring.cron_place(
    place integer, out name text, out low integer, out high integer, out spread_high integer,
    out size integer, out unit text, out names text[], out forms text
)
language sql immutable
as $$
    select known.name, known.low, known.high, known.spread_high, known.size, known.unit,
           string_to_array(known.names, ' '), '*, ranges, steps, lists' || known.forms
      from (values
        (1, 'minute', 0, 59, 59, 60, 'm', null, ' and H'),
        (2, 'hour', 0, 23, 23, 24, 'h', null, ' and H'),
        (3, 'day of month', 1, 31, 28, 31, 'd', null, ', L, LW and H'),
        (4, 'month', 1, 12, 12, 12, null,
         'JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC', ' and H'),
        (5, 'day of week', 0, 7, 6, 7, null, 'SUN MON TUE WED THU FRI SAT', ', 5L, MON#1 and H'))
        as known (number, name, low, high, spread_high, size, unit, names, forms)
     where known.number = place
$$;

-- Raises the error for an expression with a field that is wrong.
create or replace function mainspring.cron_refuse(place integer, problem text)
returns void
language plpgsql immutable
as $$
begin
    perform mainspring.refuse_schedule('cron ' || (mainspring.cron_place(place)).name, problem);
end
$$;

-- The number that a value of an item stands for.
create or replace function mainspring.cron_value(place integer, item text, value text)
returns integer
language plpgsql immutable
as $$
declare
    field record := mainspring.cron_place(place);
begin
    if value = any (field.names) then
        return array_position(field.names, value) - 1 + field.low;
    end if;
    if value !~ '^[0-9]+$' then
        perform mainspring.cron_refuse(place, concat_ws(', ',
            format('''%s'' is not understood; allowed are %s to %s', item, field.low, field.high),
            field.names[1] || ' to ' || field.names[cardinality(field.names)], field.forms));
    end if;
    if value::numeric not between field.low and field.high then
        perform mainspring.cron_refuse(
            place, format('%s is not from %s to %s', value, field.low, field.high));
    end if;
    return value::integer;
end
$$;

-- The first and the last value of a range; of a single value both are the same.
create or replace function mainspring.cron_range(
    place integer, item text, range text, out first integer, out last integer
)
language plpgsql immutable
as $$
declare
    dash integer := position('-' in range);
    field record := mainspring.cron_place(place);
begin
    first := mainspring.cron_value(
        place, item, case when dash = 0 then range else left(range, dash - 1) end);
    last := first;
    if dash > 0 then
        last := mainspring.cron_value(place, item, substr(range, dash + 1));
        if substr(range, dash + 1) = 'SUN' and first > 0 then
            last := 7;
        end if;
    end if;
    if last < first then
        perform mainspring.cron_refuse(place, format(
            '%s runs backwards; write %s-%s,%s-%s to wrap around',
            range, first, field.high, field.low, last));
    end if;
end
$$;

-- The step of an item, which may be as large as the field has values.
create or replace function mainspring.cron_step(place integer, item text, step text)
returns integer
language plpgsql immutable
as $$
declare
    field record := mainspring.cron_place(place);
begin
    if step !~ '^[0-9]+$' then
        perform mainspring.cron_refuse(place, 'the step of ' || item || ' is not a whole number');
    end if;
    if step::numeric = 0 then
        perform mainspring.cron_refuse(place, item || ' has a step of zero');
    end if;
    if step::numeric > field.size then
        perform mainspring.cron_refuse(place, item || ' has a step larger than ' || field.size
            || ', which is never reached'
            || coalesce('; for a fixed interval write @every ' || step::numeric || field.unit, ''));
    end if;
    return step::integer;
end
$$;

-- What H adds to the first value it may choose: as in domain/schedules/cron_fields, for ever.
create or replace function mainspring.cron_spread(place integer, key text, size integer)
returns integer
language plpgsql immutable
as $$
declare
    digest bytea := sha256(convert_to((mainspring.cron_place(place)).name, 'UTF8')
                           || '\x00'::bytea || convert_to(key, 'UTF8'));
    hash bigint := ('x' || encode(substr(digest, 1, 8), 'hex'))::bit(64)::bigint;
begin
    return mod(hash + case when hash < 0 then 18446744073709551616 else 0 end, size::numeric);
end
$$;

-- The first and last value of an item that may have a step; a step that is null is none.
create or replace function mainspring.cron_span(
    place integer, item text, base text, step integer, key text,
    out first integer, out last integer
)
language plpgsql immutable
as $$
declare
    field record := mainspring.cron_place(place);
    range record;
begin
    if base in ('*', '?', 'H') then
        first := field.low;
        last := case base when 'H' then field.spread_high else field.high end;
    else
        range := mainspring.cron_range(place, item, case
            when base ~ '^H\([A-Z0-9_]+-[A-Z0-9_]+\)$' then substr(base, 3, length(base) - 3)
            else base end);
        first := range.first;
        last := case when step is null or position('-' in base) > 0 then range.last
                     else field.high end;
    end if;
    if base ~ '^H' then
        first := first + mainspring.cron_spread(
            place, key, least(coalesce(step, last - first + 1), last - first + 1));
        last := case when step is null then first else last end;
    end if;
end
$$;

-- What 5L or MON#1 matches.
create or replace function mainspring.cron_weekday(item text)
returns integer
language plpgsql immutable
as $$
declare
    week text := split_part(item, '#', 2);
    weekday integer := mainspring.cron_value(5, item, case when week = '' then rtrim(item, 'L')
                                                           else split_part(item, '#', 1) end) % 7;
begin
    if week = '' then
        return 100 + weekday;
    end if;
    if week !~ '^[1-5]$' then
        perform mainspring.cron_refuse(5,
            item || ' asks for week ' || week || ' of a month; use 1 to 5');
    end if;
    return 10 * week::integer + weekday;
end
$$;

-- What one item of a list matches.
create or replace function mainspring.cron_item(place integer, item text, key text)
returns integer[]
language plpgsql immutable
as $$
declare
    slash integer := position('/' in item);
    step integer;
    span record;
begin
    if item = '' then
        perform mainspring.cron_refuse(place, 'an item of the list is empty');
    elsif place = 3 and item in ('L', 'LW') then
        return array[case item when 'L' then -1 else -2 end];
    elsif place = 5 and item ~ '^([0-9]+L|[A-Z0-9_]+#[A-Z0-9_]+)$' then
        return array[mainspring.cron_weekday(item)];
    end if;
    if slash > 0 then
        step := mainspring.cron_step(place, item, substr(item, slash + 1));
    end if;
    span := mainspring.cron_span(
        place, item, case when slash > 0 then left(item, slash - 1) else item end, step, key);
    return array(select case when place = 5 then value % 7 else value end
                   from generate_series(span.first, span.last, coalesce(step, 1)) as value);
end
$$;

-- What a field matches.
create or replace function mainspring.cron_field(place integer, field text, key text)
returns integer[]
language plpgsql immutable
as $$
declare
    items text[] := string_to_array(upper(field collate "C"), ',');
    item text;
    matches integer[] := '{}';
begin
    if cardinality(items) > 60 then
        perform mainspring.cron_refuse(place,
            'the list has ' || cardinality(items) || ' items; 60 are allowed');
    end if;
    foreach item in array items loop
        matches := matches || mainspring.cron_item(place, item, key);
    end loop;
    return matches;
end
$$;

-- Whether there is a date on which both the day and the weekday match. A month of any length
-- begins on any weekday in some year, so all calendars are 4 lengths by 7 beginnings.
create or replace function mainspring.cron_has_date(
    days integer[], months integer[], weekdays integer[]
)
returns boolean
language sql immutable
return exists (
    select from (
        select distinct unnest(case when month = 2 then array[28, 29]
                                    when month in (4, 6, 9, 11) then array[30]
                                    else array[31] end) as length
          from unnest(months) as month) as kind,
        generate_series(0, 6) as beginning,
        generate_series(1, length) as day,
        lateral (select (beginning + day - 1) % 7 as weekday,
                        (beginning + length - 1) % 7 as last_weekday) as shown
     where (day = any (days)
            or (-1 = any (days) and day = length)
            or (-2 = any (days)
                and day = length - case last_weekday when 0 then 2 when 6 then 1 else 0 end))
       and (weekday = any (weekdays)
            or 10 * ((day + 6) / 7) + weekday = any (weekdays)
            or (100 + weekday = any (weekdays) and day + 7 > length)));

-- Refuses @every without a duration that can be.
create or replace function mainspring.cron_check_every(words text[])
returns void
language plpgsql immutable
as $$
declare
    parts text[] := regexp_match(lower(words[2] collate "C"),
                                 '^(?:([0-9]+)d)?(?:([0-9]+)h)?(?:([0-9]+)m)?(?:([0-9]+)s)?$');
    seconds numeric;
begin
    if cardinality(words) <> 2 or parts is null or num_nonnulls(variadic parts) = 0 then
        perform mainspring.refuse_schedule('cron',
            '@every needs a duration in d, h, m and s, such as 1h30m');
    end if;
    seconds := coalesce(parts[1]::numeric * 86400, 0) + coalesce(parts[2]::numeric * 3600, 0)
               + coalesce(parts[3]::numeric * 60, 0) + coalesce(parts[4]::numeric, 0);
    if seconds not between 1 and 366 * 86400 then
        perform mainspring.refuse_schedule('cron',
            '@every ' || words[2] || ' is not from 1s to 366d');
    end if;
end
$$;

-- Refuses a name that there is not, such as @reboot.
create or replace function mainspring.cron_check_name(words text[])
returns void
language plpgsql immutable
as $$
declare
    names text[] := '{@hourly,@daily,@midnight,@weekly,@monthly,@yearly,@annually}';
    name text := lower(words[1] collate "C");
begin
    if name = '@every' then
        perform mainspring.cron_check_every(words);
    elsif name <> all (names) then
        perform mainspring.refuse_schedule('cron', 'there is no ' || words[1] || '; there are '
            || array_to_string(names, ', ') || ' and @every');
    elsif cardinality(words) > 1 then
        perform mainspring.refuse_schedule('cron', 'nothing may follow ' || words[1]);
    end if;
end
$$;

-- Refuses, before anything reads it, what no expression can be.
create or replace function mainspring.cron_check_text(expression text)
returns void
language plpgsql immutable
as $$
declare
    strange integer;
begin
    if length(expression) > 200 then
        perform mainspring.refuse_schedule('cron', 'is '
            || to_char(length(expression), 'FM999,999,999') || ' characters long; 200 are allowed');
    end if;
    strange := ascii(substring(expression collate "C" from '[^\t -~]'));
    if strange is not null then
        perform mainspring.refuse_schedule('cron', 'the character '''
            || case when strange < 256 then '\x' || lpad(to_hex(strange), 2, '0')
                    else '\u' || lpad(to_hex(strange), 4, '0') end || ''' is not allowed');
    end if;
end
$$;

-- Refuses what does not have five fields, with what may be meant.
create or replace function mainspring.cron_check_count(words text[])
returns void
language plpgsql immutable
as $$
declare
    needed text := 'five fields are needed (minute hour day month weekday)';
    hint text := '';
begin
    if words = '{""}' then
        perform mainspring.refuse_schedule('cron', 'is empty; ' || needed || ', or @daily');
    elsif words[1] ~* '^(CRON_)?TZ=' then
        perform mainspring.refuse_schedule('cron',
            words[1] || ' is not supported here; set zone instead');
    elsif cardinality(words) = 6 then
        hint := '; for seconds use @every, such as @every 90s';
    elsif array_to_string(words, ' ')
          ~* '^(hourly|daily|midnight|weekly|monthly|yearly|annually)$' then
        hint := '; did you mean @' || lower(words[1] collate "C") || '?';
    end if;
    if cardinality(words) <> 5 then
        perform mainspring.refuse_schedule('cron',
            needed || ', not ''' || array_to_string(words, ' ') || '''' || hint);
    end if;
end
$$;

-- Refuses an expression that cannot be read or never matches; the key is what H chooses by.
create or replace function mainspring.check_cron(expression text, spread_key text default '')
returns void
language plpgsql immutable strict
as $$
declare
    words text[];
    days integer[];
    months integer[];
    weekdays integer[];
begin
    -- Most are as simple as these, and are accepted at a twentieth of the cost.
    if expression ~ ('^([*H]|[0-5]?[0-9]|\*/[1-5]?[1-9]|\*/[1-5]0) ([*H]|[01]?[0-9]|2[0-3])'
                     ' (\*|[1-9]|[12][0-9]|3[01]) \* (\*|[0-7]|1-5|MON-FRI|MON|TUE|WED|THU|FRI)$')
    then
        return;
    end if;
    perform mainspring.cron_check_text(expression);
    words := regexp_split_to_array(btrim(expression, e' \t'), '[ \t]+');
    if words[1] ~ '^@' then
        perform mainspring.cron_check_name(words);
        return;
    end if;
    perform mainspring.cron_check_count(words);
    perform mainspring.cron_field(1, words[1], spread_key);
    perform mainspring.cron_field(2, words[2], spread_key);
    days := mainspring.cron_field(3, words[3], spread_key);
    months := mainspring.cron_field(4, words[4], spread_key);
    weekdays := mainspring.cron_field(5, words[5], spread_key);
    -- As in Debian's cron, either of the two is enough unless one of them starts with a star.
    if (words[3] ~ '^[*?]' or words[5] ~ '^[*?]') and words[3] not in ('*', '?')
       and not mainspring.cron_has_date(days, months, weekdays) then
        perform mainspring.refuse_schedule('cron',
            '''' || btrim(expression, e' \t') || ''' never matches; there is no such date');
    end if;
end
$$;
