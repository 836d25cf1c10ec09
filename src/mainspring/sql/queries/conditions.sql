-- name: read_only
-- scope: system
-- Makes the transaction unable to write.
set transaction read only;

-- name: limits
-- scope: system
-- Makes the transaction run under a role and end after a while.
select set_config('role', %(role)s, true), set_config('statement_timeout', %(timeout)s, true);

-- name: unlock
-- scope: system
-- Gives back what no rollback does.
select pg_advisory_unlock_all();
