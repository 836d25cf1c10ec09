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
-- Jobs as readers see them, live or finished.
select * from mainspring.job_status where job_id = any (%(job_ids)s::bigint[]);

-- name: load_outputs
-- scope: system
-- The output of the newest attempts of jobs.
select distinct on (job_id) job_id, stdout_tail, stderr_tail from mainspring.outputs
 where job_id = any (%(job_ids)s::bigint[])
 order by job_id, fence desc;
