-- name: lock_figures
-- scope: system
-- Whether this transaction is the one that looks, and whether it is time to.
select pg_try_advisory_xact_lock(hashtext('mainspring.figures')),
       (select extract(epoch from clock_timestamp() - last_at)::float from mainspring.watches
         where name = 'figures'),
       (select extract(epoch from took)::float from mainspring.watches where name = 'figures');

-- name: look
-- scope: system
-- Adds up what has changed beside a count of what is live; how many changes that were.
select mainspring.look(%(most_keys)s::integer, %(most_changes)s::integer);

-- name: oldest_uncompacted
-- scope: system
-- The first span of a step that is over, has figures of a smaller step and none yet of its own; no
-- row if there is none. Time is left for what is late.
select date_trunc(%(step)s, min(at), 'UTC') from mainspring.figures
 where step = %(source)s and at < date_trunc(%(step)s, now() - interval '5 minutes', 'UTC')
   and at >= coalesce((select last_at from mainspring.watches
                        where name = 'figures of ' || %(step)s || 's'), '-infinity')
having count(*) > 0;

-- name: compact
-- scope: system
-- Writes the figures of an hour from its minutes, or those of a day from its hours.
select mainspring.compact(%(step)s, %(source)s, %(start)s::timestamptz);

-- name: prune_figures
-- scope: system
-- Removes figures of a step from which the next has been made, and that are old enough.
delete from mainspring.figures as figure
 where figure.step = %(step)s and figure.at < least(
           now() - %(keep)s::interval,
           (select last_at from mainspring.watches where name = %(made)s));

-- name: read
-- scope: tenant
-- Figures of some steps and times, added up for spans of time and by some keys.
select at, tenant_id, queue, definition, enqueued, started, succeeded, failed, dead_letter,
       canceled, deleted, revived, attempts_succeeded, attempts_failed, attempts_timeout,
       attempts_canceled, attempts_snoozed, attempts_lost, ready, running, oldest_ready_seconds,
       wait_sum, wait_worst, run_sum, run_worst, wait_buckets, run_buckets
  from mainspring.figures_by(
           %(steps)s::text[], %(starts)s::timestamptz[], %(ends)s::timestamptz[],
           %(span)s::interval, %(keys)s::text[], %(tenant)s::text, %(queues)s::text[],
           %(definitions)s::text[])
 order by at, tenant_id, queue, definition;

-- name: watches
-- scope: system
-- When the last look was, and up to when hours and days are complete.
select name, last_at from mainspring.watch_status;
