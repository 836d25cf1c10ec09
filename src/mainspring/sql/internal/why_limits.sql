-- Why a job that waits for its limit has no place. A limit with a place to give is not the reason:
-- then the job waits for a worker like any other.

-- A command that sets one number of a limit and keeps the rest of it.
create or replace function mainspring.why_set_limit(
    known mainspring.limits, concurrency integer, key_concurrency integer
)
returns text
language sql stable
return case when exists (select from mainspring.definitions as own
                          where own.key = known.name and own.limit_name = own.key)
    then mainspring.why_command('definitions update ' || mainspring.why_word(known.name)
        || case when concurrency is distinct from known.concurrency
                then ' --concurrency ' || concurrency else '' end
        || case when key_concurrency is distinct from known.key_concurrency
                then ' --key-concurrency ' || key_concurrency else '' end)
    else mainspring.why_command('limits set ' || mainspring.why_word(known.name)
        || coalesce(' --concurrency ' || concurrency, '')
        || coalesce(' --key-concurrency ' || key_concurrency, '')
        || coalesce(' --rate ' || known.rate_count || '/'
                    || extract(epoch from known.rate_period)::float8 || 's', '')
        || case when known.burst > 1 then ' --burst ' || known.burst else '' end) end;

-- All places of the limit, or of the key, are taken. `most` is how many there are.
create or replace function mainspring.why_places(
    job mainspring.jobs, known mainspring.limits, is_of_key boolean, most integer
)
returns setof jsonb
language plpgsql stable
as $$
declare
    held bigint;
    before bigint;
    oldest mainspring.jobs;
    is_seen boolean;
begin
    select count(*) into held from (
        select from mainspring.jobs as holder
         where holder.limit_name = known.name and holder.waits_for is null
           and (not is_of_key or holder.limit_key = job.limit_key)
         order by holder.limit_key limit most) as holder;
    if held < most or most is null then
        return;
    end if;
    select count(*) into before from (
        select from mainspring.jobs as waiting
         where waiting.waits_for = 'limit' and waiting.limit_name = job.limit_name
           and waiting.limit_key = job.limit_key and waiting.tenant_id = job.tenant_id
           and hashtextextended(waiting.queue, 0) = hashtextextended(job.queue, 0)
           and (waiting.priority, waiting.job_id) < (job.priority, job.job_id)
         order by waiting.priority, waiting.job_id limit mainspring.why_most()) as waiting;
    select * into oldest from (
        select holder.* from mainspring.jobs as holder
         where holder.limit_name = known.name and holder.waits_for is null
           and (not is_of_key or holder.limit_key = job.limit_key)
         order by holder.limit_key limit mainspring.why_most()) as holder
     order by holder.started_at limit 1;
    is_seen := mainspring.why_is_seen(oldest.tenant_id, oldest.created_by);
    return next mainspring.why_reason('limit_places', 'Its limit ' || known.name || ' lets ' || most
        || case when is_of_key then ' of a key' else '' end || ' run at once, and ' || held
        || case when held = 1 then ' does' else ' do' end
        || case when is_seen then ' (the oldest is job ' || oldest.job_id || ', since '
                    || mainspring.why_instant(oldest.started_at) || ')' else '' end
        || '. ' || mainspring.why_count(before) || ' wait before it.',
        facts => jsonb_build_object('limit', known.name, 'places', most, 'held', held,
            'ahead', before, 'is_of_key', is_of_key,
            'oldest', case when is_seen then oldest.job_id::text end),
        fix => mainspring.why_set_limit(known,
            case when is_of_key then known.concurrency else most + 1 end,
            case when is_of_key then most + 1 else known.key_concurrency end));
end
$$;

-- The tenant of the job may run no more at once.
create or replace function mainspring.why_tenant_cap(job mainspring.jobs)
returns setof jsonb
language plpgsql stable
as $$
declare
    most integer := (select owner.max_running from mainspring.tenants as owner
                      where owner.tenant_id = job.tenant_id);
    held bigint;
begin
    select count(*) into held from (
        select from mainspring.jobs as holder
         where holder.limit_name is not null and holder.waits_for is null
           and holder.tenant_id = job.tenant_id
         order by holder.limit_name, holder.limit_key limit most) as holder;
    if held >= most then
        return next mainspring.why_reason('tenant_cap', 'The tenant ' || job.tenant_id
            || ' may run ' || most || ' jobs at once, and ' || held
            || case when held = 1 then ' does' else ' do' end || '.',
            facts => jsonb_build_object('tenant', job.tenant_id, 'places', most,
                                                'held', held),
            fix => mainspring.why_command('tenants update ' || mainspring.why_word(job.tenant_id)
                                          || ' --max-running ' || most + 1));
    end if;
end
$$;

-- The rate of the limit has no token for the key of the job.
create or replace function mainspring.why_rate(job mainspring.jobs, known mainspring.limits)
returns setof jsonb
language plpgsql stable
as $$
declare
    bucket record;
begin
    select * into bucket from mainspring.bucket_of(
        known.name, job.limit_key, known.burst,
        mainspring.token_seconds(known.rate_count, known.rate_period));
    if bucket.tokens < 1 then
        return next mainspring.why_reason('rate', 'Its limit ' || known.name || ' starts '
            || known.rate_count || ' in ' || mainspring.why_span(known.rate_period)
            || ' for a key; the next may start in '
            || mainspring.why_span(make_interval(secs => bucket.next_in)) || '.',
            until => clock_timestamp() + make_interval(secs => bucket.next_in),
            facts => jsonb_build_object('limit', known.name, 'count', known.rate_count,
                'seconds', extract(epoch from known.rate_period), 'burst', known.burst));
    end if;
end
$$;

-- A job that waits for its limit.
create or replace function mainspring.why_limit(job mainspring.jobs)
returns setof jsonb
language plpgsql stable
as $$
declare
    known mainspring.limits;
begin
    select * into known from mainspring.limits as asked where asked.name = job.limit_name;
    if 0 in (known.concurrency, known.key_concurrency) then
        return next mainspring.why_reason('limit_zero', 'Its limit ' || known.name
            || ' is set to 0: nothing may run.', since => known.updated_at,
            facts => jsonb_build_object('limit', known.name),
            fix => mainspring.why_set_limit(known,
                case when known.concurrency is not null then greatest(known.concurrency, 1) end,
                case when known.key_concurrency is not null
                     then greatest(known.key_concurrency, 1) end));
    end if;
    return query select * from mainspring.why_tenant_cap(job);
    if known.concurrency > 0 then
        return query select * from mainspring.why_places(job, known, false, known.concurrency);
    end if;
    if known.key_concurrency > 0 then
        return query select * from mainspring.why_places(job, known, true, known.key_concurrency);
    end if;
    if known.rate_count is not null then
        return query select * from mainspring.why_rate(job, known);
    end if;
end
$$;
