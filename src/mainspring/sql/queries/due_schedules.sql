-- name: due
-- scope: system
-- The plain schedules that are due, grouped by what decides their next slot, so that a thousand
-- of one kind are planned once. Those without a condition, a template, a limit, an approval, a
-- missing definition or a payload that may not fit it are plain. :late is how long a slot must
-- have been due, :skip how many are being fired already. Each clock comes with its revision and the
-- place of its row.
select schedule.cron, schedule.every, schedule.at, schedule.zone, schedule.dst_gap,
       schedule.dst_fold, schedule.calendar, schedule.starts_at, schedule.ends_at,
       schedule.paused_until, mainspring.counted_from(schedule), mainspring.spread_by(schedule),
       schedule.misfire_grace, schedule.catch_up, schedule.catch_up_limit,
       schedule.catch_up_max_age, schedule.definition, alike.next_slot_at, alike.base_at,
       coalesce(%(now)s::timestamptz, now()), alike.schedule_ids, alike.revisions,
       alike.places::text
  from (select plan_key, next_slot_at, base_at, min(schedule_id) as schedule_id,
               array_agg(schedule_id) as schedule_ids, array_agg(revision) as revisions,
               array_agg(place) as places
          from (select plan_key, next_slot_at, schedule_id, revision, ctid as place,
                       case when next_slot_at is null then changed_at end as base_at
                  from mainspring.clocks
                 where next_run_at <= coalesce(%(now)s::timestamptz, now()) - %(late)s::interval
                   and (next_slot_at is null
                        or (is_plain and (definition, schema_key) in (
                            select key, schema_key from mainspring.definitions
                             where is_active and is_plain)))
                 order by next_run_at limit %(limit)s offset %(skip)s) as due
         group by plan_key, next_slot_at, base_at) as alike
  join mainspring.schedules as schedule using (schedule_id);

-- name: due_checks
-- scope: system
-- The schedules that are due and need a look of their own: a condition, a template, a limit, an
-- approval, a definition that is not there, or a payload that may not fit it. Whoever reads them
-- has them to itself for a while.
update mainspring.clocks as clock
   set checking_until = now() + schedule.condition_timeout + interval '5 seconds',
       checking_by = %(identity)s
  from mainspring.schedules as schedule
 where clock.ctid = any (array(
    select due.ctid from mainspring.clocks as due
     where due.next_run_at <= coalesce(%(now)s::timestamptz, now()) - %(late)s::interval
       and (due.checking_until is null or due.checking_until <= now())
       and due.next_slot_at is not null
       and (not due.is_plain or (due.definition, due.schema_key) not in (
            select key, schema_key from mainspring.definitions where is_active and is_plain))
     order by due.next_run_at limit %(limit)s for update skip locked))
   and schedule.schedule_id = clock.schedule_id
returning schedule.*, clock.revision, clock.next_slot_at, clock.gauge_is_high, clock.retry_count,
          coalesce(%(now)s::timestamptz, now()) as now;

-- name: next_fire
-- scope: system
-- Seconds until the next schedule is due that nobody looks at already, and the instant.
select extract(epoch from greatest(next_run_at, now() - interval '1 day') - now())::float,
       greatest(next_run_at, now() - interval '1 day')
  from mainspring.clocks
 where next_run_at is not null and (checking_until is null or checking_until <= now())
 order by next_run_at limit 1;

-- name: fire
-- scope: system
-- Fires one slot for each of many plain schedules: claims the slot, enqueues the job, moves on.
-- A schedule that was fired, changed or disabled since it was read is left alone, and has a new
-- place then; a slot that was claimed before makes the whole statement fail. Groups have a slot, a
-- next one, infinity for none, a definition, and the part of the schedules that are theirs. A fast
-- path of internal/enqueue.sql.
with due as materialized (
    select alike.schedule_id, alike.revision, alike.place, given.slot_at,
           nullif(given.next_slot_at, 'infinity') as next_slot_at,
           defined.key as definition, defined.version, defined.queue, defined.priority,
           defined.max_attempts,
           case when alike.schedule_id in (
                    select run.schedule_id from mainspring.jobs as run
                     where run.schedule_id = any (%(schedule_ids)s::bigint[])
                       and run.slot_at is not null)
                then mainspring.live_runs(alike.schedule_id) else 0 end as live
      from unnest(%(slots)s::text[]::timestamptz[], %(next_slots)s::text[]::timestamptz[],
                  %(definitions)s::text[], %(firsts)s::bigint[], %(lasts)s::bigint[])
           as given (slot_at, next_slot_at, definition, first, last)
      join mainspring.definitions as defined on defined.key = given.definition
                                            and defined.is_active and defined.is_plain,
           unnest((%(schedule_ids)s::bigint[])[given.first:given.last],
                  (%(revisions)s::bigint[])[given.first:given.last],
                  -- By itself, so that it is read once and not once a group.
                  (select %(places)s::text::tid[])[given.first:given.last])
           as alike (schedule_id, revision, place)
     -- Neighbours share pages; and rows are locked in one order everywhere, so that two schedulers
     -- cannot wait for each other.
     order by alike.schedule_id
), fired as (
    update mainspring.clocks as clock
       set revision = clock.revision + 1, retry_count = 0, next_slot_at = due.next_slot_at,
           next_run_at = mainspring.run_instant(
               clock.schedule_id, due.next_slot_at, schedule.jitter),
           last_slot_at = due.slot_at,
           last_enqueued_at = case when due.live < schedule.max_running
                                         or schedule.overlap <> 'skip'
                                   then now() else clock.last_enqueued_at end,
           last_skipped_at = case when due.live >= schedule.max_running
                                        and schedule.overlap = 'skip'
                                  then now() else clock.last_skipped_at end,
           enqueued_count = clock.enqueued_count
               + (due.live < schedule.max_running or schedule.overlap <> 'skip')::integer,
           skipped_count = clock.skipped_count
               + (due.live >= schedule.max_running and schedule.overlap = 'skip')::integer,
           lateness_total = clock.lateness_total + (now() - clock.next_run_at),
           lateness_worst = greatest(clock.lateness_worst, now() - clock.next_run_at)
      from due, mainspring.schedules as schedule
     where clock.ctid = due.place and clock.schedule_id = due.schedule_id
       and clock.revision = due.revision
       and clock.next_slot_at = due.slot_at and clock.definition = due.definition
       -- It may have been read before it was due. So written, no index of the instants is walked.
       and (clock.next_run_at <= now()) is true
       and schedule.schedule_id = due.schedule_id and schedule.enabled
    returning clock.schedule_id, due.slot_at, schedule.tenant_id, schedule.origin,
              schedule.payload, due.definition, due.version, schedule.overlap,
              due.live >= schedule.max_running as is_full,
              coalesce(schedule.queue, due.queue) as queue,
              coalesce(schedule.priority, due.priority) as priority,
              coalesce(schedule.max_attempts, due.max_attempts) as max_attempts,
              case when due.live < schedule.max_running or schedule.overlap <> 'skip'
                   then nextval('mainspring.job_ids') end as job_id
), claimed as (
    insert into mainspring.slots (schedule_id, scheduled_for, outcome, job_id, reason)
    select schedule_id, slot_at,
           case when job_id is null then 'skipped' else 'enqueued' end::mainspring.slot_outcome,
           job_id,
           case when job_id is null then 'an earlier run is still live (overlap = skip)' end
      from fired
), enqueued as (
    insert into mainspring.jobs (
        job_id, tenant_id, queue, definition, definition_version, priority, payload,
        max_attempts, waits_for, schedule_id, slot_at, origin)
    select job_id, tenant_id, queue, definition, version, priority, payload, max_attempts,
           case when is_full then 'turn'::mainspring.waits_for end, schedule_id, slot_at, origin
      from fired where job_id is not null
)
select count(*), count(job_id),
       coalesce(array_agg(schedule_id) filter (where is_full and overlap = 'replace'), '{}'),
       array(select distinct queue from fired where job_id is not null),
       -- What a log line names.
       array(select origin->>'schedule' from fired limit 10),
       array(select job_id from fired where job_id is not null limit 10),
       (select array[tenant_id, definition, to_json(slot_at)#>>'{}'] from fired limit 1)
  from fired;

-- name: replace_runs
-- scope: system
-- Cancels the runs of schedules that a newer slot replaces.
select mainspring.stop_job(job.job_id, 'replaced by a newer slot of its schedule', job.tenant_id)
  from unnest(%(schedule_ids)s::bigint[]) as replaced (schedule_id),
       lateral (select job_id, tenant_id from mainspring.jobs as earlier
                 where earlier.schedule_id = replaced.schedule_id
                   and earlier.slot_at < (select max(newest.slot_at) from mainspring.jobs as newest
                                           where newest.schedule_id = replaced.schedule_id)
               ) as job;

-- name: advance
-- scope: system
-- Sets the next slot of many schedules without firing any; infinity stands for none. One that
-- someone is changing is left for later.
with due as (
    select held.schedule_id, alike.revision, nullif(given.next_slot_at, 'infinity') as next_slot_at
      from unnest(%(next_slots)s::text[]::timestamptz[], %(firsts)s::bigint[], %(lasts)s::bigint[])
           as given (next_slot_at, first, last),
           unnest((%(schedule_ids)s::bigint[])[given.first:given.last],
                  (%(revisions)s::bigint[])[given.first:given.last])
           as alike (schedule_id, revision),
           mainspring.clocks as held
     where held.schedule_id = alike.schedule_id
     order by alike.schedule_id
       for update of held skip locked
)
update mainspring.clocks as clock
   set revision = clock.revision + 1, next_slot_at = due.next_slot_at,
       next_run_at = mainspring.run_instant(clock.schedule_id, due.next_slot_at, schedule.jitter)
  from due, mainspring.schedules as schedule
 where clock.schedule_id = due.schedule_id and clock.revision = due.revision
   and schedule.schedule_id = due.schedule_id and schedule.enabled;

-- name: reserve_job
-- scope: system
-- The id of the job that a launcher may enqueue, for it to know before the slot is claimed.
select nextval('mainspring.job_ids');

-- name: apply_plans
-- scope: system
-- Carries out what was decided for schedules that need more than one plain slot each; what came of
-- the newest slot, which fired, and why the newest failed if one did.
select outcome,
       case when outcome is not null then mainspring.fired_slots(
           (plan ->> 'schedule_id')::bigint, planned.slots) end as fired,
       case when outcome = 'failed' then mainspring.failure_of_slots(
           (plan ->> 'schedule_id')::bigint, planned.slots) end as failure
  from jsonb_array_elements(%(plans)s::jsonb) as plan, mainspring.apply_plan(plan) as outcome,
       lateral (select array(select (slot ->> 'at')::timestamptz
                               from jsonb_array_elements(plan -> 'slots') as slot) as slots)
           as planned;

-- name: unknown_launchers
-- scope: system
-- Schedules that a scheduler with these launchers cannot check.
select schedule.name, schedule.launcher from mainspring.schedules as schedule
 where schedule.enabled and schedule.launcher is not null
   and schedule.launcher <> all (%(known)s::text[])
 order by schedule.schedule_id;

-- name: refuse_timing
-- scope: system
-- Disables schedules whose timing cannot be understood, and says why.
update mainspring.schedules as schedule
   set enabled = false, disabled_reason = %(reason)s
  from (select held.schedule_id
          from unnest(%(schedule_ids)s::bigint[], %(revisions)s::bigint[])
               as given (schedule_id, revision),
               mainspring.schedules as held, mainspring.clocks as clock
         where held.schedule_id = given.schedule_id and clock.schedule_id = given.schedule_id
           and clock.revision = given.revision
           for update of held, clock skip locked) as wrong
 where schedule.schedule_id = wrong.schedule_id
returning schedule.name;

-- name: name_schedules
-- scope: system
-- What log lines call schedules of which only the id is at hand.
select tenant_id, definition, name
  from mainspring.schedules where schedule_id = any (%(schedule_ids)s::bigint[]);

-- name: drop_checks
-- scope: system
-- Gives back the schedules and slots that dead schedulers were looking at.
with slots as (
    update mainspring.slots set checking_until = null, checking_by = null
     where outcome = 'pending' and checking_by = any (%(identities)s::text[])
    returning schedule_id
), clocks as (
    update mainspring.clocks set checking_until = null, checking_by = null
     where checking_until is not null and checking_by = any (%(identities)s::text[])
    returning schedule_id
)
select (select count(*) from slots) + (select count(*) from clocks);

-- name: checkers
-- scope: system
-- Who looks at schedules and slots now.
select checking_by from mainspring.clocks where checking_until is not null
union
select checking_by from mainspring.slots where outcome = 'pending' and checking_by is not null;

-- name: lead
-- scope: system
-- Tries to be the scheduler that reads first; it saves the others the reading, no more.
select pg_try_advisory_lock(hashtext('mainspring.scheduler'));

-- name: overdue_runs
-- scope: system
-- Closes runs that go on for longer than their schedule allows, of some jobs only if given. Leaves
-- out what is set aside. The offset keeps the planner at the few jobs of a schedule, away from all
-- that run.
select run.job_id, schedule.name, mainspring.close_overdue_run(run.job_id)
  from mainspring.schedules as schedule,
       lateral (select job.job_id, job.state, job.started_at from mainspring.jobs as job
                 where job.schedule_id = schedule.schedule_id and job.slot_at is not null
                offset 0) as run
 where schedule.run_timeout is not null and run.state = 'running'
   and run.started_at < now() - schedule.run_timeout
   and coalesce(run.job_id = any (%(chosen)s::bigint[]), true)
   and not exists (select from mainspring.set_aside as aside
                    where aside.duty = 'close_overdue' and aside.key = run.job_id
                      and aside.again_at > now() offset 0)
 limit %(limit)s;

-- name: find_overdue
-- scope: system
-- The runs that overdue_runs would close.
select run.job_id
  from mainspring.schedules as schedule,
       lateral (select job.job_id, job.state, job.started_at from mainspring.jobs as job
                 where job.schedule_id = schedule.schedule_id and job.slot_at is not null
                offset 0) as run
 where schedule.run_timeout is not null and run.state = 'running'
   and run.started_at < now() - schedule.run_timeout
   and not exists (select from mainspring.set_aside as aside
                    where aside.duty = 'close_overdue' and aside.key = run.job_id
                      and aside.again_at > now() offset 0)
 limit %(limit)s;

-- name: release_turns
-- scope: system
-- Lets waiting jobs go whose turn has come unnoticed: a schedule that was deleted or changed. The
-- first job of each schedule stands for it: of some only if given, and not if it is set aside.
-- Two that do it at once could let two go where one may run.
with guard as materialized (
    select pg_try_advisory_xact_lock(hashtext('mainspring.turns')) as is_ours
)
select waiting.job_id, mainspring.release_turn(waiting.schedule_id)
  from guard,
       lateral (select schedule_id, min(job_id) as job_id from mainspring.jobs
                 where waits_for = 'turn' and guard.is_ours
                 group by schedule_id offset 0) as waiting
 where coalesce(waiting.job_id = any (%(chosen)s::bigint[]), true)
   and not exists (select from mainspring.set_aside as aside
                    where aside.duty = 'release_turns' and aside.key = waiting.job_id
                      and aside.again_at > now() offset 0);

-- name: find_turns
-- scope: system
-- The first jobs of the schedules that release_turns would look at.
select waiting.job_id
  from (select schedule_id, min(job_id) as job_id from mainspring.jobs
         where waits_for = 'turn' group by schedule_id offset 0) as waiting
 where not exists (select from mainspring.set_aside as aside
                    where aside.duty = 'release_turns' and aside.key = waiting.job_id
                      and aside.again_at > now() offset 0);
