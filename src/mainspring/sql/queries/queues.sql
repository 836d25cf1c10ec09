-- name: list_queues
-- scope: tenant
-- Ready, waiting and running jobs by queue, of all tenants if none is given, after a queue of a
-- tenant if given; with who paused it. Of paused queues without a live job only an operator sees
-- the pause.
with live as materialized (
    select * from mainspring.queue_status
     where %(tenant_id)s::text is null or tenant_id = %(tenant_id)s::text
), listed as (
    select tenant_id, queue, ready, waiting, running, held, oldest_ready_at from live
    union all
    select coalesce(%(tenant_id)s::text, 'default'), paused.name, 0, 0, 0, 0, null
      from mainspring.paused_queues as paused
     where (select not mainspring.is_isolated())
       and not exists (select from live where live.queue = paused.name)
)
select listed.tenant_id, listed.queue, listed.ready, listed.waiting, listed.running, listed.held,
       listed.oldest_ready_at, paused.paused_at, paused.paused_until, paused.paused_by,
       paused.reason
  from listed left join mainspring.paused_queues as paused on paused.name = listed.queue
 where (listed.queue, listed.tenant_id)
       > (coalesce(%(after)s::text, ''), coalesce(%(after_tenant)s::text, ''))
 order by listed.queue, listed.tenant_id limit %(limit)s;

-- name: paused_queues
-- scope: system
-- The queues that are paused, by name.
select name, paused_at, paused_until, paused_by, reason from mainspring.paused_queues
 order by name;

-- name: pause_queue
-- scope: system
-- Pauses a queue until an instant, for a while, or until it is resumed; its pause.
select paused.name, paused.paused_at, paused.paused_until, paused.paused_by, paused.reason
  from (select set_config('mainspring.actor', coalesce(%(actor)s::text, current_setting(
           'mainspring.actor', true), ''), true)) as acting,
       lateral mainspring.pause_queue(
           %(name)s, %(reason)s, %(until)s::timestamptz, %(duration)s::interval) as paused;

-- name: resume_queue
-- scope: system
-- Ends the pause of a queue; says whether it was paused.
select mainspring.resume_queue(%(name)s)
  from (select set_config('mainspring.actor', coalesce(%(actor)s::text, current_setting(
           'mainspring.actor', true), ''), true)) as acting;
