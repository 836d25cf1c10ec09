-- Errors carry SQLSTATEs of class MS; domain/errors knows them by the same number.

-- Raises an error that every client knows by its code; the detail has the facts for programs.
create or replace function mainspring.refuse(code text, message text, detail jsonb default '{}')
returns void
language plpgsql
as $$
begin
    raise exception using errcode = code, message = message, detail = detail::text;
end
$$;

-- The pairs of letters in a name, without case, spaces and punctuation.
create or replace function mainspring.letter_pairs(name text)
returns text[]
language sql immutable strict
return (select coalesce(array_agg(distinct substr(letters.only, place, 2)), '{}')
          from (select regexp_replace(lower(left(name, 200)), '[^a-z0-9]', '', 'g') as only)
                   as letters,
               generate_series(1, greatest(length(letters.only) - 1, 1)) as place);

-- The known name that was probably meant, by the share of pairs of letters that two have in common;
-- null if none is close.
create or replace function mainspring.closest(name text, known text[])
returns text
language sql immutable strict
return (
    select near.name
      from (select each.name, 2.0 * cardinality(array(
                       select unnest(given.pairs) intersect select unnest(own.pairs)))
                   / greatest(cardinality(given.pairs) + cardinality(own.pairs), 1) as likeness
              from unnest(known) as each (name),
                   mainspring.letter_pairs(closest.name) as given (pairs),
                   lateral mainspring.letter_pairs(each.name) as own (pairs)) as near
     where near.likeness >= 0.6
     order by near.likeness desc, near.name limit 1);

-- The end of a sentence about a name that there is not; empty if no known name is close.
create or replace function mainspring.did_you_mean(name text, known text[])
returns text
language sql immutable
return coalesce('; did you mean ' || mainspring.closest(name, known) || '?', '');

-- Refuses a value of an option.
create or replace function mainspring.refuse_option(option text, problem text)
returns void
language plpgsql
as $$
begin
    perform mainspring.refuse('MS003', problem, jsonb_build_object('option', option));
end
$$;

-- Refuses a job that there is not, or that the caller may not see.
create or replace function mainspring.refuse_job(job_id bigint)
returns void
language plpgsql
as $$
begin
    perform mainspring.refuse('MS030', 'there is no job ' || coalesce(job_id::text, 'null'),
        jsonb_build_object('job_id', job_id));
end
$$;

-- Refuses what the state of a job does not allow.
create or replace function mainspring.refuse_move(
    job_id bigint, state mainspring.job_state, target text
)
returns void
language plpgsql
as $$
begin
    perform mainspring.refuse('MS031',
        'job ' || job_id || ' is ' || state || '; it cannot become ' || target,
        jsonb_build_object('job_id', job_id, 'state', state, 'target', target));
end
$$;

-- Refuses a text that is empty, or too long for an index.
create or replace function mainspring.check_text(option text, value text)
returns void
language plpgsql immutable
as $$
begin
    if length(value) not between 1 and 500 then
        perform mainspring.refuse('MS003',
            option || case when value = '' then ' must not be empty'
                           else ' must be at most 500 characters' end,
            jsonb_build_object('option', option));
    end if;
end
$$;

-- Refuses a reason that is too long.
create or replace function mainspring.check_reason(reason text)
returns void
language plpgsql immutable
as $$
begin
    if length(reason) > mainspring.longest_text() then
        perform mainspring.refuse('MS003', 'reason must be at most 10000 characters',
            '{"option": "reason"}');
    end if;
end
$$;
