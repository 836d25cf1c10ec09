-- Rates: the token buckets of limits that say how often something may start.

-- How long a token of a rate takes to flow in.
create or replace function mainspring.token_seconds(rate_count integer, rate_period interval)
returns double precision
language sql immutable
return (extract(epoch from rate_period) / rate_count)::double precision;

-- The tokens in the bucket of a key now, and the seconds until there is one.
create or replace function mainspring.bucket_of(
    limit_name text, limit_key text, burst integer, seconds double precision,
    out tokens integer, out next_in double precision
)
language plpgsql stable
as $$
declare
    missing double precision := greatest(0, extract(epoch from (
        select known.full_at from mainspring.buckets as known
         where known.limit_name = bucket_of.limit_name
           and known.limit_key = bucket_of.limit_key) - clock_timestamp()));
begin
    if seconds is not null then
        -- A microsecond is lost in the rounding of an instant.
        tokens := floor(burst - coalesce(missing, 0) / seconds + 1e-6);
        next_in := coalesce(missing, 0) - (burst - 1) * seconds;
    end if;
end
$$;

-- Takes the token of a job that is about to start. Without one the job waits for its limit again.
-- Answers the seconds until it may be tried again, zero if it may start; null if the lease was
-- lost.
create or replace function mainspring.take_token(job_id bigint, fence bigint)
returns double precision
language plpgsql
as $$
#variable_conflict use_column
declare
    rate record;
    bucket mainspring.buckets;
    starts_at timestamptz;
begin
    select job.limit_name, job.limit_key, known.burst,
           mainspring.token_seconds(known.rate_count, known.rate_period) as seconds
      into rate
      from mainspring.jobs as job
      left join mainspring.limits as known on known.name = job.limit_name
     where job.job_id = take_token.job_id and job.fence = take_token.fence;
    if not found then
        return null;
    end if;
    if rate.seconds is not null then
        insert into mainspring.buckets (limit_name, limit_key, full_at)
        values (rate.limit_name, rate.limit_key, clock_timestamp())
        on conflict do nothing;
        select * into bucket from mainspring.buckets as known
         where known.limit_name = rate.limit_name and known.limit_key = rate.limit_key for update;
        starts_at := clock_timestamp();
        bucket.full_at := greatest(bucket.full_at, starts_at)
                          + make_interval(secs => rate.seconds);
        if bucket.full_at > starts_at + make_interval(secs => rate.seconds * rate.burst)
                            + interval '1 microsecond' then
            perform from mainspring.jobs as job
              where job.job_id = take_token.job_id and job.fence = take_token.fence for update;
            if found then
                perform mainspring.requeue_jobs(
                    array[take_token.job_id], array['limit'::mainspring.waits_for],
                    have_begun => false);
            end if;
            return extract(epoch from bucket.full_at - starts_at) - rate.seconds * rate.burst;
        end if;
        update mainspring.buckets as known set full_at = bucket.full_at
         where known.limit_name = rate.limit_name and known.limit_key = rate.limit_key;
    end if;
    update mainspring.jobs as job set probed_at = now()
     where job.job_id = take_token.job_id and job.fence = take_token.fence;
    return case when found then 0 end;
end
$$;
