-- name: discover_above
-- scope: system
-- The lanes that hold ready jobs, as discover gives them, where some begin with many dead entries:
-- of these only what is behind a floor, and whatever lies between them. So no dead entry of theirs
-- is walked over. Leaves out paused queues.
with recursive known as (
    select lane.queue, lane.priority, lane.tenant_id collate "C" as tenant_id, lane.floor
      from unnest(%(lane_queues)s::text[], %(priorities)s::smallint[], %(tenants)s::text[],
                  %(floors)s::bigint[]) as lane (queue, priority, tenant_id, floor)
     where lane.queue <> all (array(select paused.name from mainspring.paused_queues as paused))
), gap as (
    select wanted.queue, edge.* from unnest(%(queues)s::text[]) as wanted (queue), lateral (
        select lag(lane.priority, 1, (-1)::smallint) over lanes as low_priority,
               lag(lane.tenant_id, 1, '') over lanes as low_tenant,
               lane.priority as high_priority, lane.tenant_id as high_tenant
          from (select priority, tenant_id from known where known.queue = wanted.queue
                union all select 2000, '' collate "C") as lane
        window lanes as (order by lane.priority, lane.tenant_id)) as edge
     where wanted.queue <> all (array(select paused.name from mainspring.paused_queues as paused))
), lane as (
    select first.*, gap.high_priority, gap.high_tenant from gap, lateral (
        select job.queue, job.priority, job.tenant_id, job.job_id from mainspring.jobs as job
         where job.queue = gap.queue
           and (job.priority, job.tenant_id) > (gap.low_priority, gap.low_tenant)
           and (job.priority, job.tenant_id) < (gap.high_priority, gap.high_tenant)
           and job.state = 'queued' and job.waits_for is null
         order by job.priority, job.tenant_id, job.job_id limit 1) as first
    union all
    select next.*, lane.high_priority, lane.high_tenant from lane, lateral (
        select job.queue, job.priority, job.tenant_id, job.job_id from mainspring.jobs as job
         where job.queue = lane.queue
           and (job.priority, job.tenant_id) > (lane.priority, lane.tenant_id)
           and (job.priority, job.tenant_id) < (lane.high_priority, lane.high_tenant)
           and job.state = 'queued' and job.waits_for is null
         order by job.priority, job.tenant_id, job.job_id limit 1) as next
), found as (
    select lane.queue, lane.priority, lane.tenant_id, lane.job_id from lane
    union all
    select known.queue, known.priority, known.tenant_id, first.job_id from known, lateral (
        select job.job_id from mainspring.jobs as job
         where job.queue = known.queue and job.priority = known.priority
           and job.tenant_id = known.tenant_id and job.job_id > known.floor
           and job.state = 'queued' and job.waits_for is null
         order by job.job_id limit 1) as first
)
select found.priority, found.tenant_id, found.queue, found.job_id,
       coalesce((select tenant.weight from mainspring.tenants as tenant
                  where tenant.tenant_id = found.tenant_id), 1)
  from found;

-- name: find_below
-- scope: system
-- The ready jobs of lanes that are not behind their floor, up to so many each. It walks over every
-- dead entry below the floors, so it is not for the connection that claims.
select lane.priority, lane.tenant_id, lane.queue, old.job_id
  from unnest(%(queues)s::text[], %(priorities)s::smallint[], %(tenants)s::text[],
              %(floors)s::bigint[]) as lane (queue, priority, tenant_id, floor),
       lateral (
           select job.job_id from mainspring.jobs as job
            where job.queue = lane.queue and job.priority = lane.priority
              and job.tenant_id = lane.tenant_id and job.job_id <= lane.floor
              and job.state = 'queued' and job.waits_for is null
            order by job.job_id limit %(limit)s) as old;

-- name: note_floors
-- scope: system
-- Remembers the floors of lanes, and how long a sweep without them takes.
insert into mainspring.lane_floors as known
    (queue, priority, tenant_id, floor, sweep_seconds)
select lane.queue, lane.priority, lane.tenant_id, lane.floor, %(seconds)s::float
  from unnest(%(queues)s::text[], %(priorities)s::smallint[], %(tenants)s::text[],
              %(floors)s::bigint[]) as lane (queue, priority, tenant_id, floor)
 order by lane.queue, lane.priority, lane.tenant_id
on conflict (queue, priority, tenant_id) do update
   set floor = excluded.floor, sweep_seconds = excluded.sweep_seconds, noted_at = now();

-- name: read_floors
-- scope: system
-- The floors of lanes that were noted lately.
select priority, tenant_id, queue, floor, sweep_seconds from mainspring.lane_floors
 where queue = any (%(queues)s::text[]) and noted_at > now() - interval '10 minutes';

-- name: prune_floors
-- scope: system
-- Forgets floors that nobody has noted for an hour.
delete from mainspring.lane_floors where noted_at < now() - interval '1 hour';
