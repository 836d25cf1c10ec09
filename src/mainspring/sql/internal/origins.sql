-- Origins: where a job came from, and who it may be said to be created by.

-- Where a job came from.
create or replace function mainspring.source_of(schedule_id bigint, created_by text)
returns text
language sql immutable
return case when schedule_id is not null then 'schedule'
            when created_by like 'trigger:%' then 'trigger'
            when created_by like 'job:%' then 'job'
            when created_by is not null then 'api' else 'code' end;

-- Who created a job; a job of a schedule was created by its launcher, or by the schedule itself,
-- also if somebody fired it by hand.
create or replace function mainspring.creator_of(
    created_by text, schedule_id bigint, origin jsonb
)
returns text
language sql immutable
return case when created_by is null and schedule_id is not null
            then 'system:scheduler:' || coalesce(origin ->> 'launcher', origin ->> 'schedule')
            else created_by end;

-- The trigger that created a job, if one did.
create or replace function mainspring.trigger_of(created_by text)
returns text
language sql immutable
return case when created_by like 'trigger:%' then substr(created_by, 9) end;

-- The name of the schedule of a job; the one that it had if it is gone. The view has the same,
-- since not everyone who reads that may read schedules.
create or replace function mainspring.schedule_of(schedule_id bigint, origin jsonb)
returns text
language plpgsql stable
as $$
begin
    return case when schedule_id is not null then coalesce(
        (select schedule.name from mainspring.schedules as schedule
          where schedule.schedule_id = schedule_of.schedule_id), origin ->> 'schedule') end;
end
$$;

-- Who a job may be said to be created by: a member may name itself only, and nobody a part of
-- Mainspring. Simple enough to become a part of the statement that calls it.
create or replace function mainspring.may_create_as(created_by text)
returns boolean
language sql stable
return created_by is null
    or (length(created_by) between 1 and 500 and mainspring.is_own(created_by)
        and (created_by !~ '^(system|trigger|job):'
             or (mainspring.is_program() and not mainspring.is_isolated())));

-- Whether an enqueue may say that its job comes from there: nothing that only Mainspring knows.
create or replace function mainspring.is_source(source text)
returns boolean
language sql immutable
return source is null
    or (source ~ '^[a-z][a-z0-9_.-]{0,49}$'
        and source not in ('schedule', 'trigger', 'job', 'system'));

-- Whether nothing about them needs a closer look.
create or replace function mainspring.is_plain_origin(created_by text, source text)
returns boolean
language sql stable
return mainspring.may_create_as(created_by) and mainspring.is_source(source);

-- What is kept of where a job comes from: who is named by code has not used the API.
create or replace function mainspring.given_source(source text, created_by text)
returns text
language sql stable
return case when source is null and created_by is not null and mainspring.creator() is null
                 and created_by !~ '^(system|trigger|job):' then 'code'
            else source end;

-- Refuses who or what a job may not be said to come from.
create or replace function mainspring.check_origin(created_by text, source text)
returns void
language plpgsql stable
as $$
begin
    perform mainspring.check_text('created_by', created_by);
    if not mainspring.may_create_as(created_by) then
        perform mainspring.refuse_option('created_by', case when not mainspring.is_own(created_by)
            then 'created_by: members enqueue in their own name only; leave it out'
            else 'created_by must not start with system:, trigger: or job:, which Mainspring uses'
            end);
    end if;
    if not mainspring.is_source(source) then
        perform mainspring.refuse_option('source', 'source must be 1 to 50 lower-case letters, '
            || 'digits and _ . -, and not schedule, trigger, job or system, which Mainspring uses');
    end if;
end
$$;

-- Whether a job came from where a filter says: it has one of the values of each name, as in
-- job_matches. A single expression, so that it becomes a part of the statement that calls it.
create or replace function mainspring.origin_matches(
    filter jsonb, created_by text, schedule text, slot_at timestamptz, trigger text,
    worker_id bigint, definition_version integer
)
returns boolean
language sql stable
return (filter -> 'created_by' is null or filter -> 'created_by' ? created_by)
   and (filter -> 'schedule' is null or filter -> 'schedule' ? schedule)
   and (filter ->> 'slot_at' is null or slot_at = (filter ->> 'slot_at')::timestamptz)
   and (filter -> 'trigger' is null or filter -> 'trigger' ? trigger)
   and (filter -> 'worker_id' is null or filter -> 'worker_id' ? worker_id::text)
   and (filter -> 'definition_version' is null
        or filter -> 'definition_version' ? definition_version::text);

-- Whether a job belongs to the flow, event or parent that a filter names. Not a part of the
-- statement that calls it, which has seldom to ask.
create or replace function mainspring.is_related(filter jsonb, job_id bigint, creator text)
returns boolean
language plpgsql stable
as $$
begin
    return (filter -> 'flow_id' is null or exists (
            select from mainspring.flow_jobs as member
             where member.job_id = is_related.job_id
               and filter -> 'flow_id' ? member.flow_id::text))
       and (filter -> 'event_id' is null or exists (
            select from mainspring.dispatches as dispatch
             where dispatch.job_id = is_related.job_id and dispatch.outcome = 'enqueued'
               and filter -> 'event_id' ? dispatch.event_id::text))
       and (filter -> 'parent_id' is null
            or (creator like 'job:%' and filter -> 'parent_id' ? substr(creator, 5))
            or exists (select from mainspring.dependencies as dependency
                        where dependency.job_id = is_related.job_id
                          and filter -> 'parent_id' ? dependency.parent_id::text));
end
$$;
