-- Jobs: cancel, retry and delete.
--
-- Every function in this folder runs with the schema owner's rights under a pinned search_path, so
-- a caller needs USAGE on the schema and EXECUTE on what it calls.

-- Cancels a job and writes it to the audit.
create or replace function mainspring.cancel(
    job_id bigint, reason text default 'canceled by request', tenant text default 'default'
)
returns mainspring.job_state
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    was mainspring.job_state := mainspring.visible_state(job_id, tenant);
    became mainspring.job_state;
begin
    perform mainspring.check_reason(reason);
    became := mainspring.stop_job(job_id, reason, tenant);
    if was <> 'canceled' then
        perform mainspring.note_action(tenant, 'cancel', 'job', job_id::text, reason,
            jsonb_build_object('state', was), jsonb_build_object('state', became));
    end if;
    return became;
end
$$;
comment on function mainspring.cancel is
    'Cancels a job that has not started; asks a running one to stop and returns running.';

-- Puts a job back and writes it to the audit.
create or replace function mainspring.retry(
    job_id bigint, payload jsonb default null, tenant text default 'default'
)
returns bigint
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    was mainspring.job_state := mainspring.visible_state(job_id, tenant);
    put bigint := mainspring.put_back(job_id, payload, tenant);
begin
    perform mainspring.note_action(tenant, 'retry', 'job', job_id::text,
        case when payload is not null then 'with another payload' end,
        jsonb_build_object('state', was),
        (select jsonb_build_object('state', job.state) from mainspring.jobs as job
          where job.job_id = put));
    return put;
end
$$;
comment on function mainspring.retry is
    'Puts a failed, dead-lettered or canceled job back to queued, with a new payload if given.';

-- Removes a job and writes it to the audit.
create or replace function mainspring.delete_job(job_id bigint, tenant text default 'default')
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    was mainspring.job_state := mainspring.visible_state(delete_job.job_id, tenant);
begin
    if not exists (select from mainspring.remove_jobs(array[delete_job.job_id], tenant)) then
        if exists (select from mainspring.jobs as job where job.job_id = delete_job.job_id
                      and job.tenant_id = delete_job.tenant) then
            perform mainspring.refuse_move(delete_job.job_id, 'running', 'deleted');
        end if;
        perform mainspring.refuse_job(delete_job.job_id);
    end if;
    perform mainspring.note_action(tenant, 'delete', 'job', delete_job.job_id::text, null,
        jsonb_build_object('state', was), null);
end
$$;
comment on function mainspring.delete_job is
    'Removes a job that is not running, with its attempts.';
