-- Dependencies: jobs that wait for others.
--
--   parent ends ─▶ settle: the dependency gets its outcome ─▶ all parents fine:   the child goes on
--                                                          └▶ one of them is not: cancel, continue
--                                                             or wait, as the dependency says
--
-- A child that waits until its parent is retried waits in vain once the parent is deleted: then it
-- is canceled too.
--
-- Whatever ends a parent leaves its children alone, so that no two of them wait for each other; the
-- children are settled afterwards, one transaction at a time under an advisory lock that is only
-- tried. What nobody settles, because a worker died in between, a sweep finds: a dependency without
-- an outcome whose parent is not live any more. A sweep goes page by page, so that however many
-- wait for something that has not happened, each statement is short and none hides another.

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
    if cardinality(add_parents.parents) > mainspring.most_parents() then
        perform mainspring.refuse_option('after', format(
            'after can have at most %s entries, not %s',
            mainspring.most_parents(), cardinality(add_parents.parents)));
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

-- The parents behind one that open dependencies name, each once and in order: a loose scan, which
-- costs one probe a parent however many children it has.
create or replace function mainspring.awaited_parents(behind bigint, most integer)
returns bigint[]
language sql stable
as $$
    with recursive awaited as (
        (select open.parent_id from mainspring.dependencies as open
          where open.outcome is null and open.parent_id > behind
          order by open.parent_id limit 1)
        union all
        select (select open.parent_id from mainspring.dependencies as open
                 where open.outcome is null and open.parent_id > awaited.parent_id
                 order by open.parent_id limit 1)
          from awaited where awaited.parent_id is not null
    ), page as (
        select awaited.parent_id from awaited where awaited.parent_id is not null limit most
    )
    select coalesce(array_agg(page.parent_id order by page.parent_id), '{}') from page
$$;

-- Gives dependencies whose parent has ended their outcome: of the given parents, or, without any,
-- of all. Says how many, and which children they belong to. What cannot be decided, because the
-- child waits until its parent is retried, is left out before it is counted; a parent that is gone
-- never will be.
create or replace function mainspring.decide_outcomes(
    parents bigint[], most integer, out children bigint[], out decided integer
)
language plpgsql
as $$
#variable_conflict use_column
begin
    with ended as (
        select open.job_id, open.parent_id, coalesce(past.state, 'canceled') as state
          from mainspring.dependencies as open
          left join lateral (
               select job.state from mainspring.jobs_history as job
                where job.job_id = open.parent_id limit 1) as past on true
         where open.outcome is null and (parents is null or open.parent_id = any (parents))
           and not exists (select from mainspring.jobs as live where live.job_id = open.parent_id)
           and (past.state = 'succeeded' or past.state is null or open.on_failure <> 'wait')
         limit most
    ), outcome as (
        update mainspring.dependencies as known set outcome = ended.state
          from ended
         where known.job_id = ended.job_id and known.parent_id = ended.parent_id
        returning known.job_id
    )
    select coalesce(array_agg(distinct job_id), '{}'), count(*) into children, decided
      from outcome;
end
$$;

-- Those of the children that can be settled: a parent of theirs failed, or all are fine. Such are
-- left over where someone held the row of the child before.
create or replace function mainspring.unsettled_among(children bigint[])
returns bigint[]
language sql stable
return array(
    select job.job_id from mainspring.jobs as job
     where job.job_id = any (children) and job.state in ('blocked', 'awaiting_approval')
       and (exists (select from mainspring.dependencies as failed
                     where failed.job_id = job.job_id and failed.outcome <> 'succeeded'
                       and failed.on_failure <> 'continue')
            or (job.state = 'blocked'
                and not exists (select from mainspring.dependencies as open
                                 where open.job_id = job.job_id and open.outcome is null))));

-- The jobs behind one that wait for others, or may do so when they are approved, in order.
create or replace function mainspring.waiting_children(behind bigint, most integer)
returns bigint[]
language sql stable
return array(
    select job.job_id from mainspring.jobs as job
     where job.state in ('blocked', 'awaiting_approval') and job.job_id > behind
     order by job.job_id limit most);

-- Lets children go whose parents are all fine, and cancels those with one that is not. Leaves out
-- what is set aside. Says how many were settled.
create or replace function mainspring.settle_children(children bigint[])
returns integer
language plpgsql
as $$
#variable_conflict use_column
declare
    child record;
    settled integer := 0;
begin
    for child in
        select job.job_id, job.state, failed.parent_id, failed.outcome,
               exists (select from mainspring.dependencies as open
                        where open.job_id = job.job_id and open.outcome is null) as is_open
          from mainspring.jobs as job
          left join lateral (
               select known.parent_id, known.outcome from mainspring.dependencies as known
                where known.job_id = job.job_id and known.outcome <> 'succeeded'
                  and known.on_failure <> 'continue'
                order by known.parent_id limit 1) as failed on true
         where job.job_id = any (children) and job.state in ('blocked', 'awaiting_approval')
           and not exists (select from mainspring.set_aside as aside
                            where aside.duty = 'settle' and aside.key = job.job_id
                              and aside.again_at > now())
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
    return settled;
end
$$;

-- Whether this transaction is the one that settles.
create or replace function mainspring.lock_settling()
returns boolean
language sql
as $$ select pg_try_advisory_xact_lock(hashtext('mainspring.flows')) $$;

-- Gives dependencies whose parent has ended their outcome, and their children what follows from
-- it. Looks at the children of the given parents, or, without any, at all that nobody has settled.
-- Says whether the lock was ours, and how many dependencies and children were settled; canceled
-- children are parents that have ended, so there may be more to do.
create or replace function mainspring.settle_parents(
    parents bigint[], most integer, out is_ours boolean, out settled integer
)
language plpgsql
as $$
declare
    children bigint[];
begin
    settled := 0;
    is_ours := mainspring.lock_settling();
    if not is_ours then
        return;
    end if;
    select * into children, settled from mainspring.decide_outcomes(parents, most);
    if parents is null then
        children := children
            || mainspring.unsettled_among(mainspring.waiting_children(0, null));
    end if;
    settled := settled + mainspring.settle_children(children);
end
$$;

-- The same for one page of a sweep: the next parents behind one that are waited for, and the next
-- children behind one. Says where the next page begins; null at the end of each. A page with more
-- than so many dependencies to decide is to be looked at again.
create or replace function mainspring.settle_page(
    behind_parent bigint, behind_child bigint, most integer,
    out is_ours boolean, out settled integer, out next_parent bigint, out next_child bigint
)
language plpgsql
as $$
declare
    parents bigint[];
    children bigint[];
    decided_children bigint[];
begin
    settled := 0;
    is_ours := mainspring.lock_settling();
    if not is_ours then
        return;
    end if;
    parents := mainspring.awaited_parents(behind_parent, most);
    children := mainspring.waiting_children(behind_child, most);
    if cardinality(parents) > 0 then
        select * into decided_children, settled
          from mainspring.decide_outcomes(parents, most);
    end if;
    next_parent := case when settled = most then behind_parent
                        when cardinality(parents) = most then parents[most] end;
    next_child := case when cardinality(children) = most then children[most] end;
    settled := settled + mainspring.settle_children(
        decided_children || mainspring.unsettled_among(children));
end
$$;
