-- Approvals: deciding on jobs that wait for approval.

-- Counts an approval of a job, which goes on when there are enough.
create or replace function mainspring.approve(
    job_id bigint, reason text default '', tenant text default 'default'
)
returns mainspring.job_state
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    asked mainspring.approvals;
    is_new boolean;
    became mainspring.job_state := 'awaiting_approval';
begin
    perform mainspring.ensure_visible(tenant);
    perform mainspring.check_reason(approve.reason);
    asked := mainspring.lock_approval(approve.job_id, tenant, 'approved');
    -- The same vote again changes nothing, so that an answer that was lost can be asked for anew.
    insert into mainspring.votes (job_id, actor, name, is_approval, reason, voted_at)
    select asked.job_id, voter.id, voter.name, true, coalesce(approve.reason, ''),
           clock_timestamp()
      from mainspring.voter(tenant) as voter
    on conflict do nothing;
    is_new := found;
    if (select count(*) from mainspring.votes as vote
         where vote.job_id = asked.job_id and vote.is_approval) >= asked.needed then
        update mainspring.approvals as a set decision = 'approved', decided_at = clock_timestamp()
         where a.job_id = asked.job_id;
        became := mainspring.move_on(asked.job_id);
    end if;
    if is_new then
        perform mainspring.note_vote(asked, 'approve', approve.reason, became);
    end if;
    return became;
end
$$;
comment on function mainspring.approve is
    'Approves a job as the calling user; returns awaiting_approval while more must approve.';

-- Counts a rejection of a job; one is enough to cancel it.
create or replace function mainspring.reject(
    job_id bigint, reason text, tenant text default 'default'
)
returns mainspring.job_state
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    asked mainspring.approvals;
    became mainspring.job_state;
begin
    perform mainspring.ensure_visible(tenant);
    perform mainspring.check_text('reason', coalesce(reject.reason, ''));
    asked := mainspring.lock_approval(reject.job_id, tenant, 'rejected');
    insert into mainspring.votes as vote (job_id, actor, name, is_approval, reason, voted_at)
    select asked.job_id, voter.id, voter.name, false, reject.reason, clock_timestamp()
      from mainspring.voter(tenant) as voter
    on conflict (job_id, actor) do update
       set is_approval = false, reason = excluded.reason, voted_at = excluded.voted_at;
    update mainspring.approvals as a set decision = 'rejected', decided_at = clock_timestamp()
     where a.job_id = asked.job_id;
    became := mainspring.stop_job(
        asked.job_id, 'rejected by ' || mainspring.actor() || ': ' || reject.reason, tenant);
    perform mainspring.note_vote(asked, 'reject', reject.reason, became);
    return became;
end
$$;
comment on function mainspring.reject is
    'Rejects a job that awaits approval, as the calling user; the job is canceled.';
