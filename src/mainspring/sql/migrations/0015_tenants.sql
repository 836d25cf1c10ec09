-- Tenants: the zone of their schedules, and whether they are disabled. And what has to be said when
-- a definition or a schedule is written: the kind of the one, the zone of the other, which is that
-- of its tenant unless it is given.
--
-- works with: 0001

alter table mainspring.tenants
    add column zone text not null default 'UTC',
    -- Since when nothing is taken from it, and none of its jobs starts.
    add column disabled_at timestamptz;

alter table mainspring.definitions alter column kind drop default;
alter table mainspring.schedules alter column zone drop default;
