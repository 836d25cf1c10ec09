-- Bulk operations: jobs that cancel, retry or delete other jobs by filter.
--
-- start_bulk ─▶ a job of mainspring.bulk, whose payload says what to do, for whom and in whose name
--                 │  again and again, each time one short transaction:
--                 ├─▶ seek_jobs    the next jobs that match, in the order of their ids
--                 ├─▶ change_jobs  moves those that still can be moved, and says why not the others
--                 └─▶ the checkpoint of the job, so that each change is counted once
--
-- What such a payload says is carried out with the rights of Mainspring itself. So nobody else
-- makes these jobs: the definition is closed to every enqueue, and its jobs are known by their
-- origin, which no enqueue can give.

-- Whether the caller may not ask for jobs of a definition. What is built in works on all tenants'
-- rows with the owner's rights, so nobody who has a tenant or lacks these rights asks for it.
create or replace function mainspring.is_closed(definition text)
returns boolean
language sql stable
return coalesce(definition like 'mainspring.%' and (
    definition in ('mainspring.bulk', 'mainspring.delete_tenant')
    or mainspring.is_isolated() or not mainspring.is_program()), false);

-- What to do instead, for people.
create or replace function mainspring.why_closed(definition text)
returns text
language sql immutable
return definition || case when definition = 'mainspring.bulk'
    then ' cannot be enqueued, scheduled or given another payload; request a bulk operation: '
         || 'POST /api/v1/jobs/bulk'
    when definition = 'mainspring.delete_tenant'
    then ' cannot be enqueued, scheduled or given another payload; delete the tenant: '
         || 'DELETE /api/v1/tenants/{name}'
    else ' is built in and for operators only' end;

-- Refuses a definition whose jobs only Mainspring itself makes.
create or replace function mainspring.ensure_open(definition text)
returns void
language plpgsql stable
as $$
begin
    if mainspring.is_closed(definition) then
        perform mainspring.refuse('MS003', 'definition ' || mainspring.why_closed(definition),
            '{"option": "definition"}');
    end if;
end
$$;

-- Enqueues an operation. Whose jobs it is about, and in whose name it acts, is read off the
-- session.
create or replace function mainspring.start_bulk(
    action text, asked jsonb, reason text, tenant text default 'default', total bigint default null)
returns bigint
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    defined mainspring.definitions;
    member text := case when mainspring.is_isolated()
                        then nullif(current_setting('mainspring.member', true), '') end;
    meant jsonb := case when member is null then asked
                        else asked || jsonb_build_object('created_by', member) end;
    operation mainspring.jobs;
    started bigint;
begin
    perform mainspring.ensure_visible(tenant);
    defined := mainspring.active_definition('mainspring.bulk');
    perform mainspring.ensure_tenant(tenant);
    if action is null or action not in ('cancel', 'retry', 'delete') then
        perform mainspring.refuse_option('action', 'action must be cancel, retry or delete');
    end if;
    perform mainspring.check_reason(reason);
    operation := mainspring.asked_job(
        defined.key,
        jsonb_strip_nulls(jsonb_build_object(
            'action', action, 'filter', meant, 'reason', reason, 'tenant', tenant,
            'creator', member, 'actor', mainspring.actor(), 'total', total)),
        tenant);
    operation.origin := jsonb_build_object(
        'operation', action, 'identity', mainspring.identity()::text);
    started := mainspring.add_job(mainspring.new_job(operation, defined), defined);
    perform mainspring.note_action(tenant, 'bulk_' || action, 'job', started::text, reason, null,
        jsonb_build_object('filter', meant));
    return started;
end
$$;

-- The live jobs behind an id in the order of their ids, of one creator if given: each along the
-- index that is in this order.
create or replace function mainspring.walk_live(
    creator text, behind bigint, up_to bigint, most integer
)
returns setof mainspring.jobs
language sql stable
as $$
    (select job.* from mainspring.jobs as job
      where creator is null and job.job_id > behind and job.job_id <= up_to
      order by job.job_id limit most)
    union all
    (select job.* from mainspring.jobs as job
      where job.created_by = creator and job.job_id > behind and job.job_id <= up_to
      order by job.job_id limit most)
$$;

-- The same of jobs that have ended: those of a tenant, those that ended in one state without
-- success, or those of one creator.
create or replace function mainspring.walk_ended(
    tenant text, of_state mainspring.job_state, creator text, behind bigint, up_to bigint,
    most integer
)
returns setof mainspring.jobs_history
language sql stable
as $$
    (select job.* from mainspring.jobs_history as job
      where of_state is null and creator is null and job.tenant_id = tenant
        and job.job_id > behind and job.job_id <= up_to
      order by job.job_id limit most)
    union all
    (select job.* from mainspring.jobs_history as job
      where of_state is not null and creator is null and job.tenant_id = tenant
        and job.state = of_state and job.state <> 'succeeded'
        and job.job_id > behind and job.job_id <= up_to
      order by job.job_id limit most)
    union all
    (select job.* from mainspring.jobs_history as job
      where job.created_by = creator and job.job_id > behind and job.job_id <= up_to
      order by job.job_id limit most)
$$;

-- The next jobs behind an id that are in one of the states and match a filter, in the order of
-- their ids; how many jobs it looked at, which has a bound of its own, however few of them match;
-- and the id to go on behind, null when all have been seen. The jobs are those of one section:
-- `live`, `ended`, or a state that jobs end in without success. Those of Mainspring itself are
-- never among them.
--
-- A section is not entered when another is meant, and no other plan than along its index is let
-- in: whichever looks cheaper reads all that is left of a table, for every batch. What is not let
-- in adds 1e10 to the cost of a plan that needs it, for which JIT would compile all of it. One
-- creator has an index; those of several are found among all.
create or replace function mainspring.seek_jobs(
    section text, states mainspring.job_state[], asked jsonb, tenant text, behind bigint,
    up_to bigint, ended_before timestamptz, most_seen integer, most_found integer,
    out job_ids bigint[], out seen bigint, out edge bigint)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
as $$
#variable_conflict use_column
declare
    creators jsonb := asked -> 'created_by';
    creator text := case when jsonb_typeof(creators) = 'string'
                              and creators #>> '{}' not like 'system:%' then creators #>> '{}' end;
    of_state mainspring.job_state := nullif(nullif(section, 'live'), 'ended');
    last_seen bigint;
begin
    perform mainspring.ensure_visible(tenant);
    with walked as materialized (
        select job.job_id, job.tenant_id, job.state, job.queue, job.definition, job.tags,
               job.created_at, job.created_by, job.schedule_id, job.last_error, job.finished_at,
               job.source, job.origin, job.slot_at, job.worker_id, job.definition_version, attempt
          from mainspring.walk_live(creator, behind, up_to, most_seen) as job
         where section = 'live'
        union all
        select job.job_id, job.tenant_id, job.state, job.queue, job.definition, job.tags,
               job.created_at, job.created_by, job.schedule_id, job.last_error, job.finished_at,
               job.source, job.origin, job.slot_at, job.worker_id, job.definition_version, attempt
          from mainspring.walk_ended(
                   seek_jobs.tenant, of_state, creator, behind, up_to, most_seen) as job
         where section <> 'live'
    ), matching as (
        select job.job_id from walked as job
         where job.tenant_id = seek_jobs.tenant and job.state = any (seek_jobs.states)
           and job.definition not like 'mainspring.%'
           and mainspring.job_matches(
               asked, job.state, job.queue, job.definition,
               coalesce(job.source, mainspring.source_of(job.schedule_id, job.created_by)),
               job.tags, job.created_at, job.last_error)
           and mainspring.error_matches(
               asked, job.job_id, job.state, job.attempt, job.created_at, job.finished_at)
           and mainspring.origin_matches(
               asked, mainspring.creator_of(job.created_by, job.schedule_id, job.origin),
               case when asked ? 'schedule'
                    then mainspring.schedule_of(job.schedule_id, job.origin) end, job.slot_at,
               mainspring.trigger_of(job.created_by), job.worker_id, job.definition_version)
           and (not asked ?| '{flow_id,event_id,parent_id}'
                or mainspring.is_related(asked, job.job_id, job.created_by))
           and (seek_jobs.ended_before is null or job.finished_at <= seek_jobs.ended_before)
           and mainspring.is_own(job.created_by)
         order by job.job_id limit seek_jobs.most_found
    )
    select coalesce((select array_agg(job_id order by job_id) from matching), '{}'), count(*),
           max(job_id)
      into job_ids, seen, last_seen from walked;
    edge := case when cardinality(job_ids) = most_found then job_ids[most_found]
                 when seen = most_seen then last_seen end;
end
$$;

-- Moves those of the jobs that are still in one of the states, as the single action would, and
-- writes it to the audit in the name of the actor. Says how many it changed, how many not, by
-- reason, and which are locked by someone else just now: it waits for nobody, so that it can be in
-- nobody's way, unless it is patient, which is meant for one job at a time.
create or replace function mainspring.change_jobs(
    action text, job_ids bigint[], states mainspring.job_state[], tenant text, reason text,
    actor text, is_patient boolean)
returns jsonb
language plpgsql
as $$
#variable_conflict use_column
declare
    held record;
    missed record;
    refusals text[];
begin
    perform set_config('mainspring.actor', change_jobs.actor, true);
    select * into held from mainspring.hold_jobs(
        change_jobs.job_ids, change_jobs.states, change_jobs.tenant, change_jobs.is_patient);
    case change_jobs.action
        when 'cancel' then
            perform mainspring.stop_jobs(held.job_ids, change_jobs.reason);
        when 'delete' then
            perform mainspring.remove_jobs(held.job_ids, change_jobs.tenant);
        when 'retry' then
            refusals := array(select mainspring.try_put_back(job_id, change_jobs.tenant)
                                from unnest(held.job_ids) as job_id);
    end case;
    perform mainspring.note_action(
        change_jobs.tenant, change_jobs.action, 'job', job.job_id::text, change_jobs.reason,
        jsonb_build_object('state', job.state),
        case change_jobs.action
            when 'cancel' then jsonb_build_object('state', case when job.state = 'running'
                                                                then 'running' else 'canceled' end)
            when 'retry' then (select jsonb_build_object('state', live.state)
                                 from mainspring.jobs as live where live.job_id = job.job_id) end)
       from unnest(held.job_ids, held.states, refusals) as job (job_id, state, refusal)
      where job.refusal is null;
    select array_agg(why.job_id) filter (where why.reason is null) as busy,
           array_agg(why.reason) filter (where why.reason is not null) as reasons
      into missed
      from mainspring.why_not_held(
          array(select unnest(change_jobs.job_ids) except select unnest(held.job_ids)),
          change_jobs.states, change_jobs.tenant, change_jobs.is_patient) as why;
    refusals := array_remove(refusals, null) || missed.reasons;
    return jsonb_build_object(
        'changed', cardinality(change_jobs.job_ids) - coalesce(cardinality(missed.busy), 0)
                   - coalesce(cardinality(refusals), 0),
        'busy', to_jsonb(coalesce(missed.busy, '{}')),
        'skipped', coalesce((select jsonb_object_agg(counted.reason, counted.count) from (
            select reason, count(*) as count from unnest(refusals) as reason group by reason
            ) as counted), '{}'));
end
$$;

-- Locks those of the jobs that are in one of the states and were not asked to stop already; gives
-- the state of each.
create or replace function mainspring.hold_jobs(
    inout job_ids bigint[], inout states mainspring.job_state[], tenant text, is_patient boolean)
language plpgsql
as $$
#variable_conflict use_column
declare
    -- Where there is nothing to be found is not looked.
    is_live boolean := states && '{awaiting_approval,blocked,queued,running}';
    has_ended boolean := not states <@ '{awaiting_approval,blocked,queued,running}';
begin
    if is_patient then
        perform from mainspring.jobs as job where job.job_id = any (hold_jobs.job_ids) for update;
        perform from mainspring.jobs_history as job
          where has_ended and job.job_id = any (hold_jobs.job_ids) for update;
    end if;
    with live as (
        select job.job_id, job.state from mainspring.jobs as job
         where is_live and job.job_id = any (hold_jobs.job_ids)
           and job.tenant_id = hold_jobs.tenant and job.state = any (hold_jobs.states)
           and not (job.state = 'running' and job.cancel_requested_at is not null)
           for update skip locked
    ), past as (
        select job.job_id, job.state from mainspring.jobs_history as job
         where has_ended and job.job_id = any (hold_jobs.job_ids)
           and job.tenant_id = hold_jobs.tenant and job.state = any (hold_jobs.states)
           for update skip locked
    )
    select coalesce(array_agg(job.job_id order by job.job_id), '{}'),
           coalesce(array_agg(job.state order by job.job_id), '{}')
      into job_ids, states
      from (select * from live union all select * from past) as job;
end
$$;

-- Why jobs were not locked: the state they are in by now, `already_asked` to stop, or `gone`; null
-- for one that someone else has locked.
create or replace function mainspring.why_not_held(
    job_ids bigint[], states mainspring.job_state[], tenant text, is_patient boolean)
returns table (job_id bigint, reason text)
language plpgsql stable
as $$
#variable_conflict use_column
begin
    return query
    select missing.job_id,
           case when job.job_id is null then 'gone'
                when job.state = 'running' and job.cancel_requested_at is not null
                then 'already_asked'
                when why_not_held.is_patient or job.state <> all (why_not_held.states)
                then job.state::text end
      from unnest(why_not_held.job_ids) as missing (job_id)
      -- One by one: a join could read all jobs.
      left join lateral (
          select seen.job_id, seen.state, seen.cancel_requested_at
            from mainspring.job_status as seen
           where seen.job_id = missing.job_id and seen.tenant_id = why_not_held.tenant limit 1
          ) as job on true;
end
$$;

-- Puts a job back that the caller has locked; says why not, null if it did. Only a dedupe key can
-- be in the way, so only a job that has one pays for a savepoint.
create or replace function mainspring.try_put_back(job_id bigint, tenant text)
returns text
language plpgsql
as $$
#variable_conflict use_column
begin
    if not exists (select from mainspring.jobs_history as job
                    where job.job_id = try_put_back.job_id and job.dedupe_key is not null) then
        perform mainspring.put_back(job_id, null, tenant);
        return null;
    end if;
    begin
        perform mainspring.put_back(job_id, null, tenant);
        return null;
    exception when sqlstate 'MS020' then
        return 'dedupe_key_taken';
    end;
end
$$;
