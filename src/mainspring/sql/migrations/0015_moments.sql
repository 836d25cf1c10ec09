-- When jobs were created: at the statement that did it, not when its transaction began. What
-- inserts them inside a function says so itself, by the clock; this is for COPY, which is slow if a
-- default is volatile.
--
-- works with: 0001

alter table mainspring.jobs
    alter column created_at set default statement_timestamp(),
    alter column scheduled_for set default statement_timestamp();
