-- Notifications: what is sent by NOTIFY, to whom, and when it is not worth sending.

-- The message that tells workers of a job: q and its queue when it is ready, d when it is due
-- before they would look for such jobs by themselves; null when there is nothing to tell.
create or replace function mainspring.message_for(queue text, due_at timestamptz)
returns text
language sql stable
return case when due_at <= now() then 'q:' || queue
            when due_at < now() + interval '15 seconds' then 'd:' end;

create or replace function mainspring.wake(queue text, due_at timestamptz default now())
returns void
language plpgsql
as $$
begin
    -- NOTIFY takes a lock that serialises commits, so it is sent only to who asked for it.
    if exists (select from mainspring.workers as worker
                where worker.wants_wake and wake.queue = any (worker.queues))
       and mainspring.message_for(queue, due_at) is not null then
        perform pg_notify('mainspring', mainspring.message_for(queue, due_at));
    end if;
end
$$;

-- Tells busy workers of jobs that are ready in a lane (queue, priority, tenant) from this id on, if
-- the lane looks empty otherwise. They know where work was, and find the rest within a second;
-- until then they may start tens of thousands of jobs of another tenant. Only the last thousand
-- ids are looked at: a lane may begin with any number of dead entries, and it does no harm to be
-- told of one that has work from before.
create or replace function mainspring.tell_busy(
    queue text, priority integer, tenant text, first_id bigint
)
returns void
language plpgsql
as $$
begin
    if length(tell_busy.queue) <= 500 and length(tell_busy.tenant) <= 500 and not exists (
        select from mainspring.jobs as job
         where job.queue = tell_busy.queue and job.priority = tell_busy.priority
           and job.tenant_id = tell_busy.tenant
           and job.job_id between tell_busy.first_id - 1000 and tell_busy.first_id - 1
           and job.state = 'queued' and job.waits_for is null) then
        perform pg_notify('mainspring', 'n:' || json_build_array(
            tell_busy.queue, tell_busy.priority, tell_busy.tenant, tell_busy.first_id, t.weight))
           from mainspring.tenants as t where t.tenant_id = tell_busy.tenant;
    end if;
end
$$;

-- Tells workers of jobs that were enqueued, the first of them with this id.
create or replace function mainspring.announce(
    queue text, priority integer, tenant text, first_id bigint, due_at timestamptz
)
returns void
language plpgsql
as $$
begin
    if exists (select from mainspring.workers as worker
                where worker.wants_wake and announce.queue = any (worker.queues)) then
        perform mainspring.wake(announce.queue, announce.due_at);
    elsif announce.due_at <= now() and exists (
        select from mainspring.workers as worker where announce.queue = any (worker.queues)) then
        perform mainspring.tell_busy(
            announce.queue, announce.priority, announce.tenant, announce.first_id);
    end if;
end
$$;

-- Tells who grants that jobs may wait that could go, and in which room if it is one.
create or replace function mainspring.wake_limits(
    limit_name text default null, limit_key text default null, tenant text default null
)
returns void
language plpgsql
as $$
declare
    room text := jsonb_build_array(limit_name, limit_key, tenant)::text;
begin
    if exists (select from mainspring.workers as worker where worker.wants_wake) then
        -- A message can have 8000 bytes.
        perform pg_notify('mainspring', case when limit_name is null or octet_length(room) > 7000
                                             then 'l:' else 'l:' || room end);
    end if;
end
$$;

-- Tells who has to know of a job that waits for nothing but its limit, or nothing at all.
create or replace function mainspring.wake_for(job mainspring.jobs)
returns void
language plpgsql
as $$
begin
    if job.limit_name is null then
        perform mainspring.wake(job.queue);
    else
        perform mainspring.wake_limits(job.limit_name, job.limit_key, job.tenant_id);
    end if;
end
$$;
