-- What is closed to everyone without a grant; this file is the last to be loaded.
revoke execute on all functions in schema mainspring from public;

-- Whoever reads a view needs the right to call what it calls. These look at nothing but what they
-- are given.
grant execute on function mainspring.redacted, mainspring.redacted_at,
    mainspring.is_isolated, mainspring.is_visible, mainspring.is_own, mainspring.source_of,
    mainspring.creator_of, mainspring.trigger_of, mainspring.error_line
    to public;

-- The defaults of columns call these.
grant execute on function mainspring.is_program, mainspring.creator to public;

-- Triggers that run as whoever writes a definition or a schedule call these.
grant execute on function mainspring.may_set_role, mainspring.has_rights_of, mainspring.grant_of,
    mainspring.acts_as_owner
    to public;

-- mainspring.schedule_function, which runs as its caller, calls this.
grant execute on function mainspring.check_function_name to public;

-- For any role that a definition names; it asks for a token.
grant execute on function mainspring_calls.record_receipt to public;
