-- Looks: every few seconds what has changed is added up beside a count of what is live, both as of
-- one snapshot; figures.sql says what becomes of it.

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
    if not exists (
        select from (select tenant_id, queue, definition from unnest(depths_now)
                     union
                     select tenant_id, queue, definition from unnest(changed)
                      where moved <> 'pruned') as key
         where key::text <> all (own)) then
        return;
    end if;
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
create or replace function mainspring.zero_changes(depths_now mainspring.depths[])
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
    changed := changed || mainspring.zero_changes(depths_now);
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
