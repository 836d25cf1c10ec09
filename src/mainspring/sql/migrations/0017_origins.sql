-- Where jobs came from: what finds the jobs of a schedule that have ended, and the event of a job.
--
-- works with: 0001

-- Serves list_scheduled_jobs. Only jobs of schedules have an entry.
create index jobs_history_schedule on mainspring.jobs_history (schedule_id, job_id)
    where schedule_id is not null;

-- Serves all_jobs: the event that a job was enqueued for.
create index dispatches_job on mainspring.dispatches (job_id) where job_id is not null;
