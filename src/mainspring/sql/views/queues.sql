create or replace view mainspring.queue_status as
select tenant_id, queue,
       count(*) filter (where state = 'queued' and waits_for is null) as ready,
       count(*) filter (where state = 'queued' and waits_for is not null) as waiting,
       count(*) filter (where state = 'running') as running,
       count(*) filter (where state in ('blocked', 'awaiting_approval')) as held,
       min(coalesce(ready_at, scheduled_for))
           filter (where state = 'queued' and waits_for is null) as oldest_ready_at
  from mainspring.jobs
 where mainspring.is_visible(tenant_id) and mainspring.is_own(created_by)
 group by tenant_id, queue;

-- The queues that are paused right now; those who claim leave them out. By the clock of the
-- statement, so that a pause ends by itself.
create or replace view mainspring.paused_queues as
select name, paused_at, paused_until, paused_by, reason from mainspring.queues
 where paused_until is null or paused_until > statement_timestamp();
