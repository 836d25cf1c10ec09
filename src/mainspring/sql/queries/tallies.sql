-- name: ended_counts
-- scope: tenant
-- How many jobs in history ended in which state, since a day if given.
select state::text, sum(count)::bigint from mainspring.tally_status
 where tenant_id = %(tenant_id)s and (%(since)s::date is null or day >= %(since)s::date)
 group by state;

-- name: ended_counts_everywhere
-- scope: system
-- The same over all tenants.
select state::text, sum(count)::bigint from mainspring.tally_status
 where %(since)s::date is null or day >= %(since)s::date
 group by state;

-- name: live_counts
-- scope: tenant
-- How many jobs are in which live state, how many of those that are queued wait, and since when the
-- oldest is ready.
select state::text, count(*), count(waits_for),
       min(coalesce(ready_at, scheduled_for))
           filter (where state = 'queued' and waits_for is null)
  from mainspring.jobs
 where tenant_id = %(tenant_id)s
   and (%(created_by)s::text is null or created_by = %(created_by)s::text)
 group by state;

-- name: live_counts_everywhere
-- scope: system
-- The same over all tenants.
select state::text, count(*), count(waits_for),
       min(coalesce(ready_at, scheduled_for))
           filter (where state = 'queued' and waits_for is null)
  from mainspring.jobs
 group by state;
