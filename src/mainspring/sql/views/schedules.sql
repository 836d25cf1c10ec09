create or replace view mainspring.schedule_status as
select schedule.schedule_id, schedule.tenant_id, schedule.name, schedule.description,
       schedule.enabled, schedule.disabled_reason, schedule.paused_until,
       schedule.definition, schedule.cron, schedule.every, schedule.at, schedule.zone,
       schedule.launcher, schedule.overlap, schedule.catch_up,
       case when clock.next_run_at > 'epoch' then clock.next_run_at end as next_run_at,
       clock.last_enqueued_at as last_run_at,
       coalesce(fresh.last_run_state, figures.last_run_state) = 'succeeded' as last_run_success,
       runs.succeeded + runs.unsuccessful as total_runs,
       runs.succeeded as successful_runs,
       runs.unsuccessful as failed_runs,
       clock.skipped_count as skipped_slots,
       clock.missed_count as missed_slots,
       clock.failed_count as failed_launches,
       round(100.0 * runs.succeeded / nullif(runs.succeeded + runs.unsuccessful, 0), 1)
           as success_rate_percent,
       runs.seconds / nullif(runs.succeeded + runs.unsuccessful, 0) as average_seconds,
       greatest(figures.seconds_worst, fresh.seconds_worst) as worst_seconds,
       extract(epoch from clock.lateness_total)::float
           / nullif(clock.enqueued_count + clock.skipped_count, 0) as average_lateness_seconds,
       extract(epoch from clock.lateness_worst)::float as worst_lateness_seconds,
       clock.retry_count, schedule.max_retries, clock.last_error, clock.last_failed_at,
       schedule.created_at, schedule.updated_at, schedule.delivery,
       case when not exists (select from mainspring.definitions as defined
                              where defined.key = schedule.definition and defined.is_active)
            then mainspring.why_unknown(schedule.definition) end as problem
  from mainspring.schedules as schedule
  join mainspring.clocks as clock using (schedule_id)
  left join mainspring.schedule_figures as figures using (schedule_id),
       lateral (
           -- What has ended since the figures were last counted.
           select count(*) filter (where slot.run_state = 'succeeded')
                      - count(*) filter (where slot.counted_as = 'succeeded') as succeeded,
                  count(*) filter (where slot.run_state <> 'succeeded')
                      - count(*) filter (where slot.counted_as <> 'succeeded') as unsuccessful,
                  sum(extract(epoch from slot.finished_at - slot.started_at)) as seconds,
                  max(extract(epoch from slot.finished_at - slot.started_at))::float
                      as seconds_worst,
                  (array_agg(slot.run_state order by slot.finished_at desc)
                      filter (where slot.run_state is not null))[1] as last_run_state
             from mainspring.slots as slot
            where slot.schedule_id = schedule.schedule_id
              and slot.run_state is distinct from slot.counted_as) as fresh,
       lateral (
           select coalesce(figures.succeeded, 0) + fresh.succeeded as succeeded,
                  coalesce(figures.unsuccessful, 0) + fresh.unsuccessful as unsuccessful,
                  coalesce(figures.seconds_total, 0) + coalesce(fresh.seconds, 0) as seconds
       ) as runs
 where mainspring.is_visible(schedule.tenant_id);

-- What the gauges of schedules said last; slot_status.gauge_value has what they said before.
create or replace view mainspring.gauge_status as
select schedule.schedule_id, schedule.tenant_id, schedule.name, clock.gauge_value as value,
       case when clock.gauge_is_high then 'high' else 'low' end as side,
       schedule.gauge_lower as lower, schedule.gauge_upper as upper,
       coalesce(schedule.gauge_bounds, 'inclusive') as bounds, clock.gauge_read_at as read_at
  from mainspring.schedules as schedule
  join mainspring.clocks as clock using (schedule_id)
 where schedule.gauge_sql is not null and mainspring.is_visible(schedule.tenant_id);
