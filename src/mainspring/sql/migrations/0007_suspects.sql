-- Suspects: jobs whose worker died, and nobody knows whose fault it was. Only in `jobs`, since a
-- job that has ended, or is retried by a person, is suspected of nothing.
--
-- works with: 0001

alter table mainspring.jobs
    -- Since when it is a suspect.
    add column suspected_at timestamptz,
    -- The fencing number of the lease under which it runs alone in its worker; any other is past.
    add column alone_fence bigint;
