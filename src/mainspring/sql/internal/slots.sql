-- Slots: how they become jobs.
--
-- A slot is claimed by its row, which is written in the transaction that inserts its job and
-- moves the schedule's clock on. Everything that fires or edits a schedule increments the revision
-- of its clock, and whoever fires names the revision it read, so of any number of schedulers one
-- succeeds. Whoever needs both rows locks the schedule first and then its clock.

-- What a slot keeps of the result of its run: its message and details if it has these, as SQL
-- functions do, else all of it. Text is cut; details that are large are left out. The size as
-- stored comes first: it is known without writing them as text.
create or replace function mainspring.run_answer(
    result jsonb, out message text, out details jsonb, out is_details_omitted boolean
)
language plpgsql immutable
as $$
begin
    if jsonb_typeof(result -> 'message') = 'string' then
        message := left(result ->> 'message', 2000);
    end if;
    details := nullif(case when message is not null or (result ? 'details')
                                and jsonb_typeof(result) = 'object'
                           then result -> 'details' else result end, 'null');
    is_details_omitted := coalesce(
        pg_column_size(details) > 65536 or octet_length(details::text) > 8192, false);
    if is_details_omitted then
        details := null;
    end if;
end
$$;

-- Turns one slot into a job under the schedule's overlap rule. The caller holds the schedule's
-- row and writes the slot. A reserved id is that of the job.
create or replace function mainspring.start_slot(
    schedule mainspring.schedules, slot timestamptz, source mainspring.slot_trigger,
    missed integer, payload jsonb default null, definition text default null,
    in_line boolean default false, reserved bigint default null,
    out outcome mainspring.slot_outcome, out job_id bigint, out reason text
)
language plpgsql
as $$
#variable_conflict use_column
declare
    defined mainspring.definitions;
    is_full boolean := mainspring.live_runs(schedule.schedule_id) >= schedule.max_running;
    wanted text := coalesce(start_slot.definition, schedule.definition);
    asked mainspring.jobs;
begin
    outcome := 'failed';
    select * into defined from mainspring.definitions as d where d.key = wanted and d.is_active;
    if not found then
        reason := mainspring.why_unknown(wanted);
        return;
    end if;
    if mainspring.is_closed(wanted) then
        reason := 'definition ' || mainspring.why_closed(wanted);
        return;
    end if;
    if is_full and schedule.overlap = 'skip' and in_line is not true then
        outcome := 'skipped';
        reason := 'an earlier run is still live (overlap = skip)';
        return;
    end if;
    if is_full and schedule.overlap = 'replace' and in_line is not true then
        perform mainspring.stop_runs(schedule.schedule_id);
        is_full := mainspring.live_runs(schedule.schedule_id) >= schedule.max_running;
    end if;
    asked := mainspring.asked_job(
        wanted, coalesce(start_slot.payload, schedule.payload), schedule.tenant_id,
        schedule.queue, schedule.priority, schedule.max_attempts, job_id => reserved,
        delivery => schedule.delivery);
    asked.schedule_id := schedule.schedule_id;
    asked.slot_at := slot;
    asked.origin := schedule.origin || jsonb_build_object('trigger', source, 'missed', missed);
    job_id := mainspring.add_job(
        mainspring.new_job(asked, defined, is_behind_others => is_full), defined);
    outcome := 'enqueued';
end
$$;

-- The slot that a person fires: an extra one of this instant, or a past one that has no job. The
-- caller holds the schedule's rows, so no other call has the same.
create or replace function mainspring.free_slot(
    schedule mainspring.schedules, asked timestamptz
)
returns timestamptz
language plpgsql
as $$
#variable_conflict use_column
declare
    taken mainspring.slots;
    shown text := to_char(asked at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"');
begin
    if asked is null then
        return clock_timestamp();
    end if;
    if asked > clock_timestamp() or asked < '0001-01-02T00:00:00Z' then
        perform mainspring.refuse_schedule(
            'slot', shown || ' is not in the past; without a slot the schedule is fired now');
    end if;
    select * into taken from mainspring.slots as slot
     where slot.schedule_id = schedule.schedule_id and slot.scheduled_for = asked
       and slot.outcome in ('pending', 'enqueued');
    if found then
        perform mainspring.refuse('MS043',
            format('slot %s of schedule %L is already claimed: %s', shown, schedule.name,
                   coalesce('job ' || taken.job_id, 'it waits for a scheduler')),
            jsonb_build_object('name', schedule.name, 'slot_at', asked, 'job_id', taken.job_id));
    end if;
    return asked;
end
$$;

-- Cancels the runs of a schedule for the sake of a newer slot.
create or replace function mainspring.stop_runs(schedule_id bigint)
returns void
language plpgsql
as $$
begin
    perform mainspring.stop_job(job.job_id, 'replaced by a newer slot of its schedule',
                                job.tenant_id)
       from mainspring.jobs as job
      where job.schedule_id = stop_runs.schedule_id and job.slot_at is not null;
end
$$;

-- Lets as many waiting jobs of a schedule go as may run, the oldest slot first. What awaits its
-- approval may never run, so nobody waits for it.
create or replace function mainspring.release_turn(schedule_id bigint)
returns void
language plpgsql
as $$
#variable_conflict use_column
declare
    free bigint;
    released mainspring.jobs;
begin
    select coalesce(max(schedule.max_running), 1) into free from mainspring.schedules as schedule
     where schedule.schedule_id = release_turn.schedule_id;
    select free - count(*) into free from mainspring.jobs as job
     where job.schedule_id = release_turn.schedule_id and job.slot_at is not null
       and (job.waits_for is null or job.waits_for not in ('turn', 'approval'));
    if free > 0 then
        for released in
            update mainspring.jobs as job
               set waits_for = mainspring.wait_of(job.limit_name), ready_at = null,
                   scheduled_for = clock_timestamp()
             where job.job_id = any (array(
                select waiting.job_id from mainspring.jobs as waiting
                 where waiting.schedule_id = release_turn.schedule_id
                   and waiting.waits_for = 'turn'
                 order by waiting.slot_at limit free for update skip locked))
            returning job.*
        loop
            perform mainspring.notify_released(released);
        end loop;
    end if;
end
$$;

-- Enqueues past slots, in the order of time and one after the other; a slot that had its job
-- keeps it. Payloads, if given, are those of the slots in the same order. Returns the jobs, one
-- a slot.
create or replace function mainspring.backfill(
    schedule_id bigint, slots timestamptz[], payloads jsonb[] default null
)
returns table (slot_at timestamptz, job_id bigint)
language plpgsql
as $$
#variable_conflict use_column
declare
    schedule mainspring.schedules;
    started record;
    payload jsonb;
begin
    select * into schedule from mainspring.schedules as s
     where s.schedule_id = backfill.schedule_id for update;
    perform from mainspring.clocks as c where c.schedule_id = backfill.schedule_id for update;
    for slot_at, payload in
        select slot.at, slot.payload from unnest(slots, payloads) as slot (at, payload)
         order by slot.at
    loop
        continue when exists (
            select from mainspring.slots as s
             where s.schedule_id = backfill.schedule_id and s.scheduled_for = slot_at
               and s.outcome in ('pending', 'enqueued'));
        select * into started from mainspring.start_slot(
            schedule, slot_at, 'backfill', 0, payload, in_line => true);
        if started.outcome = 'failed' then
            perform mainspring.refuse('MS010', started.reason,
                                      mainspring.unknown_facts(schedule.definition));
        end if;
        insert into mainspring.slots as s
            (schedule_id, scheduled_for, outcome, trigger, job_id, reason, fired_at)
        values (backfill.schedule_id, slot_at, started.outcome, 'backfill', started.job_id,
                started.reason, clock_timestamp())
        on conflict (schedule_id, scheduled_for) do update
           set outcome = excluded.outcome, trigger = 'backfill', job_id = excluded.job_id,
               reason = excluded.reason, fired_at = excluded.fired_at;
        job_id := started.job_id;
        return next;
    end loop;
    update mainspring.clocks as c
       set revision = c.revision + 1, checking_until = null, checking_by = null,
           last_enqueued_at = case when job_id is null then c.last_enqueued_at
                                   else clock_timestamp() end
     where c.schedule_id = backfill.schedule_id;
end
$$;

-- Closes a run that has gone on for too long: its slot says so, the job is asked to stop, and
-- the schedule goes on without it.
create or replace function mainspring.close_overdue_run(job_id bigint)
returns boolean
language plpgsql
as $$
#variable_conflict use_column
declare
    overdue mainspring.jobs;
    limit_text text;
begin
    select * into overdue from mainspring.jobs as job
     where job.job_id = close_overdue_run.job_id and job.state = 'running'
       and job.slot_at is not null
       for update skip locked;
    if not found then
        return false;
    end if;
    select 'it ran longer than the ' || s.run_timeout || ' its schedule allows' into limit_text
      from mainspring.schedules as s where s.schedule_id = overdue.schedule_id;
    update mainspring.slots as slot
       set run_state = 'timed_out', started_at = overdue.started_at,
           finished_at = clock_timestamp(), reason = limit_text
     where slot.schedule_id = overdue.schedule_id and slot.scheduled_for = overdue.slot_at;
    update mainspring.jobs as job set slot_at = null
     where job.job_id = close_overdue_run.job_id;
    perform mainspring.stop_job(overdue.job_id, limit_text, overdue.tenant_id);
    perform mainspring.release_turn(overdue.schedule_id);
    return true;
end
$$;
