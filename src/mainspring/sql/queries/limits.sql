-- name: waiting_limit_keys
-- scope: system
-- The limit keys (limit, key, tenant) that jobs wait for, after the given one: a loose scan over
-- the index of what waits, one probe a key.
with recursive waiting as (
    (select limit_name, limit_key, tenant_id from mainspring.jobs
      where waits_for = 'limit'
        and (limit_name, limit_key, tenant_id) > (%(limit_name)s, %(key)s, %(tenant_id)s)
      order by limit_name, limit_key, tenant_id limit 1)
    union all
    select next.* from waiting, lateral (
        select job.limit_name, job.limit_key, job.tenant_id from mainspring.jobs as job
         where job.waits_for = 'limit'
           and (job.limit_name, job.limit_key, job.tenant_id)
               > (waiting.limit_name, waiting.limit_key, waiting.tenant_id)
         order by job.limit_name, job.limit_key, job.tenant_id limit 1) as next
)
select limit_name, limit_key, tenant_id from waiting limit %(limit)s;

-- name: waiting_keys_of_limit
-- scope: system
-- The keys of one limit that jobs wait for, after the given one.
with recursive waiting as (
    (select limit_key, tenant_id from mainspring.jobs
      where waits_for = 'limit' and limit_name = %(limit_name)s
        and (limit_key, tenant_id) > (%(key)s, %(tenant_id)s)
      order by limit_key, tenant_id limit 1)
    union all
    select next.* from waiting, lateral (
        select job.limit_key, job.tenant_id from mainspring.jobs as job
         where job.waits_for = 'limit' and job.limit_name = %(limit_name)s
           and (job.limit_key, job.tenant_id) > (waiting.limit_key, waiting.tenant_id)
         order by job.limit_key, job.tenant_id limit 1) as next
)
select %(limit_name)s, limit_key, tenant_id from waiting limit %(limit)s;

-- name: take_back
-- scope: system
-- Takes places back where a limit was lowered; says whether the lock was ours.
select mainspring.take_back_places();

-- name: grant
-- scope: system
-- Lets jobs go that wait for the given limit keys, as many as have a place free.
select is_ours, granted, queues, unfinished, shared, full_ones, next_in, keyed_names, keyed_places
  from mainspring.grant_places(%(names)s::text[], %(keys)s::text[], %(tenants)s::text[],
                               %(limit)s);

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
-- All limits by name.
select name, concurrency, key_concurrency, rate_count, rate_seconds, burst, running, waiting
  from mainspring.limit_status order by name limit %(limit)s;
