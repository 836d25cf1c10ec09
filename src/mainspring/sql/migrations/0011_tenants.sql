-- Tenants: the zone of their schedules, and whether they are disabled. And what has to be said when
-- a definition or a schedule is written: the kind of the one, the zone of the other, which is that
-- of its tenant unless it is given.
--
-- works with: 0001

alter table mainspring.tenants
    add column zone text not null default 'UTC',
    -- Since when nothing is enqueued for it, none of its jobs starts and its tokens are refused.
    -- Meanwhile max_running is 0, which keeps every job from starting.
    add column disabled_at timestamptz,
    -- What max_running is again when it is enabled.
    add column enabled_max_running integer check (enabled_max_running >= 0),
    add constraint default_tenant_is_enabled check (tenant_id <> 'default' or disabled_at is null);

alter table mainspring.definitions alter column kind drop default;
alter table mainspring.schedules alter column zone drop default;
