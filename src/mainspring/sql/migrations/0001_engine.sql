-- The engine: tenants, definitions, workers, live jobs, their history and attempts.

create type mainspring.job_state as enum (
    'awaiting_approval', 'blocked', 'queued', 'running',
    'succeeded', 'failed', 'dead_letter', 'canceled'
);

create type mainspring.waits_for as enum ('time', 'limit', 'approval', 'parents', 'handler');

create type mainspring.attempt_outcome as enum (
    'running', 'succeeded', 'failed', 'timeout', 'canceled', 'snoozed', 'lost'
);

create sequence mainspring.job_ids;
create sequence mainspring.fences;
create sequence mainspring.worker_ids;

create table mainspring.tenants (
    tenant_id text collate "C" primary key check (tenant_id <> ''),
    created_at timestamptz not null default now()
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
    updated_at timestamptz not null default now()
);

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
    )
) with (
    fillfactor = 90,
    autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_insert_scale_factor = 0.2,
    autovacuum_analyze_scale_factor = 0.05, autovacuum_analyze_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0
);

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
-- One live job per dedupe key and tenant.
create unique index jobs_dedupe on mainspring.jobs (tenant_id, dedupe_key)
    where dedupe_key is not null;

create table mainspring.jobs_history (
    like mainspring.jobs including defaults,
    constraint jobs_history_are_final check (
        state in ('succeeded', 'failed', 'dead_letter', 'canceled') and finished_at is not null
        and fence is null and worker_id is null and waits_for is null
    )
) partition by range (finished_at);

create table mainspring.jobs_history_default partition of mainspring.jobs_history default;
-- Serves lookups by id and newest-first listing.
create index jobs_history_job on mainspring.jobs_history (job_id);

create table mainspring.attempts (
    job_id bigint not null,
    fence bigint not null,
    worker_id bigint not null,
    started_at timestamptz not null,
    finished_at timestamptz not null default now(),
    late_report_at timestamptz,
    number integer not null,
    pid integer,
    exit_code integer,
    status mainspring.attempt_outcome not null check (status <> 'running'),
    late_report mainspring.attempt_outcome,
    error text,
    stdout_tail text,
    stderr_tail text
) partition by range (finished_at);

create table mainspring.attempts_default partition of mainspring.attempts default;
-- Serves the attempts of a job.
create index attempts_job on mainspring.attempts (job_id);

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
