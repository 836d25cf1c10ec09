-- Every table, type, index, policy and row that a new database starts with, by theme. Functions,
-- views and triggers are not here: they are installed after the migrations, whenever they change.
--
-- works with: 0001

-- ---------------------------------------------------------------------------------------------
-- Tenants and definitions
-- ---------------------------------------------------------------------------------------------

create table mainspring.tenants (
    tenant_id text collate "C" primary key check (tenant_id <> ''),
    created_at timestamptz not null default now(),
    -- Its share of a queue, in proportion to the weights of the other tenants.
    weight integer not null default 1 check (weight between 1 and 1000),
    -- How many of its jobs may run at once.
    max_running integer check (max_running >= 0),
    updated_at timestamptz not null default now()
);

insert into mainspring.tenants (tenant_id) values ('default');

create table mainspring.definitions (
    key text collate "C" primary key,
    kind text not null default 'python' check (kind in ('python', 'sql', 'command')),
    description text not null default '',
    queue text collate "C" not null default 'default' check (queue <> ''),
    priority smallint not null default 100 check (priority between 0 and 1000),
    max_attempts integer not null default 3 check (max_attempts between 1 and 1000),
    timeout interval not null default '1 hour' check (timeout > '0'),
    backoff_base interval not null default '5 seconds',
    backoff_factor double precision not null default 2 check (backoff_factor >= 1),
    backoff_cap interval not null default '5 minutes',
    backoff_jitter interval not null default '1 second',
    is_active boolean not null default true,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    version integer not null default 1,
    arg_schema jsonb check (jsonb_typeof(arg_schema) = 'object'),
    -- What a definition without code runs: the SQL function and its role, or the command.
    spec jsonb not null default '{}' check (jsonb_typeof(spec) = 'object'),
    tags text[] not null default '{}',
    -- How long its finished jobs are kept; overrides the retention policy.
    retention interval check (retention >= '0'),
    -- A definition has a limit of its own, under its own key, or shares the one it names.
    concurrency integer check (concurrency >= 0),
    key_concurrency integer check (key_concurrency >= 0),
    rate_count integer check (rate_count >= 1),
    rate_period interval check (rate_period > '0'),
    burst integer check (burst >= 1),
    limit_name text collate "C" check (limit_name <> ''),
    limit_by text[] check (cardinality(limit_by) > 0),
    approvals_needed smallint not null default 0 check (approvals_needed between 0 and 100),
    approval_expiry interval check (approval_expiry > '0'),
    approvers text[] check (cardinality(approvers) > 0),
    -- Whether its jobs wait for nothing but time, so that an enqueue need not ask.
    is_plain boolean not null default true,
    -- Kept by a trigger: an array of paths, each an array of names; null if there are none.
    secret_paths jsonb,
    check ((rate_count is null) = (rate_period is null))
);

-- How a job that was enqueued under a version is run, however the definition changes later.
create table mainspring.definition_versions (
    key text collate "C" not null,
    version integer not null,
    kind text not null,
    timeout interval not null,
    backoff_base interval not null,
    backoff_factor double precision not null,
    backoff_cap interval not null,
    backoff_jitter interval not null,
    arg_schema jsonb,
    spec jsonb not null,
    created_at timestamptz not null default now(),
    secret_paths jsonb,
    primary key (key, version)
);
-- Serves job_status: the definitions whose payloads are redacted.
create index definition_versions_secret on mainspring.definition_versions (key)
    where secret_paths is not null;

-- Holds the functions that run a caller's SQL, each owned by the role it runs as. Created here
-- only if an administrator has not, since creating it needs a right on the database.
do $$
begin
    if to_regnamespace('mainspring_calls') is null then
        create schema mainspring_calls;
    end if;
end
$$;
revoke all on schema mainspring_calls from public;

-- ---------------------------------------------------------------------------------------------
-- Workers
-- ---------------------------------------------------------------------------------------------

create sequence mainspring.worker_ids;

-- A job's lease is its worker's: one row per worker process, renewed every third of the lease.
-- Logged, so that a failover or a crash of the server does not make every worker look dead.
create table mainspring.workers (
    worker_id bigint primary key default nextval('mainspring.worker_ids'),
    started_at timestamptz not null default now(),
    renewed_at timestamptz not null default now(),
    expires_at timestamptz not null,
    recovered_at timestamptz,
    pid integer not null,
    concurrency integer not null,
    wants_wake boolean not null default true,
    is_stopping boolean not null default false,
    name text not null,
    host text not null,
    -- Identifies the process exactly (boot, pid namespace, pid, start), so that a process on
    -- the same host can tell for certain that it is gone.
    process_identity text not null,
    queues text[] not null,
    version text not null
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);

-- ---------------------------------------------------------------------------------------------
-- Jobs: live, finished, and their attempts
-- ---------------------------------------------------------------------------------------------

create type mainspring.job_state as enum (
    'awaiting_approval', 'blocked', 'queued', 'running',
    'succeeded', 'failed', 'dead_letter', 'canceled'
);

-- Why a live job is not ready. `turn`: an earlier run of its schedule is still live.
create type mainspring.waits_for as enum (
    'time', 'limit', 'approval', 'parents', 'handler', 'turn'
);

create type mainspring.attempt_outcome as enum (
    'running', 'succeeded', 'failed', 'timeout', 'canceled', 'snoozed', 'lost'
);

create sequence mainspring.job_ids;
create sequence mainspring.fences;

-- Live work only. A finished job moves to jobs_history, which has the same shape.
create table mainspring.jobs (
    job_id bigint not null default nextval('mainspring.job_ids'),
    fence bigint,
    worker_id bigint,
    created_at timestamptz not null default now(),
    scheduled_for timestamptz not null default now(),
    started_at timestamptz,
    finished_at timestamptz,
    deadline_at timestamptz,
    cancel_requested_at timestamptz,
    probed_at timestamptz,
    attempt integer not null default 0,
    failures integer not null default 0,
    losses integer not null default 0,
    max_attempts integer not null default 3,
    state mainspring.job_state not null default 'queued',
    waits_for mainspring.waits_for,
    priority smallint not null default 100,
    tenant_id text collate "C" not null default 'default',
    queue text collate "C" not null default 'default',
    definition text collate "C" not null,
    payload jsonb not null default '{}',
    dedupe_key text collate "C",
    correlation_id text,
    tags text[],
    progress jsonb,
    checkpoint jsonb,
    result jsonb,
    last_error text,
    schedule_id bigint,
    slot_at timestamptz,
    origin jsonb,
    definition_version integer not null default 1,
    constraint jobs_pkey primary key (job_id),
    constraint jobs_payload_is_object check (jsonb_typeof(payload) = 'object'),
    constraint jobs_priority_in_range check (priority between 0 and 1000),
    constraint jobs_are_live check (
        state in ('awaiting_approval', 'blocked', 'queued', 'running') and finished_at is null
    ),
    constraint jobs_running_has_lease check (
        (state = 'running') = (fence is not null)
        and (fence is null) = (worker_id is null)
        and (state <> 'running' or (waits_for is null and started_at is not null))
    ),
    constraint jobs_wait_as_they_say check (
        (state = 'awaiting_approval') = (waits_for is not distinct from 'approval')
        and (state = 'blocked') = (waits_for is not distinct from 'parents')
    )
) with (
    fillfactor = 90,
    autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_insert_scale_factor = 0.2,
    autovacuum_analyze_scale_factor = 0.05, autovacuum_analyze_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0
);

create table mainspring.jobs_history (
    like mainspring.jobs including defaults,
    constraint jobs_history_are_final check (
        state in ('succeeded', 'failed', 'dead_letter', 'canceled') and finished_at is not null
        and fence is null and worker_id is null and waits_for is null
    )
) partition by range (finished_at);

-- Where the two tables differ. Added rather than dropped from a copy: a dropped column in the
-- parent would make PostgreSQL convert every row on its way into a partition.
alter table mainspring.jobs
    -- Set if the job or its tenant has a limit: the name is empty for a tenant's alone, the key
    -- is empty for a limit without keys. A job that has ended counts for none.
    add column limit_name text collate "C",
    add column limit_key text collate "C",
    -- Who enqueued it through the API; null for code, `trigger:` and a name for a trigger.
    add column created_by text collate "C"
        default nullif(current_setting('mainspring.creator', true), ''),
    add constraint jobs_limit_has_key check ((limit_name is null) = (limit_key is null));
alter table mainspring.jobs_history add column created_by text collate "C";

comment on column mainspring.jobs.origin is
    'What made the job, if not an enqueue: the slot of a schedule, '
    'or the start of a bulk operation.';

-- Serves claim and discover: what can be claimed now, in the order it is claimed.
create index jobs_ready on mainspring.jobs (queue, priority, tenant_id, job_id)
    where state = 'queued' and waits_for is null;
-- Serves recover, adopt_orphans and held_by: the running jobs of a worker.
create index jobs_running on mainspring.jobs (worker_id) where state = 'running';
-- Serves promote and next_due: what waits for an instant.
create index jobs_due on mainspring.jobs (scheduled_for) where waits_for = 'time';
-- Serves release_known: what waits for a worker that knows its definition.
create index jobs_unhandled on mainspring.jobs (definition) where waits_for = 'handler';
-- Serves expire: what must start before an instant.
create index jobs_deadline on mainspring.jobs (deadline_at) where deadline_at is not null;
-- Serves cancel_requests and settle_cancels.
create index jobs_cancel_requested on mainspring.jobs (worker_id)
    where cancel_requested_at is not null;
-- Serves enqueue_job, and allows one live job per dedupe key and tenant.
create unique index jobs_dedupe on mainspring.jobs (tenant_id, dedupe_key)
    where dedupe_key is not null;
-- Serves fire and replace_runs: the live jobs of a schedule, in the order of their slots.
create index jobs_schedule on mainspring.jobs (schedule_id, slot_at) where schedule_id is not null;
-- Serves release_turns: what waits for an earlier run of its schedule.
create index jobs_turn on mainspring.jobs (schedule_id) where waits_for = 'turn';
-- Serves grant_places: what waits for a limit, in the order it is granted. 0006 replaces it.
create index jobs_limited on mainspring.jobs (limit_name, limit_key, tenant_id, priority, job_id)
    where waits_for = 'limit';
-- Serves claim_limited: what holds a place of a limit, or of a tenant. A second index by tenant
-- would be written by every job that is claimed, for the few claims that ask.
create index jobs_granted on mainspring.jobs (limit_name, limit_key)
    where limit_name is not null and waits_for is null;
-- Serves settle: what waits for other jobs, or may do so when it is approved.
create index jobs_blocked on mainspring.jobs (job_id)
    where state in ('blocked', 'awaiting_approval');
-- Serves list_created_jobs: a member sees only these.
create index jobs_creator on mainspring.jobs (created_by, job_id) where created_by is not null;

create table mainspring.jobs_history_default partition of mainspring.jobs_history default;
-- Serves get, and list_jobs_everywhere.
create index jobs_history_job on mainspring.jobs_history (job_id);
-- Serves list_jobs: a tenant's newest, however many others there are.
create index jobs_history_tenant on mainspring.jobs_history (tenant_id, job_id);
-- Serves list_created_jobs: a member sees only these.
create index jobs_history_creator on mainspring.jobs_history (created_by, job_id)
    where created_by is not null;
-- Serves list_unsuccessful_jobs: what went wrong, which is rare.
create index jobs_history_unsuccessful on mainspring.jobs_history (tenant_id, state, job_id)
    where state <> 'succeeded';
-- Serves list_unsuccessful_jobs_everywhere.
create index jobs_history_unsuccessful_everywhere on mainspring.jobs_history (state, job_id)
    where state <> 'succeeded';

create table mainspring.attempts (
    job_id bigint not null,
    fence bigint not null,
    worker_id bigint not null,
    started_at timestamptz not null,
    finished_at timestamptz not null default now(),
    late_report_at timestamptz,
    number integer not null,
    status mainspring.attempt_outcome not null check (status <> 'running'),
    late_report mainspring.attempt_outcome,
    error text
) partition by range (finished_at);

create table mainspring.attempts_default partition of mainspring.attempts default;
-- Serves attempts: those of a job.
create index attempts_job on mainspring.attempts (job_id);

-- What an attempt prints, written while it runs, and how its process ended. Apart from attempts,
-- so that jobs which print nothing pay nothing.
create table mainspring.outputs (
    job_id bigint not null,
    fence bigint not null,
    updated_at timestamptz not null default now(),
    pid integer,
    exit_code integer,
    stdout_tail text,
    stderr_tail text,
    primary key (job_id, fence)
) with (fillfactor = 50);
-- Serves drop_partitions.
create index outputs_age on mainspring.outputs (updated_at);

-- Keys that outlive their job: idempotency keys and dedupe windows.
create table mainspring.enqueue_keys (
    tenant_id text collate "C" not null,
    kind text not null check (kind in ('idempotency', 'window')),
    key text collate "C" not null,
    job_id bigint not null,
    expires_at timestamptz not null,
    fingerprint text,
    primary key (tenant_id, kind, key)
);
-- Serves prune_keys.
create index enqueue_keys_expiry on mainspring.enqueue_keys (expires_at);

-- How long finished jobs are kept; the most specific row wins (tenant and state, tenant,
-- state, neither).
create table mainspring.retention (
    tenant_id text collate "C",
    state mainspring.job_state check (
        state in ('succeeded', 'failed', 'dead_letter', 'canceled')
    ),
    keep interval not null check (keep >= '0'),
    unique nulls not distinct (tenant_id, state)
);

insert into mainspring.retention (tenant_id, state, keep) values
    (null, null, '30 days'),
    (null, 'succeeded', '7 days');

-- How many jobs ended in which state, by day. Whoever moves a job into history or out of it adds
-- a row to tally_changes, so that none waits for another; now and then they are added up.
create table mainspring.tallies (
    tenant_id text collate "C" not null,
    day date not null,
    state mainspring.job_state not null,
    count bigint not null,
    primary key (tenant_id, day, state)
) with (fillfactor = 70);

create table mainspring.tally_changes (
    tenant_id text collate "C" not null,
    day date not null default (now() at time zone 'UTC')::date,
    count bigint not null,
    state mainspring.job_state not null
) with (
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);

-- ---------------------------------------------------------------------------------------------
-- Limits
-- ---------------------------------------------------------------------------------------------

-- What may run at once, and how often something may start, over all workers. The truth of what
-- holds a place is in jobs: one of the limit that runs, or is ready to.
create table mainspring.limits (
    name text collate "C" primary key check (name <> ''),
    concurrency integer check (concurrency >= 0),
    key_concurrency integer check (key_concurrency >= 0),
    rate_count integer check (rate_count >= 1),
    rate_period interval check (rate_period > '0'),
    burst integer not null default 1 check (burst >= 1),
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    check ((rate_count is null) = (rate_period is null))
);
-- Serves take_token: every claim of jobs that have a limit asks which limits have a rate.
create index limits_rated on mainspring.limits (name) where rate_count is not null;

-- When the bucket of a key is full again: its tokens are those that flow in until then, less its
-- size. A key without a row has a full bucket.
create table mainspring.buckets (
    limit_name text collate "C" not null,
    limit_key text collate "C" not null,
    full_at timestamptz not null,
    primary key (limit_name, limit_key)
) with (fillfactor = 50);
-- Serves prune_buckets.
create index buckets_full on mainspring.buckets (full_at);

-- ---------------------------------------------------------------------------------------------
-- Approvals
-- ---------------------------------------------------------------------------------------------

create table mainspring.approvals (
    job_id bigint primary key,
    tenant_id text collate "C" not null,
    needed smallint not null check (needed between 1 and 100),
    approvers text[],
    requested_at timestamptz not null default now(),
    expires_at timestamptz,
    decided_at timestamptz,
    decision text check (decision in ('approved', 'rejected', 'expired')),
    check ((decided_at is null) = (decision is null))
);
-- Serves expire_approvals.
create index approvals_expiry on mainspring.approvals (expires_at) where decided_at is null;
-- Serves open_approvals.
create index approvals_open on mainspring.approvals (tenant_id, job_id) where decided_at is null;
-- Serves open_approvals_everywhere.
create index approvals_open_everywhere on mainspring.approvals (job_id) where decided_at is null;

create table mainspring.votes (
    job_id bigint not null references mainspring.approvals on delete cascade,
    actor text not null check (actor <> ''),
    is_approval boolean not null,
    reason text not null default '',
    voted_at timestamptz not null default now(),
    primary key (job_id, actor)
);

-- ---------------------------------------------------------------------------------------------
-- Flows
-- ---------------------------------------------------------------------------------------------

create sequence mainspring.flow_ids;

create table mainspring.flows (
    flow_id bigint primary key default nextval('mainspring.flow_ids'),
    tenant_id text collate "C" not null,
    name text not null,
    created_at timestamptz not null default now(),
    created_by text collate "C" default nullif(current_setting('mainspring.creator', true), '')
);
-- Serves list_flows: the newest of a tenant.
create index flows_tenant on mainspring.flows (tenant_id, flow_id);

create table mainspring.flow_jobs (
    flow_id bigint not null references mainspring.flows on delete cascade,
    job_id bigint not null,
    step text not null default '',
    primary key (flow_id, job_id)
);
-- Serves prune_flows, and flow_job_status.
create index flow_jobs_job on mainspring.flow_jobs (job_id);

-- What a job waits for: its parents. The outcome is null until the parent has ended in a way that
-- decides something.
create table mainspring.dependencies (
    job_id bigint not null,
    parent_id bigint not null,
    on_failure text not null default 'cancel' check (on_failure in ('cancel', 'continue', 'wait')),
    outcome mainspring.job_state,
    primary key (job_id, parent_id),
    check (job_id <> parent_id)
);
-- Serves settle: the children that a job which ended may release.
create index dependencies_open on mainspring.dependencies (parent_id) where outcome is null;

-- ---------------------------------------------------------------------------------------------
-- Schedules and their slots
-- ---------------------------------------------------------------------------------------------

create type mainspring.slot_outcome as enum (
    'pending', 'enqueued', 'skipped', 'failed', 'missed', 'coalesced'
);

create type mainspring.slot_trigger as enum ('scheduler', 'catchup', 'manual', 'backfill');

-- What people and code decide about a schedule. What the scheduler writes is in clocks.
create table mainspring.schedules (
    schedule_id bigint generated always as identity primary key,
    paused_until timestamptz,
    starts_at timestamptz,
    ends_at timestamptz,
    -- Fixed intervals count from here.
    anchor_at timestamptz not null default date_trunc('second', now()),
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    max_retries integer not null default 5,
    max_running integer not null default 1,
    catch_up_limit integer not null default 100,
    max_attempts integer,
    priority smallint,
    enabled boolean not null default true,
    tenant_id text collate "C" not null default 'default' references mainspring.tenants,
    name text collate "C" not null,
    description text not null default '',
    cron text,
    every interval,
    at timestamptz,
    zone text not null default 'UTC',
    dst_gap text not null default 'run_after',
    dst_fold text not null default 'once',
    calendar jsonb,
    jitter interval not null default '0',
    definition text collate "C" not null,
    payload jsonb not null default '{}',
    queue text collate "C",
    misfire_grace interval not null default '1 minute',
    catch_up text not null default 'latest',
    catch_up_max_age interval,
    overlap text not null default 'skip',
    run_timeout interval,
    launcher text,
    condition_sql text,
    gauge_sql text,
    gauge_lower double precision,
    gauge_upper double precision,
    condition_role text not null default current_user,
    condition_timeout interval not null default '10 seconds',
    disabled_reason text,
    -- What the code declared when it was last synced; null for a schedule a person made.
    declared jsonb,
    -- Kept by a trigger; a generated column would be computed by every fire.
    is_templated boolean not null default false,
    -- An instant that a person writes here becomes the next slot; its clock takes it, and the
    -- column is null again.
    run_at timestamptz,
    -- Kept by a trigger: what its jobs say of where they come from.
    origin jsonb not null default '{}',
    constraint schedules_have_one_timing check (num_nonnulls(cron, every, at) = 1),
    constraint schedules_name_is_unique unique (name, tenant_id),
    constraint schedules_payload_is_object check (jsonb_typeof(payload) = 'object'),
    constraint schedules_words check (
        dst_gap in ('run_after', 'skip') and dst_fold in ('once', 'both')
        and catch_up in ('none', 'latest', 'all') and overlap in ('skip', 'queue', 'replace')
    ),
    constraint schedules_numbers check (
        every >= '1 second' and jitter >= '0' and misfire_grace >= '0' and catch_up_max_age > '0'
        and run_timeout > '0' and condition_timeout > '0' and max_retries between 1 and 1000
        and max_running between 1 and 1000 and catch_up_limit between 1 and 10000
        and max_attempts between 1 and 1000 and priority between 0 and 1000
    )
) with (
    fillfactor = 80,
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
    autovacuum_analyze_scale_factor = 0.1, autovacuum_vacuum_cost_delay = 0
);
-- Serves overdue_runs.
create index schedules_watched on mainspring.schedules (schedule_id) where run_timeout is not null;

-- When a schedule is due, and how firing it went. Narrow and apart from schedules, because every
-- fire writes this row and its two indexes, and nothing wider.
create table mainspring.clocks (
    schedule_id bigint primary key,
    -- Counts everything that fires or changes the schedule; whoever fires says which count it read.
    revision bigint not null default 0,
    -- When the scheduler looks at it next: epoch to compute the first slot, null for never.
    next_run_at timestamptz,
    -- The slot that is due then; it differs from next_run_at by the jitter.
    next_slot_at timestamptz,
    -- Slots count from here: an edit forgets what was missed before it.
    changed_at timestamptz not null default now(),
    checking_until timestamptz,
    last_slot_at timestamptz,
    last_enqueued_at timestamptz,
    last_skipped_at timestamptz,
    last_failed_at timestamptz,
    enqueued_count bigint not null default 0,
    skipped_count bigint not null default 0,
    failed_count bigint not null default 0,
    missed_count bigint not null default 0,
    lateness_total interval not null default '0',
    lateness_worst interval not null default '0',
    -- Stands for all that decides which slots there are and what becomes of them; schedules with
    -- the same key are planned together.
    plan_key uuid not null,
    retry_count integer not null default 0,
    -- Without a condition or a template: it can be fired with others, in a set.
    is_plain boolean not null,
    gauge_is_high boolean not null default false,
    definition text collate "C" not null,
    checking_by text,
    last_error text
) with (
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
    autovacuum_analyze_scale_factor = 0.1, autovacuum_vacuum_cost_delay = 0
);
-- Serves due, due_checks and next_fire.
create index clocks_due on mainspring.clocks (next_run_at) where next_run_at is not null;
-- Serves drop_checks.
create index clocks_checking on mainspring.clocks (schedule_id) where checking_until is not null;

-- One row a slot: the row is the claim. A slot whose job has not ended has no run_state.
create table mainspring.slots (
    schedule_id bigint not null,
    scheduled_for timestamptz not null,
    fired_at timestamptz not null default now(),
    checking_until timestamptz,
    started_at timestamptz,
    finished_at timestamptz,
    job_id bigint,
    missed integer not null default 0,
    outcome mainspring.slot_outcome not null,
    trigger mainspring.slot_trigger not null default 'scheduler',
    is_forced boolean not null default false,
    reason text,
    checking_by text,
    payload jsonb,
    run_state text check (
        run_state in ('succeeded', 'failed', 'dead_letter', 'canceled', 'timed_out')
    ),
    counted_as text,
    primary key (schedule_id, scheduled_for),
    constraint slots_enqueued_have_a_job check ((outcome = 'enqueued') = (job_id is not null)),
    constraint slots_only_jobs_run check (run_state is null or outcome = 'enqueued')
) with (
    fillfactor = 85,
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_insert_scale_factor = 0.05,
    autovacuum_vacuum_cost_delay = 0
);
-- Serves pending_slots: triggered by hand, waiting for a scheduler to check the condition.
create index slots_pending on mainspring.slots (scheduled_for) where outcome = 'pending';
-- Serves count_runs.
create index slots_uncounted on mainspring.slots (schedule_id)
    where run_state is distinct from counted_as;
-- Serves prune_slots.
create index slots_age on mainspring.slots using brin (scheduled_for)
    with (pages_per_range = 16, autosummarize = on);

-- How the runs of a schedule went, kept apart from it so that counting locks nobody who fires.
create table mainspring.schedule_figures (
    schedule_id bigint primary key,
    succeeded bigint not null default 0,
    unsuccessful bigint not null default 0,
    seconds_total double precision not null default 0,
    seconds_worst double precision not null default 0,
    last_finished_at timestamptz,
    last_run_state text
) with (fillfactor = 70);

-- Schedules that were installed once, so that they are not installed again after a person has
-- removed them.
create table mainspring.installed (
    name text primary key,
    installed_at timestamptz not null default now()
);

-- ---------------------------------------------------------------------------------------------
-- Events and triggers
-- ---------------------------------------------------------------------------------------------

create table mainspring.triggers (
    trigger_id bigint generated always as identity primary key,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    priority smallint check (priority between 0 and 1000),
    is_enabled boolean not null default true,
    tenant_id text collate "C" not null default 'default' references mainspring.tenants,
    name text collate "C" not null,
    -- An event's name, or the first parts of one and .*, or * alone.
    event text collate "C" not null,
    definition text collate "C" not null,
    -- Templates inside are filled in from the event.
    payload jsonb not null default '{}' check (jsonb_typeof(payload) = 'object'),
    unknown_paths text not null default 'refuse' check (unknown_paths in ('refuse', 'null')),
    dedupe_window interval check (dedupe_window > '0' and dedupe_window <= '1000 years'),
    queue text collate "C",
    constraint triggers_name_is_unique unique (name, tenant_id)
);
-- Serves matching_triggers.
create index triggers_event on mainspring.triggers (tenant_id, event) where is_enabled;

create sequence mainspring.event_ids;

-- One row an event, written by the caller's transaction. It waits while handled_at is null; a
-- replay makes it wait once more.
create table mainspring.events (
    event_id bigint primary key default nextval('mainspring.event_ids'),
    emitted_at timestamptz not null default now(),
    handled_at timestamptz,
    replays integer not null default 0,
    tenant_id text collate "C" not null,
    name text collate "C" not null,
    correlation_id text,
    -- The only trigger that a replay is meant for; null for all.
    replay_trigger text collate "C",
    context jsonb not null check (jsonb_typeof(context) = 'object'),
    constraint events_are_replayed_for_a_trigger check (replay_trigger is null or replays > 0)
) with (
    fillfactor = 80,
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
    autovacuum_analyze_scale_factor = 0.1, autovacuum_vacuum_cost_delay = 0
);
-- Serves next_events and has_unhandled: what waits, by tenant in the order it happened.
create index events_unhandled on mainspring.events (tenant_id, event_id)
    where handled_at is null;
-- Serves list_events.
create index events_tenant on mainspring.events (tenant_id, event_id);
-- Serves prune_events.
create index events_handled on mainspring.events (handled_at) where handled_at is not null;

-- What a trigger made of an event, once for each replay: the row is the claim.
create table mainspring.dispatches (
    event_id bigint not null references mainspring.events on delete cascade,
    trigger_id bigint not null,
    job_id bigint,
    dispatched_at timestamptz not null default now(),
    replay integer not null,
    outcome text not null check (outcome in ('enqueued', 'duplicate', 'failed')),
    -- Kept here, since a trigger may be deleted.
    trigger_name text collate "C" not null,
    error text,
    primary key (event_id, trigger_id, replay),
    constraint dispatches_have_a_job_or_an_error check (
        (outcome = 'failed') = (job_id is null) and (outcome = 'failed') = (error is not null)
    )
);
-- Serves trigger_status: the newest dispatch of a trigger.
create index dispatches_trigger on mainspring.dispatches (trigger_id, dispatched_at, event_id);

-- ---------------------------------------------------------------------------------------------
-- People, tokens and the audit
-- ---------------------------------------------------------------------------------------------

create table mainspring.people (
    name text collate "C" primary key check (name <> ''),
    created_at timestamptz not null default now(),
    disabled_at timestamptz,
    last_seen_at timestamptz,
    -- Null for an operator, who sees all tenants.
    tenant_id text collate "C" references mainspring.tenants,
    role text not null check (role in ('operator', 'admin', 'member', 'viewer')),
    created_by text not null,
    constraint people_operators_have_no_tenant check ((role = 'operator') = (tenant_id is null))
);
-- Serves list_people.
create index people_tenant on mainspring.people (tenant_id, name);

-- Of a token only the digest is kept.
create table mainspring.tokens (
    token_id bigint generated always as identity primary key,
    created_at timestamptz not null default now(),
    expires_at timestamptz,
    last_used_at timestamptz,
    revoked_at timestamptz,
    -- A token is presented by programs, a session by a browser; a login is used once, for a
    -- session. A console belongs to a command that has the database's own credentials, and ends
    -- with the command.
    kind text not null default 'token'
        check (kind in ('token', 'session', 'login', 'console')),
    -- Null for an operator, who sees all tenants.
    tenant_id text collate "C" references mainspring.tenants,
    role text not null check (role in ('operator', 'admin', 'member', 'viewer', 'worker')),
    name text collate "C" not null check (name <> ''),
    -- Whose it is, if a person's; then the role is that person's, and what is done with it is done
    -- by that person.
    person text collate "C" references mainspring.people on delete cascade,
    -- How its text begins, for people.
    prefix text not null,
    digest bytea not null check (octet_length(digest) = 32),
    -- Null for all that the role may.
    scopes text[] check (cardinality(scopes) > 0),
    created_by text not null,
    constraint tokens_operators_have_no_tenant check ((role = 'operator') = (tenant_id is null)),
    constraint tokens_of_people check (kind in ('token', 'console') or person is not null),
    -- Serves find_token.
    constraint tokens_digest_is_unique unique (digest)
);
-- Serves get_token and list_tokens. The name of a revoked token may be given again.
create unique index tokens_name on mainspring.tokens (name)
    where revoked_at is null and kind = 'token';
-- Serves prune_tokens.
create index tokens_expiry on mainspring.tokens (expires_at) where kind <> 'token';
-- Serves delete_person: the tokens of a person are deleted with the person.
create index tokens_person on mainspring.tokens (person) where person is not null;

-- Logins through an identity provider that have begun; each is completed once.
create table mainspring.login_keys (
    digest bytea primary key check (octet_length(digest) = 32),
    expires_at timestamptz not null
);
-- Serves prune_login_keys.
create index login_keys_expiry on mainspring.login_keys (expires_at);

-- The answers to creates that came with an idempotency key, so that a repeat gets the same.
create table mainspring.replies (
    tenant_id text collate "C" not null,
    actor text collate "C" not null,
    key text collate "C" not null,
    digest bytea not null,
    expires_at timestamptz not null,
    status integer not null,
    body bytea not null,
    primary key (tenant_id, actor, key)
);
-- Serves prune_replies.
create index replies_expiry on mainspring.replies (expires_at);

create table mainspring.audit (
    audit_id bigint generated always as identity primary key,
    at timestamptz not null default now(),
    tenant_id text collate "C" not null,
    actor text not null,
    action text not null,
    noun text not null,
    subject text not null,
    reason text,
    before jsonb,
    after jsonb
);
-- Serves list_audit: one thing, newest first.
create index audit_subject on mainspring.audit (noun, subject, audit_id);
-- Serves list_audit: a tenant, newest first.
create index audit_tenant on mainspring.audit (tenant_id, audit_id);

-- ---------------------------------------------------------------------------------------------
-- Row-level security: the second line of tenant isolation. It binds requests of the API, which run
-- as the role mainspring_app; functions and views ask the same two questions themselves.
-- ---------------------------------------------------------------------------------------------

-- A caller of the API sees what belongs to its tenant; everyone else sees everything.
create function mainspring.is_visible(tenant text)
returns boolean
language sql stable
return current_setting('role') <> 'mainspring_app'
       or coalesce(current_setting('mainspring.tenant', true), '') = tenant;

-- Of jobs and flows a member sees only those it created.
create function mainspring.is_own(creator text)
returns boolean
language sql stable
return current_setting('role') <> 'mainspring_app'
       or coalesce(current_setting('mainspring.member', true), '') in ('', creator);

do $$
declare
    name text;
begin
    foreach name in array array[
        'approvals', 'audit', 'enqueue_keys', 'events', 'people', 'replies', 'retention',
        'schedules', 'tallies', 'tally_changes', 'tenants', 'tokens', 'triggers']
    loop
        execute format('alter table mainspring.%I enable row level security', name);
        execute format('create policy of_tenant on mainspring.%I '
                       'using (mainspring.is_visible(tenant_id))', name);
    end loop;
    foreach name in array array['flows', 'jobs', 'jobs_history']
    loop
        execute format('alter table mainspring.%I enable row level security', name);
        execute format('create policy of_tenant_and_creator on mainspring.%I using ('
                       'mainspring.is_visible(tenant_id) and mainspring.is_own(created_by))', name);
    end loop;
end
$$;
