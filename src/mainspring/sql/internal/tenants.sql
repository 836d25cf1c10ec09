-- Tenants: what a disabled one may do, and how one is deleted.
--
-- start_tenant_deletion ─▶ the tenant is disabled, and a job of mainspring.delete_tenant, which
--                 │        belongs to the default tenant
--                 └─▶ delete_from_tenant, again and again, each time one short transaction

-- Refuses a schedule or a trigger of a tenant that there is not.
create or replace function mainspring.ensure_known_tenant(tenant text)
returns void
language plpgsql stable
as $$
begin
    if not exists (select from mainspring.tenants as t where t.tenant_id = tenant) then
        perform mainspring.refuse('MS003', 'there is no tenant '
            || coalesce(quote_literal(tenant), 'null'),
            '{"option": "tenant", "problem": "does not exist"}');
    end if;
end
$$;

-- Whether slots of a schedule are due at all.
create or replace function mainspring.may_fire(schedule mainspring.schedules)
returns boolean
language sql stable
return schedule.enabled and not exists (
    select from mainspring.tenants as t
     where t.tenant_id = schedule.tenant_id and t.disabled_at is not null);

-- How many of each thing a tenant has. The audit stays when the tenant is deleted.
create or replace function mainspring.contents_of_tenant(tenant text)
returns jsonb
language sql stable
return jsonb_build_object(
    'live_jobs', (select count(*) from mainspring.jobs where tenant_id = tenant),
    'finished_jobs', (select count(*) from mainspring.jobs_history where tenant_id = tenant),
    'flows', (select count(*) from mainspring.flows where tenant_id = tenant),
    'schedules', (select count(*) from mainspring.schedules where tenant_id = tenant),
    'triggers', (select count(*) from mainspring.triggers where tenant_id = tenant),
    'events', (select count(*) from mainspring.events where tenant_id = tenant),
    'people', (select count(*) from mainspring.people where tenant_id = tenant),
    'tokens', (select count(*) from mainspring.tokens where tenant_id = tenant));

-- Disables a tenant and enqueues the job that deletes it. Called by operators only.
create or replace function mainspring.start_tenant_deletion(tenant text)
returns bigint
language plpgsql
as $$
#variable_conflict use_column
declare
    defined mainspring.definitions := mainspring.active_definition('mainspring.delete_tenant');
    operation mainspring.jobs;
    started bigint;
begin
    if start_tenant_deletion.tenant = 'default' then
        perform mainspring.refuse_option('tenant', 'tenant default cannot be deleted');
    end if;
    update mainspring.tenants as t
       set disabled_at = coalesce(t.disabled_at, now()), max_running = 0,
           enabled_max_running = case when t.disabled_at is null then t.max_running
                                      else t.enabled_max_running end
     where t.tenant_id = start_tenant_deletion.tenant;
    operation := mainspring.asked_job(
        defined.key, jsonb_build_object('tenant', start_tenant_deletion.tenant), 'default');
    operation.origin := jsonb_build_object(
        'operation', 'delete_tenant', 'actor', mainspring.actor(),
        'identity', mainspring.identity()::text);
    started := mainspring.add_job(mainspring.new_job(operation, defined), defined);
    perform mainspring.note_action(start_tenant_deletion.tenant, 'delete_requested', 'tenant',
        start_tenant_deletion.tenant, null, null, jsonb_build_object('job_id', started));
    return started;
end
$$;

-- Deletes the next part of a disabled tenant: how many of what, how many jobs still run, and
-- whether all is gone. Jobs that run are asked to stop and deleted when they have.
create or replace function mainspring.delete_from_tenant(
    tenant text, most integer, out what text, out deleted bigint, out running bigint,
    out is_done boolean)
language plpgsql
as $$
#variable_conflict use_column
declare
    job_ids bigint[];
begin
    running := 0;
    is_done := false;
    what := 'jobs';
    job_ids := array(select job.job_id from mainspring.jobs as job
                      where job.tenant_id = tenant and job.state <> 'running' limit most);
    if job_ids = '{}' then
        job_ids := array(select job.job_id from mainspring.jobs_history as job
                          where job.tenant_id = tenant order by job.job_id limit most);
    end if;
    if job_ids <> '{}' then
        select count(*) into deleted from mainspring.remove_jobs(job_ids, tenant);
        return;
    end if;
    what := 'events';
    delete from mainspring.events as event where event.event_id in (
        select event_id from mainspring.events where tenant_id = tenant limit most);
    get diagnostics deleted = row_count;
    if deleted > 0 then
        return;
    end if;
    what := null;
    job_ids := array(select job.job_id from mainspring.jobs as job
                      where job.tenant_id = tenant and job.cancel_requested_at is null);
    perform mainspring.stop_jobs(job_ids, 'its tenant is deleted');
    select count(*) into running from mainspring.jobs as job where job.tenant_id = tenant;
    if running = 0 then
        perform mainspring.delete_rest_of_tenant(tenant);
        is_done := true;
    end if;
end
$$;

-- Deletes a tenant that has no jobs and no events any more.
create or replace function mainspring.delete_rest_of_tenant(tenant text)
returns void
language plpgsql
as $$
#variable_conflict use_column
begin
    delete from mainspring.schedules where tenant_id = tenant;
    delete from mainspring.triggers where tenant_id = tenant;
    delete from mainspring.flows where tenant_id = tenant;
    delete from mainspring.approvals where tenant_id = tenant;
    delete from mainspring.enqueue_keys where tenant_id = tenant;
    delete from mainspring.replies where tenant_id = tenant;
    delete from mainspring.retention where tenant_id = tenant;
    delete from mainspring.record_retention where tenant_id = tenant;
    delete from mainspring.tokens where tenant_id = tenant or tenants = array[tenant];
    update mainspring.tokens set tenants = array_remove(tenants, tenant)
     where tenants @> array[tenant];
    delete from mainspring.people where tenant_id = tenant;
    delete from mainspring.tallies where tenant_id = tenant;
    delete from mainspring.tally_changes where tenant_id = tenant;
    delete from mainspring.changes where tenant_id = tenant;
    delete from mainspring.depths where tenant_id = tenant;
    delete from mainspring.figures where tenant_id = tenant;
    delete from mainspring.error_days where tenant_id = tenant;
    delete from mainspring.failures where tenant_id = tenant;
    delete from mainspring.lane_floors where tenant_id = tenant;
    delete from mainspring.tenants where tenant_id = tenant;
end
$$;
