-- name: register
-- scope: system
-- Adds a worker with a fresh lease and with the JSON Schemas of its handlers; its id is new every
-- time, so an old lease stays lost.
with registered as (
    insert into mainspring.workers
        (expires_at, pid, concurrency, name, host, process_identity, queues, version,
         schema_number, records_starts)
    values (now() + %(lease)s::interval, %(pid)s, %(concurrency)s, %(name)s, %(host)s,
            %(process_identity)s, %(queues)s::text[], %(version)s, %(schema_number)s, true)
    returning worker_id
), declared as (
    insert into mainspring.worker_schemas (worker_id, key, arg_schema)
    select registered.worker_id, given.key, nullif(given.value, 'null')
      from registered, jsonb_each(%(schemas)s::jsonb) as given
)
select worker_id from registered;

-- name: renew
-- scope: system
-- Renews a lease that has not run out; no row means that it has. It stores the clock reading of the
-- renewal before, and returns the middle of its own execution in seconds of the database's clock.
update mainspring.workers
   set renewed_at = now(), expires_at = now() + %(lease)s::interval,
       clock_offset_ms = %(clock_offset_ms)s, round_trip_ms = %(round_trip_ms)s
 where worker_id = %(worker_id)s and expires_at > now()
returning date_part('epoch', now() + (clock_timestamp() - now()) / 2);

-- name: set_wants_wake
-- scope: system
-- Says whether an enqueue should notify: yes while idle, no while there is always more.
update mainspring.workers set wants_wake = %(wants_wake)s where worker_id = %(worker_id)s;

-- name: stop
-- scope: system
-- Says that a worker takes no more jobs and drains what it has.
update mainspring.workers set is_stopping = true, wants_wake = false
 where worker_id = %(worker_id)s;

-- name: expire_workers
-- scope: system
-- Ends leases of processes known to be gone, or of one that gives its own up, so that recovery need
-- not wait for them.
update mainspring.workers
   set expires_at = least(expires_at, now()), wants_wake = false,
       died_at = case when %(are_dead)s::boolean then now() else died_at end
 where worker_id = any (%(worker_ids)s::bigint[]);

-- name: note_recovered
-- scope: system
-- Says of workers whose lease ran out and whose jobs are all taken back that they are done with.
update mainspring.workers as worker set recovered_at = now()
 where worker.expires_at <= now() and worker.recovered_at is null
   and not exists (select from mainspring.jobs as job
                    where job.state = 'running' and job.worker_id = worker.worker_id);

-- name: watch
-- scope: system
-- The workers that may need recovery: those of this host that hold a lease, whose processes
-- can be looked at, and those anywhere whose lease ran out and whose jobs are not taken back.
select worker_id, process_identity, expires_at <= now() as is_expired from mainspring.workers
 where recovered_at is null and (host = %(host)s or expires_at <= now());

-- name: backends_at_work
-- scope: system
-- The server processes of some connections that work on a statement, or did until just now, and
-- whether another's lock holds it up. By name too: after a failover the same process id may be
-- someone else's.
select pid, coalesce(wait_event_type = 'Lock', false) from pg_stat_activity
 where pid = any (%(pids)s::integer[]) and application_name = any (%(names)s::text[])
   and (state in ('active', 'fastpath function call')
        or state_change > clock_timestamp() - %(just_now)s::interval);

-- name: remove
-- scope: system
-- Removes a worker that left, and notifies the others to look for jobs due soon: only it may have
-- known of the retries it leaves behind.
delete from mainspring.workers where worker_id = %(worker_id)s
returning mainspring.notify_due_soon();

-- name: prune_workers
-- scope: system
-- Removes workers long gone that hold no job.
delete from mainspring.workers as worker
 where worker.expires_at < now() - interval '1 hour'
   and not exists (select from mainspring.jobs as job
                    where job.state = 'running' and job.worker_id = worker.worker_id);

-- name: list_workers
-- scope: system
-- The workers that the caller may see, the newest first, before one if given, with how many of its
-- jobs each runs.
select worker.*,
       (select count(*) from mainspring.jobs as job
         where job.worker_id = worker.worker_id and job.state = 'running') as running
  from mainspring.worker_status as worker
 where %(before)s::bigint is null or worker.worker_id < %(before)s::bigint
 order by worker_id desc limit %(limit)s;

-- name: announce_jobs
-- scope: system
-- Names jobs that became ready to idle workers, lane by lane.
select mainspring.notify_jobs(lane.queue, lane.priority, lane.tenant_id, lane.job_ids)
  from (select job.queue, job.priority, job.tenant_id, array_agg(job.job_id) as job_ids
          from unnest(%(queues)s::text[], %(priorities)s::integer[], %(tenants)s::text[],
                      %(job_ids)s::bigint[]) as job (queue, priority, tenant_id, job_id)
         group by job.queue, job.priority, job.tenant_id) as lane;

-- name: wake
-- scope: system
-- Wakes idle workers of the queues.
select mainspring.notify_job_ready(queue) from unnest(%(queues)s::text[]) as queue;
