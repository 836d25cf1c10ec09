-- name: register_process
-- scope: system
-- Adds a scheduler or a server.
insert into mainspring.processes
    (kind, name, host, pid, identity, version, schema_number, expires_at, facts)
values (%(kind)s, %(name)s, %(host)s, %(pid)s, %(identity)s, %(version)s, %(schema_number)s,
        now() + %(lease)s::interval, %(facts)s::jsonb)
returning process_id;

-- name: renew_process
-- scope: system
-- A sign of life, with what the process does; returns the middle of its own execution in seconds of
-- the database's clock. No row means that it was silent for so long that its row was removed. For
-- `idle` it has not checked what is due.
update mainspring.processes
   set seen_at = now(), expires_at = now() + %(lease)s::interval,
       clock_offset_ms = %(clock_offset_ms)s, round_trip_ms = %(round_trip_ms)s,
       facts = jsonb_strip_nulls(
           %(facts)s::jsonb
           || jsonb_build_object('checked_at', now() - %(idle)s::interval))
 where process_id = %(process_id)s
returning date_part('epoch', now() + (clock_timestamp() - now()) / 2);

-- name: remove_process
-- scope: system
-- Removes a process that ended.
delete from mainspring.processes where process_id = %(process_id)s;

-- name: prune_processes
-- scope: system
-- Removes processes that have been silent for an hour.
delete from mainspring.processes where expires_at < now() - interval '1 hour';

-- name: list_processes
-- scope: system
-- The processes that the caller may see, the newest first, before one if given; of a worker that
-- has lost its lease and goes on under a new id only the new one.
with process as (
    select worker.worker_id as process_id, 'worker' as kind, worker.name, worker.host, worker.pid,
           worker.version, worker.schema_number, worker.started_at,
           worker.renewed_at as seen_at, worker.expires_at, worker.is_alive,
           worker.clock_offset_ms, worker.round_trip_ms,
           jsonb_build_object('queues', worker.queues, 'concurrency', worker.concurrency,
                              'is_stopping', worker.is_stopping) as facts
      from mainspring.worker_status as worker
     where not worker.is_replaced
    union all
    select status.* from mainspring.process_status as status
)
select process.*,
       case when process.kind = 'worker' then (
           select count(*) from mainspring.jobs as job
            where job.worker_id = process.process_id and job.state = 'running') end as running
  from process
 where (%(before)s::bigint is null or process.process_id < %(before)s::bigint)
   and (%(kinds)s::text[] is null or process.kind = any (%(kinds)s::text[]))
 order by process_id desc limit %(limit)s;

-- name: oldest_event
-- scope: system
-- When the event was emitted that has waited for a dispatcher for longest; null if none waits. Of
-- each tenant the first is looked at, of a thousand tenants at most.
with recursive waiting as (
    (select event.tenant_id, event.emitted_at, 1 as number from mainspring.events as event
      where event.handled_at is null order by event.tenant_id, event.event_id limit 1)
    union all
    select following.* from waiting, lateral (
        select event.tenant_id, event.emitted_at, waiting.number + 1
          from mainspring.events as event
         where event.handled_at is null and event.tenant_id > waiting.tenant_id
         order by event.tenant_id, event.event_id limit 1) as following
     where waiting.number < 1000
)
select min(emitted_at) from waiting;

-- name: oldest_ready
-- scope: system
-- By queue, since when the first job of a lane has been ready for longest, of a thousand lanes at
-- most; jobs behind the first of their lane are not looked at.
with recursive lane as (
    (select job.queue, job.priority, job.tenant_id,
            coalesce(job.ready_at, job.scheduled_for) as ready_at, 1 as number
       from mainspring.jobs as job
      where job.state = 'queued' and job.waits_for is null
      order by job.queue, job.priority, job.tenant_id, job.job_id limit 1)
    union all
    select following.* from lane, lateral (
        select job.queue, job.priority, job.tenant_id,
               coalesce(job.ready_at, job.scheduled_for), lane.number + 1
          from mainspring.jobs as job
         where (job.queue, job.priority, job.tenant_id)
               > (lane.queue, lane.priority, lane.tenant_id)
           and job.state = 'queued' and job.waits_for is null
         order by job.queue, job.priority, job.tenant_id, job.job_id limit 1) as following
     where lane.number < 1000
)
select queue, min(ready_at) as oldest_ready_at from lane group by queue;

-- name: read_database
-- scope: system
-- The version of PostgreSQL, and the newest migration of the schema.
select current_setting('server_version') as version,
       (select max(number) from mainspring.migrations) as schema_number;
