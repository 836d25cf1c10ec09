-- name: fold_failures
-- scope: system
-- Adds up to so many failures to the days; says how many those were.
select mainspring.fold_failures(%(limit)s::integer);

-- name: prune_error_days
-- scope: system
-- Removes days that are past.
delete from mainspring.error_days as past
 where past.ctid = any (array(
    select old.ctid from mainspring.error_days as old
     where old.day < mainspring.day_of(now()) - %(keep)s::integer limit %(limit)s
       for update skip locked));

-- name: list_error_groups
-- scope: tenant
-- Groups that failed since an instant, new ones first, then by how often they failed on the days
-- since then; of all tenants if none is given, and behind a group if given.
with found as (
    select tenant_id, error_key, (array_agg(is_new order by day))[1] as is_new,
           sum(count)::bigint as count, max(last_at) as last_at,
           array_agg(distinct definition order by definition) as definitions,
           (array_agg(sample order by last_at desc))[1] as sample,
           mainspring.newest_of(string_agg(array_to_string(job_ids, ','), ',')) as job_ids
      from mainspring.error_status
     where (%(tenant_id)s::text is null or tenant_id = %(tenant_id)s::text)
       and day >= mainspring.day_of(%(since)s::timestamptz) and last_at >= %(since)s::timestamptz
       and (%(definitions)s::text[] is null or definition = any (%(definitions)s::text[]))
     group by tenant_id, error_key
)
select tenant_id, error_key, is_new, count,
       (select min(first_at) from mainspring.error_status as earlier
         where earlier.tenant_id = found.tenant_id and earlier.error_key = found.error_key)
       as first_at, last_at, definitions, sample, job_ids
  from found
 where (%(is_new)s::boolean is null or is_new = %(is_new)s::boolean)
   and (%(after_key)s::text is null
        or (not is_new, -count, tenant_id, error_key)
           > (not %(after_new)s::boolean, -%(after_count)s::bigint, %(after_tenant)s::text,
              %(after_key)s::text))
 order by not is_new, -count, tenant_id, error_key
 limit %(limit)s;

-- name: get_error_days
-- scope: tenant
-- The days of a group by definition, the newest first.
select day, definition, count, first_at, last_at, sample, job_ids, is_new
  from mainspring.error_status
 where tenant_id = %(tenant_id)s and error_key = %(error_key)s
 order by day desc, definition
 limit %(limit)s;
