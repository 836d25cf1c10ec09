-- Notifications: every message that is sent by NOTIFY, in one place.
--
--   ready:QUEUE                          idle workers of the queue claim
--   jobs:[queue,priority,tenant,w,[ids]] workers claim jobs that became ready below their marks
--   due:                                 workers look for jobs that are due soon
--   lane:[queue,priority,tenant,id,w]    busy workers learn of a lane that looked empty
--   cancel:WORKER                        the worker looks for jobs that it is to stop
--   limit:[name,key,tenant] or limit:    workers grant places of the limit key, or of any
--   parents:                             workers settle the children of jobs that have ended
--   schedule:                            schedulers look for what is due
--   event:                               dispatchers look for events
--
-- Python knows the kinds by the same words (domain/notifications.py). NOTIFY takes a lock that
-- serialises commits, so messages about new jobs are sent only while a worker wants them.

-- What workers need to know of a job: that it is ready, or that it is due before they would look
-- for such jobs by themselves; null for one that is due later.
create or replace function mainspring.ready_message(queue text, due_at timestamptz)
returns text
language sql
return case when due_at <= clock_timestamp() then 'ready:' || queue
            when due_at < clock_timestamp() + interval '15 seconds' then 'due:' end;

-- Sends a message. Simple enough to become a part of the statement that calls it.
create or replace function mainspring.send_message(message text)
returns void
language sql
as $$ select pg_notify('mainspring', message) $$;

-- Wakes workers of a queue, whoever they are and whatever they do.
create or replace function mainspring.notify_queue(queue text)
returns void
language sql
as $$ select mainspring.send_message('ready:' || queue) $$;

-- Wakes idle workers for jobs of a queue that are due at an instant.
create or replace function mainspring.notify_job_ready(
    queue text, due_at timestamptz default clock_timestamp()
)
returns void
language plpgsql
as $$
begin
    if exists (select from mainspring.workers as worker
                where worker.wants_wake and notify_job_ready.queue = any (worker.queues))
       and mainspring.ready_message(queue, due_at) is not null then
        perform mainspring.send_message(mainspring.ready_message(queue, due_at));
    end if;
end
$$;

-- Names jobs of a lane that became ready although they are old: a worker that looks behind the last
-- job it claimed would pass them over.
create or replace function mainspring.notify_jobs(
    queue text, priority integer, tenant text, job_ids bigint[]
)
returns void
language plpgsql
as $$
declare
    message text := 'jobs:' || json_build_array(
        notify_jobs.queue, notify_jobs.priority, notify_jobs.tenant,
        (select t.weight from mainspring.tenants as t where t.tenant_id = notify_jobs.tenant),
        notify_jobs.job_ids);
begin
    -- A message can have 8000 bytes.
    if octet_length(message) <= 7000 and exists (
        select from mainspring.workers as worker
         where worker.wants_wake and notify_jobs.queue = any (worker.queues)) then
        perform mainspring.send_message(message);
    end if;
end
$$;

-- Makes workers look for jobs that are due soon.
create or replace function mainspring.notify_due_soon()
returns void
language sql
as $$ select mainspring.send_message('due:') $$;

-- Informs busy workers of jobs that are ready in a lane (queue, priority, tenant) from this id on,
-- if the lane looks empty otherwise. They know where work was, and find the rest within a second;
-- until then they may start tens of thousands of jobs of another tenant. Only the last thousand
-- ids are looked at: a lane may begin with any number of dead entries, and a message about a lane
-- that has older work does no harm.
create or replace function mainspring.notify_lane(
    queue text, priority integer, tenant text, first_id bigint
)
returns void
language plpgsql
as $$
begin
    if length(notify_lane.queue) <= 500 and length(notify_lane.tenant) <= 500 and not exists (
        select from mainspring.jobs as job
         where job.queue = notify_lane.queue and job.priority = notify_lane.priority
           and job.tenant_id = notify_lane.tenant
           and job.job_id between notify_lane.first_id - 1000 and notify_lane.first_id - 1
           and job.state = 'queued' and job.waits_for is null) then
        perform mainspring.send_message('lane:' || json_build_array(
            notify_lane.queue, notify_lane.priority, notify_lane.tenant, notify_lane.first_id,
            t.weight))
           from mainspring.tenants as t where t.tenant_id = notify_lane.tenant;
    end if;
end
$$;

-- Informs workers of jobs that were enqueued, the first of them with this id: idle workers if
-- there are any, else busy ones.
create or replace function mainspring.notify_enqueued(
    queue text, priority integer, tenant text, first_id bigint, due_at timestamptz
)
returns void
language plpgsql
as $$
begin
    if exists (select from mainspring.workers as worker
                where worker.wants_wake and notify_enqueued.queue = any (worker.queues)) then
        perform mainspring.notify_job_ready(notify_enqueued.queue, notify_enqueued.due_at);
    elsif notify_enqueued.due_at <= clock_timestamp() and exists (
        select from mainspring.workers as worker
         where notify_enqueued.queue = any (worker.queues)) then
        perform mainspring.notify_lane(
            notify_enqueued.queue, notify_enqueued.priority, notify_enqueued.tenant,
            notify_enqueued.first_id);
    end if;
end
$$;

-- Asks a worker to look for jobs that it is to stop.
create or replace function mainspring.notify_cancel(worker_id bigint)
returns void
language sql
as $$ select mainspring.send_message('cancel:' || worker_id) $$;

-- Asks workers that grant places to look at a limit key, or at all of them if none is given.
create or replace function mainspring.notify_limit(
    limit_name text default null, limit_key text default null, tenant text default null
)
returns void
language plpgsql
as $$
declare
    subject text := jsonb_build_array(limit_name, limit_key, tenant)::text;
begin
    if exists (select from mainspring.workers as worker where worker.wants_wake) then
        -- A message can have 8000 bytes.
        perform mainspring.send_message(
            'limit:' || case when limit_name is null or octet_length(subject) > 7000
                             then '' else subject end);
    end if;
end
$$;

-- Asks workers to look at all limits, because what they allow has changed.
create or replace function mainspring.notify_limits_changed()
returns void
language sql
as $$ select mainspring.send_message('limit:') $$;

-- Informs whoever has to act on a job that waits for nothing but its limit, or nothing at all.
create or replace function mainspring.notify_released(job mainspring.jobs)
returns void
language plpgsql
as $$
begin
    if job.limit_name is null then
        perform mainspring.notify_job_ready(job.queue);
    else
        perform mainspring.notify_limit(job.limit_name, job.limit_key, job.tenant_id);
    end if;
end
$$;

-- Asks workers to settle the children of jobs that have ended.
create or replace function mainspring.notify_parents()
returns void
language sql
as $$ select mainspring.send_message('parents:') $$;

-- Asks schedulers to look for what is due.
create or replace function mainspring.notify_schedule()
returns void
language sql
as $$ select mainspring.send_message('schedule:') $$;

-- Asks dispatchers to look for events.
create or replace function mainspring.notify_event()
returns void
language sql
as $$ select mainspring.send_message('event:') $$;
