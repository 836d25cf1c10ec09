-- name: pending_slots
-- scope: system
-- Slots that a person asked for and whose condition is to be checked, with their schedules.
-- Whoever reads them has them to itself for a while.
with taken as (
    update mainspring.slots as slot
       set checking_until = now() + interval '5 seconds'
               + (select schedule.condition_timeout from mainspring.schedules as schedule
                   where schedule.schedule_id = slot.schedule_id),
           checking_by = %(identity)s
     where slot.ctid = any (array(
        select asked.ctid from mainspring.slots as asked
         where asked.outcome = 'pending'
           and (asked.checking_until is null or asked.checking_until <= now())
         order by asked.scheduled_for limit %(limit)s for update skip locked))
    returning slot.schedule_id, slot.scheduled_for, slot.is_forced
)
select schedule.*, clock.revision, clock.gauge_is_high, clock.retry_count, taken.scheduled_for,
       taken.is_forced, now() as now
  from taken
  join mainspring.schedules as schedule using (schedule_id)
  join mainspring.clocks as clock using (schedule_id);

-- name: apply_trigger
-- scope: system
-- Carries out what was decided for a slot that a person asked for; what came of it, its job, and
-- why it failed if it did.
select outcome, mainspring.fired_slots(
           (plan ->> 'schedule_id')::bigint, array[(plan ->> 'slot_at')::timestamptz]) as fired,
       mainspring.failure_of_slots(
           (plan ->> 'schedule_id')::bigint, array[(plan ->> 'slot_at')::timestamptz]) as failure
  from (select %(plan)s::jsonb as plan) as given, mainspring.apply_trigger(plan) as outcome;

-- name: count_runs
-- scope: system
-- Adds runs that have ended, or were put back, to the figures of their schedules.
with changed as (
    select slot.ctid as place, slot.schedule_id, slot.run_state, slot.counted_as, slot.finished_at,
           extract(epoch from slot.finished_at - slot.started_at)::float as seconds
      from mainspring.slots as slot
     where slot.run_state is distinct from slot.counted_as
     limit %(limit)s for update skip locked
), counted as (
    update mainspring.slots as slot set counted_as = slot.run_state
     where slot.ctid = any (array(select place from changed))
)
insert into mainspring.schedule_figures as figures (
    schedule_id, succeeded, unsuccessful, seconds_total, seconds_worst, last_finished_at,
    last_run_state)
select schedule_id,
       count(*) filter (where run_state = 'succeeded')
           - count(*) filter (where counted_as = 'succeeded'),
       count(*) filter (where run_state <> 'succeeded')
           - count(*) filter (where counted_as <> 'succeeded'),
       coalesce(sum(seconds) filter (where run_state is not null), 0),
       coalesce(max(seconds) filter (where run_state is not null), 0),
       max(finished_at) filter (where run_state is not null),
       (array_agg(run_state order by finished_at desc) filter (where run_state is not null))[1]
  from changed
 group by schedule_id
 order by schedule_id
on conflict (schedule_id) do update
   set succeeded = figures.succeeded + excluded.succeeded,
       unsuccessful = figures.unsuccessful + excluded.unsuccessful,
       seconds_total = figures.seconds_total + excluded.seconds_total,
       seconds_worst = greatest(figures.seconds_worst, excluded.seconds_worst),
       last_finished_at = coalesce(excluded.last_finished_at, figures.last_finished_at),
       last_run_state = coalesce(excluded.last_run_state, figures.last_run_state);

-- name: list_slots
-- scope: tenant
-- The slots of a schedule, newest first, before an instant and of some outcomes if given.
select * from mainspring.slot_status
 where tenant_id = %(tenant_id)s and name = %(name)s
   and (%(before)s::timestamptz is null or scheduled_for < %(before)s::timestamptz)
   and (%(outcomes)s::text[] is null
        or outcome = any (%(outcomes)s::text[]::mainspring.slot_outcome[]))
 order by scheduled_for desc limit %(limit)s;

-- name: get_slot
-- scope: tenant
-- One slot of a schedule.
select * from mainspring.slot_status
 where tenant_id = %(tenant_id)s and name = %(name)s
   and scheduled_for = %(scheduled_for)s::timestamptz;

-- name: claimed_slots
-- scope: tenant
-- Which of some slots have had their job, or are about to.
select slot.scheduled_for from mainspring.slots as slot
  join mainspring.schedules as schedule using (schedule_id)
 where schedule.tenant_id = %(tenant_id)s and schedule.name = %(name)s
   and slot.scheduled_for = any (%(slots)s::timestamptz[])
   and slot.outcome in ('pending', 'enqueued');

-- name: backfill
-- scope: tenant
-- Enqueues past slots of a schedule, one after the other.
select filled.slot_at, filled.job_id
  from mainspring.schedules as schedule,
       lateral mainspring.backfill(schedule.schedule_id, %(slots)s::timestamptz[],
                                   %(payloads)s::text[]::jsonb[]) as filled
 where schedule.tenant_id = %(tenant_id)s and schedule.name = %(name)s;
