-- name: recover
-- scope: system
-- Takes running jobs back from workers whose lease ran out: each to queued with a little jitter, as
-- a suspect. Nobody knows what killed a worker, so that is a loss only to a job that ran alone in
-- it; one with too many losses is parked in dead_letter. A worker that survived was not killed at
-- all. Of those that run at most once, the ones that have begun are ended by requeue_jobs, and the
-- others are as if they had not been claimed. Some jobs only if given; not what is set aside.
with expired as materialized (
    -- Locked, so that a worker says that it survived before this or after it.
    select worker_id, survived from mainspring.workers
     where expires_at <= coalesce(%(now)s::timestamptz, now()) and recovered_at is null
       for share
), lost as (
    select job.job_id, job.fence, job.worker_id, job.started_at, job.attempt, job.tenant_id,
           job.queue, job.definition, job.tags,
           case when not survived then job.losses + own_fault::integer end as new_losses,
           own_fault and not is_once and job.losses + 1 >= %(max_losses)s::integer as is_parked,
           is_once and is_spent as is_ended,
           is_once and not is_spent and job.begun_fence is distinct from job.fence as is_unbegun
      from mainspring.jobs as job,
           lateral (select expired.survived from expired
                     where expired.worker_id = job.worker_id) as worker (survived),
           lateral (select not worker.survived and job.alone_fence is not distinct from job.fence,
                           job.delivery is not null,
                           job.delivery is not null and mainspring.is_spent(job, true))
                   as blame (own_fault, is_once, is_spent)
     where job.state = 'running'
       and job.worker_id = any (array(select expired.worker_id from expired))
       and coalesce(job.job_id = any (%(chosen)s::bigint[]), true)
       and not exists (select from mainspring.set_aside as aside
                        where aside.duty = 'recover' and aside.key = job.job_id
                          and aside.again_at > now() offset 0)
     limit %(limit)s
       for update of job skip locked
), parked as (
    delete from mainspring.jobs as job using lost
     where job.job_id = lost.job_id and lost.is_parked
    returning job, job.tenant_id, lost.new_losses
), archived as (
    insert into mainspring.jobs_history
    select past.* from parked, lateral mainspring.history_of(
        parked.job, 'dead_letter', started_at => (parked.job).started_at,
        losses => parked.new_losses,
        error => 'its worker died while it ran nothing else (death ' || parked.new_losses
                 || ' of ' || %(max_losses)s::integer || ')') as past
), changed as (
    insert into mainspring.changes (tenant_id, queue, definition, moved, state, attempt, count)
    select tenant_id, queue, definition, case when is_parked then 'ended' else 'went_on' end,
           case when is_parked then 'dead_letter'::mainspring.job_state end, 'lost', count(*)
      from lost where not is_unbegun and not is_ended
     group by tenant_id, queue, definition, is_parked
), recorded as (
    insert into mainspring.attempts
        (job_id, fence, worker_id, started_at, finished_at, number, status, error, error_key)
    select job_id, fence, worker_id, started_at, now(), attempt, 'lost',
           mainspring.why_lost(worker_id), mainspring.lost_worker_key()
      from lost where not is_unbegun
), failed as (
    insert into mainspring.failures
        (tenant_id, queue, definition, error_key, sample, count, job_ids, tags)
    select tenant_id, queue, definition, mainspring.lost_worker_key(),
           mainspring.why_lost(max(worker_id)), count(*),
           mainspring.newest_jobs(array_agg(job_id)),
           mainspring.tags_of(jsonb_agg(tags) filter (where tags is not null))
      from lost where not is_unbegun
     group by tenant_id, queue, definition
), suspected as (
    insert into mainspring.suspicions (worker_id, job_id)
    select worker_id, job_id from lost
     where new_losses is not null and not is_parked and not is_unbegun
    on conflict do nothing
), requeued as materialized (
    select mainspring.requeue_jobs(
               array_agg(job_id), array_agg('time'::mainspring.waits_for),
               due_ats => array_agg(now() + random() * %(jitter)s::interval),
               losses => array_agg(new_losses))
      from lost where not is_parked and not is_unbegun
), returned as materialized (
    select mainspring.requeue_jobs(
               array_agg(job_id), array_agg('time'::mainspring.waits_for), have_begun => false,
               due_ats => array_agg(now() + random() * %(jitter)s::interval))
      from lost where is_unbegun
)
select job_id, worker_id, is_parked, is_ended from lost, requeued, returned;

-- name: note_survivor
-- scope: system
-- Says of a worker whose lease ran out that it goes on under another id.
update mainspring.workers set survived = true where worker_id = %(worker_id)s;

-- name: clear_suspicions
-- scope: system
-- Undoes what recover has made of jobs that it took back from a worker that survived: they are no
-- suspects because of that, and have lost nobody. Those claimed since are left as they are.
with cleared as (
    select job.job_id, run.finished_at as lost_at,
           (run.fence is not distinct from job.alone_fence)::integer as blamed
      from mainspring.suspicions as suspicion
           join mainspring.jobs as job using (job_id)
           join mainspring.attempts as run
             on run.job_id = job.job_id and run.worker_id = suspicion.worker_id
            and run.number = job.attempt and run.status = 'lost'
     where suspicion.worker_id = %(worker_id)s and job.state = 'queued'
       for update of job skip locked
)
update mainspring.jobs as job
   set suspected_at = nullif(job.suspected_at, cleared.lost_at),
       losses = job.losses - cleared.blamed
  from cleared where job.job_id = cleared.job_id;

-- name: find_lost
-- scope: system
-- The jobs that recover would take back.
select job.job_id from mainspring.jobs as job
 where job.state = 'running'
   and job.worker_id = any (array(
       select worker.worker_id from mainspring.workers as worker
        where worker.expires_at <= coalesce(%(now)s::timestamptz, now())
          and worker.recovered_at is null))
   and not exists (select from mainspring.set_aside as aside
                    where aside.duty = 'recover' and aside.key = job.job_id
                      and aside.again_at > now() offset 0)
 limit %(limit)s;

-- name: adopt_orphans
-- scope: system
-- Makes running jobs recoverable whose worker has no row, or is done with as if it ran nothing: a
-- claim that was committed after that. It looks between the ids of the known workers, one probe
-- each, and not at what they run. Returns the ids found, one of each gap; ask until there is none.
with known as (
    select 0 as worker_id
    union all
    select worker_id from mainspring.workers where recovered_at is null
), orphaned as (
    select found.worker_id from known, lateral (
        select job.worker_id from mainspring.jobs as job
         where job.state = 'running' and job.worker_id > known.worker_id
           and job.worker_id < coalesce(
               (select min(next.worker_id) from mainspring.workers as next
                 where next.recovered_at is null and next.worker_id > known.worker_id),
               9223372036854775807)
         order by job.worker_id limit 1) as found
)
insert into mainspring.workers
    (worker_id, expires_at, pid, concurrency, wants_wake, name, host, process_identity, queues,
     version)
select worker_id, now(), 0, 0, false, 'unknown', 'unknown', '', '{}', 'unknown' from orphaned
on conflict (worker_id) do update set recovered_at = null
returning worker_id;
