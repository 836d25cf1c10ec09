create or replace view mainspring.trigger_status as
select trigger.trigger_id, trigger.tenant_id, trigger.name, trigger.event, trigger.definition,
       case when trigger.definition in (select key from mainspring.definitions
                                         where secret_paths is not null)
            then mainspring.redacted(trigger.payload, (
                select defined.secret_paths from mainspring.definitions as defined
                 where defined.key = trigger.definition))
            else trigger.payload end as payload,
       trigger.unknown_paths, trigger.dedupe_window, trigger.queue,
       trigger.priority, trigger.is_enabled, trigger.created_at, trigger.updated_at,
       newest.dispatched_at as last_dispatched_at, newest.outcome as last_outcome,
       newest.event_id as last_event_id, newest.job_id as last_job_id, newest.error as last_error
  from mainspring.triggers as trigger
  left join lateral (
       select dispatch.dispatched_at, dispatch.outcome, dispatch.event_id, dispatch.job_id,
              dispatch.error
         from mainspring.dispatches as dispatch
        where dispatch.trigger_id = trigger.trigger_id
        -- What one batch wrote has one instant.
        order by dispatch.dispatched_at desc, dispatch.event_id desc limit 1) as newest on true
 where mainspring.is_visible(trigger.tenant_id);
