-- What waits for a limit, by queue: a worker claims such jobs of its own queues, in the statement
-- that gives them their places. Programs that grant a place first go on working: the functions they
-- call are kept.
--
-- works with: 0001

drop index mainspring.jobs_limited;
-- Serves claim_limited: what waits for a limit, in the order it is claimed. The queue is hashed,
-- since an entry has no space for it beside the longest key.
create index jobs_limited
    on mainspring.jobs
    (limit_name, limit_key, tenant_id, hashtextextended(queue, 0), priority, job_id)
    where waits_for = 'limit';

-- A place is held by what runs, and these have not begun.
update mainspring.jobs set waits_for = 'limit'
 where limit_name is not null and waits_for is null and state = 'queued';
