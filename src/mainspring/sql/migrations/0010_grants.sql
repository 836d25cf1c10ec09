-- Every job that is granted and claimed was written to this index twice, for the few grants that ask
-- what a tenant holds; and while few held a place the planner took it for the count of a key. The
-- places of tenants are counted over jobs_granted, which has no more rows than there are places.
drop index mainspring.jobs_granted_tenant;
-- Their answers have changed.
drop function if exists mainspring.take_back_places(),
    mainspring.grant_places(text[], text[], text[], integer);
