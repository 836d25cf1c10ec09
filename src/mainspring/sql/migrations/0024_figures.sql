-- Figures: what was enqueued, started and ended, how long jobs waited and ran, and what is live;
-- by tenant, queue and definition, and for minutes, hours, days and all time. Whoever ends a job or
-- an attempt adds a row to changes; every few seconds they are added up beside a count of what is
-- live. Programs of the release before add their rows to tally_changes, which is added up too.
--
-- works with: 0001

set local lock_timeout = '300ms';
lock table mainspring.jobs, mainspring.jobs_history in access exclusive mode;
set local lock_timeout = '2s';

alter table mainspring.jobs
    -- Since when the job is ready, where that is not its scheduled_for: what it waited for besides
    -- its time ended then.
    add column ready_at timestamptz;

alter table mainspring.jobs_history
    add column ready_at timestamptz;

-- What has changed since the last look: one row a statement and key. No index, and soon gone.
create table mainspring.changes (
    at timestamptz not null default now(),
    tenant_id text collate "C" not null,
    queue text collate "C" not null default '',
    definition text collate "C" not null default '',
    -- ended: moved to history. revived: back from it. pruned: left it for good. deleted: was live.
    -- went_on: an attempt ended, and the job is live.
    moved text not null check (moved in ('ended', 'revived', 'pruned', 'deleted', 'went_on')),
    -- That of the job in history.
    state mainspring.job_state,
    -- How an attempt ended; null if none did.
    attempt mainspring.attempt_outcome,
    -- The day that the job in history is counted under.
    day date not null default (statement_timestamp() at time zone 'UTC')::date,
    count bigint not null,
    -- Seconds from ready to begun of the attempts, and from begun to done of those that succeeded.
    wait_sum double precision,
    wait_worst double precision,
    run_sum double precision,
    run_worst double precision,
    -- Numbers of buckets, each of which counts so many times.
    stride integer not null default 1,
    waits smallint[],
    runs smallint[]
) with (
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);

-- What is live, as of the last look.
create table mainspring.depths (
    tenant_id text collate "C" not null,
    queue text collate "C" not null,
    definition text collate "C" not null,
    live bigint not null,
    ready bigint not null,
    running bigint not null,
    waiting_time bigint not null default 0,
    waiting_limit bigint not null default 0,
    waiting_turn bigint not null default 0,
    waiting_handler bigint not null default 0,
    awaiting_approval bigint not null default 0,
    blocked bigint not null default 0,
    oldest_ready_at timestamptz,
    -- How many jobs or attempts were counted that turned out not to be: a claim that was handed
    -- back. The next ones are set off against them.
    enqueued_over bigint not null default 0,
    started_over bigint not null default 0,
    changed_at timestamptz not null default now(),
    seen_at timestamptz not null default now(),
    primary key (tenant_id, queue, definition)
) with (fillfactor = 70);

create table mainspring.figures (
    step text collate "C" not null check (step in ('minute', 'hour', 'day', 'ever')),
    at timestamptz not null,
    tenant_id text collate "C" not null,
    queue text collate "C" not null,
    definition text collate "C" not null,
    enqueued bigint not null,
    started bigint not null,
    succeeded bigint not null,
    failed bigint not null,
    dead_letter bigint not null,
    canceled bigint not null,
    deleted bigint not null,
    revived bigint not null,
    attempts_succeeded bigint not null,
    attempts_failed bigint not null,
    attempts_timeout bigint not null,
    attempts_canceled bigint not null,
    attempts_snoozed bigint not null,
    attempts_lost bigint not null,
    -- The most that a look found.
    ready bigint not null,
    running bigint not null,
    oldest_ready_seconds double precision not null,
    wait_sum double precision not null,
    wait_worst double precision not null,
    run_sum double precision not null,
    run_worst double precision not null,
    -- Pairs of the number of a bucket and how many are in it; bucket b ends at 2^(b/8) seconds.
    wait_buckets bigint[] not null,
    run_buckets bigint[] not null,
    primary key (step, at, tenant_id, queue, definition)
) partition by list (step);

create table mainspring.figures_minute partition of mainspring.figures for values in ('minute');
create table mainspring.figures_hour partition of mainspring.figures for values in ('hour');
create table mainspring.figures_day partition of mainspring.figures for values in ('day');
create table mainspring.figures_ever partition of mainspring.figures for values in ('ever')
    with (fillfactor = 70);

-- When each duty of which there is one for all processes ran, and how long that took. The hours and
-- days of figures are complete up to last_at.
create table mainspring.watches (
    name text collate "C" primary key,
    last_at timestamptz not null,
    took interval not null default '0'
);
alter table mainspring.watches enable row level security;

-- What is live already was not enqueued just now.
insert into mainspring.depths (tenant_id, queue, definition, live, ready, running)
select tenant_id, queue, definition, count(*), 0, count(*) filter (where state = 'running')
  from mainspring.jobs group by tenant_id, queue, definition;

do $$
declare
    name text;
begin
    foreach name in array array['changes', 'depths', 'figures'] loop
        execute format('alter table mainspring.%I enable row level security', name);
        execute format('create policy of_tenant on mainspring.%I '
                       'using (mainspring.is_visible(tenant_id))', name);
    end loop;
    foreach name in array array['minute', 'hour', 'day', 'ever'] loop
        execute format('alter table mainspring.%I enable row level security', 'figures_' || name);
    end loop;
end
$$;

-- What leaves history is counted where it leaves.
drop function if exists mainspring.untally(text, mainspring.job_state, timestamptz);
