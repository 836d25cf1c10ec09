-- Limits: what may run at once and how often something may start, over all workers.
--
--   enqueue ─▶ waits for its limit ─grant─▶ ready ─claim─▶ running ─▶ done, or waits to be retried
--              └──── holds nothing ──────┘  └─── holds a place ───┘   └──── holds nothing ────┘
--
-- A job holds a place of its limit while it is ready or runs, and nothing but its own row says so:
-- no counter can go wrong, and the place of a lost worker comes back when its job is taken back.
-- Grants are given one transaction at a time, under an advisory lock that is only tried, in a
-- statement that begins after the lock is held and so sees every grant before it. A place that is
-- given back unseen by it is found by the next.

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

-- Takes places back from jobs that have not started, where a limit was lowered below what is held.
-- Says whether the lock was ours.
create or replace function mainspring.take_back_places()
returns boolean
language plpgsql
as $$
declare
    full_key record;
begin
    if not pg_try_advisory_xact_lock(hashtext('mainspring.limits')) then
        return false;
    end if;
    for full_key in
        select held.limit_name, null::text as limit_key, null::text as tenant_id,
               count(*) - known.concurrency as excess
          from mainspring.limits as known
          join mainspring.jobs as held
            on held.limit_name = known.name and held.waits_for is null
         where known.updated_at > now() - interval '10 minutes' and known.concurrency is not null
         group by held.limit_name, known.concurrency having count(*) > known.concurrency
        union all
        select held.limit_name, held.limit_key, null, count(*) - known.key_concurrency
          from mainspring.limits as known
          join mainspring.jobs as held
            on held.limit_name = known.name and held.waits_for is null
         where known.updated_at > now() - interval '10 minutes'
           and known.key_concurrency is not null
         group by held.limit_name, held.limit_key, known.key_concurrency
        having count(*) > known.key_concurrency
        union all
        select null, null, held.tenant_id, count(*) - known.max_running
          from mainspring.tenants as known
          join mainspring.jobs as held
            on held.tenant_id = known.tenant_id and held.limit_name is not null
               and held.waits_for is null
         where known.updated_at > now() - interval '10 minutes' and known.max_running is not null
         group by held.tenant_id, known.max_running having count(*) > known.max_running
    loop
        update mainspring.jobs as job set waits_for = 'limit'
         where job.ctid = any (array(
            select ready.ctid from mainspring.jobs as ready
             where ready.limit_name is not null and ready.waits_for is null
               and ready.state = 'queued'
               and (full_key.limit_name is null or ready.limit_name = full_key.limit_name)
               and (full_key.limit_key is null or ready.limit_key = full_key.limit_key)
               and (full_key.tenant_id is null or ready.tenant_id = full_key.tenant_id)
             order by ready.priority desc, ready.job_id desc limit full_key.excess
               for update skip locked));
    end loop;
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

-- Makes jobs ready that wait for the given limit keys, as far as there are places, a share of
-- `most` from each key; the first by priority and id. Where nothing is shared, because each key has
-- places of its own, there is nothing to rank. Gives the queues and the limits of the jobs, and the
-- numbers of the keys that may have more.
create or replace function mainspring.grant_free(
    names text[], keys text[], tenants text[], limits_free integer[], keys_free integer[],
    tenants_free integer[], most integer, is_shared boolean,
    out queues text[], out limits text[], out unfinished integer[]
)
language plpgsql
as $$
declare
    share integer := greatest(1, most / greatest(1, cardinality(names)));
begin
    with asked as materialized (
        -- Places by number: to join by names would compare each key with all others.
        select given.*, dense_rank() over (order by name) as limit_no,
               dense_rank() over (order by name, key) as key_no,
               dense_rank() over (order by tenant_id) as tenant_no
          from unnest(names, keys, tenants) with ordinality as given (name, key, tenant_id, number)
    ), candidate as materialized (
        select first.place, first.job_id, first.priority, asked.number, limit_no, key_no, tenant_no
          from asked,
               lateral (
                   select waiting.ctid as place, waiting.job_id, waiting.priority
                     from mainspring.jobs as waiting
                    where waiting.waits_for = 'limit' and waiting.limit_name = asked.name
                      and waiting.limit_key = asked.key and waiting.tenant_id = asked.tenant_id
                      and waiting.cancel_requested_at is null
                    order by waiting.priority, waiting.job_id
                    limit greatest(0, least(limits_free[limit_no], keys_free[key_no],
                                            tenants_free[tenant_no], share))
                      for update skip locked) as first
    ), ranked as (
        -- The first of all is the first of its limit, of its key and of its tenant, so that
        -- something goes wherever something can.
        select place, limit_no, key_no, tenant_no,
               row_number() over (order by priority, job_id) as rank,
               row_number() over (partition by limit_no order by priority, job_id) as in_limit,
               row_number() over (partition by key_no order by priority, job_id) as in_key,
               row_number() over (partition by tenant_no order by priority, job_id) as in_tenant
          from candidate where is_shared
    ), granted as (
        update mainspring.jobs as job set waits_for = null
         where job.ctid = any (array(
            select place from ranked
             where rank <= most and in_limit <= limits_free[limit_no]
               and in_key <= keys_free[key_no] and in_tenant <= tenants_free[tenant_no]
            union all
            select place from candidate where not is_shared))
        returning job.queue, job.limit_name
    )
    select array(select queue from granted), array(select limit_name from granted),
           array(select number from candidate group by number having count(*) = share)
      into queues, limits, unfinished;
end
$$;

-- Lets jobs go that wait for the given limit keys (limit, key, tenant), each named once, as many as
-- have a place free. Says whether the lock was ours, how many went and to which queues, which of
-- the keys (by number) may have more to let go, which of the limits have places that serve several
-- keys, which of those are full, in how many seconds the next token of a rate is there, and which
-- limits heed nothing but the places of each key, with how many those are.
create or replace function mainspring.grant_places(
    names text[], keys text[], tenants text[], most integer,
    out is_ours boolean, out granted integer, out queues text[], out unfinished integer[],
    out shared text[], out full_ones text[], out next_in double precision,
    out keyed_names text[], out keyed_places integer[]
)
language plpgsql
as $$
declare
    limits_free integer[];
    keys_free integer[];
    tenants_free integer[];
    went record;
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
    select array_agg(least(free, most + 1)::integer order by number),
           coalesce(array_agg(name order by number) filter (where free is not null), '{}'),
           coalesce(array_agg(name order by number) filter (where is_keyed), '{}'),
           coalesce(array_agg(key_places order by number) filter (where is_keyed), '{}')
      into limits_free, shared, keyed_names, keyed_places
      from mainspring.free_of_limits(names);
    select array_agg(least(free, most)::integer order by number), min(keys_of.next_in)
      into keys_free, next_in
      from mainspring.free_of_keys(names, keys) as keys_of;
    select array_agg(least(free, most)::integer order by number) into tenants_free
      from mainspring.free_of_tenants(tenants);
    went := mainspring.grant_free(
        names, keys, tenants, limits_free, keys_free, tenants_free, most,
        is_shared => array_remove(limits_free || tenants_free, null) <> '{}'
                     or cardinality(keys_free) < cardinality(names));
    granted := cardinality(went.queues);
    queues := array(select distinct queue from unnest(went.queues) as queue);
    unfinished := went.unfinished;
    full_ones := array(
        select name from unnest(shared, array_remove(limits_free, null)) as counted (name, free)
         where free <= (select count(*) from unnest(went.limits) as gone where gone = name));
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
