-- What a job can wait for besides an instant: a limit, an approval, other jobs. And what tenants
-- may take of a queue.

alter table mainspring.tenants
    -- How many turns it gets where tenants take turns.
    add column weight integer not null default 1 check (weight between 1 and 1000),
    -- How many of its jobs may run at once.
    add column max_running integer check (max_running >= 0),
    add column updated_at timestamptz not null default now();

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

-- A definition has a limit of its own, of its own name, or shares one with others.
alter table mainspring.definitions
    add column concurrency integer check (concurrency >= 0),
    add column key_concurrency integer check (key_concurrency >= 0),
    add column rate_count integer check (rate_count >= 1),
    add column rate_period interval check (rate_period > '0'),
    add column burst integer check (burst >= 1),
    add check ((rate_count is null) = (rate_period is null)),
    add column limit_name text collate "C" check (limit_name <> ''),
    add column limit_by text[] check (cardinality(limit_by) > 0),
    add column approvals_needed smallint not null default 0
        check (approvals_needed between 0 and 100),
    add column approval_expiry interval check (approval_expiry > '0'),
    add column approvers text[] check (cardinality(approvers) > 0),
    -- Whether its jobs wait for nothing but time, so that an enqueue need not ask.
    add column is_plain boolean not null default true;

-- A job that has a limit, or whose tenant has: the name is empty for a tenant's alone, the key for
-- a limit without keys.
alter table mainspring.jobs
    add column limit_name text collate "C",
    add column limit_key text collate "C",
    add constraint jobs_limit_has_key check ((limit_name is null) = (limit_key is null)),
    add constraint jobs_wait_as_they_say check (
        (state = 'awaiting_approval') = (waits_for is not distinct from 'approval')
        and (state = 'blocked') = (waits_for is not distinct from 'parents'));

-- Serves grant: what waits for a limit, in the order it is let go.
create index jobs_limited on mainspring.jobs (limit_name, limit_key, tenant_id, priority, job_id)
    where waits_for = 'limit';
-- Serves grant: what holds a place of a limit.
create index jobs_granted on mainspring.jobs (limit_name, limit_key)
    where limit_name is not null and waits_for is null;
-- Serves grant: what holds a place of a tenant.
create index jobs_granted_tenant on mainspring.jobs (tenant_id)
    where limit_name is not null and waits_for is null;

-- Serves settle_parents: what waits for other jobs, or may do so when it is approved.
create index jobs_blocked on mainspring.jobs (job_id)
    where state in ('blocked', 'awaiting_approval');

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
-- Serves the list of what waits for an approval.
create index approvals_open on mainspring.approvals (tenant_id, job_id) where decided_at is null;

create table mainspring.votes (
    job_id bigint not null references mainspring.approvals on delete cascade,
    actor text not null check (actor <> ''),
    is_approval boolean not null,
    reason text not null default '',
    voted_at timestamptz not null default now(),
    primary key (job_id, actor)
);

create sequence mainspring.flow_ids;

create table mainspring.flows (
    flow_id bigint primary key default nextval('mainspring.flow_ids'),
    tenant_id text collate "C" not null,
    name text not null,
    created_at timestamptz not null default now()
);
-- Serves the newest flows of a tenant.
create index flows_tenant on mainspring.flows (tenant_id, flow_id);

create table mainspring.flow_jobs (
    flow_id bigint not null references mainspring.flows on delete cascade,
    job_id bigint not null,
    step text not null default '',
    primary key (flow_id, job_id)
);
-- Serves prune_flows, and the flow of a job.
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
-- Serves settle: the children that a job which ended may let go.
create index dependencies_open on mainspring.dependencies (parent_id) where outcome is null;

-- Functions that take more now. Whoever was granted the old ones is granted the new ones when the
-- functions are laid.
create table mainspring.kept_grants as
select distinct p.proname::text as name, pg_catalog.pg_get_userbyid(acl.grantee)::text as grantee
  from pg_catalog.pg_proc as p, pg_catalog.aclexplode(p.proacl) as acl
 where p.pronamespace = 'mainspring'::regnamespace
   and p.proname in ('enqueue', 'enqueue_job', 'enqueue_many')
   and acl.privilege_type = 'EXECUTE' and acl.grantee not in (0, p.proowner);
drop function if exists mainspring.enqueue(
    text, jsonb, text, text, integer, integer, timestamptz, interval, timestamptz, text, text,
    interval, text, text, text, text[]);
drop function if exists mainspring.enqueue_job(
    text, jsonb, text, text, integer, integer, timestamptz, interval, timestamptz, text, text,
    interval, text, text, text, text[]);
drop function if exists mainspring.enqueue_many(
    text, jsonb[], text, text, integer, integer, timestamptz, interval, timestamptz, text[], text,
    text[]);
drop function if exists mainspring.prepare_bulk(
    text, integer, text, text, integer, integer, timestamptz, interval, timestamptz);
