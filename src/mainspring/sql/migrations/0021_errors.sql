-- Errors, grouped: each failed attempt has a key that equal errors share; the statements that end
-- attempts write an outbox, which is added up by day.
--
-- works with: 0001

set local lock_timeout = '2s';

alter table mainspring.attempts
    -- Null unless it failed, timed out or was lost.
    add column error_key text collate "C";

-- A row for each group of attempts that one statement ended; now and then they are added up and
-- removed. No index, so that writing it is cheap.
create table mainspring.failures (
    at timestamptz not null default now(),
    tenant_id text collate "C" not null,
    queue text collate "C" not null,
    definition text collate "C" not null,
    error_key text collate "C" not null,
    sample text not null,
    count integer not null check (count > 0),
    -- The newest five.
    job_ids bigint[] not null,
    -- Of the jobs, the first twenty by name; null if they have none.
    tags text[]
) with (
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);

create table mainspring.error_days (
    day date not null,
    tenant_id text collate "C" not null,
    definition text collate "C" not null,
    error_key text collate "C" not null,
    count bigint not null check (count > 0),
    first_at timestamptz not null,
    last_at timestamptz not null,
    -- Of the newest attempt.
    sample text not null,
    -- The newest five.
    job_ids bigint[] not null,
    primary key (day, tenant_id, definition, error_key)
) with (fillfactor = 70);

-- Serves error_status: whether a key was there before.
create index error_days_key on mainspring.error_days (tenant_id, error_key, day);

alter table mainspring.failures enable row level security;
create policy of_tenant on mainspring.failures
    using (mainspring.is_visible(tenant_id) and mainspring.is_own(null));
alter table mainspring.error_days enable row level security;
create policy of_tenant on mainspring.error_days
    using (mainspring.is_visible(tenant_id) and mainspring.is_own(null));
