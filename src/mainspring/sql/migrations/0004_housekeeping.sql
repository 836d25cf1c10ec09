-- What keeps maintenance going whatever a tenant sends: rows that are set aside, how far pruning
-- got, and names that always fit their indexes.
--
-- works with: 0001

-- All locks at once, and none is waited for as long as a deadlock takes to be noticed: a program
-- that waits for one of these tables while it holds another must not be the one that is told so.
set local lock_timeout = '300ms';
lock table mainspring.jobs, mainspring.tenants, mainspring.definitions, mainspring.limits,
    mainspring.enqueue_keys, mainspring.schedules, mainspring.triggers
    in access exclusive mode;
lock table mainspring.jobs_history, mainspring.dependencies in share mode;
set local lock_timeout = '2s';

-- ---------------------------------------------------------------------------------------------
-- Rows that a statement over many cannot process
-- ---------------------------------------------------------------------------------------------

-- Until again_at the row is left out of the batches of its duty. The key is the id of a job.
create table mainspring.set_aside (
    duty text not null,
    key bigint not null,
    tries integer not null default 1,
    again_at timestamptz not null,
    failed_at timestamptz not null default now(),
    reason text not null,
    primary key (duty, key)
);

-- It has one more parameter now, which has a default.
drop function if exists mainspring.expire_approvals(integer);
-- Replaced by pages.
drop function if exists mainspring.unsettled_children(integer);

-- ---------------------------------------------------------------------------------------------
-- Pruning
-- ---------------------------------------------------------------------------------------------

-- Serves prune_jobs: what ended in a span of time. Rows come in the order they end, so a summary of
-- pages is as good as an entry for each of them, and finishing a job costs no more than before.
create index jobs_history_finished on mainspring.jobs_history using brin (finished_at)
    with (pages_per_range = 32, autosummarize = on);

-- Serves prune_jobs and parents_in, beside dependencies_open: whether a job that ended has live
-- children.
create index dependencies_known on mainspring.dependencies (parent_id) where outcome is not null;

-- How far history was pruned, for each period that jobs are kept for. `policies` stands for all
-- policies together: when they change, so may which jobs a period is for.
create table mainspring.prune_marks (
    keep interval primary key,
    pruned_until timestamptz not null,
    swept_at timestamptz not null,
    policies text not null
);

-- ---------------------------------------------------------------------------------------------
-- Names that fit their indexes: an entry can have 2,704 bytes, and a row whose entry would be
-- longer cannot be moved. 500 characters have at most 2,000 bytes, which leaves 200 for the tenant
-- and 200 for a definition or limit. Not valid at first, so that no table is read under a lock;
-- whoever cleans up validates them later.
-- ---------------------------------------------------------------------------------------------

alter table mainspring.tenants add constraint tenants_name_fits check (
    octet_length(tenant_id) <= 200) not valid;
alter table mainspring.definitions add constraint definitions_names_fit check (
    octet_length(key) <= 200 and octet_length(queue) <= 2000
    and octet_length(limit_name) <= 200) not valid;
alter table mainspring.limits add constraint limits_name_fits check (
    octet_length(name) <= 200) not valid;
alter table mainspring.jobs add constraint jobs_names_fit check (
    octet_length(tenant_id) <= 200 and octet_length(queue) <= 2000
    and octet_length(definition) <= 200 and octet_length(dedupe_key) <= 2000
    and octet_length(limit_name) <= 200 and octet_length(limit_key) <= 2000
    and octet_length(created_by) <= 2000) not valid;
alter table mainspring.enqueue_keys add constraint enqueue_keys_names_fit check (
    octet_length(tenant_id) <= 200 and octet_length(key) <= 2000) not valid;
alter table mainspring.schedules add constraint schedules_names_fit check (
    octet_length(name) <= 800 and octet_length(queue) <= 2000
    and octet_length(definition) <= 800) not valid;
alter table mainspring.triggers add constraint triggers_names_fit check (
    octet_length(name) <= 800 and octet_length(queue) <= 2000 and octet_length(event) <= 202
    and octet_length(definition) <= 800) not valid;

-- ---------------------------------------------------------------------------------------------
-- Sweeps
-- ---------------------------------------------------------------------------------------------

-- Up to which job a lane holds hardly anything but dead entries, as workers noted it that found the
-- walk over them slow. A worker that starts begins its claims behind it.
create table mainspring.lane_floors (
    queue text collate "C" not null,
    tenant_id text collate "C" not null,
    floor bigint not null,
    noted_at timestamptz not null default now(),
    sweep_seconds double precision not null,
    priority smallint not null,
    primary key (queue, priority, tenant_id)
) with (fillfactor = 50);
alter table mainspring.lane_floors enable row level security;
