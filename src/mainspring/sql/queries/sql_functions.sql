-- name: call_function
-- scope: system
-- Calls the SQL function that a definition names, under the role it names.
select mainspring.call_function(%(function)s, %(role)s, %(payload)s::jsonb);

-- name: limit_statement
-- scope: system
-- Makes the server end the statements of this transaction after a while.
select set_config('statement_timeout', %(timeout)s, true);
