-- Triggers on mainspring.tenants.

-- Puts the live jobs of a tenant under its cap, or takes them from under it.
create or replace function mainspring.move_jobs_of_tenant()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if (new.max_running is null) <> (old.max_running is null) then
        update mainspring.jobs as job
           set limit_name = case when new.max_running is not null then '' end,
               limit_key = case when new.max_running is not null then '' end,
               waits_for = case when job.state = 'queued'
                                     and (job.waits_for is null or job.waits_for = 'limit')
                                then mainspring.wait_of(
                                    case when new.max_running is not null then '' end)
                                else job.waits_for end,
               ready_at = case when job.state = 'queued' and job.waits_for = 'limit'
                                    and new.max_running is null
                               then clock_timestamp() else job.ready_at end
         where job.tenant_id = new.tenant_id
           and coalesce(job.limit_name, '') = '';
        update mainspring.clocks as clock set is_plain = mainspring.is_plain(schedule)
          from mainspring.schedules as schedule
         where schedule.schedule_id = clock.schedule_id and schedule.tenant_id = new.tenant_id;
        if new.tenant_id = 'default' then
            -- An enqueue for the default tenant looks at nothing but the definition.
            update mainspring.definitions set is_plain = is_plain;
        end if;
        perform mainspring.notify_queue(queue.queue)
           from (select distinct job.queue from mainspring.jobs as job
                  where job.tenant_id = new.tenant_id) as queue;
    end if;
    perform mainspring.notify_limits_changed();
    return null;
end
$$;

-- Stops the schedules of a tenant that is disabled; of one that is enabled they go on from now.
create or replace function mainspring.switch_clocks()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    update mainspring.clocks as clock
       set revision = clock.revision + 1, checking_until = null, checking_by = null,
           next_slot_at = null, changed_at = clock_timestamp(),
           next_run_at = case when new.disabled_at is null and schedule.enabled then
               'epoch'::timestamptz end
      from mainspring.schedules as schedule
     where schedule.schedule_id = clock.schedule_id and schedule.tenant_id = new.tenant_id;
    perform mainspring.notify_schedule();
    return null;
end
$$;

create or replace trigger tenants_switch_clocks after update of disabled_at on mainspring.tenants
    for each row when ((new.disabled_at is null) <> (old.disabled_at is null))
    execute function mainspring.switch_clocks();

create or replace trigger tenants_move_jobs after update of max_running on mainspring.tenants
    for each row when (new.max_running is distinct from old.max_running)
    execute function mainspring.move_jobs_of_tenant();
