create or replace view mainspring.tally_status as
select tenant_id, day, state, count from mainspring.tallies where mainspring.is_visible(tenant_id)
union all
select tenant_id, day, state, count from mainspring.tally_changes
 where mainspring.is_visible(tenant_id);
