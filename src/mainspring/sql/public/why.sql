-- Why: what a job waits for, and what would let it go on.

-- Explains the state of a job; of one tenant if given.
create or replace function mainspring.why(job_id bigint, tenant text default null)
returns jsonb
language plpgsql stable
security definer
set search_path = pg_catalog, pg_temp
set timezone = 'UTC'
-- What is counted is a small part of an index, although the planner may take it for most of a
-- table.
set jit = off
set enable_seqscan = off
set plan_cache_mode = force_custom_plan
as $$
#variable_conflict use_column
declare
    live mainspring.jobs;
    past mainspring.jobs_history;
begin
    select * into live from mainspring.jobs as job where job.job_id = why.job_id;
    if not found then
        select * into past from mainspring.jobs_history as job where job.job_id = why.job_id;
    end if;
    if coalesce(live.job_id, past.job_id) is null and not mainspring.is_isolated()
       and why.job_id is not null then
        return mainspring.why_missing(why.job_id);
    end if;
    if mainspring.why_is_seen(coalesce(live.tenant_id, past.tenant_id),
                              coalesce(live.created_by, past.created_by))
       and coalesce(why.tenant, live.tenant_id, past.tenant_id)
           = coalesce(live.tenant_id, past.tenant_id) then
        return case when live.job_id is not null then mainspring.why_live(live)
                    else mainspring.why_ended(past) end;
    end if;
    perform mainspring.refuse_job(why.job_id);
end
$$;
comment on function mainspring.why is
    'Explains the state of a job: the reasons in order of weight, each with what resolves it, and '
    'when it may start.';
