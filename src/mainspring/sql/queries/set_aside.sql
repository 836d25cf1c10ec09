-- name: put_aside
-- scope: system
-- Sets aside a row that a duty cannot process, for longer each time; how often that was.
select mainspring.put_aside(
    %(duty)s, %(key)s::bigint, %(reason)s, %(pauses)s::interval[]);

-- name: put_off
-- scope: system
-- Lets a ready job that is set aside wait until it is tried again.
update mainspring.jobs as job
   set waits_for = 'time', scheduled_for = aside.again_at, ready_at = null
  from mainspring.set_aside as aside
 where aside.duty = %(duty)s and aside.key = %(key)s::bigint and aside.again_at > now()
   and job.job_id = aside.key and job.state = 'queued' and job.waits_for is null;

-- name: list_aside
-- scope: system
-- What is set aside now, the newest first.
select duty, key, tries, extract(epoch from again_at - now())::float, reason
  from mainspring.set_aside
 where again_at > now()
 order by failed_at desc, duty, key limit %(limit)s;

-- name: prune_aside
-- scope: system
-- Forgets rows that nobody has set aside again for a day.
delete from mainspring.set_aside as known
 where known.ctid = any (array(
    select old.ctid from mainspring.set_aside as old
     where old.again_at < now() - interval '1 day'
     limit %(limit)s for update skip locked));
