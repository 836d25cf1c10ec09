-- Definitions that need no code: their versions, and what their jobs print.

alter table mainspring.definitions
    add column version integer not null default 1,
    add column arg_schema jsonb check (jsonb_typeof(arg_schema) = 'object'),
    -- What a definition without code runs: the SQL function and its role, or the command.
    add column spec jsonb not null default '{}' check (jsonb_typeof(spec) = 'object'),
    add column tags text[] not null default '{}',
    -- How long its finished jobs are kept, in place of what the retention policy says.
    add column retention interval check (retention >= '0');

-- What a job that was enqueued under a version is run by, however the definition changes.
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
    primary key (key, version)
);

insert into mainspring.definition_versions (
    key, version, kind, timeout, backoff_base, backoff_factor, backoff_cap, backoff_jitter, spec)
select key, version, kind, timeout, backoff_base, backoff_factor, backoff_cap, backoff_jitter, spec
  from mainspring.definitions;

alter table mainspring.jobs add column definition_version integer not null default 1;
alter table mainspring.jobs_history add column definition_version integer not null default 1;

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

drop view if exists mainspring.attempt_status;
drop function if exists mainspring.prepare_bulk(
    text, integer, text, text, integer, integer, timestamptz, interval, timestamptz);
alter table mainspring.attempts
    drop column exit_code, drop column stdout_tail, drop column stderr_tail, drop column pid;

-- Functions that run what they are given under the rights of one role each.
create schema if not exists mainspring_calls;
revoke all on schema mainspring_calls from public;
