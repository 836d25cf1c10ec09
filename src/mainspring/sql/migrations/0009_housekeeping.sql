-- What has been installed once, so that nobody installs it again after a person has removed it.

create table mainspring.installed (
    name text primary key,
    installed_at timestamptz not null default now()
);
