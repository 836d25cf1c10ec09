create or replace view mainspring.flow_status as
select flow.flow_id, flow.tenant_id, flow.name, flow.created_at, counted.*,
       case when counted.live > 0 then 'running'
            when counted.failed + counted.dead_letter > 0 then 'failed'
            when counted.canceled > 0 then 'canceled'
            else 'succeeded' end as state
  from mainspring.flows as flow, lateral (
           select count(*) as jobs,
                  count(*) filter (where job.finished_at is null) as live,
                  count(*) filter (where job.state = 'blocked') as blocked,
                  count(*) filter (where job.state = 'running') as running,
                  count(*) filter (where job.state = 'succeeded') as succeeded,
                  count(*) filter (where job.state = 'failed') as failed,
                  count(*) filter (where job.state = 'dead_letter') as dead_letter,
                  count(*) filter (where job.state = 'canceled') as canceled,
                  case when bool_and(job.finished_at is not null) then max(job.finished_at) end
                      as finished_at
             from mainspring.flow_jobs as member
             join mainspring.job_status as job using (job_id)
            where member.flow_id = flow.flow_id) as counted
 where mainspring.is_visible(flow.tenant_id) and mainspring.is_own(flow.created_by);

create or replace view mainspring.flow_job_status as
select member.flow_id, member.step, job.job_id, job.tenant_id, job.definition, job.state,
       job.waits_for, job.started_at, job.finished_at, job.last_error,
       array(select dependency.parent_id from mainspring.dependencies as dependency
              where dependency.job_id = job.job_id order by 1) as parent_ids
  from mainspring.flow_jobs as member
  join mainspring.job_status as job using (job_id);

create or replace view mainspring.dependency_status as
select dependency.job_id, dependency.parent_id, dependency.on_failure, dependency.outcome,
       parent.tenant_id, parent.definition, parent.state, parent.result, parent.last_error,
       member.step
  from mainspring.dependencies as dependency
  left join mainspring.job_status as parent on parent.job_id = dependency.parent_id
  left join mainspring.flow_jobs as member on member.job_id = dependency.parent_id
 where (select not mainspring.is_isolated())
    or exists (select from mainspring.job_status as seen where seen.job_id = dependency.job_id);
