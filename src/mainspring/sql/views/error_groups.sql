-- Failed attempts by day, definition and key, for 90 days. A member, who sees only its own jobs,
-- sees none of them: they do not say whose jobs failed.
create or replace view mainspring.error_status as
select found.day, found.tenant_id, found.definition, found.error_key, found.count, found.first_at,
       found.last_at, found.sample, found.job_ids,
       found.error_key <> '~other' and not exists (
           select from mainspring.error_days as earlier
            where earlier.tenant_id = found.tenant_id and earlier.error_key = found.error_key
              and earlier.day between found.day - 30 and found.day - 1) as is_new
  from mainspring.error_days as found
 where mainspring.is_visible(found.tenant_id) and mainspring.is_own(null);
