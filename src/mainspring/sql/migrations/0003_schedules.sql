-- Schedules, the slots they fire, and the audit of changes.

create type mainspring.slot_outcome as enum (
    'pending', 'enqueued', 'skipped', 'failed', 'missed', 'coalesced'
);

create type mainspring.slot_trigger as enum ('scheduler', 'catchup', 'manual', 'backfill');

create table mainspring.schedules (
    schedule_id bigint generated always as identity primary key,
    -- Counts everything that fires or changes the schedule; whoever fires says which turn was read.
    turn bigint not null default 0,
    -- When the scheduler looks at it next: epoch to compute the first slot, null for never.
    next_run_at timestamptz default 'epoch',
    -- The slot that is due then; it differs from next_run_at by the jitter.
    next_slot_at timestamptz,
    checking_until timestamptz,
    paused_until timestamptz,
    starts_at timestamptz,
    ends_at timestamptz,
    -- Fixed intervals count from here.
    anchor_at timestamptz not null default date_trunc('second', now()),
    -- Slots count from here: an edit forgets what was missed before it.
    changed_at timestamptz not null default now(),
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
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
    retry_count integer not null default 0,
    max_retries integer not null default 5,
    max_running integer not null default 1,
    catch_up_limit integer not null default 100,
    max_attempts integer,
    priority smallint,
    enabled boolean not null default true,
    gauge_is_high boolean not null default false,
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
    checking_by text,
    disabled_reason text,
    last_error text,
    -- What the code declared when it was last synced; null for a schedule a person made.
    declared jsonb,
    -- Kept by a trigger; a generated column would be computed by every fire.
    is_templated boolean not null default false,
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
    ),
    constraint schedules_disabled_never_run check (enabled or next_run_at is null)
) with (
    fillfactor = 80,
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
    autovacuum_analyze_scale_factor = 0.1, autovacuum_vacuum_cost_delay = 0
);

-- Serves due, due_checks and next_fire.
create index schedules_due on mainspring.schedules (next_run_at) where next_run_at is not null;
-- Serves overdue_runs.
create index schedules_watched on mainspring.schedules (schedule_id) where run_timeout is not null;
-- Serves drop_checks.
create index schedules_checking on mainspring.schedules (schedule_id)
    where checking_until is not null;

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
-- Serves the audit of one thing, newest first.
create index audit_subject on mainspring.audit (noun, subject, audit_id);

alter table mainspring.jobs
    add column schedule_id bigint,
    add column slot_at timestamptz,
    add column origin jsonb;
alter table mainspring.jobs_history
    add column schedule_id bigint,
    add column slot_at timestamptz,
    add column origin jsonb;
-- Serves the overlap rule: the live jobs of a schedule, in the order of their slots.
create index jobs_schedule on mainspring.jobs (schedule_id, slot_at) where schedule_id is not null;
-- Serves release_turns.
create index jobs_turn on mainspring.jobs (schedule_id) where waits_for = 'turn';
