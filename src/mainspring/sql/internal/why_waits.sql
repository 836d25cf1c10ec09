-- Why a job that says what it waits for waits.

-- A job that awaits approval.
create or replace function mainspring.why_approval(job mainspring.jobs)
returns setof jsonb
language plpgsql stable
as $$
declare
    asked mainspring.approvals;
    given text[];
    missing integer;
begin
    select * into asked from mainspring.approvals as approval where approval.job_id = job.job_id;
    given := array(select coalesce(vote.name, vote.actor) from mainspring.votes as vote
                    where vote.job_id = job.job_id and vote.is_approval order by vote.voted_at);
    missing := asked.needed - cardinality(given);
    return next mainspring.why_reason('approval',
        'It needs ' || missing || ' more of ' || asked.needed || ' approvals'
        || coalesce(' of ' || array_to_string(asked.approvers, ', '), '')
        || case when given <> '{}' then '; approved by ' || array_to_string(given, ', ') else '' end
        || coalesce('. It is canceled at ' || mainspring.why_instant(asked.expires_at), '') || '.',
        since => asked.requested_at,
        facts => jsonb_build_object('needed', asked.needed, 'missing', missing, 'given', given,
                                    'approvers', asked.approvers, 'expires_at', asked.expires_at),
        fix => mainspring.why_command('approvals approve ' || job.job_id, job.tenant_id));
end
$$;

-- One open parent of a job: what it is and, of a live one, what holds it up; of a job that the
-- caller may not see nothing but that it is there.
create or replace function mainspring.why_parent(parent_id bigint, levels integer)
returns jsonb
language plpgsql stable
as $$
declare
    live mainspring.jobs;
    past mainspring.jobs_history;
    reason jsonb;
begin
    select * into live from mainspring.jobs as job where job.job_id = parent_id;
    if not found then
        select * into past from mainspring.jobs_history as job where job.job_id = parent_id;
    end if;
    if not coalesce(mainspring.why_is_seen(coalesce(live.tenant_id, past.tenant_id),
                                           coalesce(live.created_by, past.created_by)), false) then
        return jsonb_build_object('text', 'a job that you may not see');
    end if;
    if live.job_id is not null and levels > 0 then
        select given into reason from mainspring.why_reasons(live, levels - 1) as given limit 1;
    end if;
    return jsonb_build_object(
        'job_id', parent_id::text, 'state', coalesce(live.state, past.state),
        'code', reason -> 'code', 'sentence', reason -> 'sentence', 'fix', reason -> 'fix',
        'text', parent_id || ' (' || coalesce(live.state, past.state)
                || coalesce(': ' || rtrim(reason ->> 'sentence', '.'), '') || ')');
end
$$;

-- A job that waits for others: first those that ended badly and have to be retried, then the first
-- of those that have not ended. Of these only three are looked into, and one each of theirs.
create or replace function mainspring.why_parents(job mainspring.jobs, levels integer)
returns setof jsonb
language plpgsql stable
as $$
declare
    failed record;
    open_ids bigint[];
    parents jsonb;
    total bigint;
begin
    for failed in
        select past.* from mainspring.dependencies as dependency
          join mainspring.jobs_history as past on past.job_id = dependency.parent_id
         where dependency.job_id = job.job_id and dependency.outcome is null
           and dependency.on_failure = 'wait' and past.state <> 'succeeded'
           and mainspring.why_is_seen(past.tenant_id, past.created_by)
         order by past.job_id limit 3
    loop
        return next mainspring.why_reason('parent_failed', 'It waits for job ' || failed.job_id
            || ', which is ' || failed.state || ', to be retried.', since => failed.finished_at,
            facts => jsonb_build_object('parent_id', failed.job_id::text, 'state', failed.state),
            fix => mainspring.why_command('jobs retry ' || failed.job_id, failed.tenant_id));
    end loop;
    select count(*), (array_agg(dependency.parent_id order by dependency.parent_id)
                          filter (where live.job_id is not null))[1:20]
      into total, open_ids
      from mainspring.dependencies as dependency
      left join mainspring.jobs as live on live.job_id = dependency.parent_id
     where dependency.job_id = job.job_id;
    if open_ids is not null then
        parents := (select jsonb_agg(mainspring.why_parent(id, levels) order by id)
                      from unnest(open_ids[1:case when levels = 3 then 3 else 1 end]) as id);
        return next mainspring.why_reason('parents', 'It waits for '
            || (select string_agg(each ->> 'text', ', ') from jsonb_array_elements(parents) as each)
            || case when cardinality(open_ids) > jsonb_array_length(parents)
                    then ' and more' else '' end || ', of ' || total || ' jobs in all.',
            since => job.created_at,
            facts => jsonb_build_object('parents', parents, 'open', cardinality(open_ids),
                                        'of', total),
            fix => coalesce(parents -> 0 ->> 'fix', mainspring.why_command(
                'why ' || (parents -> 0 ->> 'job_id'), job.tenant_id)));
    end if;
end
$$;

-- A job that waits for its time. Once the time has come it is not the reason any more.
create or replace function mainspring.why_time(job mainspring.jobs)
returns setof jsonb
language plpgsql stable
as $$
declare
    last mainspring.attempts;
    code text;
begin
    if job.scheduled_for <= clock_timestamp() then
        return;
    end if;
    select * into last from mainspring.attempts as attempt
     where attempt.job_id = job.job_id order by attempt.fence desc limit 1;
    code := case when last.status = 'snoozed' then 'snoozed' when last.status = 'lost' then 'jitter'
                 when job.failures > 0 then 'backoff' else 'delay' end;
    return next mainspring.why_reason(code, case code
            when 'snoozed' then 'It has put itself off'
            when 'jitter' then 'It was taken back from ' || mainspring.why_worker(last.worker_id)
            when 'backoff' then 'Attempt ' || job.attempt || ' of ' || job.max_attempts
                || ' failed' || coalesce(' at ' || mainspring.why_instant(last.finished_at), '')
                || coalesce(' (' || nullif(mainspring.why_error(last.error), '') || ')', '')
            else 'It was enqueued for later' end
            || '; it is due at ' || mainspring.why_instant(job.scheduled_for) || '.',
        since => coalesce(last.finished_at, job.created_at), until => job.scheduled_for,
        facts => jsonb_build_object('attempt', job.attempt, 'max_attempts', job.max_attempts,
                                    'failures', job.failures, 'error', last.error));
end
$$;

-- A job of a schedule that waits for an earlier run.
create or replace function mainspring.why_turn(job mainspring.jobs)
returns setof jsonb
language plpgsql stable
as $$
declare
    earlier mainspring.jobs;
begin
    select * into earlier from mainspring.jobs as run
     where run.schedule_id = job.schedule_id and run.job_id <> job.job_id
       and run.waits_for is distinct from 'turn'
     order by run.slot_at limit 1;
    if found then
        return next mainspring.why_reason('turn', 'An earlier run of its schedule '
            || coalesce((select schedule.name from mainspring.schedules as schedule
                          where schedule.schedule_id = job.schedule_id) || ' ', '')
            || '(job ' || earlier.job_id || ') is ' || earlier.state
            || '; they run one after the other.',
            since => job.created_at, facts => jsonb_build_object('job_id', earlier.job_id::text,
                'state', earlier.state, 'slot_at', earlier.slot_at),
            fix => mainspring.why_command('why ' || earlier.job_id, job.tenant_id));
    end if;
end
$$;

-- A job that was claimed by a worker that does not know its definition. Once one does it is not the
-- reason any more.
create or replace function mainspring.why_handler(job mainspring.jobs)
returns setof jsonb
language plpgsql stable
as $$
declare
    defined mainspring.definitions;
    alive bigint;
    knows boolean;
begin
    select * into defined from mainspring.definitions as known where known.key = job.definition;
    select count(*), bool_or(exists (
               select from mainspring.worker_schemas as declared
                where declared.worker_id = worker.worker_id and declared.key = job.definition))
      into alive, knows
      from mainspring.why_workers(job) as worker
     where worker.is_served and not worker.is_stopping;
    if not coalesce(knows, false) and coalesce(defined.kind, 'python') in ('python', 'remote') then
        return next mainspring.why_reason('handler',
            case when alive = 0 then 'No worker of its queue is alive'
                 else 'None of the ' || alive || ' live workers of its queue knows the definition '
                      || job.definition end
            || case when defined.key is null then ', and there is no such definition any more'
                    else '' end
            || '; start one that does.',
            facts => jsonb_build_object('definition', job.definition, 'workers', alive,
                                        'version', job.definition_version));
    end if;
end
$$;
