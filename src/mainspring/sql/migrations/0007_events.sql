-- Events that happened, the triggers that turn them into jobs, and what came of each.

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
