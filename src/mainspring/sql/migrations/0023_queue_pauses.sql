-- Pauses of queues: who paused a queue, why and until when. While a queue is paused, nothing of it
-- is claimed.
--
-- works with: 0001

set local lock_timeout = '2s';

-- The queues that are paused, or were until paused_until.
create table mainspring.queues (
    name text collate "C" primary key check (name <> '' and octet_length(name) <= 2000),
    paused_at timestamptz not null default now(),
    -- Null until someone resumes it.
    paused_until timestamptz,
    paused_by text not null,
    reason text not null default ''
);
alter table mainspring.queues enable row level security;
