-- What an upgrade itself keeps; run before the first migration, and again by every upgrade.
create table if not exists mainspring.migrations (
    number integer primary key,
    name text not null,
    checksum text not null,
    applied_at timestamptz not null default now(),
    -- The oldest program that may run beside it, by the number of that program's newest migration.
    works_with integer not null
);

-- Which functions, views and triggers are installed: at most one row. The version rises with every
-- change, so that an older program can tell that it must not install its own over them.
create table if not exists mainspring.installed_functions (
    is_only_row boolean primary key default true check (is_only_row),
    version integer not null,
    digest text not null,
    -- Of each view and trigger, the digest of the statement that made it; one that has not changed
    -- is left alone, because replacing it takes a lock that others would wait for.
    objects jsonb not null,
    installed_at timestamptz not null default now()
);

-- Grants on functions and views that a migration may drop; given again when they are installed.
-- Empty between upgrades.
create table if not exists mainspring.grants_to_restore (
    kind text not null check (kind in ('function', 'view')),
    name text not null,
    privilege text not null,
    grantee text not null,
    primary key (kind, name, privilege, grantee)
);
