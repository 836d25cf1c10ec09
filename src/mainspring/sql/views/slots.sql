-- A run that raised, took too long or lost its worker gave no message: the first line of its error
-- stands there.
create or replace view mainspring.slot_status as
select slot.schedule_id, schedule.tenant_id, schedule.name, slot.scheduled_for, slot.outcome,
       slot.trigger, slot.reason, slot.missed, slot.job_id, slot.fired_at, slot.run_state,
       slot.started_at, slot.finished_at,
       extract(epoch from slot.fired_at - slot.scheduled_for)::float as lateness_seconds,
       extract(epoch from slot.finished_at - slot.started_at)::float as seconds, slot.gauge_value,
       coalesce(slot.message, case when slot.run_state <> 'succeeded'
                                   then split_part(slot.reason, e'\n', 1) end) as message,
       slot.details, slot.is_details_omitted
  from mainspring.slots as slot
  join mainspring.schedules as schedule using (schedule_id)
 where mainspring.is_visible(schedule.tenant_id);
