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
-- finish_succeeded does the same by itself, and test_changes.py compares the two.
create or replace function mainspring.changes_of(
    tenants text[], queues text[], definitions text[], states mainspring.job_state[],
    attempts mainspring.attempt_outcome[], waits double precision[], runs double precision[]
)
returns setof mainspring.changes
language sql stable
as $$
    select now(), tenant_id, queue, definition,
           case when state is null then 'went_on' else 'ended' end, state, attempt,
           mainspring.day_of(statement_timestamp()), count(*), sum(greatest(wait, 0)),
           max(greatest(wait, 0)), sum(run) filter (where attempt = 'succeeded'),
           max(run) filter (where attempt = 'succeeded'), stride,
           array_agg(mainspring.bucket_number(wait))
               filter (where number % stride = 0 and wait is not null),
           array_agg(mainspring.bucket_number(run))
               filter (where number % stride = 0 and attempt = 'succeeded' and run is not null)
      from unnest(tenants, queues, definitions, states, attempts, waits, runs) with ordinality
           as done (tenant_id, queue, definition, state, attempt, wait, run, number),
           mainspring.stride_of(cardinality(tenants)) as stride
     group by tenant_id, queue, definition, state, attempt, stride
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

-- Adds changes to the tallies, and those of programs of the release before.
create or replace function mainspring.add_to_tallies(changed mainspring.changes[])
returns void
language sql
as $$
    with older as (
        delete from mainspring.tally_changes returning tenant_id, day, state, count
    )
    insert into mainspring.tallies as tally (tenant_id, day, state, count)
    select tenant_id, day, state, sum(count)
      from (select tenant_id, day, state, case when moved = 'ended' then count else -count end
              from unnest(changed) where state is not null
            union all
            select tenant_id, day, state, count from older) as change (tenant_id, day, state, count)
     group by tenant_id, day, state
     order by tenant_id, day, state
    on conflict (tenant_id, day, state) do update set count = tally.count + excluded.count
$$;

-- What is live now, by key.
create or replace function mainspring.live_depths()
returns setof mainspring.depths
language sql stable
as $$
    select tenant_id, queue, definition, count(*),
           count(*) filter (where state = 'queued' and waits_for is null),
           count(*) filter (where state = 'running'),
           count(*) filter (where waits_for = 'time'), count(*) filter (where waits_for = 'limit'),
           count(*) filter (where waits_for = 'turn'),
           count(*) filter (where waits_for = 'handler'),
           count(*) filter (where state = 'awaiting_approval'),
           count(*) filter (where state = 'blocked'),
           min(coalesce(ready_at, scheduled_for))
               filter (where state = 'queued' and waits_for is null),
           0::bigint, 0::bigint, now(), now()
      from mainspring.jobs
     group by tenant_id, queue, definition
$$;

-- The definitions that have figures of their own, by queue and tenant: those that have them
-- already, and of the others the busiest, as long as there are not too many.
create or replace function mainspring.keys_with_figures(
    depths_now mainspring.depths[], changed mainspring.changes[], most integer
)
returns table (tenant_id text, queue text, definition text)
language sql stable
as $$
    with busy as (
        select tenant_id, queue, definition, sum(busy) as busy
          from (select tenant_id, queue, definition, live from unnest(depths_now)
                union all
                select tenant_id, queue, definition, count from unnest(changed)
                 where moved <> 'pruned') as each (tenant_id, queue, definition, busy)
         where not exists (
             select from mainspring.depths as known
              where (known.tenant_id, known.queue, known.definition)
                    = (each.tenant_id, each.queue, each.definition))
         group by 1, 2, 3
    )
    select known.tenant_id, known.queue, known.definition from mainspring.depths as known
    union all
    (select tenant_id, queue, definition from busy order by busy desc
      limit greatest(0, most - (select count(*) from mainspring.depths)))
$$;

-- Depths with one row a key.
create or replace function mainspring.merged_depths(depths_now mainspring.depths[])
returns mainspring.depths[]
language sql stable
as $$
    select coalesce(array_agg(merged::mainspring.depths), '{}')
      from (select tenant_id, queue, definition, sum(live), sum(ready), sum(running),
                   sum(waiting_time), sum(waiting_limit), sum(waiting_turn),
                   sum(waiting_handler), sum(awaiting_approval), sum(blocked),
                   min(oldest_ready_at), 0::bigint, 0::bigint, now(), now()
              from unnest(depths_now) group by tenant_id, queue, definition) as merged
$$;

-- Counts what is beyond so many definitions together, by queue and tenant.
create or replace function mainspring.cap_keys(
    inout depths_now mainspring.depths[], inout changed mainspring.changes[], most integer
)
language plpgsql
as $$
declare
    own text[] := array(select key::text from mainspring.keys_with_figures(
                            cap_keys.depths_now, cap_keys.changed, most) as key);
begin
    for place in 1 .. cardinality(depths_now) loop
        if row(depths_now[place].tenant_id, depths_now[place].queue,
               depths_now[place].definition)::text <> all (own) then
            depths_now[place].definition := '~other';
        end if;
    end loop;
    for place in 1 .. cardinality(changed) loop
        if row(changed[place].tenant_id, changed[place].queue, changed[place].definition)::text
           <> all (own) then
            changed[place].definition := '~other';
        end if;
    end loop;
    depths_now := mainspring.merged_depths(depths_now);
end
$$;

-- A change of nothing for each key that is live or was, so that each has figures.
create or replace function mainspring.still_ones(depths_now mainspring.depths[])
returns mainspring.changes[]
language sql stable
as $$
    select coalesce(array_agg(jsonb_populate_record(null::mainspring.changes, jsonb_build_object(
               'tenant_id', tenant_id, 'queue', queue, 'definition', definition,
               'moved', 'went_on', 'count', 0))), '{}')
      from (select tenant_id, queue, definition from unnest(depths_now)
            union
            select tenant_id, queue, definition from mainspring.depths where live > 0) as key
$$;

-- The figures of this minute: what changes are, what is live, and what follows from both. What is
-- live and was not at the last look has been enqueued or revived, and so on. Keeps the depths.
create or replace function mainspring.balance(
    depths_now mainspring.depths[], changed mainspring.changes[]
)
returns setof mainspring.figures
language plpgsql
as $$
declare
    each record;
    figure mainspring.figures;
    depth mainspring.depths;
    before mainspring.depths;
    enqueued bigint;
    started bigint;
begin
    for each in
        select counted, seen, known
          from mainspring.figures_of(balance.changed) as counted
          left join unnest(balance.depths_now) as seen using (tenant_id, queue, definition)
          left join mainspring.depths as known using (tenant_id, queue, definition)
         order by tenant_id, queue, definition
    loop
        figure := each.counted;
        depth := each.seen;
        before := each.known;
        enqueued := coalesce(depth.live, 0) - coalesce(before.live, 0)
            - coalesce(before.enqueued_over, 0) + figure.succeeded + figure.failed
            + figure.dead_letter + figure.canceled + figure.deleted - figure.revived;
        started := coalesce(depth.running, 0) - coalesce(before.running, 0)
            - coalesce(before.started_over, 0) + figure.attempts_succeeded
            + figure.attempts_failed + figure.attempts_timeout + figure.attempts_canceled
            + figure.attempts_snoozed + figure.attempts_lost;
        figure.enqueued := greatest(enqueued, 0);
        figure.started := greatest(started, 0);
        figure.ready := coalesce(depth.ready, 0);
        figure.running := coalesce(depth.running, 0);
        figure.oldest_ready_seconds := coalesce(greatest(0, date_part(
            'epoch', now() - depth.oldest_ready_at)), 0);
        depth.tenant_id := figure.tenant_id;
        depth.queue := figure.queue;
        depth.definition := figure.definition;
        depth.enqueued_over := greatest(-enqueued, 0);
        depth.started_over := greatest(-started, 0);
        perform mainspring.keep_depth(depth);
        return next figure;
    end loop;
end
$$;

-- Keeps what is live of a key, as of now.
create or replace function mainspring.keep_depth(depth mainspring.depths)
returns void
language sql
as $$
    insert into mainspring.depths as known
    select depth.tenant_id, depth.queue, depth.definition, coalesce(depth.live, 0),
           coalesce(depth.ready, 0), coalesce(depth.running, 0), coalesce(depth.waiting_time, 0),
           coalesce(depth.waiting_limit, 0), coalesce(depth.waiting_turn, 0),
           coalesce(depth.waiting_handler, 0), coalesce(depth.awaiting_approval, 0),
           coalesce(depth.blocked, 0), depth.oldest_ready_at, depth.enqueued_over,
           depth.started_over, now(), now()
    on conflict (tenant_id, queue, definition) do update
       set live = excluded.live, ready = excluded.ready, running = excluded.running,
           waiting_time = excluded.waiting_time, waiting_limit = excluded.waiting_limit,
           waiting_turn = excluded.waiting_turn, waiting_handler = excluded.waiting_handler,
           awaiting_approval = excluded.awaiting_approval, blocked = excluded.blocked,
           oldest_ready_at = excluded.oldest_ready_at, enqueued_over = excluded.enqueued_over,
           started_over = excluded.started_over, changed_at = now(), seen_at = now()
$$;

-- Looks: adds up what has changed beside a count of what is live, both as of one snapshot, and says
-- how many changes that were. The caller holds the lock of all looks, and got it in a statement
-- before, so that no two looks see the same.
create or replace function mainspring.look(most_keys integer, most_changes integer)
returns bigint
language plpgsql
as $$
declare
    changed mainspring.changes[];
    depths_now mainspring.depths[];
    total bigint;
begin
    with taken as (
        delete from mainspring.changes as change
         where change.ctid = any (array(
            select old.ctid from mainspring.changes as old limit most_changes))
        returning change
    )
    select (select coalesce(array_agg(taken.change), '{}') from taken),
           (select coalesce(array_agg(seen), '{}') from mainspring.live_depths() as seen)
      into changed, depths_now;
    total := cardinality(changed);
    perform mainspring.add_to_tallies(changed);
    changed := changed || mainspring.still_ones(depths_now);
    select capped.depths_now, capped.changed into depths_now, changed
      from mainspring.cap_keys(depths_now, changed, most_keys) as capped;
    perform mainspring.add_figures(array_agg(figure))
       from mainspring.balance(depths_now, changed) as counted,
            lateral mainspring.of_each_step(counted) as figure;
    insert into mainspring.watches as watch (name, last_at, took)
    values ('figures', now(), clock_timestamp() - now())
    on conflict (name) do update set last_at = excluded.last_at, took = excluded.took;
    return total;
end
$$;

-- Figures of a minute, and the same as figures of all time; none of a minute in which nothing was.
create or replace function mainspring.of_each_step(figure mainspring.figures)
returns setof mainspring.figures
language plpgsql immutable
as $$
begin
    if figure.enqueued + figure.started + figure.succeeded + figure.failed + figure.dead_letter
       + figure.canceled + figure.deleted + figure.revived + figure.attempts_failed
       + figure.attempts_timeout + figure.attempts_canceled + figure.attempts_snoozed
       + figure.attempts_lost + figure.ready + figure.running = 0 then
        return;
    end if;
    return next figure;
    figure.step := 'ever';
    figure.at := 'epoch';
    return next figure;
end
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
