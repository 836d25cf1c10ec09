-- Retention: the policies of all kinds, and what they would remove.

-- All policies: those of jobs, which may name a state, and those of every other kind.
create or replace function mainspring.retention_policies()
returns table (kind text, tenant_id text, state text, keep interval)
language sql stable
as $$
select 'jobs', policy.tenant_id, policy.state::text, policy.keep from mainspring.retention as policy
union all
select policy.kind, policy.tenant_id, null, policy.keep from mainspring.record_retention as policy
$$;

-- Refuses a caller of the API who means another tenant than its own, or all of them.
create or replace function mainspring.ensure_retention_visible(tenant text)
returns void
language plpgsql stable
as $$
begin
    perform mainspring.ensure_visible(coalesce(ensure_retention_visible.tenant, '*'));
end
$$;

-- The policies that matter to a tenant, its own and those for everyone; without one, all.
create or replace function mainspring.retention_of(tenant text)
returns table (kind text, tenant_id text, state text, keep double precision)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform mainspring.ensure_retention_visible(retention_of.tenant);
    return query
        select policy.kind, policy.tenant_id, policy.state,
               extract(epoch from policy.keep)::double precision
          from mainspring.retention_policies() as policy
         where retention_of.tenant is null or policy.tenant_id is null
            or policy.tenant_id = retention_of.tenant
         order by policy.kind collate "C", policy.tenant_id collate "C" nulls first,
                  policy.state collate "C" nulls first;
end
$$;

-- Saves a policy of a tenant, or of everyone if it is null; replaces the one there is.
create or replace function mainspring.set_retention(
    kind text, tenant text, state text, keep interval)
returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform mainspring.ensure_retention_visible(set_retention.tenant);
    if set_retention.kind = 'jobs' then
        insert into mainspring.retention (tenant_id, state, keep)
        values (set_retention.tenant, set_retention.state::mainspring.job_state,
                set_retention.keep)
        on conflict on constraint retention_tenant_id_state_key
        do update set keep = excluded.keep;
    else
        insert into mainspring.record_retention (kind, tenant_id, keep)
        values (set_retention.kind, set_retention.tenant, set_retention.keep)
        on conflict on constraint record_retention_kind_tenant_id_key
        do update set keep = excluded.keep;
    end if;
end
$$;

-- Removes a policy; says whether there was one.
create or replace function mainspring.unset_retention(kind text, tenant text, state text)
returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform mainspring.ensure_retention_visible(unset_retention.tenant);
    if unset_retention.kind = 'jobs' then
        delete from mainspring.retention as policy
         where policy.tenant_id is not distinct from unset_retention.tenant
           and policy.state::text is not distinct from unset_retention.state;
    else
        delete from mainspring.record_retention as policy
         where policy.kind = unset_retention.kind
           and policy.tenant_id is not distinct from unset_retention.tenant;
    end if;
    return found;
end
$$;

-- The policies of a kind that is not jobs, with the default where there is none for everyone. With
-- a period, also as if that were saved for the tenant; `was` is what applies until then.
create or replace function mainspring.record_policies(
    kind text, fallback interval, tenant text default null, asked interval default null)
returns table (tenant_id text, keep interval, was interval)
language sql stable
as $$
with known as (
    select policy.tenant_id, policy.keep from mainspring.record_retention as policy
     where policy.kind = record_policies.kind
), present as (
    select known.tenant_id, known.keep from known
    union all
    select null, record_policies.fallback where not exists (
        select from known where known.tenant_id is null)
)
select present.tenant_id,
       case when present.tenant_id is not distinct from record_policies.tenant
            then coalesce(record_policies.asked, present.keep) else present.keep end,
       present.keep
  from present
union all
select record_policies.tenant, record_policies.asked,
       (select general.keep from present as general where general.tenant_id is null)
 where record_policies.asked is not null and not exists (
    select from present where present.tenant_id is not distinct from record_policies.tenant)
$$;

-- The jobs that the next pass removes, by the day they ended: with the policy that is asked for,
-- and without it. The same rule as in prune_jobs, but over all jobs at once: what is kept back,
-- parents of live jobs and what was set aside, is looked for once.
create or replace function mainspring.past_jobs_by_day(tenant text, state text, keep interval)
returns table (day date, count bigint, already bigint)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform mainspring.ensure_retention_visible(past_jobs_by_day.tenant);
    return query
    with policy as materialized (
        select known.tenant_id, known.state, known.keep, true as is_present,
               past_jobs_by_day.keep is null
               or known.tenant_id is distinct from past_jobs_by_day.tenant
               or known.state::text is distinct from past_jobs_by_day.state as is_to_be
          from mainspring.retention as known
        union all
        select past_jobs_by_day.tenant, past_jobs_by_day.state::mainspring.job_state,
               past_jobs_by_day.keep, false, true
         where past_jobs_by_day.keep is not null
    ), shown as (
        select old.job_id, old.finished_at, rule.to_be, rule.present
          from mainspring.jobs_history as old
         cross join lateral (
            select coalesce(own.retention, (
                       select policy.keep from policy
                        where policy.is_to_be
                          and (policy.tenant_id is null or policy.tenant_id = old.tenant_id)
                          and (policy.state is null or policy.state = old.state)
                        order by policy.tenant_id is null, policy.state is null limit 1)) as to_be,
                   coalesce(own.retention, (
                       select policy.keep from policy
                        where policy.is_present
                          and (policy.tenant_id is null or policy.tenant_id = old.tenant_id)
                          and (policy.state is null or policy.state = old.state)
                        order by policy.tenant_id is null, policy.state is null limit 1)) as present
              from (select (select defined.retention from mainspring.definitions as defined
                             where defined.key = old.definition)) as own (retention)) as rule
         where (past_jobs_by_day.tenant is null or old.tenant_id = past_jobs_by_day.tenant)
           and old.finished_at < now() - least(
               (select min(policy.keep) from policy),
               (select min(defined.retention) from mainspring.definitions as defined))
    ), held as materialized (
        select known.parent_id as job_id from mainspring.jobs as live
          join mainspring.dependencies as known on known.job_id = live.job_id
        union
        select aside.key from mainspring.set_aside as aside
         where aside.duty = 'prune_jobs' and aside.again_at > now()
    )
    select mainspring.day_of(shown.finished_at), count(*),
           count(*) filter (where shown.finished_at < now() - shown.present)
      from shown
     where shown.finished_at < now() - shown.to_be
       and not exists (select from held where held.job_id = shown.job_id)
     group by 1 order by 1;
end
$$;

-- The same of audit entries, slots and events: by the day of the entry, of the slot, and on which
-- the event was handled.
create or replace function mainspring.past_records_by_day(
    kind text, tenant text, fallback interval, keep interval)
returns table (day date, count bigint, already bigint)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform mainspring.ensure_retention_visible(past_records_by_day.tenant);
    return query
    with policy as materialized (
        select * from mainspring.record_policies(
            past_records_by_day.kind, past_records_by_day.fallback, past_records_by_day.tenant,
            past_records_by_day.keep)
    ), record as (
        select entry.at, entry.tenant_id from mainspring.audit as entry
         where past_records_by_day.kind = 'audit'
        union all
        select slot.scheduled_for, schedule.tenant_id from mainspring.slots as slot
          left join mainspring.schedules as schedule on schedule.schedule_id = slot.schedule_id
         where past_records_by_day.kind = 'slots'
           and (slot.outcome <> 'enqueued' or slot.run_state is not null)
        union all
        select event.handled_at, event.tenant_id from mainspring.events as event
         where past_records_by_day.kind = 'events' and event.handled_at is not null
    )
    select mainspring.day_of(record.at), count(*),
           count(*) filter (where record.at < now() - coalesce(own.was, general.was))
      from record
      left join policy as own on own.tenant_id = record.tenant_id
      left join policy as general on general.tenant_id is null
     where record.at < now() - coalesce(own.keep, general.keep)
       and (past_records_by_day.tenant is null or record.tenant_id = past_records_by_day.tenant)
     group by 1 order by 1;
end
$$;
