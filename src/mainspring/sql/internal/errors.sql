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
