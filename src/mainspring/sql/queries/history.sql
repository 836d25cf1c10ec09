
-- name: ensure_partitions
-- scope: system
-- Makes the day partitions from today on, where the default partition holds nothing of the day.
select mainspring.ensure_partitions(%(days_ahead)s);

-- name: past_partitions
-- scope: system
-- The day partitions whose every row is past the longest retention, the oldest first.
select past from mainspring.past_partitions() as past;

-- name: drop_partition
-- scope: system
-- Drops one of them, whoever finishes or reads jobs meanwhile.
select mainspring.drop_partition(%(name)s);

-- name: prune_windows
-- scope: system
-- For each period that jobs are kept for: from when on history has to be looked at, up to when, and
-- since when the whole of it was. Each day, and when a policy changes, all is looked at once more.
with policy as (
    select md5(concat_ws(';',
        (select string_agg(concat_ws(',', tenant_id, state, keep), ';' order by tenant_id, state)
           from mainspring.retention),
        (select string_agg(concat_ws(',', key, retention), ';' order by key)
           from mainspring.definitions where retention is not null))) as fingerprint
), kept as (
    select keep from mainspring.retention
    union
    select retention from mainspring.definitions where retention is not null
)
select kept.keep::text, coalesce(mark.pruned_until, mainspring.history_begins_at(), now()),
       now() - kept.keep, coalesce(mark.swept_at, now()), policy.fingerprint
  from kept cross join policy
  left join mainspring.prune_marks as mark
    on mark.keep = kept.keep and mark.policies = policy.fingerprint
   and mark.swept_at > now() - interval '1 day'
 order by kept.keep;

-- name: note_pruned
-- scope: system
-- Remembers how far history was pruned for one period.
insert into mainspring.prune_marks (keep, pruned_until, swept_at, policies)
values (%(keep)s::text::interval, %(until)s, %(swept_at)s, %(policies)s)
on conflict (keep) do update
   set pruned_until = excluded.pruned_until, swept_at = excluded.swept_at,
       policies = excluded.policies;

-- name: forget_pruned
-- scope: system
-- Removes what is remembered of periods that no policy has any more.
delete from mainspring.prune_marks where keep <> all (%(keeps)s::text[]::interval[]);

-- name: prune_jobs
-- scope: system
-- Removes jobs that ended between two instants and whose own retention has passed, a batch at a
-- time, with their attempts; some jobs only if given. The parents of live jobs are kept, and what
-- is set aside is left out. The offset keeps the planner at the few children of one job, away from
-- all live jobs.
with policy as (
    select tenant_id, state, keep from mainspring.retention
), past as (
    select old.job_id, old.finished_at
      from mainspring.jobs_history as old
     where old.finished_at >= %(after)s::timestamptz and old.finished_at < %(before)s::timestamptz
       and coalesce(old.job_id = any (%(chosen)s::bigint[]), true)
       and old.finished_at < now() - coalesce(
           (select defined.retention from mainspring.definitions as defined
             where defined.key = old.definition),
           (select policy.keep from policy
             where (policy.tenant_id is null or policy.tenant_id = old.tenant_id)
               and (policy.state is null or policy.state = old.state)
             order by policy.tenant_id is null, policy.state is null limit 1))
       and not exists (
           select from (select open.job_id from mainspring.dependencies as open
                         where open.parent_id = old.job_id and open.outcome is null
                         union all
                        select known.job_id from mainspring.dependencies as known
                         where known.parent_id = old.job_id and known.outcome is not null
                        offset 0) as child
             join mainspring.jobs as live on live.job_id = child.job_id)
       and not exists (select from mainspring.set_aside as aside
                        where aside.duty = 'prune_jobs' and aside.key = old.job_id
                          and aside.again_at > now() offset 0)
     limit %(limit)s
), pruned as (
    delete from mainspring.jobs_history as job using past
     where job.job_id = past.job_id and job.finished_at = past.finished_at
    returning job.job_id, job.tenant_id, job.state, job.finished_at
), changed as (
    insert into mainspring.changes (tenant_id, moved, state, day, count)
    select tenant_id, 'pruned', state, mainspring.day_of(finished_at), count(*) from pruned
     group by tenant_id, state, mainspring.day_of(finished_at)
), forgotten as (
    delete from mainspring.attempts as attempt using pruned
     where attempt.job_id = pruned.job_id
), silenced as (
    delete from mainspring.outputs as output using pruned
     where output.job_id = pruned.job_id
)
select job_id from pruned;

-- name: find_past_jobs
-- scope: system
-- The jobs that prune_jobs would remove, and a few that it would keep.
select old.job_id from mainspring.jobs_history as old
 where old.finished_at >= %(after)s::timestamptz and old.finished_at < %(before)s::timestamptz
   and old.finished_at < now() - least(
           (select min(keep) from mainspring.retention),
           (select min(retention) from mainspring.definitions))
   and not exists (select from mainspring.set_aside as aside
                    where aside.duty = 'prune_jobs' and aside.key = old.job_id
                      and aside.again_at > now() offset 0);

-- name: prune_outputs
-- scope: system
-- Removes the output of attempts that nobody has written to for longer than any job is kept.
delete from mainspring.outputs as output
 where output.ctid = any (array(
    select old.ctid from mainspring.outputs as old
     where old.updated_at < now() - greatest(
               (select max(keep) from mainspring.retention),
               (select max(retention) from mainspring.definitions))
       and exists (select from mainspring.retention where tenant_id is null and state is null)
     order by old.updated_at limit %(limit)s for update of old skip locked));

-- name: prune_keys
-- scope: system
-- Removes idempotency keys and dedupe windows that have expired.
delete from mainspring.enqueue_keys as held
 where held.ctid = any (array(
    select old.ctid from mainspring.enqueue_keys as old
     where old.expires_at <= now() order by old.expires_at limit %(limit)s
       for update skip locked));
