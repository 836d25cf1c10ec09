-- name: due
-- scope: system
-- The plain schedules that are due, grouped by what decides their next slot, so that a thousand
-- of one kind are planned once. Those without a condition, a template or a missing definition
-- are plain. :late is how long a slot must have been due.
select cron, every, at, zone, dst_gap, dst_fold, calendar, starts_at, ends_at, paused_until,
       anchor, spread, misfire_grace, catch_up, catch_up_limit, catch_up_max_age, next_slot_at,
       base_at, coalesce(%(now)s::timestamptz, now()), array_agg(schedule_id), array_agg(turn)
  from (select cron, every, at, zone, dst_gap, dst_fold, calendar, starts_at, ends_at,
               paused_until, misfire_grace, catch_up, catch_up_limit, catch_up_max_age,
               next_slot_at, schedule_id, turn,
               case when cron ~* '^\s*@every' or every is not null then anchor_at end as anchor,
               case when cron ~* '(^|[\s,])h' then name end as spread,
               case when next_slot_at is null then changed_at end as base_at
          from mainspring.schedules
         where next_run_at <= coalesce(%(now)s::timestamptz, now()) - %(late)s::interval
           and (next_slot_at is null
                or (num_nonnulls(launcher, condition_sql, gauge_sql) = 0 and not is_templated
                    and exists (select from mainspring.definitions as defined
                                 where defined.key = definition and defined.is_active)))
         order by next_run_at limit %(limit)s) as due
 group by cron, every, at, zone, dst_gap, dst_fold, calendar, starts_at, ends_at, paused_until,
          anchor, spread, misfire_grace, catch_up, catch_up_limit, catch_up_max_age, next_slot_at,
          base_at;

-- name: due_checks
-- scope: system
-- The schedules that are due and need a look of their own: a condition, a template, or a
-- definition that is not there. Whoever reads them has them to itself for a while.
update mainspring.schedules as schedule
   set checking_until = now() + schedule.condition_timeout + interval '5 seconds',
       checking_by = %(identity)s
 where schedule.ctid = any (array(
    select due.ctid from mainspring.schedules as due
     where due.next_run_at <= coalesce(%(now)s::timestamptz, now()) - %(late)s::interval
       and (due.checking_until is null or due.checking_until <= now())
       and due.next_slot_at is not null
       and (num_nonnulls(due.launcher, due.condition_sql, due.gauge_sql) > 0 or due.is_templated
            or not exists (select from mainspring.definitions as defined
                            where defined.key = due.definition and defined.is_active))
     order by due.next_run_at limit %(limit)s for update skip locked))
returning schedule.*, coalesce(%(now)s::timestamptz, now()) as now;

-- name: next_fire
-- scope: system
-- Seconds until the next schedule is due that nobody looks at already; null when none is.
select extract(epoch from greatest(next_run_at, now() - interval '1 day') - now())::float
  from mainspring.schedules
 where next_run_at is not null and (checking_until is null or checking_until <= now())
 order by next_run_at limit 1;

-- name: fire
-- scope: system
-- Fires one slot for each of many plain schedules: claims the slot, enqueues the job, moves on.
-- A schedule that was fired, changed or disabled since it was read is left alone; a slot that
-- was claimed before makes the whole statement fail. Expected and next slots come a group at a
-- time; infinity stands for no next slot.
with given as materialized (
    select %(slots)s::text[]::timestamptz[] as slots,
           %(next_slots)s::text[]::timestamptz[] as next_slots
), due as (
    select due.schedule_id, due.turn, given.slots[due.number] as slot_at,
           nullif(given.next_slots[due.number], 'infinity') as next_slot_at,
           (select count(*) from mainspring.jobs as run
             where run.schedule_id = due.schedule_id and run.slot_at is not null) as live
      from given,
           unnest(%(schedule_ids)s::bigint[], %(turns)s::bigint[], %(numbers)s::bigint[])
           as due (schedule_id, turn, number)
    offset 0
), fired as (
    update mainspring.schedules as schedule
       set turn = schedule.turn + 1, retry_count = 0, next_slot_at = due.next_slot_at,
           next_run_at = mainspring.run_instant(
               schedule.schedule_id, due.next_slot_at, schedule.jitter),
           last_slot_at = due.slot_at,
           last_enqueued_at = case when due.live < schedule.max_running
                                         or schedule.overlap <> 'skip'
                                   then now() else schedule.last_enqueued_at end,
           last_skipped_at = case when due.live >= schedule.max_running
                                        and schedule.overlap = 'skip'
                                  then now() else schedule.last_skipped_at end,
           enqueued_count = schedule.enqueued_count
               + (due.live < schedule.max_running or schedule.overlap <> 'skip')::integer,
           skipped_count = schedule.skipped_count
               + (due.live >= schedule.max_running and schedule.overlap = 'skip')::integer,
           lateness_total = schedule.lateness_total + (now() - schedule.next_run_at),
           lateness_worst = greatest(schedule.lateness_worst, now() - schedule.next_run_at)
      from due, mainspring.definitions as defined
     where schedule.schedule_id = due.schedule_id and schedule.turn = due.turn
       and schedule.enabled and schedule.next_slot_at = due.slot_at
       and defined.key = schedule.definition and defined.is_active
    returning schedule.schedule_id, due.slot_at, schedule.tenant_id, schedule.name,
              schedule.payload, schedule.definition, schedule.overlap,
              due.live >= schedule.max_running as is_full,
              coalesce(schedule.queue, defined.queue) as queue,
              coalesce(schedule.priority, defined.priority) as priority,
              coalesce(schedule.max_attempts, defined.max_attempts) as max_attempts,
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
        job_id, tenant_id, queue, definition, priority, payload, max_attempts, waits_for,
        schedule_id, slot_at, origin)
    select job_id, tenant_id, queue, definition, priority, payload, max_attempts,
           case when is_full then 'turn'::mainspring.waits_for end, schedule_id, slot_at,
           jsonb_build_object('schedule', name)
      from fired where job_id is not null
)
select count(*), count(job_id),
       coalesce(array_agg(schedule_id) filter (where is_full and overlap = 'replace'), '{}'),
       array_agg(distinct queue) filter (where job_id is not null)
  from fired;

-- name: replace_runs
-- scope: system
-- Cancels the runs of schedules that a newer slot replaces.
select mainspring.cancel(job.job_id, 'replaced by a newer slot of its schedule', job.tenant_id)
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
with given as materialized (
    select %(next_slots)s::text[]::timestamptz[] as next_slots
)
update mainspring.schedules as schedule
   set turn = schedule.turn + 1,
       next_slot_at = nullif(due.next_slot_at, 'infinity'),
       next_run_at = mainspring.run_instant(
           schedule.schedule_id, nullif(due.next_slot_at, 'infinity'), schedule.jitter)
  from (select planned.schedule_id, planned.turn, given.next_slots[planned.number] as next_slot_at
          from given,
               unnest(%(schedule_ids)s::bigint[], %(turns)s::bigint[], %(numbers)s::bigint[])
               as planned (schedule_id, turn, number),
               mainspring.schedules as held
         where held.schedule_id = planned.schedule_id
           for update of held skip locked) as due
 where schedule.schedule_id = due.schedule_id and schedule.turn = due.turn and schedule.enabled;

-- name: apply_plans
-- scope: system
-- Carries out what was decided for schedules that need more than one plain slot each.
select mainspring.apply_plan(plan) from jsonb_array_elements(%(plans)s::jsonb) as plan;

-- name: refuse_timing
-- scope: system
-- Disables schedules whose timing cannot be understood, and says why.
update mainspring.schedules as schedule
   set enabled = false, disabled_reason = %(reason)s
  from (select given.schedule_id, given.turn
          from unnest(%(schedule_ids)s::bigint[], %(turns)s::bigint[]) as given (schedule_id, turn),
               mainspring.schedules as held
         where held.schedule_id = given.schedule_id
           for update of held skip locked) as wrong
 where schedule.schedule_id = wrong.schedule_id and schedule.turn = wrong.turn;

-- name: drop_checks
-- scope: system
-- Gives back the schedules and slots that dead schedulers were looking at.
with slots as (
    update mainspring.slots set checking_until = null, checking_by = null
     where outcome = 'pending' and checking_by = any (%(identities)s::text[])
    returning schedule_id
), schedules as (
    update mainspring.schedules set checking_until = null, checking_by = null
     where checking_until is not null and checking_by = any (%(identities)s::text[])
    returning schedule_id
)
select (select count(*) from slots) + (select count(*) from schedules);

-- name: checkers
-- scope: system
-- Who looks at schedules and slots now.
select checking_by from mainspring.schedules where checking_until is not null
union
select checking_by from mainspring.slots where outcome = 'pending' and checking_by is not null;

-- name: lead
-- scope: system
-- Tries to be the scheduler that reads first; it saves the others the reading, no more.
select pg_try_advisory_lock(hashtext('mainspring.scheduler'));

-- name: overdue_runs
-- scope: system
-- Closes runs that go on for longer than their schedule allows. The offset keeps the planner at
-- the few jobs of a schedule, away from all that run.
select mainspring.close_overdue_run(run.job_id)
  from mainspring.schedules as schedule,
       lateral (select job.job_id, job.state, job.started_at from mainspring.jobs as job
                 where job.schedule_id = schedule.schedule_id and job.slot_at is not null
                offset 0) as run
 where schedule.run_timeout is not null and run.state = 'running'
   and run.started_at < now() - schedule.run_timeout
 limit %(limit)s;

-- name: release_turns
-- scope: system
-- Lets waiting jobs go whose turn has come unnoticed: a schedule that was deleted or changed.
-- Two that do it at once could let two go where there is room for one.
with guard as materialized (
    select pg_try_advisory_xact_lock(hashtext('mainspring.turns')) as is_ours
)
select mainspring.release_turn(waiting.schedule_id)
  from guard,
       lateral (select distinct schedule_id from mainspring.jobs
                 where waits_for = 'turn' and guard.is_ours) as waiting;

-- name: create_schedule
-- scope: tenant
-- Adds a schedule; its tenant is in the spec.
select mainspring.create_schedule(
    %(spec)s::jsonb || jsonb_build_object('tenant_id', %(tenant_id)s::text));

-- name: update_schedule
-- scope: tenant
-- Changes the given parts of a schedule.
select mainspring.update_schedule(%(tenant_id)s, %(name)s, %(changes)s::jsonb);

-- name: declare_schedules
-- scope: system
-- Stores what code declares; says created, changed, unchanged or kept for each.
select spec ->> 'name', mainspring.declare_schedule(spec - 'overwrite',
                                                    (spec ->> 'overwrite')::boolean)
  from jsonb_array_elements(%(specs)s::jsonb) as spec;

-- name: delete_schedule
-- scope: tenant
-- Removes a schedule with its slots; its jobs stay.
delete from mainspring.schedules where tenant_id = %(tenant_id)s and name = %(name)s
returning schedule_id;

-- name: get_schedule
-- scope: tenant
-- One schedule by its name, with its figures, as JSON text that every driver carries alike;
-- durations are in seconds.
select (to_jsonb(schedule) || jsonb_build_object(
           'every', extract(epoch from schedule.every),
           'jitter', extract(epoch from schedule.jitter),
           'misfire_grace', extract(epoch from schedule.misfire_grace),
           'catch_up_max_age', extract(epoch from schedule.catch_up_max_age),
           'run_timeout', extract(epoch from schedule.run_timeout),
           'condition_timeout', extract(epoch from schedule.condition_timeout),
           'figures', to_jsonb(status)))::text
  from mainspring.schedules as schedule
  join mainspring.schedule_status as status using (schedule_id)
 where schedule.tenant_id = %(tenant_id)s and schedule.name = %(name)s;

-- name: list_schedules
-- scope: tenant
-- Schedules by name, after a name if given, with the filters that are given.
select schedule.*, to_jsonb(status) as figures
  from (select * from mainspring.schedules
         where tenant_id = %(tenant_id)s and name > coalesce(%(after)s::text, '')
           and (%(enabled)s::boolean is null or enabled = %(enabled)s::boolean)
           and (%(definition)s::text is null or definition = %(definition)s::text)
         order by name limit %(limit)s) as schedule
  join mainspring.schedule_status as status using (schedule_id)
 order by schedule.name;

-- name: schedule_names
-- scope: tenant
-- The names of schedules, to suggest one that was meant.
select name from mainspring.schedules where tenant_id = %(tenant_id)s order by name limit 1000;

-- name: trigger_schedule
-- scope: tenant
-- Fires a schedule now, in a slot of its own.
select mainspring.trigger_scheduled_job(%(name)s, %(tenant_id)s, %(force)s::boolean);
