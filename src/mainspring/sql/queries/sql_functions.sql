-- name: find_call
-- scope: system
-- What an attempt needs to call the function of its definition: the statement to send, the token
-- for its receipt, what is wrong with the definition now, and the result of an earlier attempt that
-- could not report it. There is nothing to call where it is gone or returns another type.
select case when target.name is not null
            then mainspring.call_text(
                target.namespace, target.name, target.argument, %(most_bytes)s) end,
       case when target.name is not null
            then format('pg_catalog, %%I, pg_temp', target.namespace) end,
       target.argument is not null,
       mainspring.receipt_token(%(job_id)s, %(fence)s),
       (mainspring.wrong_function(%(spec)s::jsonb))[2],
       (select receipt.result from mainspring.receipts as receipt
         where receipt.job_id = %(job_id)s)
  from (select) as one
  left join mainspring.find_function(%(spec)s::jsonb ->> 'function') as target on true;

-- name: begin_call
-- scope: system
-- Prepares the transaction of a foreign session: the server ends what takes too long, and names
-- without a schema are looked up in the function's own after the system's. Says whether the login
-- has the rights of the owner although the role has not.
select pg_catalog.set_config('statement_timeout', %(timeout)s::pg_catalog.text, true),
       pg_catalog.set_config('search_path', %(search_path)s::pg_catalog.text, true),
       pg_catalog.set_config('role', %(role)s::pg_catalog.text, true),
       session_user operator(pg_catalog.<>) %(role)s::pg_catalog.name
       and pg_catalog.pg_has_role(session_user, own.nspowner, 'MEMBER')
       and not pg_catalog.pg_has_role(%(role)s::pg_catalog.name, own.nspowner, 'USAGE')
  from pg_catalog.pg_namespace as own where own.nspname operator(pg_catalog.=) 'mainspring';

-- name: close_cursors
-- scope: system
-- Ends what a function left open, so that none of it runs at the commit.
close all;

-- name: check_constraints
-- scope: system
-- Runs now what a function left to the commit, with its rights and before its receipt.
set constraints all immediate;

-- name: record_receipt
-- scope: system
-- Says that the attempt is still the newest; with a result it also writes the receipt.
select mainspring_calls.record_receipt(
    %(job_id)s::pg_catalog.int8, %(fence)s::pg_catalog.int8, %(token)s::pg_catalog.bytea,
    %(result)s::pg_catalog.text);

-- name: prune_receipts
-- scope: system
-- Deletes receipts of jobs that have ended.
select mainspring.prune_receipts(%(most)s);

-- name: has_role
-- scope: system
-- Whether there is a role of that name.
select exists (select from pg_catalog.pg_roles as role where role.rolname = %(role)s);
