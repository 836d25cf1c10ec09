create or replace view mainspring.tally_status as
select tenant_id, day, state, count from mainspring.tallies where mainspring.is_visible(tenant_id)
union all
select tenant_id, day, state, case when moved = 'ended' then count else -count end
  from mainspring.changes
 where state is not null and mainspring.is_visible(tenant_id)
union all
-- Those of programs of the release before.
select tenant_id, day, state, count from mainspring.tally_changes
 where mainspring.is_visible(tenant_id);
