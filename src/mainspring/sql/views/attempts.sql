create or replace view mainspring.attempt_status as
select attempt.job_id, attempt.number, attempt.status, attempt.worker_id,
       coalesce(output.pid, worker.pid) as pid, attempt.started_at, attempt.finished_at,
       output.exit_code, attempt.error, output.stdout_tail, output.stderr_tail,
       attempt.late_report, attempt.late_report_at, attempt.error_key
  from mainspring.attempts as attempt
  left join mainspring.workers as worker using (worker_id)
  left join mainspring.outputs as output using (job_id, fence)
 where (select not mainspring.is_isolated())
    or exists (select from mainspring.job_status as seen where seen.job_id = attempt.job_id)
union all
select job.job_id, job.attempt, 'running'::mainspring.attempt_outcome, job.worker_id,
       coalesce(output.pid, worker.pid), job.started_at, null, output.exit_code, null,
       output.stdout_tail, output.stderr_tail, null, null, null
  from mainspring.jobs as job
  left join mainspring.workers as worker using (worker_id)
  left join mainspring.outputs as output using (job_id, fence)
 where job.state = 'running'
   and mainspring.is_visible(job.tenant_id) and mainspring.is_own(job.created_by);
