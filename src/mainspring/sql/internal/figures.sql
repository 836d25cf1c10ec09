-- Figures: what is counted where jobs end, and how it is added up.
--
--   finish, recover, retry, delete, prune ─▶ changes ─┐
--                                       count of jobs ┴─ look ─▶ depths    what is live
--                                                   ▶ figures  minute, ever ─▶ hour ─▶ day
--
-- Nobody counts what is enqueued or started: it follows from what is live now, what was live at the
-- look before, and what has ended in between. So an enqueue pays nothing, and what is rolled back
-- or committed late is counted right.

-- The bucket of a duration in seconds; bucket b ends at 2^(b/8) seconds.
create or replace function mainspring.bucket_number(seconds double precision)
returns smallint
language sql immutable
return ceil(ln(greatest(seconds, 0.000001)) * 11.541560327111707)::smallint;

-- One of how many jobs of a statement gives its buckets: all of few, some 256 of many.
create or replace function mainspring.stride_of(count bigint)
returns integer
language sql immutable
return greatest(1, count / 256)::integer;

-- The changes that attempts make which have ended, by key; a state is null where the job is live.
-- finish_succeeded does the same by itself, and test_figures.py compares the two.
create or replace function mainspring.changes_of(
    tenants text[], queues text[], definitions text[], states mainspring.job_state[],
    attempts mainspring.attempt_outcome[], waits double precision[], runs double precision[],
    days date[] default null
)
returns setof mainspring.changes
language sql stable
as $$
    select now(), tenant_id, queue, definition,
           case when state is null then 'went_on' else 'ended' end, state, attempt,
           coalesce(day, mainspring.day_of(statement_timestamp())), count(*),
           sum(greatest(wait, 0)), max(greatest(wait, 0)),
           sum(run) filter (where attempt = 'succeeded'),
           max(run) filter (where attempt = 'succeeded'), stride,
           array_agg(mainspring.bucket_number(wait))
               filter (where number % stride = 0 and wait is not null),
           array_agg(mainspring.bucket_number(run))
               filter (where number % stride = 0 and attempt = 'succeeded' and run is not null)
      from unnest(tenants, queues, definitions, states, attempts, waits, runs, days) with ordinality
           as done (tenant_id, queue, definition, state, attempt, wait, run, day, number),
           mainspring.stride_of(cardinality(tenants)) as stride
     group by tenant_id, queue, definition, state, attempt, day, stride
$$;

-- Pairs of buckets and counts with one pair a bucket.
create or replace function mainspring.summed_buckets(buckets bigint[])
returns bigint[]
language sql immutable
return (select coalesce(array_agg(array[each.bucket, each.count] order by each.bucket), '{}')
          from (select buckets[place][1] as bucket, sum(buckets[place][2])::bigint as count
                  from generate_subscripts(buckets, 1) as place group by 1) as each);

-- Adds figures to those of the same step, instant and key.
create or replace function mainspring.add_figures(added mainspring.figures[])
returns void
language sql
as $$
    insert into mainspring.figures as known select * from unnest(added)
    on conflict (step, at, tenant_id, queue, definition) do update
       set enqueued = known.enqueued + excluded.enqueued,
           started = known.started + excluded.started,
           succeeded = known.succeeded + excluded.succeeded,
           failed = known.failed + excluded.failed,
           dead_letter = known.dead_letter + excluded.dead_letter,
           canceled = known.canceled + excluded.canceled,
           deleted = known.deleted + excluded.deleted,
           revived = known.revived + excluded.revived,
           attempts_succeeded = known.attempts_succeeded + excluded.attempts_succeeded,
           attempts_failed = known.attempts_failed + excluded.attempts_failed,
           attempts_timeout = known.attempts_timeout + excluded.attempts_timeout,
           attempts_canceled = known.attempts_canceled + excluded.attempts_canceled,
           attempts_snoozed = known.attempts_snoozed + excluded.attempts_snoozed,
           attempts_lost = known.attempts_lost + excluded.attempts_lost,
           ready = greatest(known.ready, excluded.ready),
           running = greatest(known.running, excluded.running),
           oldest_ready_seconds = greatest(
               known.oldest_ready_seconds, excluded.oldest_ready_seconds),
           wait_sum = known.wait_sum + excluded.wait_sum,
           wait_worst = greatest(known.wait_worst, excluded.wait_worst),
           run_sum = known.run_sum + excluded.run_sum,
           run_worst = greatest(known.run_worst, excluded.run_worst),
           wait_buckets = mainspring.summed_buckets(known.wait_buckets || excluded.wait_buckets),
           run_buckets = mainspring.summed_buckets(known.run_buckets || excluded.run_buckets)
$$;

-- The buckets of changes, by key and kind, as pairs.
create or replace function mainspring.buckets_of(changed mainspring.changes[])
returns table (tenant_id text, queue text, definition text, waits bigint[], runs bigint[])
language sql immutable
as $$
    select tenant_id, queue, definition,
           coalesce(array_agg(array[number, count]) filter (where kind = 'wait'), '{}'),
           coalesce(array_agg(array[number, count]) filter (where kind = 'run'), '{}')
      from (select change.tenant_id, change.queue, change.definition, counted.kind,
                   counted.number::bigint, sum(change.stride) as count
              from unnest(changed) as change, lateral (
                   select 'wait' as kind, unnest(change.waits) as number
                   union all
                   select 'run', unnest(change.runs)) as counted
             group by 1, 2, 3, 4, 5) as bucket
     group by tenant_id, queue, definition
$$;

-- What changes are as figures of this minute, by key; nothing yet is enqueued, started or live.
create or replace function mainspring.figures_of(changed mainspring.changes[])
returns setof mainspring.figures
language sql stable
as $$
    with summed as (
        select tenant_id, queue, definition, 0::bigint, 0::bigint,
               coalesce(sum(count) filter (where moved = 'ended' and state = 'succeeded'), 0),
               coalesce(sum(count) filter (where moved = 'ended' and state = 'failed'), 0),
               coalesce(sum(count) filter (where moved = 'ended' and state = 'dead_letter'), 0),
               coalesce(sum(count) filter (where moved = 'ended' and state = 'canceled'), 0),
               coalesce(sum(count) filter (where moved = 'deleted'), 0),
               coalesce(sum(count) filter (where moved = 'revived'), 0),
               coalesce(sum(count) filter (where attempt = 'succeeded'), 0),
               coalesce(sum(count) filter (where attempt = 'failed'), 0),
               coalesce(sum(count) filter (where attempt = 'timeout'), 0),
               coalesce(sum(count) filter (where attempt = 'canceled'), 0),
               coalesce(sum(count) filter (where attempt = 'snoozed'), 0),
               coalesce(sum(count) filter (where attempt = 'lost'), 0),
               0::bigint, 0::bigint, 0::double precision,
               coalesce(sum(wait_sum), 0), coalesce(max(wait_worst), 0),
               coalesce(sum(run_sum), 0), coalesce(max(run_worst), 0)
          from unnest(changed) as change
         where moved <> 'pruned'
         group by tenant_id, queue, definition
    )
    select 'minute', date_trunc('minute', now()), summed.*, coalesce(buckets.waits, '{}'),
           coalesce(buckets.runs, '{}')
      from summed
      left join mainspring.buckets_of(changed) as buckets using (tenant_id, queue, definition)
$$;

-- The figures of some steps and times, added up for spans of a length and by some of tenant, queue
-- and definition; of one tenant, and of some queues and definitions, if given.
create or replace function mainspring.figures_by(
    steps text[], starts timestamptz[], ends timestamptz[], span interval, keys text[],
    tenant text default null, queues text[] default null, definitions text[] default null
)
returns setof mainspring.figures
language plpgsql stable
as $$
#variable_conflict use_column
begin
    return query
    with chosen as materialized (
        select figure.*, date_bin(span, at, 'epoch') as since,
               case when 'tenant' = any (keys) then tenant_id else '' end as of_tenant,
               case when 'queue' = any (keys) then queue else '' end as of_queue,
               case when 'definition' = any (keys) then definition else '' end as of_definition
          from unnest(steps, starts, ends) as part (step, start, finish)
          join mainspring.figure_status as figure
            on figure.step = part.step and at >= part.start and at < part.finish
         where (figures_by.tenant is null or tenant_id = figures_by.tenant)
           and (figures_by.queues is null or queue = any (figures_by.queues))
           and (figures_by.definitions is null or definition = any (figures_by.definitions))
    ), buckets as (
        select since, of_tenant, of_queue, of_definition,
               array_agg(array[number, total]) filter (where kind = 'wait') as waits,
               array_agg(array[number, total]) filter (where kind = 'run') as runs
          from (select since, of_tenant, of_queue, of_definition, kind, number,
                       sum(count)::bigint as total
                  from chosen, lateral (
                       select 'wait' as kind, wait_buckets[i][1] as number,
                              wait_buckets[i][2] as count
                         from generate_subscripts(wait_buckets, 1) as i
                       union all
                       select 'run', run_buckets[i][1], run_buckets[i][2]
                         from generate_subscripts(run_buckets, 1) as i) as counted
                 group by 1, 2, 3, 4, 5, 6) as bucket
         group by 1, 2, 3, 4
    ), summed as (
        select since, of_tenant, of_queue, of_definition,
               sum(enqueued)::bigint, sum(started)::bigint, sum(succeeded)::bigint,
               sum(failed)::bigint, sum(dead_letter)::bigint, sum(canceled)::bigint,
               sum(deleted)::bigint, sum(revived)::bigint, sum(attempts_succeeded)::bigint,
               sum(attempts_failed)::bigint, sum(attempts_timeout)::bigint,
               sum(attempts_canceled)::bigint, sum(attempts_snoozed)::bigint,
               sum(attempts_lost)::bigint, max(ready), max(running), max(oldest_ready_seconds),
               sum(wait_sum), max(wait_worst), sum(run_sum), max(run_worst)
          from chosen group by since, of_tenant, of_queue, of_definition
    )
    select 'span', summed.*, coalesce(waits, '{}'), coalesce(runs, '{}')
      from summed left join buckets using (since, of_tenant, of_queue, of_definition);
end
$$;

-- Writes the figures of an hour from its minutes, or those of a day from its hours; those that are
-- there already are replaced.
create or replace function mainspring.compact(into_step text, from_step text, start timestamptz)
returns void
language plpgsql
as $$
declare
    span interval := ('1 ' || into_step)::interval;
    compacted mainspring.figures[] := array(
        select figure from mainspring.figures_by(
            array[from_step], array[compact.start], array[compact.start + span], span,
            array['tenant', 'queue', 'definition']) as figure);
begin
    delete from mainspring.figures as old
     where old.step = into_step and old.at = compact.start;
    for place in 1 .. cardinality(compacted) loop
        compacted[place].step := into_step;
    end loop;
    insert into mainspring.figures select * from unnest(compacted);
    insert into mainspring.watches as watch (name, last_at)
    values ('figures of ' || into_step || 's', compact.start + span)
    on conflict (name) do update set last_at = excluded.last_at;
end
$$;
