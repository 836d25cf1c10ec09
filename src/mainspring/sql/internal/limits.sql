-- Limits: what may run at once and how often something may start, over all workers.
--
--   enqueue ─▶ waits for its limit ─▶ claimed by a worker that can run it ─▶ ended, or waits again
--              └── holds nothing ───┘  └────────── holds a place ─────────┘  └─ holds nothing ─┘
--
-- A job is given a place of its limit by the statement that claims it, so a place is held by what
-- runs and by nothing else, and nothing but the job's own row says so: no counter can go wrong, and
-- the place of a lost worker comes back when its job is taken back. Such claims are made one
-- transaction at a time, under an advisory lock that is only tried, in statements that begin after
-- the lock is held and so see every claim before them. A place that is given back unseen by one is
-- found by the next.
--
-- Programs of the release before this one grant a place first (grant_places) and claim the job
-- afterwards; until then it is ready and holds the place.

-- The key under which a job counts, short enough for an index.
create or replace function mainspring.limit_key_of(payload jsonb, path text[], given text)
returns text
language sql immutable
return case when length(coalesce(given, payload #>> path, '')) > 500
            then 'md5:' || md5(coalesce(given, payload #>> path))
            else coalesce(given, payload #>> path, '') end;

-- The limit and key of a job; nulls for one that nothing limits. A bulk operation is one of those:
-- a tenant whose places are taken must be able to cancel what has taken them.
create or replace function mainspring.limit_of(
    defined mainspring.definitions, tenant text, payload jsonb, given text,
    out limit_name text, out limit_key text
)
language plpgsql stable
as $$
begin
    if defined.key = 'mainspring.bulk' then
        return;
    end if;
    limit_name := defined.limit_name;
    if limit_name is null and given is not null then
        perform mainspring.refuse_option('limit_key',
            'limit_key is given, but ' || defined.key || ' has no limit');
    end if;
    if limit_name is null and exists (select from mainspring.tenants as t
                                       where t.tenant_id = tenant and t.max_running is not null)
    then
        limit_name := '';
    end if;
    if limit_name is not null then
        limit_key := mainspring.limit_key_of(payload, defined.limit_by, given);
    end if;
end
$$;

-- Takes places back from jobs that have not started; only programs of the release before this one
-- grant such places. Says whether the lock was ours.
create or replace function mainspring.take_back_places()
returns boolean
language plpgsql
as $$
begin
    if not pg_try_advisory_xact_lock(hashtext('mainspring.limits')) then
        return false;
    end if;
    update mainspring.jobs as job set waits_for = 'limit'
     where job.ctid = any (array(
        select ready.ctid from mainspring.jobs as ready
         where ready.limit_name is not null and ready.waits_for is null
           and ready.state = 'queued'
           for update skip locked));
    return true;
end
$$;

-- What is left of the places that the given limits have for all their keys, null where that is not
-- counted; numbered in the order of their names. A limit is keyed if nothing counts but the places
-- of each key.
create or replace function mainspring.free_of_limits(names text[])
returns table (number bigint, name text, free bigint, is_keyed boolean, key_places integer)
language sql stable
as $$
    select asked.number, asked.name,
           case when known.concurrency is not null then known.concurrency - (
               select count(*) from mainspring.jobs as held
                where held.limit_name = known.name and held.waits_for is null) end,
           known.key_concurrency is not null
           and num_nonnulls(known.concurrency, known.rate_count) = 0,
           known.key_concurrency
      from (select given.name, row_number() over (order by given.name) as number
              from unnest(names) as given (name) group by given.name) as asked
      left join mainspring.limits as known on known.name = asked.name
$$;

-- What is left of the places and tokens of the given keys, numbered in the order of limit and key;
-- and the seconds until a key that has neither gets its next token.
create or replace function mainspring.free_of_keys(names text[], keys text[])
returns table (number bigint, free bigint, next_in double precision)
language plpgsql stable
as $$
begin
    return query
    select asked.number, least(known.key_concurrency - held.places, bucket.tokens - held.unstarted),
           case when bucket.tokens < 1 and held.unstarted = 0 then bucket.next_in end
      from (select given.name, given.key,
                   row_number() over (order by given.name, given.key) as number
              from unnest(names, keys) as given (name, key)
             group by given.name, given.key) as asked
      left join mainspring.limits as known on known.name = asked.name,
           lateral (
               select count(*) as places,
                      count(*) filter (where job.probed_at is null
                                         and known.rate_count is not null) as unstarted
                 from mainspring.jobs as job
                where num_nonnulls(known.key_concurrency, known.rate_count) > 0
                  and job.limit_name = asked.name and job.limit_key = asked.key
                  and job.waits_for is null) as held,
           lateral (
               select max(filled.tokens) as tokens, max(filled.next_in) as next_in
                 from mainspring.bucket_of(
                          known.name, asked.key, known.burst, mainspring.token_seconds(
                              known.rate_count, known.rate_period)) as filled
                where known.rate_count is not null) as bucket;
end
$$;

-- What is left of the places of the given tenants, numbered in the order of their ids. Counted
-- together in a look at all that hold a place, if any of them has a cap.
create or replace function mainspring.free_of_tenants(tenants text[])
returns table (number bigint, free bigint)
language sql stable
as $$
    select asked.number, known.max_running - coalesce(held.places, 0)
      from (select given.tenant_id, row_number() over (order by given.tenant_id) as number
              from unnest(tenants) as given (tenant_id) group by given.tenant_id) as asked
      left join mainspring.tenants as known on known.tenant_id = asked.tenant_id
      left join (select job.tenant_id, count(*) as places from mainspring.jobs as job
                  where job.limit_name is not null and job.waits_for is null
                    and (select bool_or(capped.max_running is not null)
                           from mainspring.tenants as capped
                          where capped.tenant_id = any (tenants))
                  group by job.tenant_id) as held on held.tenant_id = asked.tenant_id
$$;

-- What is left for jobs of the given limit keys, numbered as pick_limited does it and `most` where
-- nothing is counted; the limits whose places serve several keys, with what they have left; whether
-- any place is shared by several of the keys; the seconds until the next token of a rate; and the
-- limits that count nothing but the places of each key, with how many those are.
create or replace function mainspring.free_places(
    names text[], keys text[], tenants text[], most integer,
    out limits_free integer[], out keys_free integer[], out tenants_free integer[],
    out shared text[], out shared_free integer[], out is_shared boolean,
    out next_in double precision, out keyed_names text[], out keyed_places integer[]
)
language plpgsql stable
as $$
declare
    is_capped boolean;
begin
    select array_agg(least(free, most + 1)::integer order by number),
           coalesce(array_agg(name order by number) filter (where free is not null), '{}'),
           coalesce(array_agg(least(free, most + 1)::integer order by number)
                        filter (where free is not null), '{}'),
           coalesce(array_agg(name order by number) filter (where is_keyed), '{}'),
           coalesce(array_agg(key_places order by number) filter (where is_keyed), '{}')
      into limits_free, shared, shared_free, keyed_names, keyed_places
      from mainspring.free_of_limits(names);
    select array_agg(least(free, most)::integer order by number), min(keys_of.next_in)
      into keys_free, next_in
      from mainspring.free_of_keys(names, keys) as keys_of;
    select array_agg(least(free, most)::integer order by number), bool_or(free is not null)
      into tenants_free, is_capped
      from mainspring.free_of_tenants(tenants);
    is_shared := shared <> '{}' or is_capped or cardinality(keys_free) < cardinality(names);
end
$$;

-- Picks and locks jobs of the queues that wait for the given limit keys, as far as there are places
-- and up to `most`: the first by priority and id, and none of a paused queue. None is less urgent
-- than `lowest`, and of those that are no more urgent a tenant gives as many as its share. Where
-- nothing is shared, because each key has places of its own, there is nothing to rank. Gives their
-- addresses, the names of their limits where places are shared, and the numbers of the keys that
-- may have more.
create or replace function mainspring.pick_limited(
    queues text[], names text[], keys text[], tenants text[], shares integer[],
    limits_free integer[], keys_free integer[], tenants_free integer[], most integer,
    lowest integer, is_shared boolean,
    out places tid[], out limits text[], out unfinished integer[]
)
language plpgsql
as $$
declare
    quota integer := greatest(1, most / greatest(1, cardinality(names)));
begin
    with asked as materialized (
        -- Places by number: to join by names would compare each key with all others.
        select given.*, dense_rank() over (order by name) as limit_no,
               dense_rank() over (order by name, key) as key_no,
               dense_rank() over (order by tenant_id) as tenant_no
          from unnest(names, keys, tenants, shares) with ordinality
               as given (name, key, tenant_id, share, number)
    ), candidate as materialized (
        select first.*, asked.number, asked.name, share, limit_no, key_no, tenant_no
          from asked, unnest(mainspring.unpaused(queues)) as served (queue),
               lateral (
                   select waiting.ctid as place, waiting.job_id, waiting.priority
                     from mainspring.jobs as waiting
                    where waiting.waits_for = 'limit' and waiting.limit_name = asked.name
                      and waiting.limit_key = asked.key and waiting.tenant_id = asked.tenant_id
                      and hashtextextended(waiting.queue, 0) = hashtextextended(served.queue, 0)
                      and waiting.queue = served.queue
                      and waiting.priority <= lowest - (share = 0)::integer
                      and waiting.cancel_requested_at is null
                      and (waiting.deadline_at is null or waiting.deadline_at > now())
                    order by waiting.priority, waiting.job_id
                    limit greatest(0, least(limits_free[limit_no], keys_free[key_no],
                                            tenants_free[tenant_no], quota))
                      for update skip locked) as first
    ), ranked as (
        -- The first of all is that of its limit, key and tenant: something goes if anything can.
        select *, row_number() over (partition by limit_no order by priority, job_id) as in_limit,
               row_number() over (partition by key_no order by priority, job_id) as in_key,
               row_number() over (partition by tenant_no order by priority, job_id) as in_tenant
          from candidate where is_shared
    ), fitting as (
        select *, priority < lowest or in_tenant <= share as is_due,
               row_number() over (order by priority >= lowest and in_tenant > share,
                                           priority, job_id) as rank
          from ranked
         where in_limit <= limits_free[limit_no] and in_key <= keys_free[key_no]
           and in_tenant <= tenants_free[tenant_no]
    ), picked as (
        select place, name from fitting where is_due and rank <= most
        union all
        select place, name from candidate where not is_shared
    )
    select array(select place from picked), array(select name from picked where is_shared),
           array(select number from candidate group by number having count(*) >= quota
                 union
                 select number from fitting where not is_due or rank > most)
      into places, limits, unfinished;
end
$$;

-- Those of the shared limits that have no place left after so many were given.
create or replace function mainspring.full_limits(shared text[], free integer[], given text[])
returns text[]
language sql immutable
return array(select counted.name from unnest(shared, free) as counted (name, free)
              where counted.free <= (select count(*) from unnest(given) as gone (name)
                                      where gone.name = counted.name));

-- What few claimed jobs have beyond their columns, as the statement claim makes it; null for most.
-- `rated` are the limits that have a rate.
create or replace function mainspring.extras_of(job mainspring.jobs, rated text[])
returns text
language sql stable
return case when num_nonnulls(job.checkpoint, job.correlation_id, job.tags, job.origin,
                              job.cancel_requested_at, job.suspected_at, job.delivery) > 0
                 or job.losses > 0 or job.limit_name = any (rated)
            then jsonb_build_object(
                'checkpoint', job.checkpoint, 'correlation_id', job.correlation_id,
                'tags', job.tags, 'origin', job.origin, 'slot_at', job.slot_at,
                'is_suspect', job.suspected_at is not null or job.losses > 0,
                'runs_once', job.delivery is not null,
                'is_rated', job.limit_name = any (rated)) end::text;

-- Claims jobs of the queues that wait for the given limit keys (limit, key, tenant), each named
-- once, as many as have a place free; `shares`, `most` and `lowest` are those of pick_limited. Rows
-- are those of the statement claim. The last has facts and nothing else: what the caller has to
-- know to go on. No row at all means that someone else has the lock, or that the lease ran out.
create or replace function mainspring.claim_limited(
    worker_id bigint, queues text[], names text[], keys text[], tenants text[], shares integer[],
    most integer, lowest integer
)
returns table (
    job_id bigint, fence bigint, definition text, payload text, attempt integer, failures integer,
    losses integer, max_attempts integer, queue text, priority smallint, tenant_id text,
    extras text, limit_name text, limit_key text, definition_version integer, facts jsonb
)
language plpgsql
as $$
#variable_conflict use_column
declare
    free record;
    picked record;
    new_fence bigint;
    rated text[] := array(select known.name from mainspring.limits as known
                           where known.rate_count is not null);
begin
    if not pg_try_advisory_xact_lock(hashtext('mainspring.limits')) or not exists (
        select from mainspring.workers as worker
         where worker.worker_id = claim_limited.worker_id
           and worker.expires_at > clock_timestamp()) then
        return;
    end if;
    free := mainspring.free_places(names, keys, tenants, most);
    picked := mainspring.pick_limited(
        queues, names, keys, tenants, shares, free.limits_free, free.keys_free, free.tenants_free,
        most, lowest,
        is_shared => free.is_shared or cardinality(queues) > 1 or cardinality(names) > most
                     or most > any (shares));
    if picked.places <> '{}' then
        new_fence := nextval('mainspring.fences');
        return query
        update mainspring.jobs as job
           set state = 'running', waits_for = null, worker_id = claim_limited.worker_id,
               fence = new_fence, started_at = clock_timestamp(), ready_at = clock_timestamp(),
               attempt = job.attempt + 1, probed_at = null
         where job.ctid = any (picked.places)
        returning job.job_id, job.fence, job.definition, job.payload::text, job.attempt,
                  job.failures, job.losses, job.max_attempts, job.queue, job.priority,
                  job.tenant_id,
                  mainspring.extras_of(job, rated),
                  job.limit_name, job.limit_key, job.definition_version, null::jsonb;
    end if;
    facts := jsonb_build_object(
        'unfinished', picked.unfinished, 'shared', free.shared,
        'full', mainspring.full_limits(free.shared, free.shared_free, picked.limits),
        'next_in', free.next_in, 'keyed_names', free.keyed_names,
        'keyed_places', free.keyed_places, 'weights', (
            select jsonb_object_agg(tenant.tenant_id, tenant.weight)
              from mainspring.tenants as tenant
             where tenant.tenant_id = any (tenants) and tenant.weight <> 1));
    return next;
end
$$;

-- What programs of the release before this one call to make jobs ready that wait for the given
-- limit keys. Queues that nobody serves are left out: their jobs would keep the places.
create or replace function mainspring.grant_places(
    names text[], keys text[], tenants text[], most integer,
    out is_ours boolean, out granted integer, out queues text[], out unfinished integer[],
    out shared text[], out full_ones text[], out next_in double precision,
    out keyed_names text[], out keyed_places integer[]
)
language plpgsql
as $$
declare
    free record;
    picked record;
begin
    granted := 0;
    unfinished := '{}';
    queues := '{}';
    shared := '{}';
    full_ones := '{}';
    is_ours := pg_try_advisory_xact_lock(hashtext('mainspring.limits'));
    if not is_ours then
        return;
    end if;
    -- A grant that a crash undoes is given again.
    perform set_config('synchronous_commit', 'off', true);
    free := mainspring.free_places(names, keys, tenants, most);
    picked := mainspring.pick_limited(
        array(select distinct unnest(worker.queues) from mainspring.workers as worker
               where worker.expires_at > now()),
        names, keys, tenants, array_fill(most, array[cardinality(names)]), free.limits_free,
        free.keys_free, free.tenants_free, most, lowest => 1000, is_shared => true);
    with ready as (
        update mainspring.jobs as job set waits_for = null, ready_at = clock_timestamp()
         where job.ctid = any (picked.places)
        returning job.queue
    )
    select count(*), coalesce(array_agg(distinct ready.queue), '{}') into granted, queues
      from ready;
    unfinished := picked.unfinished;
    shared := free.shared;
    next_in := free.next_in;
    keyed_names := free.keyed_names;
    keyed_places := free.keyed_places;
    full_ones := mainspring.full_limits(free.shared, free.shared_free, picked.limits);
end
$$;

-- Keeps a limit as it is given; writes nothing where nothing changed.
create or replace function mainspring.write_limit(
    name text, concurrency integer, key_concurrency integer, rate_count integer,
    rate_period interval, burst integer
)
returns void
language plpgsql
as $$
#variable_conflict use_column
begin
    insert into mainspring.limits as known (
        name, concurrency, key_concurrency, rate_count, rate_period, burst)
    values (write_limit.name, write_limit.concurrency, write_limit.key_concurrency,
            write_limit.rate_count, write_limit.rate_period, write_limit.burst)
    on conflict (name) do update
       set concurrency = excluded.concurrency, key_concurrency = excluded.key_concurrency,
           rate_count = excluded.rate_count, rate_period = excluded.rate_period,
           burst = excluded.burst
     where (known.concurrency, known.key_concurrency, known.rate_count, known.rate_period,
            known.burst) is distinct from
           (excluded.concurrency, excluded.key_concurrency, excluded.rate_count,
            excluded.rate_period, excluded.burst);
end
$$;
