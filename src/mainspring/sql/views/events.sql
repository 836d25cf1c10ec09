create or replace view mainspring.event_status as
select event.event_id, event.tenant_id, event.name,
       mainspring.shown_value(event.context) as context, event.correlation_id,
       event.emitted_at, event.handled_at, event.replays, came.jobs, came.duplicates,
       came.failures, came.last_error
  from mainspring.events as event,
       lateral (
           select count(*) filter (where newest.outcome = 'enqueued') as jobs,
                  count(*) filter (where newest.outcome = 'duplicate') as duplicates,
                  count(*) filter (where newest.outcome = 'failed') as failures,
                  (array_agg(newest.error order by newest.dispatched_at desc, newest.trigger_id)
                      filter (where newest.outcome = 'failed'))[1] as last_error
             -- A replay that went well makes good for what failed before.
             from (select distinct on (dispatch.trigger_id) dispatch.*
                     from mainspring.dispatches as dispatch
                    where dispatch.event_id = event.event_id
                    order by dispatch.trigger_id, dispatch.replay desc) as newest) as came
 where mainspring.is_visible(event.tenant_id);

create or replace view mainspring.dispatch_status as
select dispatch.event_id, event.tenant_id, event.name as event, dispatch.trigger_id,
       dispatch.trigger_name, dispatch.replay, dispatch.outcome, dispatch.job_id, dispatch.error,
       dispatch.dispatched_at
  from mainspring.dispatches as dispatch
  join mainspring.events as event using (event_id)
 where mainspring.is_visible(event.tenant_id);
