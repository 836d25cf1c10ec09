-- Receipts of SQL functions: a function runs on a connection of its own, so its commit cannot be
-- that of the job's success. What it did is written down in its transaction instead, and the next
-- attempt finds it if the worker dies before it has reported. And settings of a session say who
-- created a job only where the program itself is connected.
--
-- works with: 0001

-- What a SQL function answered in the attempt that committed it; gone soon after its job.
create table mainspring.receipts (
    job_id bigint primary key,
    fence bigint not null,
    result jsonb not null,
    created_at timestamptz not null default now()
);

-- It answers more than before, and is installed again after the migrations.
drop function if exists mainspring.find_function(text);

-- Any role that a definition names calls record_receipt in it, which asks for a token.
grant usage on schema mainspring_calls to public;

-- Whether the program itself is connected, and not someone with a login of their own.
create or replace function mainspring.is_program()
returns boolean
language sql stable
return pg_has_role(session_user, (select nspowner from pg_catalog.pg_namespace
                                   where nspname = 'mainspring'), 'MEMBER');

-- Who creates a job or a flow. Only the program says it by a setting, which anybody can make; the
-- setting is looked at first, because most sessions have none.
create function mainspring.creator()
returns text
language sql stable
return case when coalesce(current_setting('mainspring.creator', true), '') <> ''
                 and mainspring.is_program()
            then current_setting('mainspring.creator') end;

alter table mainspring.jobs alter column created_by set default mainspring.creator();
alter table mainspring.flows alter column created_by set default mainspring.creator();
