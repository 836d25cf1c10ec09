-- Processes: schedulers and servers have a row while they live, as workers do in theirs.
--
-- works with: 0001

set local lock_timeout = '2s';

alter table mainspring.workers
    -- Of the program; null for one that does not say, such as a worker over the REST API.
    add column schema_number integer,
    -- As of the renewal before the last: local time less the database's.
    add column clock_offset_ms bigint,
    add column round_trip_ms real;

-- One row a scheduler and a server. A worker has its row in workers, which is its lease; so the
-- ids are of one sequence. It serves no decision: a lost row costs nothing but a line in a list.
create table mainspring.processes (
    process_id bigint primary key default nextval('mainspring.worker_ids'),
    started_at timestamptz not null default now(),
    seen_at timestamptz not null default now(),
    expires_at timestamptz not null,
    clock_offset_ms bigint,
    round_trip_ms real,
    pid integer not null,
    schema_number integer not null,
    kind text not null,
    name text not null,
    host text not null,
    identity text not null,
    version text not null,
    facts jsonb not null default '{}',
    constraint processes_kind check (kind in ('scheduler', 'server'))
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);
alter table mainspring.processes enable row level security;
