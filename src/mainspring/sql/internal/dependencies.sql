-- Dependencies: jobs that wait for others.
--
--   parent ends ─▶ settle: the dependency gets its outcome ─▶ all parents fine:   the child goes on
--                                                          └▶ one of them is not: cancel, continue
--                                                             or wait, as the dependency says
--
-- Whatever ends a parent leaves its children alone, so that no two of them wait for each other; the
-- children are settled afterwards, one transaction at a time under an advisory lock that is only
-- tried. What nobody settles, because a worker died in between, a sweep finds: a dependency without
-- an outcome whose parent is not live any more.

-- Writes down which parents a job waits for. Refuses parents that there are not.
create or replace function mainspring.add_parents(
    job_id bigint, parents bigint[], tenant text, on_failure text
)
returns void
language plpgsql
as $$
#variable_conflict use_column
declare
    unknown bigint;
begin
    if coalesce(add_parents.on_failure, '') not in ('cancel', 'continue', 'wait') then
        perform mainspring.refuse_option('on_parent_failure',
            'on_parent_failure must be ''cancel'', ''continue'' or ''wait''');
    end if;
    select parent.id into unknown from unnest(add_parents.parents) as parent (id)
     where not exists (select from mainspring.job_status as job
                        where job.job_id = parent.id and job.tenant_id = add_parents.tenant)
     limit 1;
    if found then
        perform mainspring.refuse_job(unknown);
    end if;
    insert into mainspring.dependencies (job_id, parent_id, on_failure)
    select distinct add_parents.job_id, parent.id, add_parents.on_failure
      from unnest(add_parents.parents) as parent (id);
    perform mainspring.notify_parents();
end
$$;

-- Gives dependencies whose parent has ended their outcome: of the given parents, or, without any,
-- of all. Says how many, and which children they belong to.
create or replace function mainspring.decide_outcomes(
    parents bigint[], most integer, out children bigint[], out decided integer
)
language plpgsql
as $$
#variable_conflict use_column
begin
    with ended as (
        select open.job_id, open.parent_id, open.on_failure
          from mainspring.dependencies as open
         where open.outcome is null and (parents is null or open.parent_id = any (parents))
           and not exists (select from mainspring.jobs as live where live.job_id = open.parent_id)
         limit most
    ), outcome as (
        update mainspring.dependencies as known
           set outcome = coalesce(past.state, 'canceled')
          from ended
          left join lateral (
               select job.state from mainspring.jobs_history as job
                where job.job_id = ended.parent_id limit 1) as past on true
         where known.job_id = ended.job_id and known.parent_id = ended.parent_id
           and (past.state = 'succeeded' or ended.on_failure <> 'wait')
        returning known.job_id
    )
    select coalesce(array_agg(distinct job_id), '{}'), count(*) into children, decided
      from outcome;
end
$$;

-- Children that were left alone before because someone held their row.
create or replace function mainspring.unsettled_children(most integer)
returns bigint[]
language sql stable
return array(
    select job.job_id from mainspring.jobs as job
     where job.state in ('blocked', 'awaiting_approval')
       and (exists (select from mainspring.dependencies as failed
                     where failed.job_id = job.job_id and failed.outcome <> 'succeeded'
                       and failed.on_failure = 'cancel')
            or (job.state = 'blocked'
                and not exists (select from mainspring.dependencies as open
                                 where open.job_id = job.job_id and open.outcome is null)))
     limit most);

-- Gives dependencies whose parent has ended their outcome, and their children what follows from
-- it. Looks at the children of the given parents, or, without any, at all that nobody has settled.
-- Says whether the lock was ours, and how many dependencies and children were settled; canceled
-- children are parents that have ended, so there may be more to do.
create or replace function mainspring.settle_parents(
    parents bigint[], most integer, out is_ours boolean, out settled integer
)
language plpgsql
as $$
#variable_conflict use_column
declare
    children bigint[];
    child record;
begin
    settled := 0;
    is_ours := pg_try_advisory_xact_lock(hashtext('mainspring.flows'));
    if not is_ours then
        return;
    end if;
    select * into children, settled from mainspring.decide_outcomes(parents, most);
    if parents is null then
        children := children || mainspring.unsettled_children(most);
    end if;
    for child in
        select job.job_id, job.state, failed.parent_id, failed.outcome,
               exists (select from mainspring.dependencies as open
                        where open.job_id = job.job_id and open.outcome is null) as is_open
          from mainspring.jobs as job
          left join lateral (
               select known.parent_id, known.outcome from mainspring.dependencies as known
                where known.job_id = job.job_id and known.outcome <> 'succeeded'
                  and known.on_failure = 'cancel'
                order by known.parent_id limit 1) as failed on true
         where job.job_id = any (children) and job.state in ('blocked', 'awaiting_approval')
           for update of job skip locked
    loop
        if child.parent_id is not null then
            update mainspring.jobs as job
               set cancel_requested_at = coalesce(job.cancel_requested_at, now()),
                   last_error = 'its parent, job ' || child.parent_id || ', is ' || child.outcome
             where job.job_id = child.job_id;
            perform mainspring.settle_cancel(child.job_id);
            settled := settled + 1;
        elsif not child.is_open and child.state = 'blocked' then
            perform mainspring.move_on(child.job_id);
            settled := settled + 1;
        end if;
    end loop;
end
$$;
