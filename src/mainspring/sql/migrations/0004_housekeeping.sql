-- What keeps maintenance going whatever a tenant sends: rows that are set aside, how far pruning
-- got, and names that always fit their indexes.
--
-- works with: 0001

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

-- Serves prune_jobs and parents_in: whether a job that ended has live children.
create index dependencies_parent on mainspring.dependencies (parent_id);

-- How far history was pruned, for each period that jobs are kept for. `policies` stands for all
-- policies together: when they change, so may which jobs a period is for.
create table mainspring.prune_marks (
    keep interval primary key,
    pruned_until timestamptz not null,
    swept_at timestamptz not null,
    policies text not null
);
