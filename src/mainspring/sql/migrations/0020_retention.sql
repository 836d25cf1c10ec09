-- Retention of what is no job: the audit, slots and events. It is a table of its own, since
-- programs of the release before take every row of mainspring.retention for a policy of jobs, and
-- would remove jobs by it.
--
-- works with: 0001

set local lock_timeout = '2s';

-- How long each kind is kept; the row of a tenant wins over the one for everyone. Without either,
-- slots and events are kept as the settings say, and the audit for ever.
create table mainspring.record_retention (
    kind text collate "C" not null check (kind in ('audit', 'slots', 'events')),
    tenant_id text collate "C",
    keep interval not null,
    constraint record_retention_is_bounded check (keep between '1 day' and '36500 days'),
    unique nulls not distinct (kind, tenant_id)
);
alter table mainspring.record_retention enable row level security;
create policy of_tenant on mainspring.record_retention using (mainspring.is_visible(tenant_id));

insert into mainspring.record_retention (kind, keep) values ('audit', '730 days');

-- Serves prune_audit.
create index audit_age on mainspring.audit (at);
