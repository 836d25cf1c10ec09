-- What a running job does.

-- Whether a running job has begun, as far as anything says so: there is no write for it. Otherwise
-- the jobs that a worker claimed last, beyond those that it can run, wait in its buffer.
create or replace function mainspring.why_has_begun(
    job mainspring.jobs, worker mainspring.workers
)
returns boolean
language plpgsql stable
as $$
declare
    before bigint;
begin
    if job.progress is not null or job.fence in (job.begun_fence, job.alone_fence)
       or job.probed_at is not null or exists (
           select from mainspring.outputs as output
            where output.job_id = job.job_id and output.fence = job.fence) then
        return true;
    end if;
    select count(*) into before from (
        select from mainspring.jobs as other
         where other.state = 'running' and other.worker_id = job.worker_id
           and (other.started_at, other.job_id) < (job.started_at, job.job_id)
         limit worker.concurrency) as other;
    return before < worker.concurrency;
end
$$;

-- What a job that runs, or is about to, does.
create or replace function mainspring.why_begun(job mainspring.jobs, worker mainspring.workers)
returns jsonb
language plpgsql stable
as $$
declare
    name text := mainspring.why_worker(job.worker_id);
    ends_at timestamptz := job.started_at + (
        select defined.timeout from mainspring.definition_versions as defined
         where defined.key = job.definition and defined.version = job.definition_version);
    usual record;
begin
    if worker.worker_id is not null and not mainspring.why_has_begun(job, worker) then
        return mainspring.why_reason('buffered', name || ' has claimed it and starts it once one '
            || 'of its ' || worker.concurrency || ' places is free; after a second it is handed '
            || 'back.',
            since => job.started_at, facts => jsonb_build_object(
                'worker_id', job.worker_id::text, 'places', worker.concurrency));
    end if;
    select * into usual from mainspring.why_usual(job);
    return mainspring.why_reason('running', 'It runs on ' || name || ' since '
        || mainspring.why_instant(job.started_at) || ' (attempt ' || job.attempt || ' of '
        || job.max_attempts || ')'
        || coalesce(', ' || (job.progress ->> 'current') || coalesce(
               ' of ' || (job.progress ->> 'total'), '') || ' done', '')
        || case when usual.seconds is not null then ', and usually takes '
                     || mainspring.why_span(make_interval(secs => usual.seconds)) else '' end
        || coalesce('; it times out at ' || mainspring.why_instant(ends_at), '') || '.',
        since => job.started_at, until => ends_at, facts => jsonb_build_object(
            'worker_id', job.worker_id::text, 'attempt', job.attempt, 'progress', job.progress,
            'usual_seconds', usual.seconds),
        fix => mainspring.why_command(case when job.definition like 'mainspring.%' then 'admin '
            else '' end || 'jobs cancel ' || job.job_id, job.tenant_id));
end
$$;

-- All that there is to say of a running job: first that it is to stop, then that its worker is
-- silent, then what it does.
create or replace function mainspring.why_running(job mainspring.jobs)
returns setof jsonb
language plpgsql stable
as $$
declare
    worker mainspring.workers;
begin
    select * into worker from mainspring.workers as holder where holder.worker_id = job.worker_id;
    if job.cancel_requested_at is not null then
        return next mainspring.why_reason('stopping', 'It was asked to stop at '
            || mainspring.why_instant(job.cancel_requested_at)
            || coalesce(' (' || nullif(mainspring.why_error(job.last_error), '') || ')', '')
            || '; if it does not, it is forced to.', since => job.cancel_requested_at,
            facts => jsonb_build_object('reason', job.last_error));
    end if;
    if worker.worker_id is null or worker.renewed_at
       < clock_timestamp() - (worker.expires_at - worker.renewed_at) * 2 / 3 then
        return next mainspring.why_reason('worker_silent', mainspring.why_worker(job.worker_id)
            || ' has been silent'
            || coalesce(' since ' || mainspring.why_instant(worker.renewed_at), '')
            || '; once its lease is over, the job is queued again.',
            since => worker.renewed_at, until => worker.expires_at,
            facts => jsonb_build_object('worker_id', job.worker_id::text));
    end if;
    return next mainspring.why_begun(job, worker);
end
$$;
