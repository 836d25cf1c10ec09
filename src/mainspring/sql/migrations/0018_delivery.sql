-- Delivery: a definition, a schedule or an enqueue can say that a job runs at most once, and then
-- the database knows whether it has begun. And whoever enqueues a job can say where it comes from.
-- Columns of jobs and of their history come with the last migration, since functions return rows of
-- these tables: between two migrations those of the release before would no longer fit.
--
-- works with: 0001

-- All locks at once, and none is waited for as long as a deadlock takes to be noticed.
set local lock_timeout = '300ms';
lock table mainspring.jobs, mainspring.jobs_history, mainspring.definitions, mainspring.schedules,
    mainspring.slots, mainspring.workers
    in access exclusive mode;
set local lock_timeout = '2s';

alter table mainspring.definitions
    add column delivery text not null default 'at_least_once'
        constraint definitions_delivery check (delivery in ('at_least_once', 'at_most_once'));

alter table mainspring.schedules
    -- Null for that of the definition.
    add column delivery text
        constraint schedules_delivery check (delivery in ('at_least_once', 'at_most_once'));

alter table mainspring.jobs
    -- Null for at least once, so that those pay nothing.
    add column delivery text,
    -- What the enqueue says of where it comes from; null if that follows from the rest.
    add column source text,
    -- Of a job that runs at most once: the fencing number of the lease under which it has begun, or
    -- is about to.
    add column begun_fence bigint,
    add constraint jobs_delivery check (delivery = 'at_most_once') not valid,
    add constraint jobs_source_fits check (octet_length(source) <= 200) not valid;

alter table mainspring.jobs_history
    add column delivery text,
    add column source text;

alter table mainspring.workers
    -- Whether it writes begun_fence before such a job begins; a program of an earlier release does
    -- not.
    add column records_starts boolean not null default false;

alter table mainspring.slots
    drop constraint slots_run_state_check,
    add constraint slots_run_state check (run_state in (
        'succeeded', 'failed', 'dead_letter', 'canceled', 'timed_out', 'lost')) not valid;

-- Their parameters have changed. A call that waits for our locks goes on in the function that it
-- has begun, so these stay under another name; a later release drops them.
do $$
declare
    old text;
begin
    foreach old in array array[
        'mainspring.history_of(mainspring.jobs, mainspring.job_state, timestamptz, jsonb, '
        'integer, integer, text)',
        'mainspring.enqueue_job(text, jsonb, text, text, integer, integer, timestamptz, '
        'interval, timestamptz, text, text, interval, text, text, text, text[], text, integer, '
        'bigint[], text)',
        'mainspring.enqueue(text, jsonb, text, text, integer, integer, timestamptz, interval, '
        'timestamptz, text, text, interval, text, text, text, text[], text, integer, bigint[], '
        'text)',
        'mainspring.enqueue_many(text, jsonb[], text, text, integer, integer, timestamptz, '
        'interval, timestamptz, text[], text, text[], text, integer)',
        'mainspring.asked_job(text, jsonb, text, text, integer, integer, timestamptz, '
        'timestamptz, text, text, text[], text, bigint)',
        'mainspring.read_steps(jsonb)']
    loop
        continue when to_regprocedure(old) is null;
        execute format('alter function %s rename to %I', old::regprocedure,
                       split_part(split_part(old, '.', 2), '(', 1) || '_before_0018');
    end loop;
end
$$;
