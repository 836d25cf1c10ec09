-- Errors, grouped: how failed attempts are added up by day.
--
-- finish_ended, finish_requeued, recover, end_spent_jobs ─▶ failures ─ fold_failures ─▶ error_days
--
-- Whoever ends attempts writes one row a group and waits for nobody; one folder at a time takes the
-- rows away in the statement that adds them up, so that each is counted once.

-- How many groups a definition of a tenant has a day; further ones are added up as `~other`.
create or replace function mainspring.most_error_groups()
returns integer
language sql immutable
return 200;

-- The key of attempts that the database ends because their worker is gone: LOST_WORKER in
-- domain/jobs/error_keys.py, which a test compares.
create or replace function mainspring.lost_worker_key()
returns text
language sql immutable
return '4eef111bb3bc';

-- The tags of several jobs, each once, up to twenty by name; null if there are none.
create or replace function mainspring.tags_of(lists jsonb)
returns text[]
language plpgsql immutable
as $$
begin
    return case when lists is not null then array(
        select distinct tag from jsonb_array_elements(lists) as list,
               lateral jsonb_array_elements_text(list) as tag
         order by tag limit 20) end;
end
$$;

-- The newest five of some jobs, each once. A function, so that who ends attempts need not sort.
create or replace function mainspring.newest_jobs(job_ids bigint[])
returns bigint[]
language sql immutable
return array(select distinct job_id from unnest(job_ids) as job_id order by job_id desc limit 5);

-- The same of several lists, joined by commas.
create or replace function mainspring.newest_of(lists text)
returns bigint[]
language sql immutable
return mainspring.newest_jobs(string_to_array(lists, ',')::bigint[]);

-- Adds up to so many failures to error_days; says how many. Nothing if someone else does: who is
-- alone knows how many groups there are. A group that would be one too many is `~other`: those that
-- are there stay, and of new ones those with the most failures come first.
create or replace function mainspring.fold_failures(most integer)
returns integer
language plpgsql
as $$
#variable_conflict use_column
declare
    folded integer;
begin
    if not pg_try_advisory_xact_lock(hashtext('mainspring.failures')) then
        return 0;
    end if;
    with taken as (
        delete from mainspring.failures as failure
         where failure.ctid = any (array(
            select old.ctid from mainspring.failures as old limit fold_failures.most
               for update skip locked))
        returning mainspring.day_of(failure.at) as day, failure.*
    ), keyed as (
        select day, tenant_id, definition, error_key, sum(count) as failed from taken
         group by day, tenant_id, definition, error_key
    ), known as (
        select day, tenant_id, definition,
               array_agg(error_key) filter (where error_key <> '~other') as error_keys
          from mainspring.error_days as kept
         where (day, tenant_id, definition) in (select day, tenant_id, definition from keyed)
         group by day, tenant_id, definition
    ), placed as (
        select keyed.*, case when spot <= mainspring.most_error_groups() then error_key
                             else '~other' end as group_key
          from (select keyed.*, case when not is_known then cardinality(error_keys) + row_number()
                           over (partition by day, tenant_id, definition, is_known
                                 order by failed desc, error_key) else 0 end as spot
                  from (select keyed.*, coalesce(error_keys, '{}') as error_keys,
                               coalesce(error_key = any (error_keys), false) as is_known
                          from keyed left join known using (day, tenant_id, definition)) as keyed
               ) as keyed
    ), added as (
        insert into mainspring.error_days as kept
            (day, tenant_id, definition, error_key, count, first_at, last_at, sample, job_ids)
        select day, tenant_id, definition, group_key, sum(count), min(at), max(at),
               (array_agg(sample order by at desc))[1],
               mainspring.newest_of(string_agg(array_to_string(job_ids, ','), ','))
          from taken join placed using (day, tenant_id, definition, error_key)
         group by day, tenant_id, definition, group_key
        on conflict (day, tenant_id, definition, error_key) do update
            set count = kept.count + excluded.count,
                first_at = least(kept.first_at, excluded.first_at),
                last_at = greatest(kept.last_at, excluded.last_at),
                sample = case when excluded.last_at >= kept.last_at then excluded.sample
                              else kept.sample end,
                job_ids = mainspring.newest_jobs(kept.job_ids || excluded.job_ids)
    )
    select count(*) into folded from taken;
    return folded;
end
$$;

-- Whether the key of the last failed attempt of a job is one of those that a filter names, as
-- job_status shows it: one that was canceled has none, since its last error is no failure. It looks
-- at the attempts of the days in which the job could have had any.
create or replace function mainspring.has_error_key(
    filter jsonb, job_id bigint, state mainspring.job_state, attempt integer,
    created_at timestamptz, finished_at timestamptz
)
returns boolean
language plpgsql stable
as $$
#variable_conflict use_column
begin
    return state <> 'canceled' and attempt > 0 and coalesce(filter -> 'error_key' ? (
        select past.error_key from mainspring.attempt_status as past
         where past.job_id = has_error_key.job_id and past.error_key is not null
           and past.finished_at >= has_error_key.created_at - interval '1 minute'
           and past.finished_at
               <= coalesce(has_error_key.finished_at, now()) + interval '1 minute'
         order by past.number desc, past.finished_at desc limit 1), false);
end
$$;

-- Whether a job failed as a filter says, as in job_matches. A single expression, so that it becomes
-- a part of the statement that calls it, which has seldom to ask.
create or replace function mainspring.error_matches(
    filter jsonb, job_id bigint, state mainspring.job_state, attempt integer,
    created_at timestamptz, finished_at timestamptz
)
returns boolean
language sql stable
return filter -> 'error_key' is null
    or mainspring.has_error_key(filter, job_id, state, attempt, created_at, finished_at);
