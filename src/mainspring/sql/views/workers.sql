-- A caller of the API who is no operator sees the workers of its tenant as they are, and of those
-- that all tenants share neither what they are called (host and pid) nor queues that no definition
-- and no schedule of its own names. Those of other tenants are not there.
create or replace view mainspring.worker_status as
select worker.worker_id,
       case when seen.is_whole then worker.name else 'worker ' || worker.worker_id end as name,
       case when seen.is_whole then worker.host end as host,
       case when seen.is_whole then worker.pid end as pid,
       seen.queues, worker.concurrency, worker.version, worker.started_at, worker.renewed_at,
       worker.expires_at, worker.is_stopping,
       worker.expires_at > statement_timestamp() as is_alive, worker.schema_number,
       worker.clock_offset_ms, worker.round_trip_ms,
       -- It lost its lease, and the same process goes on under another id.
       worker.expires_at <= statement_timestamp() and worker.process_identity <> ''
       and exists (select from mainspring.workers as newer
                    where newer.process_identity = worker.process_identity
                      and newer.worker_id > worker.worker_id) as is_replaced
  from mainspring.workers as worker
 cross join lateral (
    -- What an HTTP worker is known by names its tenant; * is an operator's.
    select nullif(substring(worker.process_identity from '^api:(.*):[^:]*$'), '*') as tenant_id
 ) as owner
 cross join lateral (
    select whole.is_whole,
           case when whole.is_whole then worker.queues else array(
               select served.queue from unnest(worker.queues) as served (queue)
                where exists (select from mainspring.definitions as defined
                               where defined.queue = served.queue)
                   or exists (select from mainspring.schedules as schedule
                               where schedule.queue = served.queue
                                 and mainspring.is_visible(schedule.tenant_id))) end as queues
      from (select not mainspring.is_isolated()
                   or coalesce(mainspring.is_visible(owner.tenant_id), false) as is_whole) as whole
 ) as seen
 where seen.is_whole or owner.tenant_id is null and cardinality(seen.queues) > 0;
