-- Lists over all tenants, for operators; logins through a provider. Who may decide on a job is asked by functions and views, which
-- are laid anew after a migration.

-- Serves list_unsuccessful_jobs_everywhere.
create index jobs_history_unsuccessful_everywhere on mainspring.jobs_history (state, job_id)
    where state <> 'succeeded';
-- Serves open_approvals_everywhere.
create index approvals_open_everywhere on mainspring.approvals (job_id) where decided_at is null;

-- Logins through a provider that were begun; each is ended once.
create table mainspring.login_keys (
    digest bytea primary key check (octet_length(digest) = 32),
    expires_at timestamptz not null
);
-- Serves prune_login_keys.
create index login_keys_expiry on mainspring.login_keys (expires_at);
