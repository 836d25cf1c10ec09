
-- name: ensure_partitions
-- scope: system
-- Makes the day partitions from today on, where the default partition holds nothing of the day.
select mainspring.ensure_partitions(%(days_ahead)s);

-- name: drop_partitions
-- scope: system
-- Drops the day partitions whose every row is past the longest retention.
select mainspring.drop_partitions();

-- name: prune_jobs
-- scope: system
-- Removes finished jobs whose own retention has passed, a batch at a time, with their attempts.
with policy as (
    select tenant_id, state, keep from mainspring.retention
), past as (
    select old.job_id, old.finished_at
      from mainspring.jobs_history as old
     where old.finished_at < now() - least(
               (select min(keep) from policy),
               (select min(retention) from mainspring.definitions))
       and old.finished_at < now() - coalesce(
           (select defined.retention from mainspring.definitions as defined
             where defined.key = old.definition),
           (select policy.keep from policy
             where (policy.tenant_id is null or policy.tenant_id = old.tenant_id)
               and (policy.state is null or policy.state = old.state)
             order by policy.tenant_id is null, policy.state is null limit 1))
     limit %(limit)s
), pruned as (
    delete from mainspring.jobs_history as job using past
     where job.job_id = past.job_id and job.finished_at = past.finished_at
    returning job.job_id, job.tenant_id, job.state, job.finished_at
), tallied as (
    insert into mainspring.tally_changes (tenant_id, state, day, count)
    select tenant_id, state, mainspring.day_of(finished_at), -count(*) from pruned
     group by tenant_id, state, mainspring.day_of(finished_at)
), forgotten as (
    delete from mainspring.attempts as attempt using pruned
     where attempt.job_id = pruned.job_id
), silenced as (
    delete from mainspring.outputs as output using pruned
     where output.job_id = pruned.job_id
)
select count(*) from pruned;

-- name: prune_keys
-- scope: system
-- Removes idempotency keys and dedupe windows that have expired.
delete from mainspring.enqueue_keys as held
 where held.ctid = any (array(
    select old.ctid from mainspring.enqueue_keys as old
     where old.expires_at <= now() order by old.expires_at limit %(limit)s
       for update skip locked));
