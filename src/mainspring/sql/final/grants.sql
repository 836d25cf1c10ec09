-- What is closed to everyone without a grant; this file is the last to be loaded.
revoke execute on all functions in schema mainspring from public;

-- Whoever reads a view needs the right to call what it calls. These look at nothing but what they
-- are given.
grant execute on function mainspring.redacted, mainspring.redacted_at, mainspring.is_visible,
    mainspring.is_own, mainspring.source_of to public;
