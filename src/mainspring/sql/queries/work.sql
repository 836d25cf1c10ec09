-- name: own_worker
-- scope: system
-- The queues of a worker over the API that has its lease; no row if it has not, or is another's.
select queues from mainspring.workers
 where worker_id = %(worker_id)s::bigint and process_identity = %(identity)s and expires_at > now();

-- name: leased_job
-- scope: system
-- What is needed to carry out a report on a job that a worker runs, and the fence under which it
-- does; no row if it does not any more.
select job.tenant_id, job.definition, job.payload::text, job.failures, job.max_attempts,
       job.limit_name, job.limit_key,
       (extract(epoch from now() - job.started_at) * 1000000)::bigint,
       mainspring.backoff_of(defined), defined.secret_paths::text,
       coalesce(job.started_at + defined.timeout < now(), false), job.fence
  from mainspring.jobs as job
  left join mainspring.definition_versions as defined
         on defined.key = job.definition and defined.version = job.definition_version
 where job.job_id = %(job_id)s::bigint and job.worker_id = %(worker_id)s::bigint;

-- name: past_attempt
-- scope: system
-- What became of an attempt of a worker, and of its job, and what has secrets in the job.
-- No row if there is no such attempt, it runs on, or its worker or job is not the caller's.
select attempt.status, job.state, job.tenant_id, job.definition, job.payload::text,
       defined.secret_paths::text
  from mainspring.attempts as attempt
 cross join lateral (
           select state, tenant_id, definition, definition_version, payload
             from mainspring.jobs where job_id = attempt.job_id
           union all
           select state, tenant_id, definition, definition_version, payload
             from mainspring.jobs_history where job_id = attempt.job_id
           limit 1) as job
  left join mainspring.definition_versions as defined
         on defined.key = job.definition and defined.version = job.definition_version
 where attempt.job_id = %(job_id)s::bigint and attempt.fence = %(fence)s::bigint
   and attempt.worker_id = %(worker_id)s::bigint
   and (%(tenants)s::text[] is null or job.tenant_id = any (%(tenants)s::text[]))
   and not exists (select from mainspring.workers as other
                    where other.worker_id = attempt.worker_id
                      and other.process_identity not in ('', %(identity)s));

-- name: keep_late_report
-- scope: system
-- Keeps what was reported of a lost attempt: how it ended, its error after the one that it has, and
-- what it printed. Repeated, it replaces what was kept.
with kept as (
    update mainspring.attempts as attempt
       set late_report = %(status)s::mainspring.attempt_outcome,
           late_report_at = clock_timestamp(),
           error = case when %(error)s::text is null then error
                        else concat_ws(E'\n\n',
                                 nullif(split_part(error, E'\n\nreported too late: ', 1), ''),
                                 'reported too late: ' || %(error)s::text) end
     where attempt.job_id = %(job_id)s::bigint and attempt.fence = %(fence)s::bigint
       and attempt.status = 'lost'
    returning job_id, fence
)
insert into mainspring.outputs as output (job_id, fence, exit_code, stdout_tail, stderr_tail)
select job_id, fence, %(exit_code)s::integer, %(stdout)s::text, %(stderr)s::text from kept
 where num_nonnulls(%(exit_code)s::integer, %(stdout)s::text, %(stderr)s::text) > 0
on conflict (job_id, fence) do update
   set updated_at = now(), exit_code = excluded.exit_code, stdout_tail = excluded.stdout_tail,
       stderr_tail = excluded.stderr_tail;

-- name: to_stop
-- scope: system
-- The jobs of a worker that it is to stop: those it was asked to, and those over their time.
select job.job_id, job.fence,
       case when job.cancel_requested_at is not null then coalesce(job.last_error, 'canceled')
            else 'timeout' end
  from mainspring.jobs as job
  left join mainspring.definition_versions as defined
         on defined.key = job.definition and defined.version = job.definition_version
 where job.worker_id = %(worker_id)s::bigint and job.state = 'running'
   and (job.cancel_requested_at is not null or job.started_at + defined.timeout < now());

-- name: timeouts
-- scope: system
-- How long jobs of definitions may run, in seconds.
select key, version, extract(epoch from timeout)::float
  from unnest(%(keys)s::text[], %(versions)s::integer[]) as asked (key, version)
  join mainspring.definition_versions using (key, version);

-- name: to_run_alone
-- scope: system
-- Of some suspects those that have lost as many workers as a worker over the API gets beside
-- others, and whether each has waited too long for a worker that runs nothing else.
select job.job_id, job.suspected_at < now() - %(patience)s::interval
  from mainspring.jobs as job
 where job.job_id = any (%(job_ids)s::bigint[])
   and (select count(*) from mainspring.attempts as attempt
         where attempt.job_id = job.job_id and attempt.status = 'lost') >= %(lost)s;

-- name: held_beside
-- scope: system
-- What a worker runs beside some jobs: whether there is anything, and whether that runs alone.
select count(*) > 0, coalesce(bool_or(alone_fence = fence), false) from mainspring.jobs
 where state = 'running' and worker_id = %(worker_id)s::bigint
   and job_id <> all (%(job_ids)s::bigint[]);

-- name: held_besides
-- scope: system
-- The jobs that a worker runs besides some, in the shape of claim.
select job.job_id, job.fence, job.definition, job.payload::text, job.attempt, job.failures,
       job.losses, job.max_attempts, job.queue, job.priority, job.tenant_id,
       jsonb_build_object(
           'checkpoint', job.checkpoint, 'correlation_id', job.correlation_id,
           'tags', job.tags, 'origin', job.origin, 'slot_at', job.slot_at,
           'is_suspect', job.suspected_at is not null or job.losses > 0,
           'runs_once', job.delivery is not null, 'is_rated', false)::text,
       job.limit_name, job.limit_key, job.definition_version
  from mainspring.jobs as job
 where job.state = 'running' and job.worker_id = %(worker_id)s::bigint
   and job.job_id <> all (%(job_ids)s::bigint[])
 order by job.job_id limit %(limit)s;

-- name: announce_free_place
-- scope: system
-- Notifies those who grant that a place of a limit key is free.
select mainspring.notify_limit(%(limit_name)s, %(limit_key)s, %(tenant_id)s);
