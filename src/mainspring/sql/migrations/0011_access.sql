-- Who may come in: people, and tokens that people and programs show. Of a token only the digest is
-- kept. What a caller of the API enqueues is its own, by name.

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

create table mainspring.tokens (
    token_id bigint generated always as identity primary key,
    created_at timestamptz not null default now(),
    expires_at timestamptz,
    last_used_at timestamptz,
    revoked_at timestamptz,
    -- A token is shown by programs, a session by a browser; a login is used once, for a session.
    kind text not null default 'token' check (kind in ('token', 'session', 'login')),
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
    constraint tokens_of_people check (kind = 'token' or person is not null),
    -- Serves find_token.
    constraint tokens_digest_is_unique unique (digest)
);
-- Serves get_token and list_tokens. The name of a token that was revoked may be given again.
create unique index tokens_name on mainspring.tokens (name)
    where revoked_at is null and kind = 'token';
-- Serves prune_tokens.
create index tokens_expiry on mainspring.tokens (expires_at) where kind <> 'token';
-- A person who goes takes the tokens along.
create index tokens_person on mainspring.tokens (person) where person is not null;

-- What was answered to creates that came with a key, so that they can be asked for once more.
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

-- Who enqueued a job or a flow through the API; null for code. `trigger:` and a name for a trigger.
alter table mainspring.jobs add column created_by text collate "C";
alter table mainspring.jobs_history add column created_by text collate "C";
alter table mainspring.flows add column created_by text collate "C";
alter table mainspring.jobs
    alter column created_by set default nullif(current_setting('mainspring.creator', true), '');
alter table mainspring.flows
    alter column created_by set default nullif(current_setting('mainspring.creator', true), '');
-- Serve list_jobs for a member, who sees only these.
create index jobs_creator on mainspring.jobs (created_by, job_id) where created_by is not null;
create index jobs_history_creator on mainspring.jobs_history (created_by, job_id)
    where created_by is not null;
-- Serves list_jobs: a tenant's newest, however many others there are.
create index jobs_history_tenant on mainspring.jobs_history (tenant_id, job_id);
-- Serves list_jobs for what went wrong, which is rare.
create index jobs_history_unsuccessful on mainspring.jobs_history (tenant_id, state, job_id)
    where state <> 'succeeded';
-- Serves list_audit.
create index audit_tenant on mainspring.audit (tenant_id, audit_id);

-- How many jobs ended in which state, by day, kept up by whoever moves a job into history or out of
-- it: each adds a row of its own, so that none waits for another, and now and then they are added up.
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
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
        autovacuum_vacuum_cost_delay = 0);

insert into mainspring.tallies (tenant_id, day, state, count)
select tenant_id, (finished_at at time zone 'UTC')::date, state, count(*)
  from mainspring.jobs_history group by 1, 2, 3;

-- The second wall. Who is not the API is not asked; see functions/access.sql.
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
    walled text;
begin
    foreach walled in array array[
        'approvals', 'audit', 'enqueue_keys', 'events', 'people', 'replies', 'retention',
        'schedules', 'tallies', 'tally_changes', 'tenants', 'tokens', 'triggers']
    loop
        execute format('alter table mainspring.%I enable row level security', walled);
        execute format('create policy of_tenant on mainspring.%I '
                       'using (mainspring.is_visible(tenant_id))', walled);
    end loop;
    foreach walled in array array['flows', 'jobs', 'jobs_history']
    loop
        execute format('alter table mainspring.%I enable row level security', walled);
        execute format('create policy of_tenant_and_creator on mainspring.%I using ('
                       'mainspring.is_visible(tenant_id) and mainspring.is_own(created_by))', walled);
    end loop;
end
$$;
