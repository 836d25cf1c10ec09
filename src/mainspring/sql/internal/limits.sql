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
    full_room record;
begin
    if not pg_try_advisory_xact_lock(hashtext('mainspring.limits')) then
        return false;
    end if;
    for full_room in
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
               and (full_room.limit_name is null or ready.limit_name = full_room.limit_name)
               and (full_room.limit_key is null or ready.limit_key = full_room.limit_key)
               and (full_room.tenant_id is null or ready.tenant_id = full_room.tenant_id)
             order by ready.priority desc, ready.job_id desc limit full_room.excess
               for update skip locked));
    end loop;
    return true;
end
$$;

-- Lets jobs go that wait in the given rooms (limit, key, tenant), each named once, as many as have a place free,
-- the first by priority and id, a share of `most` from each room. Says whether the lock was ours, how
-- many went and to which queues, which of the rooms (by number) may have more to let go, which of the
-- limits have places that serve several rooms, which of those are full, in how many seconds the next
-- token of a rate is there, and which limits heed nothing but the places of their keys, with how many
-- those are.
create or replace function mainspring.grant_places(
    names text[], keys text[], tenants text[], most integer,
    out is_ours boolean, out granted integer, out queues text[], out unfinished integer[],
    out shared text[], out full_ones text[], out next_in double precision,
    out roomy_names text[], out roomy_places integer[]
)
language plpgsql
as $$
declare
    share integer := greatest(1, most / greatest(1, cardinality(names)));
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
    with room as materialized (
        select room.*, dense_rank() over (order by name) as limit_no,
               dense_rank() over (order by name, key) as key_no,
               dense_rank() over (order by tenant_id) as tenant_no
          from unnest(names, keys, tenants) with ordinality
               as room (name, key, tenant_id, room_no)
    ), by_limit as materialized (
        select asked.limit_no, known.*,
               case when known.concurrency is not null then known.concurrency - (
                   select count(*) from mainspring.jobs as held
                    where held.limit_name = known.name and held.waits_for is null) end as free,
               known.key_concurrency is not null
               and num_nonnulls(known.concurrency, known.rate_count) = 0 as is_roomy
          from (select distinct limit_no, name from room) as asked
          left join mainspring.limits as known using (name)
    ), by_tenant as materialized (
        -- Counted together in a look at all that hold a place, if any tenant has a cap.
        select asked.tenant_no, known.max_running - coalesce(held.places, 0) as free
          from (select distinct tenant_no, tenant_id from room) as asked
          left join mainspring.tenants as known using (tenant_id)
          left join (select job.tenant_id, count(*) as places from mainspring.jobs as job
                      where job.limit_name is not null and job.waits_for is null
                        and (select bool_or(capped.max_running is not null)
                               from mainspring.tenants as capped
                              where capped.tenant_id = any (tenants))
                      group by job.tenant_id) as held using (tenant_id)
    ), by_key as materialized (
        select asked.key_no, least(by_limit.key_concurrency - held.places,
                                   bucket.tokens - held.unstarted) as free,
               case when bucket.tokens < 1 and held.unstarted = 0 then bucket.next_in end as next_in
          from (select distinct key_no, limit_no, name, key from room) as asked
          join by_limit using (limit_no),
               lateral (
                   select count(*) as places,
                          count(*) filter (where job.probed_at is null
                                             and by_limit.rate_count is not null) as unstarted
                     from mainspring.jobs as job
                    where num_nonnulls(by_limit.key_concurrency, by_limit.rate_count) > 0
                      and job.limit_name = asked.name and job.limit_key = asked.key
                      and job.waits_for is null) as held,
               lateral (
                   select max(known.tokens) as tokens, max(known.next_in) as next_in
                     from mainspring.bucket_of(
                              by_limit.name, asked.key, by_limit.burst, mainspring.token_seconds(
                                  by_limit.rate_count, by_limit.rate_period)) as known
                    where by_limit.rate_count is not null) as bucket
    ), free as materialized (
        -- Places by number: to join by names would compare each room with all others.
        select array(select least(free, most)::integer from by_limit order by limit_no) as of_limit,
               array(select least(free, most)::integer from by_key order by key_no) as of_key,
               array(select least(free, most)::integer from by_tenant order by tenant_no)
               as of_tenant
    ), candidate as materialized (
        select first.place, first.job_id, first.priority, room_no, limit_no, key_no, tenant_no,
               of_limit[limit_no] as limit_free, of_key[key_no] as key_free,
               of_tenant[tenant_no] as tenant_free
          from room, free,
               lateral (
                   select waiting.ctid as place, waiting.job_id, waiting.priority
                     from mainspring.jobs as waiting
                    where waiting.waits_for = 'limit' and waiting.limit_name = room.name
                      and waiting.limit_key = room.key and waiting.tenant_id = room.tenant_id
                      and waiting.cancel_requested_at is null
                    order by waiting.priority, waiting.job_id
                    limit greatest(0, least(of_limit[limit_no], of_key[key_no],
                                            of_tenant[tenant_no], share))
                      for update skip locked) as first
    ), apart as materialized (
        -- Nothing is shared: each room has a key of its own, and nobody counts anything else.
        select (select bool_and(free is null) from by_limit)
               and (select bool_and(free is null) from by_tenant)
               and (select max(key_no) = count(*) from room) as is_so
    ), ranked as (
        -- The first of all is the first of its limit, of its key and of its tenant, so that
        -- something goes wherever something can.
        select place, limit_free, key_free, tenant_free,
               row_number() over (order by priority, job_id) as number,
               row_number() over (partition by limit_no order by priority, job_id) as in_limit,
               row_number() over (partition by key_no order by priority, job_id) as in_key,
               row_number() over (partition by tenant_no order by priority, job_id) as in_tenant
          from candidate where not (select is_so from apart)
    ), gone as (
        update mainspring.jobs as job set waits_for = null
         where job.ctid = any (array(
            select place from ranked
             where number <= most and in_limit <= limit_free and in_key <= key_free
               and in_tenant <= tenant_free
            union all
            select place from candidate where (select is_so from apart)))
        returning job.queue, job.limit_name
    )
    select (select count(*) from gone), array(select distinct queue from gone),
           array(select room_no from candidate group by room_no having count(*) = share),
           array(select name from by_limit where free is not null),
           array(select name from by_limit
                  where free <= (select count(*) from gone where limit_name = by_limit.name)),
           (select min(by_key.next_in) from by_key),
           array(select name from by_limit where is_roomy order by limit_no),
           array(select key_concurrency from by_limit where is_roomy order by limit_no)
      into granted, queues, unfinished, shared, full_ones, next_in, roomy_names, roomy_places;
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
