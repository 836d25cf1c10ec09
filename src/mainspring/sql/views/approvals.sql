create or replace view mainspring.approval_status as
select approval.job_id, approval.tenant_id, job.definition, job.payload, job.state,
       approval.needed, approval.approvers, approval.requested_at, approval.expires_at,
       approval.decision, approval.decided_at,
       (select count(*) from mainspring.votes as vote
         where vote.job_id = approval.job_id and vote.is_approval) as approvals,
       (select coalesce(jsonb_agg(jsonb_build_object(
                   'actor', coalesce(vote.name, vote.actor), 'is_approval', vote.is_approval,
                   'reason', vote.reason, 'voted_at', vote.voted_at) order by vote.voted_at), '[]')
          from mainspring.votes as vote where vote.job_id = approval.job_id) as votes
  from mainspring.approvals as approval
  join mainspring.all_jobs as job using (job_id)
 where mainspring.is_visible(approval.tenant_id)
   -- A member sees what it is asked to decide on as well, of which it may see no more than this.
   and (mainspring.is_own(job.created_by)
        or approval.approvers && nullif(current_setting('mainspring.approver', true), '')::text[]);
