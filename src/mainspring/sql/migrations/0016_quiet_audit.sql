-- The end of a session or of a console is nobody's change; the audit function no longer writes it
-- down, and what it wrote is removed.

delete from mainspring.audit
 where noun = 'token' and action = 'delete'
   and before ->> 'kind' in ('session', 'login', 'console');
