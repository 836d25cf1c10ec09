-- name: watch_jobs
-- scope: system
-- The versions of live jobs and of their output, to see which have changed; a job that is not
-- among them has ended, or is gone.
select job.job_id, job.xmin::text || coalesce('.' || output.xmin::text, '')
  from mainspring.jobs as job
  left join mainspring.outputs as output on output.job_id = job.job_id and output.fence = job.fence
 where job.job_id = any (%(job_ids)s::bigint[]);

-- name: load_jobs
-- scope: system
-- Jobs as those who watch them see them, live or finished: with the result of one that has ended,
-- unless it is larger than so many bytes. The size as stored comes first: it is known without
-- reading the result.
select seen.job_id, seen.tenant_id, seen.definition, seen.queue, seen.state, seen.waits_for,
       seen.priority, seen.source, seen.created_by, seen.created_at, seen.scheduled_for,
       seen.started_at, seen.finished_at, seen.deadline_at, seen.cancel_requested_at, seen.attempt,
       seen.failures, seen.max_attempts, seen.delivery, seen.dedupe_key, seen.correlation_id,
       seen.schedule, seen.slot_at, seen.trigger, seen.event_id, seen.flow_id, seen.parent_ids,
       seen.worker_id, seen.definition_version, seen.tags, seen.progress, seen.last_error,
       seen.error_key,
       bounded.result,
       seen.result is not null and bounded.result is null as is_result_omitted
  from mainspring.job_status as seen, lateral (
      select case when seen.finished_at is not null
                   and pg_column_size(seen.result) <= %(most_bytes)s
                   and octet_length(seen.result::text) <= %(most_bytes)s
                  then seen.result end as result) as bounded
 where seen.job_id = any (%(job_ids)s::bigint[]);

-- name: load_outputs
-- scope: system
-- The output of the newest attempts of jobs.
select distinct on (job_id) job_id, stdout_tail, stderr_tail from mainspring.outputs
 where job_id = any (%(job_ids)s::bigint[])
 order by job_id, fence desc;
