-- Where jobs came from: what finds the jobs of a schedule that have ended, and the event of a job.
--
-- works with: 0001

-- Serves list_scheduled_jobs. Only jobs of schedules have an entry.
create index jobs_history_schedule on mainspring.jobs_history (schedule_id, job_id)
    where schedule_id is not null;

-- Serves all_jobs: the event that a job was enqueued for.
create index dispatches_job on mainspring.dispatches (job_id) where job_id is not null;

-- Their parameters have changed. Dropped in the last of the migrations, whose transaction creates
-- them anew, so that there is no moment without them.
drop function if exists mainspring.history_of(
    mainspring.jobs, mainspring.job_state, timestamptz, jsonb, integer, integer, text);
drop function if exists mainspring.enqueue_job(
    text, jsonb, text, text, integer, integer, timestamptz, interval, timestamptz, text, text,
    interval, text, text, text, text[], text, integer, bigint[], text);
drop function if exists mainspring.enqueue(
    text, jsonb, text, text, integer, integer, timestamptz, interval, timestamptz, text, text,
    interval, text, text, text, text[], text, integer, bigint[], text);
drop function if exists mainspring.enqueue_many(
    text, jsonb[], text, text, integer, integer, timestamptz, interval, timestamptz, text[], text,
    text[], text, integer);
drop function if exists mainspring.asked_job(
    text, jsonb, text, text, integer, integer, timestamptz, timestamptz, text, text, text[], text,
    bigint);
drop function if exists mainspring.read_steps(jsonb);
