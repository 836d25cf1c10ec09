-- Why a job does not run: its state and the reasons for it, the one that holds it up first.
--
--   why ─▶ live:    why_reasons ─▶ why_running
--                               └▶ why_stopped, why_<what it waits for>, why_unclaimed, why_later
--      ─▶ ended:   why_ended
--      ─▶ no row:  why_missing
--
-- The rule stands here and nowhere else: the other interfaces pass the answer on. It must be cheap
-- beside any number of jobs, so nothing here reads more than a bounded part of an index, and what
-- is counted is counted up to why_most(). Whoever may not see a job is given numbers of such jobs,
-- but neither ids nor names.

-- Up to how many jobs are counted.
create or replace function mainspring.why_most()
returns integer
language sql immutable
return 1000;

-- A number of jobs that were counted up to why_most().
create or replace function mainspring.why_count(number bigint)
returns text
language sql immutable
return case when number >= mainspring.why_most() then '1,000 or more' else number::text end;

-- How long something takes, for people.
create or replace function mainspring.why_span(span interval)
returns text
language sql immutable
return (select case when seconds < 10 then round(seconds, 1) || ' s'
                    when seconds < 100 then round(seconds) || ' s'
                    when seconds < 7200 then round(seconds / 60) || ' min'
                    when seconds < 172800 then round(seconds / 3600) || ' h'
                    else round(seconds / 86400) || ' days' end
          from (select greatest(0, extract(epoch from span)) as seconds) as length);

-- An instant, and how far away it is.
create or replace function mainspring.why_instant(at timestamptz)
returns text
language sql stable
return to_char(at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS') || ' UTC (' || case
    when at > statement_timestamp() then 'in ' || mainspring.why_span(at - statement_timestamp())
    else mainspring.why_span(statement_timestamp() - at) || ' ago' end || ')';

-- A word of a shell command.
create or replace function mainspring.why_word(word text)
returns text
language sql immutable
return case when word ~ '^[A-Za-z0-9_./:@%+=,-]+$' then word
            else '''' || replace(word, '''', '''\''''') || '''' end;

-- A command that resolves a reason; of a tenant if given.
create or replace function mainspring.why_command(command text, tenant text default 'default')
returns text
language sql immutable
return 'mainspring ' || command
       || case when tenant <> 'default' then ' --tenant ' || mainspring.why_word(tenant)
               else '' end;

-- One reason.
create or replace function mainspring.why_reason(
    code text, sentence text, since timestamptz default null, until timestamptz default null,
    facts jsonb default '{}', fix text default null
)
returns jsonb
language sql immutable
return jsonb_build_object('code', code, 'sentence', sentence, 'since', since, 'until', until,
                          'facts', facts, 'fix', fix);

-- Whether the caller may see a job of this tenant and creator.
create or replace function mainspring.why_is_seen(tenant text, creator text)
returns boolean
language sql stable
return mainspring.is_visible(tenant) and mainspring.is_own(creator);

-- The first line of an error, short enough for a sentence.
create or replace function mainspring.why_error(error text)
returns text
language sql immutable
return left(split_part(coalesce(error, ''), E'\n', 1), 200);

-- What a worker is called, as far as the caller may know.
create or replace function mainspring.why_worker(worker_id bigint)
returns text
language plpgsql stable
as $$
begin
    return coalesce((select worker.name from mainspring.worker_status as worker
                      where worker.worker_id = why_worker.worker_id), 'worker ' || worker_id);
end
$$;

-- All reasons for the state of a live job; of its parents so many levels are looked at.
create or replace function mainspring.why_reasons(job mainspring.jobs, levels integer)
returns setof jsonb
language plpgsql stable
as $$
declare
    reasons jsonb[] := '{}';
begin
    if job.state = 'running' then
        return query select * from mainspring.why_running(job);
    else
        reasons := array(select mainspring.why_stopped(job))
            || case job.waits_for
                   when 'approval' then array(select mainspring.why_approval(job))
                   when 'parents' then array(select mainspring.why_parents(job, levels))
                   when 'time' then array(select mainspring.why_time(job))
                   when 'turn' then array(select mainspring.why_turn(job))
                   when 'handler' then array(select mainspring.why_handler(job))
                   when 'limit' then array(select mainspring.why_limit(job))
                   else '{}' end;
        reasons := reasons || array(select mainspring.why_unclaimed(job, cardinality(reasons) = 0));
        if reasons = '{}' then
            reasons := array[mainspring.why_soon(job)];
        end if;
        return query select unnest(reasons || array(select mainspring.why_later(job)));
    end if;
    if job.losses > 0 then
        return next mainspring.why_reason('unlucky', 'Its worker has died ' || job.losses
            || ' times while it ran nothing else; with some more it is parked in dead_letter.',
            facts => jsonb_build_object('losses', job.losses),
            fix => mainspring.why_command('jobs show ' || job.job_id, job.tenant_id));
    end if;
end
$$;

-- The answer about a live job.
create or replace function mainspring.why_live(job mainspring.jobs)
returns jsonb
language plpgsql stable
as $$
declare
    reasons jsonb := (
        select jsonb_agg(reason order by place)
          from mainspring.why_reasons(job, 3) with ordinality as given (reason, place));
begin
    return jsonb_build_object(
        'job_id', job.job_id::text, 'state', job.state, 'waits_for', job.waits_for,
        'reasons', reasons, 'estimate', case when job.state <> 'running'
            then mainspring.why_estimate(job, reasons -> 0) end);
end
$$;

-- The answer about a job that has ended.
create or replace function mainspring.why_ended(past mainspring.jobs_history)
returns jsonb
language plpgsql stable
as $$
declare
    error text := mainspring.why_error(past.last_error);
    is_system boolean := past.definition like 'mainspring.%';
begin
    return jsonb_build_object(
        'job_id', past.job_id::text, 'state', past.state, 'waits_for', null, 'estimate', null,
        'reasons', jsonb_build_array(mainspring.why_reason('ended', case past.state
                when 'succeeded' then 'It succeeded at '
                when 'failed' then 'It failed and is not retried, at '
                when 'dead_letter' then 'All its attempts failed, the last at '
                else 'It was canceled at ' end || mainspring.why_instant(past.finished_at)
                || case when past.attempt > 0 then ', in attempt ' || past.attempt || ' of '
                        || past.max_attempts else '' end
                || case when error <> '' and past.state <> 'succeeded'
                        then ': ' || error else '' end || '.',
            since => past.finished_at,
            facts => jsonb_build_object('attempt', past.attempt, 'failures', past.failures,
                                        'error', nullif(error, '')),
            fix => case when past.state <> 'succeeded' then mainspring.why_command(
                case when is_system then 'admin ' else '' end || 'jobs retry ' || past.job_id,
                past.tenant_id) end)));
end
$$;

-- The answer about an id that no row has. When an id was given out shows in the job after it.
create or replace function mainspring.why_missing(job_id bigint)
returns jsonb
language plpgsql stable
as $$
declare
    newest bigint := (select case when is_called then last_value else 0 end
                        from mainspring.job_ids);
    given_at timestamptz := least(
        (select later.created_at from mainspring.jobs as later
          where later.job_id > why_missing.job_id order by later.job_id limit 1),
        (select later.created_at from mainspring.jobs_history as later
          where later.job_id > why_missing.job_id order by later.job_id limit 1));
    kept interval := least((select min(keep) from mainspring.retention),
                           (select min(retention) from mainspring.definitions));
    gone record;
    reason jsonb;
begin
    select * into gone from mainspring.audit as entry
     where entry.noun = 'job' and entry.subject = why_missing.job_id::text
       and entry.action = 'delete' order by entry.audit_id desc limit 1;
    reason := case
        when job_id > newest or job_id < 1 then mainspring.why_reason('unknown_id',
            'There is no job ' || job_id || case when newest = 0 then '; there has been none yet.'
                else '; the newest is ' || newest || '.' end,
            facts => jsonb_build_object('newest', newest::text))
        when gone.audit_id is not null then mainspring.why_reason('deleted',
            'It was deleted by ' || gone.actor || ' at ' || mainspring.why_instant(gone.at) || '.',
            since => gone.at, facts => jsonb_build_object('actor', gone.actor))
        when given_at < now() - kept then mainspring.why_reason('pruned',
            'It is no longer there: it would be older than what is kept of finished jobs ('
            || mainspring.why_span(kept) || ' at the least).',
            facts => jsonb_build_object('kept_seconds', extract(epoch from kept)))
        else mainspring.why_reason('not_committed', 'Its id has been given out, and it is not '
            || 'to be seen: the transaction that enqueues it is open, or was rolled back.') end;
    return jsonb_build_object('job_id', job_id::text, 'state', null, 'waits_for', null,
                              'reasons', jsonb_build_array(reason), 'estimate', null);
end
$$;

-- How long a job of the definition runs: the median of its latest in its tenant, in seconds, and of
-- how many; null if there are few.
create or replace function mainspring.why_usual(job mainspring.jobs)
returns table (seconds double precision, samples bigint)
language sql stable
as $$
select percentile_cont(0.5) within group (order by latest.seconds), count(*)
  from (select past.definition, past.state,
               extract(epoch from past.finished_at - past.started_at)::double precision as seconds
          from mainspring.jobs_history as past
         where past.tenant_id = job.tenant_id order by past.job_id desc limit 200) as latest
 where latest.definition = job.definition and latest.state = 'succeeded'
having count(*) >= 3
$$;

-- When a job may start as far as its first reason says, and what that is based on; null if nobody
-- can know.
create or replace function mainspring.why_estimate(job mainspring.jobs, first jsonb)
returns jsonb
language plpgsql stable
as $$
declare
    ahead bigint := (first -> 'facts' ->> 'ahead')::bigint;
    places integer := (first -> 'facts' ->> 'places')::integer;
    usual record;
begin
    if first ->> 'code' <> 'deadline' and first ->> 'until' is not null then
        return jsonb_build_object('at', first -> 'until',
                                  'basis', 'the instant at which what holds it ends');
    end if;
    if ahead is null or places is null or places = 0 or ahead >= mainspring.why_most() then
        return null;
    end if;
    select * into usual from mainspring.why_usual(job);
    if usual.seconds is null then
        return null;
    end if;
    return jsonb_build_object(
        'at', now() + make_interval(secs => usual.seconds * (ahead + 1) / places),
        'basis', ahead || ' jobs before it, ' || places || ' places, and '
                 || mainspring.why_span(make_interval(secs => usual.seconds))
                 || ' a job as of the latest ' || usual.samples || ' of ' || job.definition);
end
$$;
