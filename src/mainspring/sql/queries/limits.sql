-- name: waiting_limit_keys
-- scope: system
-- The limit keys (limit, key, tenant) that jobs wait for and the queues of these jobs, after the
-- given one: a loose scan over the index of what waits, one probe a key and queue.
with recursive waiting as (
    (select limit_name, limit_key, tenant_id, queue from mainspring.jobs
      where waits_for = 'limit'
        and (limit_name, limit_key, tenant_id, hashtextextended(queue, 0))
            > (%(limit_name)s, %(key)s, %(tenant_id)s, hashtextextended(%(queue)s, 0))
      order by limit_name, limit_key, tenant_id, hashtextextended(queue, 0) limit 1)
    union all
    select next.* from waiting, lateral (
        select job.limit_name, job.limit_key, job.tenant_id, job.queue from mainspring.jobs as job
         where job.waits_for = 'limit'
           and (job.limit_name, job.limit_key, job.tenant_id, hashtextextended(job.queue, 0))
               > (waiting.limit_name, waiting.limit_key, waiting.tenant_id,
                  hashtextextended(waiting.queue, 0))
         order by job.limit_name, job.limit_key, job.tenant_id, hashtextextended(job.queue, 0)
         limit 1) as next
)
select limit_name, limit_key, tenant_id, queue from waiting limit %(limit)s;

-- name: waiting_keys_of_limit
-- scope: system
-- The keys of one limit that jobs of the queues wait for, after the given one. What waits in other
-- queues is stepped over, up to a point.
with recursive waiting as (
    (select limit_key, tenant_id, queue from mainspring.jobs
      where waits_for = 'limit' and limit_name = %(limit_name)s
        and (limit_key, tenant_id) > (%(key)s, %(tenant_id)s)
      order by limit_key, tenant_id, hashtextextended(queue, 0) limit 1)
    union all
    select next.* from waiting, lateral (
        select job.limit_key, job.tenant_id, job.queue from mainspring.jobs as job
         where job.waits_for = 'limit' and job.limit_name = %(limit_name)s
           and (job.limit_key, job.tenant_id, hashtextextended(job.queue, 0))
               > (waiting.limit_key, waiting.tenant_id, hashtextextended(waiting.queue, 0))
         order by job.limit_key, job.tenant_id, hashtextextended(job.queue, 0) limit 1) as next
)
select %(limit_name)s, limit_key, tenant_id
  from (select * from waiting limit 5 * %(limit)s) as near
 where queue = any (%(queues)s::text[])
 limit %(limit)s;

-- name: take_back
-- scope: system
-- Takes places back that programs of an earlier release have granted; says whether the lock was
-- ours.
select mainspring.take_back_places();

-- name: claim_limited
-- scope: system
-- Claims jobs that wait for the given limit keys, as many as have a place free.
select * from mainspring.claim_limited(
    %(worker_id)s::bigint, %(queues)s::text[], %(names)s::text[], %(keys)s::text[],
    %(tenants)s::text[], %(shares)s::integer[], %(limit)s::integer, %(lowest)s::integer);

-- name: announce_limits
-- scope: system
-- Notifies idle workers of limit keys that may have a place free.
select mainspring.notify_limit(key.limit_name, key.limit_key, key.tenant_id)
  from unnest(%(names)s::text[], %(keys)s::text[], %(tenants)s::text[])
       as key (limit_name, limit_key, tenant_id);

-- name: take_token
-- scope: system
-- Takes the token of a job that is about to start: 0 if it may, else seconds; null without lease.
select mainspring.take_token(%(job_id)s::bigint, %(fence)s::bigint);

-- name: prune_buckets
-- scope: system
-- Removes buckets that are full, which is what a bucket without a row is.
delete from mainspring.buckets as bucket
 where bucket.ctid = any (array(
    select old.ctid from mainspring.buckets as old
     where old.full_at < now() - interval '1 minute' order by old.full_at limit %(limit)s
       for update skip locked));

-- name: refill_buckets
-- scope: system
-- Makes all buckets full, as if time had passed; tests drain with it.
delete from mainspring.buckets where full_at > now();

-- name: set_limit
-- scope: system
-- Sets what a limit allows.
select mainspring.set_limit(
    %(name)s, %(concurrency)s::integer, %(key_concurrency)s::integer, %(rate_count)s::integer,
    %(rate_period)s::interval, %(burst)s::integer)
  from (select set_config('mainspring.actor', coalesce(%(actor)s::text, current_setting(
           'mainspring.actor', true), ''), true)) as acting;

-- name: remove_limit
-- scope: system
-- Removes a limit; says whether there was one.
select mainspring.remove_limit(%(name)s)
  from (select set_config('mainspring.actor', coalesce(%(actor)s::text, current_setting(
           'mainspring.actor', true), ''), true)) as acting;

-- name: get_limit
-- scope: system
-- One limit with how many of its jobs run and wait.
select name, concurrency, key_concurrency, rate_count, rate_seconds, burst, running, waiting
  from mainspring.limit_status where name = %(name)s;

-- name: list_limits
-- scope: system
-- Limits by name, after a name if given.
select name, concurrency, key_concurrency, rate_count, rate_seconds, burst, running, waiting
  from mainspring.limit_status
 where name > coalesce(%(after)s::text, '')
 order by name limit %(limit)s;
