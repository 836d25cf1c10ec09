-- What the migrations make; written by `make schema`, never by hand.

CREATE SCHEMA mainspring;

CREATE TYPE mainspring.attempt_outcome AS ENUM (
    'running',
    'succeeded',
    'failed',
    'timeout',
    'canceled',
    'snoozed',
    'lost'
);

CREATE TYPE mainspring.job_state AS ENUM (
    'awaiting_approval',
    'blocked',
    'queued',
    'running',
    'succeeded',
    'failed',
    'dead_letter',
    'canceled'
);

CREATE TYPE mainspring.slot_outcome AS ENUM (
    'pending',
    'enqueued',
    'skipped',
    'failed',
    'missed',
    'coalesced'
);

CREATE TYPE mainspring.slot_trigger AS ENUM (
    'scheduler',
    'catchup',
    'manual',
    'backfill'
);

CREATE TYPE mainspring.waits_for AS ENUM (
    'time',
    'limit',
    'approval',
    'parents',
    'handler',
    'turn'
);

CREATE TABLE mainspring.definitions (
    key text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL,
    description text DEFAULT ''::text NOT NULL,
    queue text DEFAULT 'default'::text NOT NULL COLLATE pg_catalog."C",
    priority smallint DEFAULT 100 NOT NULL,
    max_attempts integer DEFAULT 3 NOT NULL,
    timeout interval DEFAULT '01:00:00'::interval NOT NULL,
    backoff_base interval DEFAULT '00:00:05'::interval NOT NULL,
    backoff_factor double precision DEFAULT 2 NOT NULL,
    backoff_cap interval DEFAULT '00:05:00'::interval NOT NULL,
    backoff_jitter interval DEFAULT '00:00:01'::interval NOT NULL,
    is_active boolean DEFAULT true NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    version integer DEFAULT 1 NOT NULL,
    arg_schema jsonb,
    spec jsonb DEFAULT '{}'::jsonb NOT NULL,
    tags text[] DEFAULT '{}'::text[] NOT NULL,
    retention interval,
    concurrency integer,
    key_concurrency integer,
    rate_count integer,
    rate_period interval,
    burst integer,
    limit_name text COLLATE pg_catalog."C",
    limit_by text[],
    approvals_needed smallint DEFAULT 0 NOT NULL,
    approval_expiry interval,
    approvers text[],
    is_plain boolean DEFAULT true NOT NULL,
    secret_paths jsonb,
    schema_key uuid DEFAULT 'd41d8cd9-8f00-b204-e980-0998ecf8427e'::uuid NOT NULL,
    delivery text DEFAULT 'at_least_once'::text NOT NULL,
    CONSTRAINT definitions_approval_expiry_check CHECK ((approval_expiry > '00:00:00'::interval)),
    CONSTRAINT definitions_approvals_needed_check CHECK (((approvals_needed >= 0) AND (approvals_needed <= 100))),
    CONSTRAINT definitions_approvers_check CHECK ((cardinality(approvers) > 0)),
    CONSTRAINT definitions_arg_schema_check CHECK ((jsonb_typeof(arg_schema) = 'object'::text)),
    CONSTRAINT definitions_backoff_factor_check CHECK ((backoff_factor >= (1)::double precision)),
    CONSTRAINT definitions_burst_check CHECK ((burst >= 1)),
    CONSTRAINT definitions_check CHECK (((rate_count IS NULL) = (rate_period IS NULL))),
    CONSTRAINT definitions_concurrency_check CHECK ((concurrency >= 0)),
    CONSTRAINT definitions_delivery CHECK ((delivery = ANY (ARRAY['at_least_once'::text, 'at_most_once'::text]))),
    CONSTRAINT definitions_key_concurrency_check CHECK ((key_concurrency >= 0)),
    CONSTRAINT definitions_kind_check CHECK ((kind = ANY (ARRAY['python'::text, 'sql'::text, 'command'::text, 'remote'::text]))),
    CONSTRAINT definitions_limit_by_check CHECK ((cardinality(limit_by) > 0)),
    CONSTRAINT definitions_limit_name_check CHECK ((limit_name <> ''::text)),
    CONSTRAINT definitions_max_attempts_check CHECK (((max_attempts >= 1) AND (max_attempts <= 1000))),
    CONSTRAINT definitions_priority_check CHECK (((priority >= 0) AND (priority <= 1000))),
    CONSTRAINT definitions_queue_check CHECK ((queue <> ''::text)),
    CONSTRAINT definitions_rate_count_check CHECK ((rate_count >= 1)),
    CONSTRAINT definitions_rate_period_check CHECK ((rate_period > '00:00:00'::interval)),
    CONSTRAINT definitions_retention_check CHECK ((retention >= '00:00:00'::interval)),
    CONSTRAINT definitions_spec_check CHECK ((jsonb_typeof(spec) = 'object'::text)),
    CONSTRAINT definitions_timeout_check CHECK ((timeout > '00:00:00'::interval))
);

CREATE FUNCTION mainspring.active_definition(key text) RETURNS mainspring.definitions
    LANGUAGE plpgsql STABLE
    AS $$
declare
    defined mainspring.definitions;
begin
    select * into defined from mainspring.definitions as d
     where d.key = active_definition.key and d.is_active;
    if not found then
        perform mainspring.refuse('MS010', mainspring.why_unknown(active_definition.key),
                                  mainspring.unknown_facts(active_definition.key));
    end if;
    return defined;
end
$$;

CREATE FUNCTION mainspring.actor() RETURNS text
    LANGUAGE plpgsql STABLE
    AS $$
begin
    if mainspring.is_program() then
        return coalesce(nullif(current_setting('mainspring.actor', true), ''), session_user);
    end if;
    return session_user;
end
$$;

CREATE FUNCTION mainspring.acts_as_owner() RETURNS boolean
    LANGUAGE plpgsql STABLE
    AS $$
begin
    return (select mainspring.has_rights_of(current_user, pg_get_userbyid(own.nspowner))
              from pg_catalog.pg_namespace as own where own.nspname = 'mainspring');
end
$$;

CREATE FUNCTION mainspring.add_clock() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    due_at timestamptz := case when mainspring.may_fire(new) then
        coalesce(mainspring.given_instant(new), 'epoch') end;
begin
    insert into mainspring.clocks
        (schedule_id, next_run_at, next_slot_at, plan_key, is_plain, definition, schema_key,
         changed_at)
    values (new.schedule_id, due_at, nullif(due_at, 'epoch'), mainspring.plan_key(new),
            mainspring.is_plain(new), new.definition, mainspring.fitting_schema(new),
            clock_timestamp());
    if new.run_at is not null then
        update mainspring.schedules as schedule set run_at = null
         where schedule.schedule_id = new.schedule_id;
    end if;
    perform mainspring.notify_schedule();
    return null;
end
$$;

CREATE TABLE mainspring.figures (
    step text NOT NULL COLLATE pg_catalog."C",
    at timestamp with time zone NOT NULL,
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    queue text NOT NULL COLLATE pg_catalog."C",
    definition text NOT NULL COLLATE pg_catalog."C",
    enqueued bigint NOT NULL,
    started bigint NOT NULL,
    succeeded bigint NOT NULL,
    failed bigint NOT NULL,
    dead_letter bigint NOT NULL,
    canceled bigint NOT NULL,
    deleted bigint NOT NULL,
    revived bigint NOT NULL,
    attempts_succeeded bigint NOT NULL,
    attempts_failed bigint NOT NULL,
    attempts_timeout bigint NOT NULL,
    attempts_canceled bigint NOT NULL,
    attempts_snoozed bigint NOT NULL,
    attempts_lost bigint NOT NULL,
    ready bigint NOT NULL,
    running bigint NOT NULL,
    oldest_ready_seconds double precision NOT NULL,
    wait_sum double precision NOT NULL,
    wait_worst double precision NOT NULL,
    run_sum double precision NOT NULL,
    run_worst double precision NOT NULL,
    wait_buckets bigint[] NOT NULL,
    run_buckets bigint[] NOT NULL,
    CONSTRAINT figures_step_check CHECK ((step = ANY (ARRAY['minute'::text, 'hour'::text, 'day'::text, 'ever'::text])))
)
PARTITION BY LIST (step);

CREATE FUNCTION mainspring.add_figures(added mainspring.figures[]) RETURNS void
    LANGUAGE sql
    AS $$
    insert into mainspring.figures as known select * from unnest(added)
    on conflict (step, at, tenant_id, queue, definition) do update
       set enqueued = known.enqueued + excluded.enqueued,
           started = known.started + excluded.started,
           succeeded = known.succeeded + excluded.succeeded,
           failed = known.failed + excluded.failed,
           dead_letter = known.dead_letter + excluded.dead_letter,
           canceled = known.canceled + excluded.canceled,
           deleted = known.deleted + excluded.deleted,
           revived = known.revived + excluded.revived,
           attempts_succeeded = known.attempts_succeeded + excluded.attempts_succeeded,
           attempts_failed = known.attempts_failed + excluded.attempts_failed,
           attempts_timeout = known.attempts_timeout + excluded.attempts_timeout,
           attempts_canceled = known.attempts_canceled + excluded.attempts_canceled,
           attempts_snoozed = known.attempts_snoozed + excluded.attempts_snoozed,
           attempts_lost = known.attempts_lost + excluded.attempts_lost,
           ready = greatest(known.ready, excluded.ready),
           running = greatest(known.running, excluded.running),
           oldest_ready_seconds = greatest(
               known.oldest_ready_seconds, excluded.oldest_ready_seconds),
           wait_sum = known.wait_sum + excluded.wait_sum,
           wait_worst = greatest(known.wait_worst, excluded.wait_worst),
           run_sum = known.run_sum + excluded.run_sum,
           run_worst = greatest(known.run_worst, excluded.run_worst),
           wait_buckets = mainspring.summed_buckets(known.wait_buckets || excluded.wait_buckets),
           run_buckets = mainspring.summed_buckets(known.run_buckets || excluded.run_buckets)
$$;

CREATE FUNCTION mainspring.is_program() RETURNS boolean
    LANGUAGE sql STABLE
    RETURN (SELECT (pg_has_role(SESSION_USER, own.nspowner, 'USAGE'::text) OR pg_has_role(SESSION_USER, own.nspowner, CASE WHEN ((current_setting('server_version_num'::text))::integer >= 160000) THEN 'SET'::text ELSE 'MEMBER'::text END)) FROM pg_namespace own WHERE (own.nspname = 'mainspring'::name));

CREATE FUNCTION mainspring.creator() RETURNS text
    LANGUAGE sql STABLE
    RETURN CASE WHEN ((COALESCE(current_setting('mainspring.creator'::text, true), ''::text) <> ''::text) AND mainspring.is_program()) THEN current_setting('mainspring.creator'::text) ELSE NULL::text END;

CREATE SEQUENCE mainspring.job_ids
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

CREATE TABLE mainspring.jobs (
    job_id bigint DEFAULT nextval('mainspring.job_ids'::regclass) NOT NULL,
    fence bigint,
    worker_id bigint,
    created_at timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    scheduled_for timestamp with time zone DEFAULT statement_timestamp() NOT NULL,
    started_at timestamp with time zone,
    finished_at timestamp with time zone,
    deadline_at timestamp with time zone,
    cancel_requested_at timestamp with time zone,
    probed_at timestamp with time zone,
    attempt integer DEFAULT 0 NOT NULL,
    failures integer DEFAULT 0 NOT NULL,
    losses integer DEFAULT 0 NOT NULL,
    max_attempts integer DEFAULT 3 NOT NULL,
    state mainspring.job_state DEFAULT 'queued'::mainspring.job_state NOT NULL,
    waits_for mainspring.waits_for,
    priority smallint DEFAULT 100 NOT NULL,
    tenant_id text DEFAULT 'default'::text NOT NULL COLLATE pg_catalog."C",
    queue text DEFAULT 'default'::text NOT NULL COLLATE pg_catalog."C",
    definition text NOT NULL COLLATE pg_catalog."C",
    payload jsonb DEFAULT '{}'::jsonb NOT NULL,
    dedupe_key text COLLATE pg_catalog."C",
    correlation_id text,
    tags text[],
    progress jsonb,
    checkpoint jsonb,
    result jsonb,
    last_error text,
    schedule_id bigint,
    slot_at timestamp with time zone,
    origin jsonb,
    definition_version integer DEFAULT 1 NOT NULL,
    limit_name text COLLATE pg_catalog."C",
    limit_key text COLLATE pg_catalog."C",
    created_by text DEFAULT mainspring.creator() COLLATE pg_catalog."C",
    suspected_at timestamp with time zone,
    alone_fence bigint,
    delivery text,
    source text,
    begun_fence bigint,
    ready_at timestamp with time zone,
    CONSTRAINT jobs_are_live CHECK (((state = ANY (ARRAY['awaiting_approval'::mainspring.job_state, 'blocked'::mainspring.job_state, 'queued'::mainspring.job_state, 'running'::mainspring.job_state])) AND (finished_at IS NULL))),
    CONSTRAINT jobs_limit_has_key CHECK (((limit_name IS NULL) = (limit_key IS NULL))),
    CONSTRAINT jobs_payload_is_object CHECK ((jsonb_typeof(payload) = 'object'::text)),
    CONSTRAINT jobs_priority_in_range CHECK (((priority >= 0) AND (priority <= 1000))),
    CONSTRAINT jobs_running_has_lease CHECK ((((state = 'running'::mainspring.job_state) = (fence IS NOT NULL)) AND ((fence IS NULL) = (worker_id IS NULL)) AND ((state <> 'running'::mainspring.job_state) OR ((waits_for IS NULL) AND (started_at IS NOT NULL))))),
    CONSTRAINT jobs_wait_as_they_say CHECK ((((state = 'awaiting_approval'::mainspring.job_state) = (NOT (waits_for IS DISTINCT FROM 'approval'::mainspring.waits_for))) AND ((state = 'blocked'::mainspring.job_state) = (NOT (waits_for IS DISTINCT FROM 'parents'::mainspring.waits_for)))))
)
WITH (fillfactor='90', autovacuum_vacuum_scale_factor='0.01', autovacuum_vacuum_threshold='5000', autovacuum_vacuum_insert_scale_factor='0.2', autovacuum_analyze_scale_factor='0.05', autovacuum_analyze_threshold='5000', autovacuum_vacuum_cost_delay='0');

COMMENT ON COLUMN mainspring.jobs.origin IS 'What made the job, if not an enqueue: the slot of a schedule, or the start of a bulk operation.';

CREATE FUNCTION mainspring.add_job(job mainspring.jobs, defined mainspring.definitions) RETURNS bigint
    LANGUAGE plpgsql
    AS $$
declare
    holder bigint;
begin
    loop
        insert into mainspring.jobs values (job.*)
        on conflict (tenant_id, dedupe_key) where dedupe_key is not null do nothing;
        exit when found;
        -- The holder may finish between the two statements; then the key is free again.
        select live.job_id into holder from mainspring.jobs as live
         where live.tenant_id = job.tenant_id and live.dedupe_key = job.dedupe_key;
        if found then
            return holder;
        end if;
    end loop;
    if job.waits_for = 'approval' then
        perform mainspring.ask_approval(job.job_id, job.tenant_id, defined);
    elsif job.waits_for = 'parents' then
        perform mainspring.notify_parents();
    elsif job.waits_for = 'turn' then
        perform mainspring.release_turn(job.schedule_id);
    elsif job.waits_for = 'limit' then
        perform mainspring.notify_limit(job.limit_name, job.limit_key, job.tenant_id);
    else
        perform mainspring.notify_enqueued(
            job.queue, job.priority, job.tenant_id, job.job_id, job.scheduled_for);
    end if;
    return job.job_id;
end
$$;

CREATE FUNCTION mainspring.add_jobs(model mainspring.jobs, defined mainspring.definitions, payloads jsonb[], dedupe_keys text[], limit_key text) RETURNS SETOF bigint
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
declare
    -- Below the first of the ids that the jobs will get.
    last_id bigint := (select last_value from mainspring.job_ids);
begin
    return query
    with added as (
        insert into mainspring.jobs as job (
            tenant_id, queue, definition, definition_version, priority, payload, max_attempts,
            created_at, scheduled_for, state, waits_for, deadline_at, dedupe_key, correlation_id,
            tags, created_by, source, delivery, limit_name, limit_key)
        select model.tenant_id, model.queue, model.definition, model.definition_version,
               model.priority, item.payload, model.max_attempts, model.created_at,
               model.scheduled_for, model.state, model.waits_for, model.deadline_at,
               item.dedupe_key, model.correlation_id, model.tags, model.created_by, model.source,
               model.delivery, model.limit_name,
               case when model.limit_name is not null then mainspring.limit_key_of(
                   item.payload, defined.limit_by, add_jobs.limit_key) end
          from unnest(add_jobs.payloads, add_jobs.dedupe_keys) as item (payload, dedupe_key)
        on conflict (tenant_id, dedupe_key) where dedupe_key is not null do nothing
        returning job.job_id
    ), asked as (
        insert into mainspring.approvals
            (job_id, tenant_id, needed, approvers, requested_at, expires_at)
        select added.job_id, model.tenant_id, defined.approvals_needed, defined.approvers,
               model.created_at, model.created_at + defined.approval_expiry
          from added where defined.approvals_needed > 0
    )
    select added.job_id from added;
    if model.waits_for = 'limit' then
        perform mainspring.notify_limit();
    elsif model.waits_for is distinct from 'approval' then
        perform mainspring.notify_enqueued(
            model.queue, model.priority, model.tenant_id, last_id, model.scheduled_for);
    end if;
end
$$;

CREATE FUNCTION mainspring.add_parents(job_id bigint, parents bigint[], tenant text, on_failure text) RETURNS void
    LANGUAGE plpgsql
    AS $$
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

CREATE FUNCTION mainspring.add_steps(flow_id bigint, job_ids bigint[], steps jsonb, tenant text) RETURNS void
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
begin
    insert into mainspring.jobs
    select added.*
      from mainspring.read_steps(add_steps.steps) as step
      join mainspring.definitions as d on d.key = step.definition,
           lateral mainspring.asked_job(
               step.definition, step.payload, add_steps.tenant, step.queue, step.priority,
               step.max_attempts,
               coalesce(step.scheduled_for,
                        clock_timestamp() + make_interval(secs => step.delay)), null, null,
               coalesce(step.correlation_id, 'flow:' || add_steps.flow_id), step.tags,
               step.limit_key, add_steps.job_ids[step.number], step.created_by, step.source,
               step.delivery) as asked,
           lateral mainspring.new_job(
               asked, mainspring.with_approvals(d, step.approvals_needed),
               coalesce(jsonb_array_length(step.after), 0)
                   + coalesce(jsonb_array_length(step.after_jobs), 0) > 0) as added;
    insert into mainspring.approvals
        (job_id, tenant_id, needed, approvers, requested_at, expires_at)
    select add_steps.job_ids[step.number], add_steps.tenant, defined.approvals_needed,
           defined.approvers, clock_timestamp(), clock_timestamp() + defined.approval_expiry
      from mainspring.read_steps(add_steps.steps) as step
      join mainspring.definitions as d on d.key = step.definition,
           lateral mainspring.with_approvals(d, step.approvals_needed) as defined
     where defined.approvals_needed > 0;
    perform mainspring.notify_enqueued(
        lane.queue, lane.priority, add_steps.tenant, lane.first_id, lane.due_at)
       from (select job.queue, job.priority, min(job.job_id) as first_id,
                    min(job.scheduled_for) as due_at
               from mainspring.jobs as job
              where job.job_id = any (add_steps.job_ids)
                and coalesce(job.waits_for, 'time') = 'time'
              group by job.queue, job.priority) as lane;
    if exists (select from mainspring.jobs as job
                where job.job_id = any (add_steps.job_ids) and job.waits_for = 'limit') then
        perform mainspring.notify_limit();
    end if;
end
$$;

CREATE TABLE mainspring.changes (
    at timestamp with time zone DEFAULT now() NOT NULL,
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    queue text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    definition text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    moved text NOT NULL,
    state mainspring.job_state,
    attempt mainspring.attempt_outcome,
    day date DEFAULT ((statement_timestamp() AT TIME ZONE 'UTC'::text))::date NOT NULL,
    count bigint NOT NULL,
    wait_sum double precision,
    wait_worst double precision,
    run_sum double precision,
    run_worst double precision,
    stride integer DEFAULT 1 NOT NULL,
    waits smallint[],
    runs smallint[],
    CONSTRAINT changes_moved_check CHECK ((moved = ANY (ARRAY['ended'::text, 'revived'::text, 'pruned'::text, 'deleted'::text, 'went_on'::text])))
)
WITH (autovacuum_vacuum_scale_factor='0.02', autovacuum_vacuum_threshold='1000', autovacuum_vacuum_cost_delay='0');

CREATE FUNCTION mainspring.add_to_tallies(changed mainspring.changes[]) RETURNS void
    LANGUAGE sql
    AS $$
    with older as (
        delete from mainspring.tally_changes returning tenant_id, day, state, count
    )
    insert into mainspring.tallies as tally (tenant_id, day, state, count)
    select tenant_id, day, state, sum(count)
      from (select tenant_id, day, state, case when moved = 'ended' then count else -count end
              from unnest(changed) where state is not null
            union all
            select tenant_id, day, state, count from older) as change (tenant_id, day, state, count)
     group by tenant_id, day, state
     order by tenant_id, day, state
    on conflict (tenant_id, day, state) do update set count = tally.count + excluded.count
$$;

CREATE FUNCTION mainspring.announce_limit() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    perform mainspring.notify_limits_changed();
    return null;
end
$$;

CREATE FUNCTION mainspring.app_role() RETURNS name
    LANGUAGE plpgsql STABLE
    AS $$
begin
    -- Asked one by one: the last two fail where there is no such role.
    if to_regrole('mainspring_app') is not null then
        if mainspring.may_set_role(session_user, 'mainspring_app') then
            if has_schema_privilege('mainspring_app', 'mainspring', 'usage') then
                return 'mainspring_app';
            end if;
        end if;
    end if;
    return 'pg_database_owner';
end
$$;

CREATE FUNCTION mainspring.apply_plan(plan jsonb) RETURNS mainspring.slot_outcome
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
declare
    schedule mainspring.schedules := mainspring.lock_for_plan(plan);
    next_slot timestamptz := (plan ->> 'next_slot_at')::timestamptz;
    failures integer;
    fired record;
begin
    if schedule.schedule_id is null then
        return null;
    end if;
    select count(*) filter (where slot.outcome = 'enqueued') as enqueued,
           count(*) filter (where slot.outcome = 'skipped') as skipped,
           count(*) filter (where slot.outcome in ('missed', 'coalesced')) as missed,
           coalesce(sum(slot.lateness), '0') as late, max(slot.lateness) as latest,
           (array_agg(slot.outcome order by slot.slot_at desc)
                filter (where slot.outcome is not null))[1] as outcome,
           coalesce((array_agg(slot.reason order by slot.slot_at desc)
                         filter (where slot.outcome = 'failed'))[1], plan ->> 'failure') as failure,
           max(slot.slot_at) as newest_at
      into fired
      from mainspring.write_slots(schedule, plan) as slot;
    select c.retry_count + 1 into failures from mainspring.clocks as c
     where c.schedule_id = schedule.schedule_id;
    update mainspring.clocks as c
       set revision = c.revision + 1, checking_until = null, checking_by = null, retry_count = 0,
           next_slot_at = next_slot,
           schema_key = coalesce((plan ->> 'schema_key')::uuid, c.schema_key),
           next_run_at = mainspring.run_instant(c.schedule_id, next_slot, schedule.jitter),
           last_slot_at = coalesce(fired.newest_at, c.last_slot_at),
           last_enqueued_at = case when fired.enqueued > 0 then now() else c.last_enqueued_at end,
           last_skipped_at = case when fired.skipped > 0 then now() else c.last_skipped_at end,
           enqueued_count = c.enqueued_count + fired.enqueued,
           skipped_count = c.skipped_count + fired.skipped,
           missed_count = c.missed_count + fired.missed,
           lateness_total = c.lateness_total + fired.late,
           lateness_worst = greatest(c.lateness_worst, fired.latest),
           gauge_is_high = coalesce((plan ->> 'gauge_is_high')::boolean, c.gauge_is_high),
           gauge_value = coalesce((plan ->> 'gauge_value')::float, c.gauge_value),
           gauge_read_at = case when plan ? 'gauge_value' then now() else c.gauge_read_at end
     where c.schedule_id = schedule.schedule_id;
    if fired.failure is not null then
        perform mainspring.note_failure(schedule, failures, fired.failure);
    end if;
    if fired.failure is not null and plan ->> 'is_permanent' = 'true' then
        -- The slot is not tried again; the schedule goes on with its next one.
        update mainspring.clocks as c
           set next_slot_at = next_slot,
               next_run_at = mainspring.run_instant(c.schedule_id, next_slot, schedule.jitter)
         where c.schedule_id = schedule.schedule_id;
    end if;
    return coalesce(fired.outcome, 'coalesced');
end
$$;

CREATE FUNCTION mainspring.apply_trigger(plan jsonb) RETURNS mainspring.slot_outcome
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
declare
    schedule mainspring.schedules;
    decided record;
    slot timestamptz := (plan ->> 'slot_at')::timestamptz;
begin
    select * into schedule from mainspring.schedules as s
     where s.schedule_id = (plan ->> 'schedule_id')::bigint for update;
    perform from mainspring.clocks as c where c.schedule_id = schedule.schedule_id for update;
    if not found or not exists (
        select from mainspring.slots as s where s.schedule_id = schedule.schedule_id
           and s.scheduled_for = slot and s.outcome = 'pending') then
        return null;
    end if;
    select (plan ->> 'outcome')::mainspring.slot_outcome as outcome, null::bigint as job_id,
           plan ->> 'reason' as reason into decided;
    if decided.outcome = 'enqueued' then
        select * into decided from mainspring.start_slot(
            schedule, slot, 'manual', 0, plan -> 'payload', plan ->> 'definition',
            reserved => (plan ->> 'job_id')::bigint);
    end if;
    update mainspring.slots as s
       set outcome = decided.outcome, job_id = decided.job_id, reason = decided.reason,
           gauge_value = (plan ->> 'gauge_value')::float,
           fired_at = now(), checking_until = null, checking_by = null
     where s.schedule_id = schedule.schedule_id and s.scheduled_for = slot;
    update mainspring.clocks as c
       set revision = c.revision + 1, checking_until = null, checking_by = null,
           gauge_is_high = coalesce((plan ->> 'gauge_is_high')::boolean, c.gauge_is_high),
           gauge_value = coalesce((plan ->> 'gauge_value')::float, c.gauge_value),
           gauge_read_at = case when plan ? 'gauge_value' then now() else c.gauge_read_at end,
           last_enqueued_at = case when decided.outcome = 'enqueued' then now()
                                   else c.last_enqueued_at end,
           last_skipped_at = case when decided.outcome = 'skipped' then now()
                                  else c.last_skipped_at end,
           last_failed_at = case when decided.outcome = 'failed' then now()
                                 else c.last_failed_at end,
           last_error = case when decided.outcome = 'failed' then left(decided.reason, 2000)
                             else c.last_error end,
           enqueued_count = c.enqueued_count + (decided.outcome = 'enqueued')::integer,
           skipped_count = c.skipped_count + (decided.outcome = 'skipped')::integer,
           failed_count = c.failed_count + (decided.outcome = 'failed')::integer
     where c.schedule_id = schedule.schedule_id;
    return decided.outcome;
end
$$;

CREATE FUNCTION mainspring.approve(job_id bigint, reason text DEFAULT ''::text, tenant text DEFAULT 'default'::text) RETURNS mainspring.job_state
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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

COMMENT ON FUNCTION mainspring.approve(job_id bigint, reason text, tenant text) IS 'Approves a job as the calling user; returns awaiting_approval while more must approve.';

CREATE FUNCTION mainspring.approver_names(tenant text) RETURNS text[]
    LANGUAGE plpgsql STABLE
    AS $$
declare
    shown text := nullif(current_setting('mainspring.approver', true), '');
    caller text := (nullif(current_setting('mainspring.identity', true), '')::text[])[1];
    who text := mainspring.actor();
begin
    if mainspring.is_program() and shown is not null and caller = who then
        return shown::text[];
    end if;
    return array(select who where who not like 'role:%')
        || array(select 'role:' || person.role from mainspring.people as person
                  where mainspring.is_program() and person.name = who and person.disabled_at is null
                    and coalesce(person.tenant_id, tenant) = tenant);
end
$$;

CREATE FUNCTION mainspring.wrong_queue(queue text) RETURNS text
    LANGUAGE sql IMMUTABLE
    RETURN CASE WHEN ((length(queue) < 1) OR (length(queue) > 500)) THEN 'must have 1 to 500 characters'::text WHEN (queue ~ '^\s|\s$|,'::text) THEN 'must not contain a comma, or start or end with a space'::text ELSE NULL::text END;

CREATE FUNCTION mainspring.are_plain_words(queue text, correlation_id text, tags text[]) RETURNS boolean
    LANGUAGE sql STABLE
    RETURN (((queue IS NULL) OR (mainspring.wrong_queue(queue) IS NULL)) AND ((COALESCE(length(correlation_id), 1) >= 1) AND (COALESCE(length(correlation_id), 1) <= 500)) AND ((tags IS NULL) OR ((cardinality(tags) <= 50) AND (COALESCE(array_ndims(tags), 1) = 1) AND (''::text <> ALL (tags)) AND (length(array_to_string(tags, ''::text)) <= 500))));

CREATE FUNCTION mainspring.ask_approval(job_id bigint, tenant text, defined mainspring.definitions) RETURNS void
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
begin
    delete from mainspring.votes as vote where vote.job_id = ask_approval.job_id;
    insert into mainspring.approvals as asked
        (job_id, tenant_id, needed, approvers, requested_at, expires_at)
    values (ask_approval.job_id, tenant, defined.approvals_needed, defined.approvers,
            clock_timestamp(), clock_timestamp() + defined.approval_expiry)
    on conflict (job_id) do update
       set needed = excluded.needed, approvers = excluded.approvers,
           requested_at = excluded.requested_at, expires_at = excluded.expires_at,
           decided_at = null, decision = null;
end
$$;

CREATE FUNCTION mainspring.ask_as_reader(condition text) RETURNS json
    LANGUAGE plpgsql
    AS $_$
declare
    answer json;
begin
    create function pg_temp.ask(condition text, path text) returns json
    language plpgsql security definer set search_path = pg_catalog, pg_temp
    as $ask$
    declare
        answers refcursor;
        first record;
    begin
        perform set_config('search_path', path, true);
        -- A cursor takes a single query.
        open answers no scroll for execute condition;
        fetch answers into first;
        return (select field.value from json_each(row_to_json(first)) as field limit 1);
    end
    $ask$;
    alter function pg_temp.ask owner to pg_read_all_data;
    set local transaction_read_only = on;
    execute 'select pg_temp.ask($1, $2)' into answer
      using ask_as_reader.condition, current_setting('search_path');
    return answer;
end
$_$;

CREATE FUNCTION mainspring.asked_job(definition text, payload jsonb, tenant text, queue text DEFAULT NULL::text, priority integer DEFAULT NULL::integer, max_attempts integer DEFAULT NULL::integer, scheduled_for timestamp with time zone DEFAULT NULL::timestamp with time zone, deadline timestamp with time zone DEFAULT NULL::timestamp with time zone, dedupe_key text DEFAULT NULL::text, correlation_id text DEFAULT NULL::text, tags text[] DEFAULT NULL::text[], limit_key text DEFAULT NULL::text, job_id bigint DEFAULT NULL::bigint, created_by text DEFAULT NULL::text, source text DEFAULT NULL::text, delivery text DEFAULT NULL::text) RETURNS mainspring.jobs
    LANGUAGE plpgsql
    AS $$
declare
    asked mainspring.jobs;
begin
    -- Before the number is kept, in a column that cannot hold a larger one.
    if num_nonnulls(priority, max_attempts) > 0 then
        perform mainspring.check_numbers(priority, max_attempts);
    end if;
    asked.job_id := job_id;
    asked.definition := definition;
    asked.payload := payload;
    asked.tenant_id := tenant;
    asked.queue := queue;
    asked.priority := priority;
    asked.max_attempts := max_attempts;
    asked.scheduled_for := scheduled_for;
    asked.deadline_at := deadline;
    asked.dedupe_key := dedupe_key;
    asked.correlation_id := correlation_id;
    asked.tags := tags;
    asked.limit_key := limit_key;
    asked.created_by := created_by;
    asked.source := mainspring.given_source(source, created_by);
    asked.delivery := delivery;
    return asked;
end
$$;

CREATE FUNCTION mainspring.asked_now(asked mainspring.jobs, delay interval) RETURNS mainspring.jobs
    LANGUAGE plpgsql
    AS $$
begin
    asked.created_at := clock_timestamp();
    if asked.schedule_id is null then
        asked.created_by := coalesce(asked.created_by, mainspring.creator());
    end if;
    asked.scheduled_for := coalesce(asked.scheduled_for, asked.created_at + delay);
    return asked;
end
$$;

CREATE FUNCTION mainspring.audit_change() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET "TimeZone" TO 'UTC'
    SET "IntervalStyle" TO 'postgres'
    AS $$
declare
    options jsonb := tg_argv[0];
    stored jsonb := coalesce(to_jsonb(new), to_jsonb(old));
    was jsonb := mainspring.audited_columns(to_jsonb(old), options);
    is_now jsonb := mainspring.audited_columns(to_jsonb(new), options);
begin
    if was = is_now or not stored @> coalesce(options -> 'only', '{}') then
        return null;
    end if;
    insert into mainspring.audit (
        at, tenant_id, actor, actor_id, action, noun, subject, reason, before, after)
    values (
        clock_timestamp(), coalesce(stored ->> 'tenant_id', ''), mainspring.actor(),
        (mainspring.identity())[2],
        case tg_op when 'INSERT' then 'create' when 'DELETE' then 'delete'
                   else mainspring.audited_action(was, is_now, options -> 'switch') end,
        options ->> 'noun', stored ->> (options ->> 'subject'),
        to_jsonb(new) ->> 'disabled_reason',
        mainspring.differing(was, is_now), mainspring.differing(is_now, was));
    return null;
end
$$;

CREATE FUNCTION mainspring.audit_retention() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET "IntervalStyle" TO 'postgres'
    AS $$
declare
    was jsonb := to_jsonb(old);
    is_now jsonb := to_jsonb(new);
    stored jsonb := coalesce(is_now, was);
begin
    if was -> 'keep' is not distinct from is_now -> 'keep' then
        return null;
    end if;
    perform mainspring.note_action(
        coalesce(stored ->> 'tenant_id', ''),
        case tg_op when 'INSERT' then 'create' when 'DELETE' then 'delete' else 'update' end,
        'retention', coalesce(stored ->> 'kind', concat_ws(':', 'jobs', stored ->> 'state')), null,
        jsonb_build_object('keep', was -> 'keep'), jsonb_build_object('keep', is_now -> 'keep'));
    return null;
end
$$;

CREATE FUNCTION mainspring.audited_action(was jsonb, is_now jsonb, switch jsonb) RETURNS text
    LANGUAGE sql IMMUTABLE
    RETURN (SELECT CASE WHEN ((NOT state.was_on) AND state.is_on) THEN COALESCE((audited_action.switch ->> 'on'::text), 'update'::text) WHEN (state.was_on AND (NOT state.is_on)) THEN COALESCE((audited_action.switch ->> 'off'::text), 'update'::text) ELSE 'update'::text END AS "case" FROM (SELECT COALESCE(((audited_action.was -> (audited_action.switch ->> 'column'::text)) <> ALL (ARRAY['null'::jsonb, 'false'::jsonb])), false) AS was_on, COALESCE(((audited_action.is_now -> (audited_action.switch ->> 'column'::text)) <> ALL (ARRAY['null'::jsonb, 'false'::jsonb])), false) AS is_on) state);

CREATE FUNCTION mainspring.kept_columns(stored jsonb, options jsonb) RETURNS jsonb
    LANGUAGE sql IMMUTABLE
    RETURN (SELECT COALESCE(jsonb_object_agg(pair.name, (kept_columns.stored -> pair.keeper)), '{}'::jsonb) AS "coalesce" FROM jsonb_each_text(COALESCE((kept_columns.options -> 'kept'::text), '{}'::jsonb)) pair(name, keeper) WHERE ((kept_columns.stored ->> ((kept_columns.options -> 'switch'::text) ->> 'column'::text)) IS NOT NULL));

CREATE FUNCTION mainspring.audited_columns(stored jsonb, options jsonb) RETURNS jsonb
    LANGUAGE sql IMMUTABLE
    RETURN (SELECT COALESCE(jsonb_object_agg(part.name, part.value), '{}'::jsonb) AS "coalesce" FROM jsonb_each((audited_columns.stored || mainspring.kept_columns(audited_columns.stored, audited_columns.options))) part(name, value) WHERE ((NOT ((audited_columns.options -> 'without'::text) ? part.name)) AND ((part.value <> 'null'::jsonb) OR ((audited_columns.options -> 'nulls'::text))::boolean)));

CREATE FUNCTION mainspring.awaited_parents(behind bigint, most integer) RETURNS bigint[]
    LANGUAGE sql STABLE
    AS $$
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

CREATE FUNCTION mainspring.backfill(schedule_id bigint, slots timestamp with time zone[], payloads jsonb[] DEFAULT NULL::jsonb[]) RETURNS TABLE(slot_at timestamp with time zone, job_id bigint)
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
declare
    schedule mainspring.schedules;
    started record;
    payload jsonb;
begin
    select * into schedule from mainspring.schedules as s
     where s.schedule_id = backfill.schedule_id for update;
    perform from mainspring.clocks as c where c.schedule_id = backfill.schedule_id for update;
    for slot_at, payload in
        select slot.at, slot.payload from unnest(slots, payloads) as slot (at, payload)
         order by slot.at
    loop
        continue when exists (
            select from mainspring.slots as s
             where s.schedule_id = backfill.schedule_id and s.scheduled_for = slot_at
               and s.outcome in ('pending', 'enqueued'));
        select * into started from mainspring.start_slot(
            schedule, slot_at, 'backfill', 0, payload, in_line => true);
        if started.outcome = 'failed' then
            perform mainspring.refuse('MS010', started.reason,
                                      mainspring.unknown_facts(schedule.definition));
        end if;
        insert into mainspring.slots as s
            (schedule_id, scheduled_for, outcome, trigger, job_id, reason, fired_at)
        values (backfill.schedule_id, slot_at, started.outcome, 'backfill', started.job_id,
                started.reason, clock_timestamp())
        on conflict (schedule_id, scheduled_for) do update
           set outcome = excluded.outcome, trigger = 'backfill', job_id = excluded.job_id,
               reason = excluded.reason, fired_at = excluded.fired_at;
        job_id := started.job_id;
        return next;
    end loop;
    update mainspring.clocks as c
       set revision = c.revision + 1, checking_until = null, checking_by = null,
           last_enqueued_at = case when job_id is null then c.last_enqueued_at
                                   else clock_timestamp() end
     where c.schedule_id = backfill.schedule_id;
end
$$;

CREATE TABLE mainspring.definition_versions (
    key text NOT NULL COLLATE pg_catalog."C",
    version integer NOT NULL,
    kind text NOT NULL,
    timeout interval NOT NULL,
    backoff_base interval NOT NULL,
    backoff_factor double precision NOT NULL,
    backoff_cap interval NOT NULL,
    backoff_jitter interval NOT NULL,
    arg_schema jsonb,
    spec jsonb NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    secret_paths jsonb
);

CREATE FUNCTION mainspring.backoff_of(version mainspring.definition_versions) RETURNS text
    LANGUAGE sql STABLE
    RETURN (SELECT (jsonb_object_agg(field.key, field.value))::text AS jsonb_object_agg FROM jsonb_each((to_jsonb(backoff_of.version) || jsonb_build_object('backoff_base', EXTRACT(epoch FROM (backoff_of.version).backoff_base), 'backoff_cap', EXTRACT(epoch FROM (backoff_of.version).backoff_cap), 'backoff_jitter', EXTRACT(epoch FROM (backoff_of.version).backoff_jitter)))) field(key, value) WHERE (field.key ~~ 'backoff_%'::text));

CREATE TABLE mainspring.depths (
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    queue text NOT NULL COLLATE pg_catalog."C",
    definition text NOT NULL COLLATE pg_catalog."C",
    live bigint NOT NULL,
    ready bigint NOT NULL,
    running bigint NOT NULL,
    waiting_time bigint DEFAULT 0 NOT NULL,
    waiting_limit bigint DEFAULT 0 NOT NULL,
    waiting_turn bigint DEFAULT 0 NOT NULL,
    waiting_handler bigint DEFAULT 0 NOT NULL,
    awaiting_approval bigint DEFAULT 0 NOT NULL,
    blocked bigint DEFAULT 0 NOT NULL,
    oldest_ready_at timestamp with time zone,
    enqueued_over bigint DEFAULT 0 NOT NULL,
    started_over bigint DEFAULT 0 NOT NULL,
    changed_at timestamp with time zone DEFAULT now() NOT NULL,
    seen_at timestamp with time zone DEFAULT now() NOT NULL
)
WITH (fillfactor='70');

CREATE FUNCTION mainspring.balance(depths_now mainspring.depths[], changed mainspring.changes[]) RETURNS SETOF mainspring.figures
    LANGUAGE plpgsql
    AS $$
declare
    each record;
    figure mainspring.figures;
    depth mainspring.depths;
    before mainspring.depths;
    enqueued bigint;
    started bigint;
begin
    for each in
        select counted, seen, known
          from mainspring.figures_of(balance.changed) as counted
          left join unnest(balance.depths_now) as seen using (tenant_id, queue, definition)
          left join mainspring.depths as known using (tenant_id, queue, definition)
         order by tenant_id, queue, definition
    loop
        figure := each.counted;
        depth := each.seen;
        before := each.known;
        enqueued := coalesce(depth.live, 0) - coalesce(before.live, 0)
            - coalesce(before.enqueued_over, 0) + figure.succeeded + figure.failed
            + figure.dead_letter + figure.canceled + figure.deleted - figure.revived;
        started := coalesce(depth.running, 0) - coalesce(before.running, 0)
            - coalesce(before.started_over, 0) + figure.attempts_succeeded
            + figure.attempts_failed + figure.attempts_timeout + figure.attempts_canceled
            + figure.attempts_snoozed + figure.attempts_lost;
        figure.enqueued := greatest(enqueued, 0);
        figure.started := greatest(started, 0);
        figure.ready := coalesce(depth.ready, 0);
        figure.running := coalesce(depth.running, 0);
        figure.oldest_ready_seconds := coalesce(greatest(0, date_part(
            'epoch', now() - depth.oldest_ready_at)), 0);
        depth.tenant_id := figure.tenant_id;
        depth.queue := figure.queue;
        depth.definition := figure.definition;
        depth.enqueued_over := greatest(-enqueued, 0);
        depth.started_over := greatest(-started, 0);
        perform mainspring.keep_depth(depth);
        return next figure;
    end loop;
end
$$;

CREATE FUNCTION mainspring.bearer(digest bytea, OUT token_id bigint, OUT kind text, OUT role text, OUT tenant_id text, OUT scopes text[], OUT actor text, OUT approver text[], OUT actor_id text, OUT voter text, OUT person_id bigint, OUT person text, OUT ends_by timestamp with time zone) RETURNS SETOF record
    LANGUAGE sql STABLE
    AS $$
select token_id, kind, role, tenant_id, scopes, actor, approver, actor_id, voter, person_id, person,
       ends_by
  from mainspring.bearer_of(digest)
 where tenants is null
$$;

CREATE FUNCTION mainspring.bearer_of(digest bytea, OUT token_id bigint, OUT kind text, OUT role text, OUT tenant_id text, OUT scopes text[], OUT actor text, OUT approver text[], OUT actor_id text, OUT voter text, OUT person_id bigint, OUT person text, OUT ends_by timestamp with time zone, OUT tenants text[]) RETURNS SETOF record
    LANGUAGE sql STABLE
    AS $$
select token.token_id, token.kind, held.role, token.tenant_id, token.scopes, held.actor,
       case when held.role in ('operator', 'admin', 'member') then
           array['role:' || held.role]
           || case when token.kind = 'token' and not exists (
                       select from mainspring.people as other
                        where other.name = token.name
                          and other.tenant_id is not distinct from token.tenant_id)
                   then mainspring.own_name(token.name, token.tenant_id) end
           || case when person.person_id is not null
                   then mainspring.own_name(person.name, person.tenant_id) end
       end,
       case token.kind when 'session' then 'person:' || token.person_id
                       when 'console' then 'sql:' || token.created_by
                       else 'token:' || token.token_id end,
       case when person.person_id is not null then 'person:' || person.person_id
            when token.kind = 'console' then 'sql:' || token.created_by
            else coalesce(token.voter, 'token:' || token.token_id) end,
       person.person_id, person.name,
       case token.kind when 'token' then token.expires_at else token.ends_by end, token.tenants
  from mainspring.tokens as token
  left join mainspring.people as person on person.person_id = token.person_id
 cross join lateral (
    select case token.kind when 'session' then person.role else token.role end as role,
           case token.kind when 'session' then person.name when 'console' then token.created_by
                           else token.name end as actor) as held
 where token.digest = bearer_of.digest and token.kind <> 'login' and held.role is not null
   and token.revoked_at is null and person.disabled_at is null
   and not exists (select from mainspring.tenants as owner
                    where owner.tenant_id = token.tenant_id and owner.disabled_at is not null)
   and (token.expires_at is null or token.expires_at > now())
$$;

CREATE FUNCTION mainspring.bucket_number(seconds double precision) RETURNS smallint
    LANGUAGE sql IMMUTABLE
    RETURN (ceil((ln(GREATEST(seconds, (0.000001)::double precision)) * (11.541560327111707)::double precision)))::smallint;

CREATE FUNCTION mainspring.bucket_of(limit_name text, limit_key text, burst integer, seconds double precision, OUT tokens integer, OUT next_in double precision) RETURNS record
    LANGUAGE plpgsql STABLE
    AS $$
declare
    missing double precision := greatest(0, extract(epoch from (
        select known.full_at from mainspring.buckets as known
         where known.limit_name = bucket_of.limit_name
           and known.limit_key = bucket_of.limit_key) - clock_timestamp()));
begin
    if seconds is not null then
        -- A microsecond is lost in the rounding of an instant.
        tokens := floor(burst - coalesce(missing, 0) / seconds + 1e-6);
        next_in := coalesce(missing, 0) - (burst - 1) * seconds;
    end if;
end
$$;

CREATE FUNCTION mainspring.buckets_of(changed mainspring.changes[]) RETURNS TABLE(tenant_id text, queue text, definition text, waits bigint[], runs bigint[])
    LANGUAGE sql IMMUTABLE
    AS $$
    select tenant_id, queue, definition,
           coalesce(array_agg(array[number, count]) filter (where kind = 'wait'), '{}'),
           coalesce(array_agg(array[number, count]) filter (where kind = 'run'), '{}')
      from (select change.tenant_id, change.queue, change.definition, counted.kind,
                   counted.number::bigint, sum(change.stride) as count
              from unnest(changed) as change, lateral (
                   select 'wait' as kind, unnest(change.waits) as number
                   union all
                   select 'run', unnest(change.runs)) as counted
             group by 1, 2, 3, 4, 5) as bucket
     group by tenant_id, queue, definition
$$;

CREATE FUNCTION mainspring.call_function(full_name text, role text, payload jsonb) RETURNS jsonb
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
declare
    target record;
    answer jsonb;
begin
    select * into target from mainspring.find_function(full_name);
    if target.name is null then
        raise exception using errcode = 'undefined_function', message =
            format('there is no function %s that takes one jsonb or nothing and returns jsonb',
                   full_name);
    end if;
    execute format('select mainspring_calls.%I($1, $2, $3, $4)', mainspring.caller_of(role))
       into answer using target.namespace, target.name, payload, target.argument is not null;
    return answer;
end
$_$;

CREATE FUNCTION mainspring.call_text(namespace text, name text, argument text, most_bytes integer) RETURNS text
    LANGUAGE sql IMMUTABLE
    RETURN format('select case when pg_catalog.octet_length(called.answer) operator(pg_catalog.<=) %s then called.answer end, pg_catalog.octet_length(called.answer) from (select (%I.%I(%s))::pg_catalog.text as answer offset 0) as called'::text, most_bytes, namespace, name, CASE WHEN (argument IS NULL) THEN ''::text ELSE ('$1::pg_catalog.'::text || argument) END);

CREATE FUNCTION mainspring.caller_of(role text) RETURNS text
    LANGUAGE sql IMMUTABLE
    RETURN ('call_'::text || md5(role));

CREATE FUNCTION mainspring.cancel(job_id bigint, reason text DEFAULT 'canceled by request'::text, tenant text DEFAULT 'default'::text) RETURNS mainspring.job_state
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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

COMMENT ON FUNCTION mainspring.cancel(job_id bigint, reason text, tenant text) IS 'Cancels a job that has not started; asks a running one to stop and returns running.';

CREATE FUNCTION mainspring.cancel_flow(flow_id bigint, reason text DEFAULT 'its flow was canceled'::text, tenant text DEFAULT 'default'::text) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    live bigint[];
begin
    perform mainspring.ensure_flow(cancel_flow.flow_id, tenant);
    perform mainspring.check_reason(reason);
    -- All at once: no child may start because a parent of it was canceled.
    select array_agg(locked.job_id) into live
      from (select job.job_id from mainspring.jobs as job
             where job.job_id = any (array(
                       select member.job_id from mainspring.flow_jobs as member
                        where member.flow_id = cancel_flow.flow_id))
               and job.tenant_id = tenant
             order by job.job_id for update) as locked;
    perform mainspring.stop_jobs(live, reason);
    return coalesce(cardinality(live), 0);
end
$$;

COMMENT ON FUNCTION mainspring.cancel_flow(flow_id bigint, reason text, tenant text) IS 'Cancels the live jobs of a flow; returns how many there were.';

CREATE FUNCTION mainspring.cap_keys(INOUT depths_now mainspring.depths[], INOUT changed mainspring.changes[], most integer) RETURNS record
    LANGUAGE plpgsql
    AS $$
declare
    own text[] := array(select key::text from mainspring.keys_with_figures(
                            cap_keys.depths_now, cap_keys.changed, most) as key);
begin
    if not exists (
        select from (select tenant_id, queue, definition from unnest(depths_now)
                     union
                     select tenant_id, queue, definition from unnest(changed)
                      where moved <> 'pruned') as key
         where key::text <> all (own)) then
        return;
    end if;
    for place in 1 .. cardinality(depths_now) loop
        if row(depths_now[place].tenant_id, depths_now[place].queue,
               depths_now[place].definition)::text <> all (own) then
            depths_now[place].definition := '~other';
        end if;
    end loop;
    for place in 1 .. cardinality(changed) loop
        if row(changed[place].tenant_id, changed[place].queue, changed[place].definition)::text
           <> all (own) then
            changed[place].definition := '~other';
        end if;
    end loop;
    depths_now := mainspring.merged_depths(depths_now);
end
$$;

CREATE FUNCTION mainspring.change_jobs(action text, job_ids bigint[], states mainspring.job_state[], tenant text, reason text, actor text, is_patient boolean) RETURNS jsonb
    LANGUAGE plpgsql
    AS $$
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

CREATE FUNCTION mainspring.changes_of(tenants text[], queues text[], definitions text[], states mainspring.job_state[], attempts mainspring.attempt_outcome[], waits double precision[], runs double precision[], days date[] DEFAULT NULL::date[]) RETURNS SETOF mainspring.changes
    LANGUAGE sql STABLE
    AS $$
    select now(), tenant_id, queue, definition,
           case when state is null then 'went_on' else 'ended' end, state, attempt,
           coalesce(day, mainspring.day_of(statement_timestamp())), count(*),
           sum(greatest(wait, 0)), max(greatest(wait, 0)),
           sum(run) filter (where attempt = 'succeeded'),
           max(run) filter (where attempt = 'succeeded'), stride,
           array_agg(mainspring.bucket_number(wait))
               filter (where number % stride = 0 and wait is not null),
           array_agg(mainspring.bucket_number(run))
               filter (where number % stride = 0 and attempt = 'succeeded' and run is not null)
      from unnest(tenants, queues, definitions, states, attempts, waits, runs, days) with ordinality
           as done (tenant_id, queue, definition, state, attempt, wait, run, day, number),
           mainspring.stride_of(cardinality(tenants)) as stride
     group by tenant_id, queue, definition, state, attempt, day, stride
$$;

CREATE FUNCTION mainspring.check_bulk(payloads jsonb[], dedupe_keys text[]) RETURNS void
    LANGUAGE plpgsql STABLE
    AS $$
begin
    if cardinality(payloads) > mainspring.most_jobs() then
        perform mainspring.refuse_option('payloads', format(
            'payloads must have at most %s entries, not %s; enqueue them in several calls',
            mainspring.most_jobs(), cardinality(payloads)));
    end if;
    perform mainspring.check_payload(item.payload)
       from unnest(payloads) as item (payload)
      where jsonb_typeof(item.payload) is distinct from 'object'
         or (pg_column_size(item.payload) > 65536
             and octet_length(item.payload::text) > mainspring.max_payload_bytes())
         or mainspring.has_mark(item.payload);
    if dedupe_keys is not null and cardinality(dedupe_keys) <> cardinality(payloads) then
        perform mainspring.refuse_option('dedupe_keys',
            'dedupe_keys must have one entry per payload');
    end if;
    perform mainspring.check_text('dedupe_keys', item.key)
       from unnest(dedupe_keys) as item (key)
      where length(item.key) not between 1 and 500;
end
$$;

CREATE FUNCTION mainspring.check_condition_role() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    problem text;
begin
    if tg_op = 'UPDATE' and (new.condition_role, new.condition_sql, new.gauge_sql)
       is not distinct from (old.condition_role, old.condition_sql, old.gauge_sql) then
        return new;
    end if;
    -- Nobody can log in as the role of requests. It is the role of schedules that tenants made, so
    -- whoever gives one of these a condition has it run as themselves.
    if new.condition_role in ('mainspring_app', 'pg_database_owner')
       and current_user not in ('mainspring_app', 'pg_database_owner') then
        new.condition_role := current_user;
    end if;
    if to_regrole(quote_ident(new.condition_role)) is null then
        problem := format('%s does not exist; create it, or name another role',
                          new.condition_role);
    elsif not mainspring.may_set_role(current_user, new.condition_role) then
        problem := format('%s may not become %s; ask an administrator to run: %s', current_user,
                          new.condition_role,
                          mainspring.grant_of(new.condition_role, current_user));
    end if;
    if problem is not null then
        raise exception using errcode = 'MS041', message = 'condition_role: ' || problem,
            detail = jsonb_build_object('field', 'condition_role', 'problem', problem);
    end if;
    return new;
end
$$;

CREATE FUNCTION mainspring.check_cron(expression text, spread_key text DEFAULT ''::text) RETURNS void
    LANGUAGE plpgsql IMMUTABLE STRICT
    AS $_$
declare
    words text[];
    days integer[];
    months integer[];
    weekdays integer[];
begin
    -- Most are as simple as these, and are accepted at a twentieth of the cost.
    if expression ~ ('^([*H]|[0-5]?[0-9]|\*/[1-5]?[1-9]|\*/[1-5]0) ([*H]|[01]?[0-9]|2[0-3])'
                     ' (\*|[1-9]|[12][0-9]|3[01]) \* (\*|[0-7]|1-5|MON-FRI|MON|TUE|WED|THU|FRI)$')
    then
        return;
    end if;
    perform mainspring.cron_check_text(expression);
    words := regexp_split_to_array(btrim(expression, e' \t'), '[ \t]+');
    if words[1] ~ '^@' then
        perform mainspring.cron_check_name(words);
        return;
    end if;
    perform mainspring.cron_check_count(words);
    perform mainspring.cron_field(1, words[1], spread_key);
    perform mainspring.cron_field(2, words[2], spread_key);
    days := mainspring.cron_field(3, words[3], spread_key);
    months := mainspring.cron_field(4, words[4], spread_key);
    weekdays := mainspring.cron_field(5, words[5], spread_key);
    -- As in Debian's cron, either of the two is enough unless one of them starts with a star.
    if (words[3] ~ '^[*?]' or words[5] ~ '^[*?]') and words[3] not in ('*', '?')
       and not mainspring.cron_has_date(days, months, weekdays) then
        perform mainspring.refuse_schedule('cron',
            '''' || btrim(expression, e' \t') || ''' never matches; there is no such date');
    end if;
end
$_$;

CREATE FUNCTION mainspring.check_definition_key(definition mainspring.definitions) RETURNS void
    LANGUAGE plpgsql
    AS $_$
begin
    if definition.key !~ '^[A-Za-z_][A-Za-z0-9_.:-]{0,199}$' then
        perform mainspring.refuse_definition(definition.key, 'key', 'must start with a letter or _ '
            || 'and contain only letters, digits and _ . : - (at most 200 characters)');
    end if;
    if definition.kind is null then
        perform mainspring.refuse_definition(definition.key, 'kind', 'is missing; to run a SQL '
            || 'function, call mainspring.schedule_function, or give kind ''sql'' and spec '
            || '{"function": "..."}; definitions of Python jobs are stored by the program');
    elsif definition.kind not in ('python', 'sql', 'command', 'remote') then
        perform mainspring.refuse_definition(definition.key, 'kind', format(
            'must be python, sql, command or remote, not %L', definition.kind));
    end if;
    if definition.key like 'mainspring.%' and definition.kind <> 'python' then
        perform mainspring.refuse_definition(definition.key, 'key',
            'is reserved, like all keys that start with mainspring.; choose another');
    end if;
end
$_$;

CREATE FUNCTION mainspring.check_definition_owner() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    key text := case when tg_op = 'DELETE' then old.key else new.key end;
    role name := case when tg_op <> 'INSERT' and old.kind = 'sql' then old.spec ->> 'role' end;
    wrong text[];
begin
    if mainspring.acts_as_owner() then
        null;
    elsif key like 'mainspring.%' or (tg_op = 'UPDATE' and old.key like 'mainspring.%') then
        wrong := '{key,is built in and for operators only}';
    elsif tg_op <> 'INSERT' and old.kind <> 'sql' then
        wrong := array['kind', format('is %s; only the owner of Mainspring can change it',
                                      old.kind)];
    elsif tg_op <> 'INSERT' and not exists (
        select from pg_roles as known where known.rolname = role
           and mainspring.has_rights_of(current_user, known.rolname)) then
        wrong := array['role', format(
            'is %s, whose rights %s does not have; ask an administrator to run: %s',
            role, current_user, mainspring.grant_of(role, current_user))];
    end if;
    if wrong is not null then
        raise exception using errcode = 'MS050',
            message = format('%s: %s %s', key, wrong[1], wrong[2]),
            detail = jsonb_build_object('key', key, 'field', wrong[1], 'problem', wrong[2]);
    end if;
    return case when tg_op = 'DELETE' then old else new end;
end
$$;

CREATE FUNCTION mainspring.check_definition_role() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    role text;
    problem text;
begin
    if tg_op = 'UPDATE' and new.spec is not distinct from old.spec then
        return new;
    end if;
    if new.kind = 'sql' then
        role := coalesce(new.spec ->> 'role', current_user);
        if exists (select from pg_roles where rolname = role)
           and not mainspring.may_set_role(current_user, role) then
            problem := format('%s may not become %s; ask an administrator to run: %s',
                              current_user, role, mainspring.grant_of(role, current_user));
            raise exception using errcode = 'MS050',
                message = format('%s: role: %s', new.key, problem),
                detail = jsonb_build_object('key', new.key, 'field', 'role', 'problem', problem);
        end if;
        if new.spec -> 'trusted' = 'true'
           and not mainspring.may_set_role(current_user, (
               select nspowner::regrole::name from pg_namespace where nspname = 'mainspring')) then
            raise exception using errcode = 'MS050',
                message = new.key || ': trusted: can only be set by the owner of Mainspring',
                detail = jsonb_build_object('key', new.key, 'field', 'trusted', 'problem',
                    'can only be set by the owner of Mainspring');
        end if;
        new.spec := new.spec || jsonb_build_object('role', role);
    end if;
    return new;
end
$$;

CREATE FUNCTION mainspring.check_definition_spec(definition mainspring.definitions) RETURNS void
    LANGUAGE plpgsql
    AS $$
declare
    wrong text[];
begin
    if definition.kind = 'sql' then
        wrong := mainspring.wrong_function(definition.spec);
        if wrong is not null then
            perform mainspring.refuse_definition(definition.key, wrong[1], wrong[2]);
        end if;
        -- For workers of the release before this one. Only who may become a role can give it a
        -- function.
        if mainspring.may_set_role(mainspring.owner_name(), definition.spec ->> 'role') then
            perform mainspring.ensure_caller(definition.spec ->> 'role');
        end if;
    elsif definition.kind = 'command'
          and jsonb_typeof(definition.spec -> 'argv') is distinct from 'array' then
        perform mainspring.refuse_definition(
            definition.key, 'argv', 'must be an array of arguments');
    elsif definition.kind = 'remote' and (definition.spec - 'revision' <> '{}'
          or jsonb_typeof(definition.spec -> 'revision') <> 'number') then
        perform mainspring.refuse_definition(definition.key, 'spec',
            'must be {} or have a number as revision: a remote worker knows what it runs');
    end if;
end
$$;

CREATE FUNCTION mainspring.check_delivery(delivery text, max_attempts integer, defined mainspring.definitions) RETURNS void
    LANGUAGE plpgsql IMMUTABLE
    AS $$
begin
    if delivery not in ('at_least_once', 'at_most_once') then
        perform mainspring.refuse_option('delivery', 'delivery must be at_least_once or '
            || 'at_most_once, not ' || quote_literal(delivery));
    end if;
    if coalesce(delivery, defined.delivery) = 'at_most_once' and max_attempts > 1 then
        perform mainspring.refuse_option('max_attempts', 'max_attempts must be 1 with delivery '
            || 'at_most_once, not ' || max_attempts);
    end if;
end
$$;

CREATE FUNCTION mainspring.check_event(name text, context jsonb) RETURNS void
    LANGUAGE plpgsql
    AS $_$
declare
    size integer := octet_length(context::text);
begin
    if mainspring.is_event_name(name) is not true then
        perform mainspring.refuse_event('name', coalesce(quote_literal(left(name, 200)), 'null')
            || ' must consist of letters, digits and _ : -, in parts separated by dots '
            || '(at most 200 characters)');
    end if;
    if context is null or jsonb_typeof(context) <> 'object' then
        perform mainspring.refuse_event('context', 'must be a JSON object, not '
            || coalesce(jsonb_typeof(context), 'null'));
    end if;
    if size > mainspring.max_payload_bytes() then
        perform mainspring.refuse_event('context', format(
            'is %s bytes, the limit is %s; store the data elsewhere and pass a reference to it',
            size, mainspring.max_payload_bytes()));
    end if;
    -- What no other program could read would have no trigger that can be rendered.
    if jsonb_path_exists(context, 'strict $.**{201}') then
        perform mainspring.refuse_event('context', 'is nested more than 200 deep');
    end if;
    if mainspring.has_mark(context) then
        perform mainspring.refuse_event('context', mainspring.uses_mark());
    end if;
end
$_$;

CREATE FUNCTION mainspring.check_function_name(given text, visible text) RETURNS void
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    problem text := case
        when coalesce(given, '') = ''
        then 'function is missing; give the name of a function, such as civic.cleanup'
        when given ~ '\('
        then 'function: write the name without parentheses, as '
             || rtrim(split_part(given, '(', 1))
        when coalesce(visible, given) like 'mainspring.%'
        then format('function: %s belongs to Mainspring; give a function of your own, such as '
                    || 'civic.cleanup', coalesce(visible, given))
        when visible is null and given !~ '\.'
        then format('there is no function %s in your search path%s', given,
                    mainspring.meant_function(given, given))
    end;
begin
    if problem is not null then
        perform mainspring.refuse('MS050', problem, jsonb_build_object(
            'key', coalesce(given, 'null'), 'field', 'function', 'problem', problem));
    end if;
end
$$;

CREATE FUNCTION mainspring.check_numbers(priority integer, max_attempts integer) RETURNS void
    LANGUAGE plpgsql IMMUTABLE
    AS $$
begin
    if priority not between 0 and 1000 then
        perform mainspring.refuse('MS003', 'priority must be from 0 (first) to 1000 (last), not '
            || priority, '{"option": "priority"}');
    end if;
    if max_attempts not between 1 and 1000 then
        perform mainspring.refuse('MS003', 'max_attempts must be from 1 to 1000, not '
            || max_attempts, '{"option": "max_attempts"}');
    end if;
end
$$;

CREATE FUNCTION mainspring.check_origin(created_by text, source text) RETURNS void
    LANGUAGE plpgsql STABLE
    AS $$
begin
    perform mainspring.check_text('created_by', created_by);
    if not mainspring.may_create_as(created_by) then
        perform mainspring.refuse_option('created_by', case when not mainspring.is_own(created_by)
            then 'created_by: members enqueue in their own name only; leave it out'
            else 'created_by must not start with system:, trigger: or job:, which Mainspring uses'
            end);
    end if;
    if not mainspring.is_source(source) then
        perform mainspring.refuse_option('source', 'source must be 1 to 50 lower-case letters, '
            || 'digits and _ . -, and not schedule, trigger, job or system, which Mainspring uses');
    end if;
end
$$;

CREATE FUNCTION mainspring.check_pause(name text, reason text, until timestamp with time zone, duration interval) RETURNS void
    LANGUAGE plpgsql
    AS $$
begin
    perform mainspring.check_text('queue', coalesce(name, ''));
    if reason is null then
        perform mainspring.refuse_option('reason', 'reason must not be null');
    end if;
    perform mainspring.check_reason(reason);
    if until is not null and duration is not null then
        perform mainspring.refuse_option('until', 'until and duration exclude each other');
    end if;
    if not isfinite(until) or until <= clock_timestamp()
       or until > clock_timestamp() + interval '100 years' then
        perform mainspring.refuse_option('until',
            'until must be an instant in the next 100 years, not ' || until);
    end if;
    if duration <= '0' or duration > interval '100 years' then
        perform mainspring.refuse_option('duration',
            'duration must be more than zero and at most 100 years, not ' || duration);
    end if;
end
$$;

CREATE FUNCTION mainspring.check_payload(payload jsonb) RETURNS void
    LANGUAGE plpgsql STABLE
    AS $$
declare
    size integer := pg_column_size(payload);
begin
    if payload is null or jsonb_typeof(payload) <> 'object' then
        perform mainspring.refuse('MS001', 'the payload must be a JSON object, not '
            || coalesce(jsonb_typeof(payload), 'null'));
    end if;
    -- A value that comes from a table may be compressed, which pg_column_size does not undo.
    if size > 65536 or pg_column_compression(payload) is not null then
        size := octet_length(payload::text);
        if size > mainspring.max_payload_bytes() then
            perform mainspring.refuse('MS002', 'the payload is too large',
                jsonb_build_object('size', size, 'limit', mainspring.max_payload_bytes()));
        end if;
    end if;
    if mainspring.has_foreign_mark(payload) then
        perform mainspring.refuse('MS001', 'the payload ' || mainspring.uses_mark());
    end if;
end
$$;

CREATE FUNCTION mainspring.check_queue(queue text) RETURNS void
    LANGUAGE plpgsql IMMUTABLE
    AS $$
begin
    perform mainspring.check_text('queue', queue);
    if mainspring.wrong_queue(queue) is not null then
        perform mainspring.refuse('MS003', 'queue ' || mainspring.wrong_queue(queue) || ': '
            || quote_literal(queue), '{"option": "queue"}');
    end if;
end
$$;

CREATE FUNCTION mainspring.check_reason(reason text) RETURNS void
    LANGUAGE plpgsql IMMUTABLE
    AS $$
begin
    if length(reason) > mainspring.longest_text() then
        perform mainspring.refuse('MS003', 'reason must be at most 10000 characters',
            '{"option": "reason"}');
    end if;
end
$$;

CREATE FUNCTION mainspring.check_saved_payload(definition text, payload jsonb) RETURNS void
    LANGUAGE plpgsql
    AS $$
declare
    defined mainspring.definitions;
    problem text;
begin
    select * into defined from mainspring.definitions as d
     where d.key = check_saved_payload.definition
       and mainspring.is_quickly_checked(d.arg_schema, payload);
    problem := mainspring.wrong_value(defined.arg_schema, payload, 'payload');
    if problem is not null and not exists (
        select from jsonb_array_elements(mainspring.other_schemas(defined)) as other
         where mainspring.wrong_value(other, payload, 'payload') is null) then
        perform mainspring.refuse('MS001', format('%s; it must fit the JSON Schema of the '
            'definition %s', problem, to_json(defined.key)), '{}');
    end if;
end
$$;

CREATE TABLE mainspring.schedules (
    schedule_id bigint NOT NULL,
    paused_until timestamp with time zone,
    starts_at timestamp with time zone,
    ends_at timestamp with time zone,
    anchor_at timestamp with time zone DEFAULT date_trunc('second'::text, now()) NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    max_retries integer DEFAULT 5 NOT NULL,
    max_running integer DEFAULT 1 NOT NULL,
    catch_up_limit integer DEFAULT 100 NOT NULL,
    max_attempts integer,
    priority smallint,
    enabled boolean DEFAULT true NOT NULL,
    tenant_id text DEFAULT 'default'::text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    description text DEFAULT ''::text NOT NULL,
    cron text,
    every interval,
    at timestamp with time zone,
    zone text NOT NULL,
    dst_gap text DEFAULT 'run_after'::text NOT NULL,
    dst_fold text DEFAULT 'once'::text NOT NULL,
    calendar jsonb,
    jitter interval DEFAULT '00:00:00'::interval NOT NULL,
    definition text NOT NULL COLLATE pg_catalog."C",
    payload jsonb DEFAULT '{}'::jsonb NOT NULL,
    queue text COLLATE pg_catalog."C",
    misfire_grace interval DEFAULT '00:01:00'::interval NOT NULL,
    catch_up text DEFAULT 'latest'::text NOT NULL,
    catch_up_max_age interval,
    overlap text DEFAULT 'skip'::text NOT NULL,
    run_timeout interval,
    launcher text,
    condition_sql text,
    gauge_sql text,
    gauge_lower double precision,
    gauge_upper double precision,
    condition_role text DEFAULT CURRENT_USER NOT NULL,
    condition_timeout interval DEFAULT '00:00:10'::interval NOT NULL,
    disabled_reason text,
    declared jsonb,
    is_templated boolean DEFAULT false NOT NULL,
    run_at timestamp with time zone,
    origin jsonb DEFAULT '{}'::jsonb NOT NULL,
    gauge_bounds text,
    delivery text,
    CONSTRAINT schedules_delivery CHECK ((delivery = ANY (ARRAY['at_least_once'::text, 'at_most_once'::text]))),
    CONSTRAINT schedules_gauge_bounds CHECK ((gauge_bounds = ANY (ARRAY['inclusive'::text, 'exclusive'::text]))),
    CONSTRAINT schedules_have_one_timing CHECK ((num_nonnulls(cron, every, at) = 1)),
    CONSTRAINT schedules_numbers CHECK (((every >= '00:00:01'::interval) AND (jitter >= '00:00:00'::interval) AND (misfire_grace >= '00:00:00'::interval) AND (catch_up_max_age > '00:00:00'::interval) AND (run_timeout > '00:00:00'::interval) AND (condition_timeout > '00:00:00'::interval) AND ((max_retries >= 1) AND (max_retries <= 1000)) AND ((max_running >= 1) AND (max_running <= 1000)) AND ((catch_up_limit >= 1) AND (catch_up_limit <= 10000)) AND ((max_attempts >= 1) AND (max_attempts <= 1000)) AND ((priority >= 0) AND (priority <= 1000)))),
    CONSTRAINT schedules_payload_is_object CHECK ((jsonb_typeof(payload) = 'object'::text)),
    CONSTRAINT schedules_words CHECK (((dst_gap = ANY (ARRAY['run_after'::text, 'skip'::text])) AND (dst_fold = ANY (ARRAY['once'::text, 'both'::text])) AND (catch_up = ANY (ARRAY['none'::text, 'latest'::text, 'all'::text])) AND (overlap = ANY (ARRAY['skip'::text, 'queue'::text, 'replace'::text]))))
)
WITH (fillfactor='80', autovacuum_vacuum_scale_factor='0.02', autovacuum_vacuum_threshold='1000', autovacuum_analyze_scale_factor='0.1', autovacuum_vacuum_cost_delay='0');

CREATE FUNCTION mainspring.check_schedule(schedule mainspring.schedules) RETURNS void
    LANGUAGE plpgsql
    AS $$
declare
    wrong text[] := coalesce(
        mainspring.wrong_word(schedule), mainspring.wrong_number(schedule),
        mainspring.wrong_duration(schedule), mainspring.wrong_instant(schedule),
        mainspring.wrong_condition(schedule), mainspring.wrong_schedule_size(schedule));
begin
    if num_nonnulls(schedule.cron, schedule.every, schedule.at) <> 1 then
        perform mainspring.refuse_schedule('timing', 'give exactly one of cron, every and at');
    end if;
    if wrong is not null then
        perform mainspring.refuse_schedule(wrong[1], wrong[2]);
    end if;
    if mainspring.is_closed(schedule.definition) then
        perform mainspring.refuse_schedule(
            'definition', mainspring.why_closed(schedule.definition));
    end if;
    perform mainspring.check_cron(schedule.cron, schedule.name);
    perform mainspring.check_zone(schedule.zone);
end
$$;

CREATE FUNCTION mainspring.check_step(number bigint, defined mainspring.definitions, step jsonb) RETURNS void
    LANGUAGE plpgsql
    AS $$
declare
    needed integer := (step ->> 'approvals_needed')::integer;
    problem text;
begin
    if defined.key is null then
        perform mainspring.active_definition(step ->> 'definition');
    end if;
    perform mainspring.check_payload(coalesce(nullif(step -> 'payload', 'null'), '{}'));
    perform mainspring.check_numbers(
        (step ->> 'priority')::integer, (step ->> 'max_attempts')::integer);
    perform mainspring.check_words(
        step ->> 'queue', step ->> 'correlation_id', mainspring.texts_of(step -> 'tags'));
    perform mainspring.check_text('limit_key', step ->> 'limit_key');
    perform mainspring.check_text('step', nullif(step ->> 'step', ''));
    perform mainspring.check_origin(step ->> 'created_by', step ->> 'source');
    perform mainspring.check_delivery(
        step ->> 'delivery', (step ->> 'max_attempts')::integer, defined);
    problem := case
        when needed not between 0 and 100 then 'approvals_needed must be from 0 to 100'
        when step ->> 'on_parent_failure' not in ('cancel', 'continue', 'wait')
        then 'on_parent_failure must be ''cancel'', ''continue'' or ''wait'''
        when step ->> 'limit_key' is not null and defined.limit_name is null
        then 'limit_key is given, but ' || defined.key || ' has no limit' end;
    if problem is not null then
        perform mainspring.refuse_option('steps', 'steps: step ' || number || ': ' || problem);
    end if;
end
$$;

CREATE FUNCTION mainspring.check_step_count(steps jsonb) RETURNS void
    LANGUAGE plpgsql
    AS $$
declare
    dependencies bigint := (
        select sum(jsonb_array_length(coalesce(step.value -> 'after', '[]'))
                   + jsonb_array_length(coalesce(step.value -> 'after_jobs', '[]')))
          from jsonb_array_elements(steps) as step);
begin
    if dependencies > mainspring.most_dependencies() then
        perform mainspring.refuse_option('steps', format(
            'the steps of a flow can have at most %s parents together, not %s; '
            'put a step in between that many others wait for',
            mainspring.most_dependencies(), dependencies));
    end if;
end
$$;

CREATE FUNCTION mainspring.check_step_jobs(steps jsonb, tenant text) RETURNS void
    LANGUAGE plpgsql
    AS $_$
begin
    perform mainspring.refuse('MS030', 'there is no job ' || parent.value::text,
                              jsonb_build_object('job_id', parent.value))
       from mainspring.read_steps(steps) as step,
            lateral jsonb_array_elements(coalesce(step.after_jobs, '[]')) as parent
      where jsonb_typeof(parent.value) <> 'number' or parent.value::text !~ '^[0-9]{1,18}$'
         or not exists (select from mainspring.job_status as job
                         where job.job_id = parent.value::text::bigint
                           and job.tenant_id = check_step_jobs.tenant);
end
$_$;

CREATE FUNCTION mainspring.check_step_order(steps jsonb) RETURNS void
    LANGUAGE plpgsql
    AS $_$
begin
    perform mainspring.refuse_option('steps', 'steps: step ' || item.number - 1 || ' comes after '
        || parent.value::text || ', which is not the number of a step before it')
       from jsonb_array_elements(steps) with ordinality as item (value, number),
            lateral jsonb_array_elements(coalesce(item.value -> 'after', '[]')) as parent
      where jsonb_typeof(parent.value) <> 'number'
         or parent.value::text !~ '^[0-9]{1,9}$'
         or (parent.value)::text::bigint >= item.number - 1;
end
$_$;

CREATE FUNCTION mainspring.check_step_shapes(steps jsonb) RETURNS void
    LANGUAGE plpgsql
    AS $$
begin
    perform mainspring.refuse_option('steps', 'steps: step ' || number - 1 || ' must be an object '
        || 'with a definition, a payload that is an object and an array after')
       from jsonb_array_elements(steps) with ordinality as item (value, number)
      where jsonb_typeof(value) <> 'object'
         or jsonb_typeof(coalesce(value -> 'payload', '{}')) <> 'object'
         or jsonb_typeof(coalesce(value -> 'after', '[]')) <> 'array'
         or jsonb_typeof(coalesce(value -> 'after_jobs', '[]')) <> 'array';
end
$$;

CREATE FUNCTION mainspring.check_steps(steps jsonb, tenant text) RETURNS void
    LANGUAGE plpgsql
    AS $$
begin
    perform mainspring.check_step_shapes(steps);
    perform mainspring.check_step_count(steps);
    perform mainspring.check_step_order(steps);
    perform mainspring.ensure_open(step.definition) from mainspring.read_steps(steps) as step;
    perform mainspring.check_step(given.number - 1, d, to_jsonb(given))
       from mainspring.read_steps(steps) as given
       left join mainspring.definitions as d on d.key = given.definition and d.is_active
      where d.key is null or given.priority not between 0 and 1000
         or given.max_attempts not between 1 and 1000
         or mainspring.are_plain_words(
                given.queue, given.correlation_id, given.tags) is not true
         or length(given.limit_key) not between 1 and 500 or length(given.step) > 500
         or given.approvals_needed not between 0 and 100
         or given.on_parent_failure not in ('cancel', 'continue', 'wait')
         or pg_column_size(given.payload) > 65536 or mainspring.has_mark(given.payload)
         or (given.limit_key is not null and d.limit_name is null)
         or num_nonnulls(given.created_by, given.source, given.delivery, given.max_attempts) > 0;
    perform mainspring.check_step_jobs(steps, tenant);
end
$$;

CREATE FUNCTION mainspring.check_text(option text, value text) RETURNS void
    LANGUAGE plpgsql IMMUTABLE
    AS $$
begin
    if length(value) not between 1 and 500 then
        perform mainspring.refuse('MS003',
            option || case when value = '' then ' must not be empty'
                           else ' must be at most 500 characters' end,
            jsonb_build_object('option', option));
    end if;
end
$$;

CREATE FUNCTION mainspring.check_times(delay interval, scheduled_for timestamp with time zone, deadline timestamp with time zone) RETURNS void
    LANGUAGE plpgsql STABLE
    AS $$
begin
    if delay < '0' then
        perform mainspring.refuse_option('delay', 'delay must not be negative');
    elsif delay > mainspring.longest_delay() then
        perform mainspring.refuse_option('delay', 'delay must be at most 36500 days');
    elsif scheduled_for not between '0001-01-02T00:00:00Z' and '9999-12-30T00:00:00Z' then
        perform mainspring.refuse_option('scheduled_for',
            'scheduled_for must be in the years 1 to 9999');
    elsif deadline > '9999-12-30T00:00:00Z' then
        perform mainspring.refuse_option('deadline', 'deadline must be in the years 1 to 9999');
    elsif delay is not null and scheduled_for is not null then
        perform mainspring.refuse_option('delay',
            'delay and scheduled_for cannot be used together; choose one');
    elsif deadline <= clock_timestamp() then
        perform mainspring.refuse_option('deadline', 'deadline ' || deadline || ' has passed');
    elsif coalesce(scheduled_for, clock_timestamp() + delay) >= deadline then
        perform mainspring.refuse_option('scheduled_for',
            'scheduled_for is not before the deadline; the job could never run');
    end if;
end
$$;

CREATE FUNCTION mainspring.check_words(queue text, correlation_id text, tags text[]) RETURNS void
    LANGUAGE plpgsql IMMUTABLE
    AS $$
begin
    perform mainspring.check_queue(queue);
    perform mainspring.check_text('correlation_id', correlation_id);
    if cardinality(tags) > 50 then
        perform mainspring.refuse('MS003', 'tags must have at most 50 entries, not '
            || cardinality(tags), '{"option": "tags"}');
    elsif array_ndims(tags) > 1 or array_position(tags, null) is not null then
        perform mainspring.refuse('MS003', 'tags must be a list of strings', '{"option": "tags"}');
    end if;
    perform mainspring.check_text('tags', tag) from unnest(tags) as tag;
end
$$;

CREATE FUNCTION mainspring.check_zone(zone text) RETURNS void
    LANGUAGE plpgsql
    AS $$
begin
    if not mainspring.is_zone(zone) then
        perform mainspring.refuse_schedule('zone', 'there is no time zone '
            || quote_literal(zone) || coalesce('; did you mean ''' || array_to_string(
                mainspring.zones_of_abbreviation(zone), ''' or ''') || '''?',
            '; ' || mainspring.hint_of_offset(zone), (
            select '; did you mean ' || quote_literal(known.name) || '?'
              from pg_timezone_names as known
             where lower(zone) in (lower(known.name), lower(split_part(known.name, '/', -1)))
             order by known.name limit 1), mainspring.did_you_mean(zone, array(
            -- Nothing is like another offset.
            select quote_literal(known.name) from pg_timezone_names as known
             where zone !~ '[0-9]'
               and known.name !~ '^(localtime|posixrules|Factory|posix/|right/)'))));
    end if;
end
$$;

CREATE FUNCTION mainspring.checkpoints(OUT timed bigint, OUT requested bigint) RETURNS record
    LANGUAGE plpgsql STABLE
    AS $$
begin
    if current_setting('server_version_num')::integer >= 170000 then
        select known.num_timed, known.num_requested into timed, requested
          from pg_catalog.pg_stat_checkpointer as known;
    else
        select known.checkpoints_timed, known.checkpoints_req into timed, requested
          from pg_catalog.pg_stat_bgwriter as known;
    end if;
end
$$;

CREATE FUNCTION mainspring.claim_limited(worker_id bigint, queues text[], names text[], keys text[], tenants text[], shares integer[], most integer, lowest integer) RETURNS TABLE(job_id bigint, fence bigint, definition text, payload text, attempt integer, failures integer, losses integer, max_attempts integer, queue text, priority smallint, tenant_id text, extras text, limit_name text, limit_key text, definition_version integer, facts jsonb)
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
declare
    free record;
    picked record;
    new_fence bigint;
    rated text[] := array(select known.name from mainspring.limits as known
                           where known.rate_count is not null);
begin
    if not pg_try_advisory_xact_lock(hashtext('mainspring.limits')) or not exists (
        select from mainspring.workers as worker
         where worker.worker_id = claim_limited.worker_id
           and worker.expires_at > clock_timestamp()) then
        return;
    end if;
    free := mainspring.free_places(names, keys, tenants, most);
    picked := mainspring.pick_limited(
        queues, names, keys, tenants, shares, free.limits_free, free.keys_free, free.tenants_free,
        most, lowest,
        is_shared => free.is_shared or cardinality(queues) > 1 or cardinality(names) > most
                     or most > any (shares));
    if picked.places <> '{}' then
        new_fence := nextval('mainspring.fences');
        return query
        update mainspring.jobs as job
           set state = 'running', waits_for = null, worker_id = claim_limited.worker_id,
               fence = new_fence, started_at = clock_timestamp(), ready_at = clock_timestamp(),
               attempt = job.attempt + 1, probed_at = null
         where job.ctid = any (picked.places)
        returning job.job_id, job.fence, job.definition, job.payload::text, job.attempt,
                  job.failures, job.losses, job.max_attempts, job.queue, job.priority,
                  job.tenant_id,
                  mainspring.extras_of(job, rated),
                  job.limit_name, job.limit_key, job.definition_version, null::jsonb;
    end if;
    facts := jsonb_build_object(
        'unfinished', picked.unfinished, 'shared', free.shared,
        'full', mainspring.full_limits(free.shared, free.shared_free, picked.limits),
        'next_in', free.next_in, 'keyed_names', free.keyed_names,
        'keyed_places', free.keyed_places, 'weights', (
            select jsonb_object_agg(tenant.tenant_id, tenant.weight)
              from mainspring.tenants as tenant
             where tenant.tenant_id = any (tenants) and tenant.weight <> 1));
    return next;
end
$$;

CREATE FUNCTION mainspring.close_overdue_run(job_id bigint) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
declare
    overdue mainspring.jobs;
    limit_text text;
begin
    select * into overdue from mainspring.jobs as job
     where job.job_id = close_overdue_run.job_id and job.state = 'running'
       and job.slot_at is not null
       for update skip locked;
    if not found then
        return false;
    end if;
    select 'it ran longer than the ' || s.run_timeout || ' its schedule allows' into limit_text
      from mainspring.schedules as s where s.schedule_id = overdue.schedule_id;
    update mainspring.slots as slot
       set run_state = 'timed_out', started_at = overdue.started_at,
           finished_at = clock_timestamp(), reason = limit_text
     where slot.schedule_id = overdue.schedule_id and slot.scheduled_for = overdue.slot_at;
    update mainspring.jobs as job set slot_at = null
     where job.job_id = close_overdue_run.job_id;
    perform mainspring.stop_job(overdue.job_id, limit_text, overdue.tenant_id);
    perform mainspring.release_turn(overdue.schedule_id);
    return true;
end
$$;

CREATE FUNCTION mainspring.letter_pairs(name text) RETURNS text[]
    LANGUAGE sql IMMUTABLE STRICT
    RETURN (SELECT COALESCE(array_agg(DISTINCT substr(letters."only", place.place, 2)), '{}'::text[]) AS "coalesce" FROM (SELECT regexp_replace(lower("left"(letter_pairs.name, 200)), '[^a-z0-9]'::text, ''::text, 'g'::text) AS "only") letters, LATERAL generate_series(1, GREATEST((length(letters."only") - 1), 1)) place(place));

CREATE FUNCTION mainspring.closest(name text, known text[]) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT
    RETURN (SELECT near.name FROM (SELECT each.name, ((2.0 * (cardinality(ARRAY(SELECT unnest(given.pairs) AS unnest INTERSECT SELECT unnest(own.pairs) AS unnest)))::numeric) / (GREATEST((cardinality(given.pairs) + cardinality(own.pairs)), 1))::numeric) AS likeness FROM unnest(closest.known) each(name), mainspring.letter_pairs(closest.name) given(pairs), LATERAL mainspring.letter_pairs(each.name) own(pairs)) near WHERE (near.likeness >= 0.6) ORDER BY near.likeness DESC, near.name LIMIT 1);

CREATE FUNCTION mainspring.compact(into_step text, from_step text, start timestamp with time zone) RETURNS void
    LANGUAGE plpgsql
    AS $$
declare
    span interval := ('1 ' || into_step)::interval;
    compacted mainspring.figures[] := array(
        select figure from mainspring.figures_by(
            array[from_step], array[compact.start], array[compact.start + span], span,
            array['tenant', 'queue', 'definition']) as figure);
begin
    delete from mainspring.figures as old
     where old.step = into_step and old.at = compact.start;
    for place in 1 .. cardinality(compacted) loop
        compacted[place].step := into_step;
    end loop;
    insert into mainspring.figures select * from unnest(compacted);
    insert into mainspring.watches as watch (name, last_at)
    values ('figures of ' || into_step || 's', compact.start + span)
    on conflict (name) do update set last_at = excluded.last_at;
end
$$;

CREATE FUNCTION mainspring.has_mark(value jsonb) RETURNS boolean
    LANGUAGE sql IMMUTABLE
    RETURN (strpos((value)::text, '"$mainspring": '::text) > 0);

CREATE FUNCTION mainspring.compared_by(payload jsonb) RETURNS text
    LANGUAGE sql IMMUTABLE
    RETURN CASE WHEN mainspring.has_mark(payload) THEN regexp_replace((payload)::text, ('\{"key": "[^"]*", "nonce": "[^"]*", "value": "[^"]*", "\$mainspring": "encrypted", '::text || '"fingerprint": "([0-9a-f]{64})"\}'::text), '"\1"'::text, 'g'::text) ELSE (payload)::text END;

CREATE FUNCTION mainspring.content_digest(tenant text, definition text, payload jsonb) RETURNS text
    LANGUAGE sql STABLE
    AS $$
    select mainspring.keyed_digest('content', jsonb_build_array(tenant, definition)::text
                                              || mainspring.compared_by(payload))
$$;

CREATE FUNCTION mainspring.content_of(job mainspring.jobs) RETURNS text
    LANGUAGE sql STABLE
    AS $$ select mainspring.content_digest(job.tenant_id, job.definition, job.payload) $$;

CREATE SEQUENCE mainspring.event_ids
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

CREATE TABLE mainspring.events (
    event_id bigint DEFAULT nextval('mainspring.event_ids'::regclass) NOT NULL,
    emitted_at timestamp with time zone DEFAULT now() NOT NULL,
    handled_at timestamp with time zone,
    replays integer DEFAULT 0 NOT NULL,
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    correlation_id text,
    replay_trigger text COLLATE pg_catalog."C",
    context jsonb NOT NULL,
    CONSTRAINT events_are_replayed_for_a_trigger CHECK (((replay_trigger IS NULL) OR (replays > 0))),
    CONSTRAINT events_context_check CHECK ((jsonb_typeof(context) = 'object'::text))
)
WITH (fillfactor='80', autovacuum_vacuum_scale_factor='0.02', autovacuum_vacuum_threshold='1000', autovacuum_analyze_scale_factor='0.1', autovacuum_vacuum_cost_delay='0');

CREATE SEQUENCE mainspring.flow_ids
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

CREATE TABLE mainspring.flows (
    flow_id bigint DEFAULT nextval('mainspring.flow_ids'::regclass) NOT NULL,
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    created_by text DEFAULT mainspring.creator() COLLATE pg_catalog."C"
);

CREATE TABLE mainspring.jobs_history (
    job_id bigint DEFAULT nextval('mainspring.job_ids'::regclass) CONSTRAINT jobs_job_id_not_null NOT NULL,
    fence bigint,
    worker_id bigint,
    created_at timestamp with time zone DEFAULT now() CONSTRAINT jobs_created_at_not_null NOT NULL,
    scheduled_for timestamp with time zone DEFAULT now() CONSTRAINT jobs_scheduled_for_not_null NOT NULL,
    started_at timestamp with time zone,
    finished_at timestamp with time zone,
    deadline_at timestamp with time zone,
    cancel_requested_at timestamp with time zone,
    probed_at timestamp with time zone,
    attempt integer DEFAULT 0 CONSTRAINT jobs_attempt_not_null NOT NULL,
    failures integer DEFAULT 0 CONSTRAINT jobs_failures_not_null NOT NULL,
    losses integer DEFAULT 0 CONSTRAINT jobs_losses_not_null NOT NULL,
    max_attempts integer DEFAULT 3 CONSTRAINT jobs_max_attempts_not_null NOT NULL,
    state mainspring.job_state DEFAULT 'queued'::mainspring.job_state CONSTRAINT jobs_state_not_null NOT NULL,
    waits_for mainspring.waits_for,
    priority smallint DEFAULT 100 CONSTRAINT jobs_priority_not_null NOT NULL,
    tenant_id text DEFAULT 'default'::text CONSTRAINT jobs_tenant_id_not_null NOT NULL COLLATE pg_catalog."C",
    queue text DEFAULT 'default'::text CONSTRAINT jobs_queue_not_null NOT NULL COLLATE pg_catalog."C",
    definition text CONSTRAINT jobs_definition_not_null NOT NULL COLLATE pg_catalog."C",
    payload jsonb DEFAULT '{}'::jsonb CONSTRAINT jobs_payload_not_null NOT NULL,
    dedupe_key text COLLATE pg_catalog."C",
    correlation_id text,
    tags text[],
    progress jsonb,
    checkpoint jsonb,
    result jsonb,
    last_error text,
    schedule_id bigint,
    slot_at timestamp with time zone,
    origin jsonb,
    definition_version integer DEFAULT 1 CONSTRAINT jobs_definition_version_not_null NOT NULL,
    created_by text COLLATE pg_catalog."C",
    delivery text,
    source text,
    ready_at timestamp with time zone,
    CONSTRAINT jobs_history_are_final CHECK (((state = ANY (ARRAY['succeeded'::mainspring.job_state, 'failed'::mainspring.job_state, 'dead_letter'::mainspring.job_state, 'canceled'::mainspring.job_state])) AND (finished_at IS NOT NULL) AND (fence IS NULL) AND (worker_id IS NULL) AND (waits_for IS NULL)))
)
PARTITION BY RANGE (finished_at);

CREATE TABLE mainspring.people (
    name text NOT NULL COLLATE pg_catalog."C",
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    disabled_at timestamp with time zone,
    last_seen_at timestamp with time zone,
    tenant_id text COLLATE pg_catalog."C",
    role text NOT NULL,
    created_by text NOT NULL,
    person_id bigint NOT NULL,
    CONSTRAINT people_name_check CHECK ((name <> ''::text)),
    CONSTRAINT people_operators_have_no_tenant CHECK (((role = 'operator'::text) = (tenant_id IS NULL))),
    CONSTRAINT people_role_check CHECK ((role = ANY (ARRAY['operator'::text, 'admin'::text, 'member'::text, 'viewer'::text])))
);

CREATE TABLE mainspring.tokens (
    token_id bigint NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone,
    last_used_at timestamp with time zone,
    revoked_at timestamp with time zone,
    kind text DEFAULT 'token'::text NOT NULL,
    tenant_id text COLLATE pg_catalog."C",
    role text NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    person text COLLATE pg_catalog."C",
    prefix text NOT NULL,
    digest bytea NOT NULL,
    scopes text[],
    created_by text NOT NULL,
    person_id bigint,
    created_by_id text,
    voter text,
    ends_by timestamp with time zone,
    tenants text[] COLLATE pg_catalog."C",
    CONSTRAINT tokens_digest_check CHECK ((octet_length(digest) = 32)),
    CONSTRAINT tokens_kind_check CHECK ((kind = ANY (ARRAY['token'::text, 'session'::text, 'login'::text, 'console'::text]))),
    CONSTRAINT tokens_name_check CHECK ((name <> ''::text)),
    CONSTRAINT tokens_of_people CHECK (((kind = ANY (ARRAY['token'::text, 'console'::text])) OR (person IS NOT NULL))),
    CONSTRAINT tokens_role_check CHECK ((role = ANY (ARRAY['operator'::text, 'admin'::text, 'member'::text, 'viewer'::text, 'worker'::text]))),
    CONSTRAINT tokens_scopes_check CHECK ((cardinality(scopes) > 0)),
    CONSTRAINT tokens_tenant_of_role CHECK (
CASE role
    WHEN 'operator'::text THEN (tenant_id IS NULL)
    WHEN 'worker'::text THEN true
    ELSE (tenant_id IS NOT NULL)
END),
    CONSTRAINT tokens_tenants_of_workers CHECK (((tenants IS NULL) OR ((role = 'worker'::text) AND (tenant_id IS NULL) AND ((cardinality(tenants) >= 1) AND (cardinality(tenants) <= 100)))))
);

CREATE TABLE mainspring.triggers (
    trigger_id bigint NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    priority smallint,
    is_enabled boolean DEFAULT true NOT NULL,
    tenant_id text DEFAULT 'default'::text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    event text NOT NULL COLLATE pg_catalog."C",
    definition text NOT NULL COLLATE pg_catalog."C",
    payload jsonb DEFAULT '{}'::jsonb NOT NULL,
    unknown_paths text DEFAULT 'refuse'::text NOT NULL,
    dedupe_window interval,
    queue text COLLATE pg_catalog."C",
    CONSTRAINT triggers_dedupe_window_check CHECK (((dedupe_window > '00:00:00'::interval) AND (dedupe_window <= '1000 years'::interval))),
    CONSTRAINT triggers_payload_check CHECK ((jsonb_typeof(payload) = 'object'::text)),
    CONSTRAINT triggers_priority_check CHECK (((priority >= 0) AND (priority <= 1000))),
    CONSTRAINT triggers_unknown_paths_check CHECK ((unknown_paths = ANY (ARRAY['refuse'::text, 'null'::text])))
);

CREATE FUNCTION mainspring.contents_of_tenant(tenant text) RETURNS jsonb
    LANGUAGE sql STABLE
    RETURN jsonb_build_object('live_jobs', (SELECT count(*) AS count FROM mainspring.jobs WHERE (jobs.tenant_id = contents_of_tenant.tenant)), 'finished_jobs', (SELECT count(*) AS count FROM mainspring.jobs_history WHERE (jobs_history.tenant_id = contents_of_tenant.tenant)), 'flows', (SELECT count(*) AS count FROM mainspring.flows WHERE (flows.tenant_id = contents_of_tenant.tenant)), 'schedules', (SELECT count(*) AS count FROM mainspring.schedules WHERE (schedules.tenant_id = contents_of_tenant.tenant)), 'triggers', (SELECT count(*) AS count FROM mainspring.triggers WHERE (triggers.tenant_id = contents_of_tenant.tenant)), 'events', (SELECT count(*) AS count FROM mainspring.events WHERE (events.tenant_id = contents_of_tenant.tenant)), 'people', (SELECT count(*) AS count FROM mainspring.people WHERE (people.tenant_id = contents_of_tenant.tenant)), 'tokens', (SELECT count(*) AS count FROM mainspring.tokens WHERE (tokens.tenant_id = contents_of_tenant.tenant)));

CREATE FUNCTION mainspring.counted_from(schedule mainspring.schedules) RETURNS timestamp with time zone
    LANGUAGE sql IMMUTABLE
    RETURN CASE WHEN (((schedule).cron ~* '^\s*@every'::text) OR ((schedule).every IS NOT NULL)) THEN (schedule).anchor_at ELSE NULL::timestamp with time zone END;

CREATE FUNCTION mainspring.create_schedule(spec jsonb) RETURNS bigint
    LANGUAGE plpgsql
    AS $$
declare
    stored mainspring.schedules := mainspring.store_schedule(
        jsonb_populate_record(null::mainspring.schedules, spec));
begin
    if stored.schedule_id is null then
        perform mainspring.refuse('MS042',
            'schedule ' || quote_literal(spec ->> 'name') || ' already exists',
            jsonb_build_object('name', spec ->> 'name'));
    end if;
    return stored.schedule_id;
end
$$;

CREATE FUNCTION mainspring.creator_of(created_by text, schedule_id bigint, origin jsonb) RETURNS text
    LANGUAGE sql IMMUTABLE
    RETURN CASE WHEN ((created_by IS NULL) AND (schedule_id IS NOT NULL)) THEN ('system:scheduler:'::text || COALESCE((origin ->> 'launcher'::text), (origin ->> 'schedule'::text))) ELSE created_by END;

CREATE FUNCTION mainspring.cron_check_count(words text[]) RETURNS void
    LANGUAGE plpgsql IMMUTABLE
    AS $_$
declare
    needed text := 'five fields are needed (minute hour day month weekday)';
    hint text := '';
begin
    if words = '{""}' then
        perform mainspring.refuse_schedule('cron', 'is empty; ' || needed || ', or @daily');
    elsif words[1] ~* '^(CRON_)?TZ=' then
        perform mainspring.refuse_schedule('cron',
            words[1] || ' is not supported here; set zone instead');
    elsif cardinality(words) = 6 then
        hint := '; for seconds use @every, such as @every 90s';
    elsif array_to_string(words, ' ')
          ~* '^(hourly|daily|midnight|weekly|monthly|yearly|annually)$' then
        hint := '; did you mean @' || lower(words[1] collate "C") || '?';
    end if;
    if cardinality(words) <> 5 then
        perform mainspring.refuse_schedule('cron',
            needed || ', not ''' || array_to_string(words, ' ') || '''' || hint);
    end if;
end
$_$;

CREATE FUNCTION mainspring.cron_check_every(words text[]) RETURNS void
    LANGUAGE plpgsql IMMUTABLE
    AS $_$
declare
    parts text[] := regexp_match(lower(words[2] collate "C"),
                                 '^(?:([0-9]+)d)?(?:([0-9]+)h)?(?:([0-9]+)m)?(?:([0-9]+)s)?$');
    seconds numeric;
begin
    if cardinality(words) <> 2 or parts is null or num_nonnulls(variadic parts) = 0 then
        perform mainspring.refuse_schedule('cron',
            '@every needs a duration in d, h, m and s, such as 1h30m');
    end if;
    seconds := coalesce(parts[1]::numeric * 86400, 0) + coalesce(parts[2]::numeric * 3600, 0)
               + coalesce(parts[3]::numeric * 60, 0) + coalesce(parts[4]::numeric, 0);
    if seconds not between 1 and 366 * 86400 then
        perform mainspring.refuse_schedule('cron',
            '@every ' || words[2] || ' is not from 1s to 366d');
    end if;
end
$_$;

CREATE FUNCTION mainspring.cron_check_name(words text[]) RETURNS void
    LANGUAGE plpgsql IMMUTABLE
    AS $$
declare
    names text[] := '{@hourly,@daily,@midnight,@weekly,@monthly,@yearly,@annually}';
    name text := lower(words[1] collate "C");
begin
    if name = '@every' then
        perform mainspring.cron_check_every(words);
    elsif name <> all (names) then
        perform mainspring.refuse_schedule('cron', 'there is no ' || words[1] || '; there are '
            || array_to_string(names, ', ') || ' and @every');
    elsif cardinality(words) > 1 then
        perform mainspring.refuse_schedule('cron', 'nothing may follow ' || words[1]);
    end if;
end
$$;

CREATE FUNCTION mainspring.cron_check_text(expression text) RETURNS void
    LANGUAGE plpgsql IMMUTABLE
    AS $$
declare
    strange integer;
begin
    if length(expression) > 200 then
        perform mainspring.refuse_schedule('cron', 'is '
            || to_char(length(expression), 'FM999,999,999') || ' characters long; 200 are allowed');
    end if;
    strange := ascii(substring(expression collate "C" from '[^\t -~]'));
    if strange is not null then
        perform mainspring.refuse_schedule('cron', 'the character '''
            || case when strange < 256 then '\x' || lpad(to_hex(strange), 2, '0')
                    else '\u' || lpad(to_hex(strange), 4, '0') end || ''' is not allowed');
    end if;
end
$$;

CREATE FUNCTION mainspring.cron_field(place integer, field text, key text) RETURNS integer[]
    LANGUAGE plpgsql IMMUTABLE
    AS $$
declare
    items text[] := string_to_array(upper(field collate "C"), ',');
    item text;
    matches integer[] := '{}';
begin
    if cardinality(items) > 60 then
        perform mainspring.cron_refuse(place,
            'the list has ' || cardinality(items) || ' items; 60 are allowed');
    end if;
    foreach item in array items loop
        matches := matches || mainspring.cron_item(place, item, key);
    end loop;
    return matches;
end
$$;

CREATE FUNCTION mainspring.cron_has_date(days integer[], months integer[], weekdays integer[]) RETURNS boolean
    LANGUAGE sql IMMUTABLE
    RETURN (EXISTS (SELECT FROM (SELECT DISTINCT unnest(CASE WHEN (month.month = 2) THEN ARRAY[28, 29] WHEN (month.month = ANY (ARRAY[4, 6, 9, 11])) THEN ARRAY[30] ELSE ARRAY[31] END) AS length FROM unnest(cron_has_date.months) month(month)) kind, generate_series(0, 6) beginning(beginning), LATERAL generate_series(1, kind.length) day(day), LATERAL (SELECT (((beginning.beginning + day.day) - 1) % 7) AS weekday, (((beginning.beginning + kind.length) - 1) % 7) AS last_weekday) shown WHERE (((day.day = ANY (cron_has_date.days)) OR (('-1'::integer = ANY (cron_has_date.days)) AND (day.day = kind.length)) OR (('-2'::integer = ANY (cron_has_date.days)) AND (day.day = (kind.length - CASE shown.last_weekday WHEN 0 THEN 2 WHEN 6 THEN 1 ELSE 0 END)))) AND ((shown.weekday = ANY (cron_has_date.weekdays)) OR (((10 * ((day.day + 6) / 7)) + shown.weekday) = ANY (cron_has_date.weekdays)) OR (((100 + shown.weekday) = ANY (cron_has_date.weekdays)) AND ((day.day + 7) > kind.length))))));

CREATE FUNCTION mainspring.cron_item(place integer, item text, key text) RETURNS integer[]
    LANGUAGE plpgsql IMMUTABLE
    AS $_$
declare
    slash integer := position('/' in item);
    step integer;
    span record;
begin
    if item = '' then
        perform mainspring.cron_refuse(place, 'an item of the list is empty');
    elsif place = 3 and item in ('L', 'LW') then
        return array[case item when 'L' then -1 else -2 end];
    elsif place = 5 and item ~ '^([0-9]+L|[A-Z0-9_]+#[A-Z0-9_]+)$' then
        return array[mainspring.cron_weekday(item)];
    end if;
    if slash > 0 then
        step := mainspring.cron_step(place, item, substr(item, slash + 1));
    end if;
    span := mainspring.cron_span(
        place, item, case when slash > 0 then left(item, slash - 1) else item end, step, key);
    return array(select case when place = 5 then value % 7 else value end
                   from generate_series(span.first, span.last, coalesce(step, 1)) as value);
end
$_$;

CREATE FUNCTION mainspring.cron_place(place integer, OUT name text, OUT low integer, OUT high integer, OUT spread_high integer, OUT size integer, OUT unit text, OUT names text[], OUT forms text) RETURNS record
    LANGUAGE sql IMMUTABLE
    AS $$
    select known.name, known.low, known.high, known.spread_high, known.size, known.unit,
           string_to_array(known.names, ' '), '*, ranges, steps, lists' || known.forms
      from (values
        (1, 'minute', 0, 59, 59, 60, 'm', null, ' and H'),
        (2, 'hour', 0, 23, 23, 24, 'h', null, ' and H'),
        (3, 'day of month', 1, 31, 28, 31, 'd', null, ', L, LW and H'),
        (4, 'month', 1, 12, 12, 12, null,
         'JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC', ' and H'),
        (5, 'day of week', 0, 7, 6, 7, null, 'SUN MON TUE WED THU FRI SAT', ', 5L, MON#1 and H'))
        as known (number, name, low, high, spread_high, size, unit, names, forms)
     where known.number = place
$$;

CREATE FUNCTION mainspring.cron_range(place integer, item text, range text, OUT first integer, OUT last integer) RETURNS record
    LANGUAGE plpgsql IMMUTABLE
    AS $$
declare
    dash integer := position('-' in range);
    field record := mainspring.cron_place(place);
begin
    first := mainspring.cron_value(
        place, item, case when dash = 0 then range else left(range, dash - 1) end);
    last := first;
    if dash > 0 then
        last := mainspring.cron_value(place, item, substr(range, dash + 1));
        if substr(range, dash + 1) = 'SUN' and first > 0 then
            last := 7;
        end if;
    end if;
    if last < first then
        perform mainspring.cron_refuse(place, format(
            '%s runs backwards; write %s-%s,%s-%s to wrap around',
            range, first, field.high, field.low, last));
    end if;
end
$$;

CREATE FUNCTION mainspring.cron_refuse(place integer, problem text) RETURNS void
    LANGUAGE plpgsql IMMUTABLE
    AS $$
begin
    perform mainspring.refuse_schedule('cron ' || (mainspring.cron_place(place)).name, problem);
end
$$;

CREATE FUNCTION mainspring.cron_span(place integer, item text, base text, step integer, key text, OUT first integer, OUT last integer) RETURNS record
    LANGUAGE plpgsql IMMUTABLE
    AS $_$
declare
    field record := mainspring.cron_place(place);
    range record;
begin
    if base in ('*', '?', 'H') then
        first := field.low;
        last := case base when 'H' then field.spread_high else field.high end;
    else
        range := mainspring.cron_range(place, item, case
            when base ~ '^H\([A-Z0-9_]+-[A-Z0-9_]+\)$' then substr(base, 3, length(base) - 3)
            else base end);
        first := range.first;
        last := case when step is null or position('-' in base) > 0 then range.last
                     else field.high end;
    end if;
    if base ~ '^H' then
        first := first + mainspring.cron_spread(
            place, key, least(coalesce(step, last - first + 1), last - first + 1));
        last := case when step is null then first else last end;
    end if;
end
$_$;

CREATE FUNCTION mainspring.cron_spread(place integer, key text, size integer) RETURNS integer
    LANGUAGE plpgsql IMMUTABLE
    AS $$
declare
    digest bytea := sha256(convert_to((mainspring.cron_place(place)).name, 'UTF8')
                           || '\x00'::bytea || convert_to(key, 'UTF8'));
    hash bigint := ('x' || encode(substr(digest, 1, 8), 'hex'))::bit(64)::bigint;
begin
    return mod(hash + case when hash < 0 then 18446744073709551616 else 0 end, size::numeric);
end
$$;

CREATE FUNCTION mainspring.cron_step(place integer, item text, step text) RETURNS integer
    LANGUAGE plpgsql IMMUTABLE
    AS $_$
declare
    field record := mainspring.cron_place(place);
begin
    if step !~ '^[0-9]+$' then
        perform mainspring.cron_refuse(place, 'the step of ' || item || ' is not a whole number');
    end if;
    if step::numeric = 0 then
        perform mainspring.cron_refuse(place, item || ' has a step of zero');
    end if;
    if step::numeric > field.size then
        perform mainspring.cron_refuse(place, item || ' has a step larger than ' || field.size
            || ', which is never reached'
            || coalesce('; for a fixed interval write @every ' || step::numeric || field.unit, ''));
    end if;
    return step::integer;
end
$_$;

CREATE FUNCTION mainspring.cron_value(place integer, item text, value text) RETURNS integer
    LANGUAGE plpgsql IMMUTABLE
    AS $_$
declare
    field record := mainspring.cron_place(place);
begin
    if value = any (field.names) then
        return array_position(field.names, value) - 1 + field.low;
    end if;
    if value !~ '^[0-9]+$' then
        perform mainspring.cron_refuse(place, concat_ws(', ',
            format('''%s'' is not understood; allowed are %s to %s', item, field.low, field.high),
            field.names[1] || ' to ' || field.names[cardinality(field.names)], field.forms));
    end if;
    if value::numeric not between field.low and field.high then
        perform mainspring.cron_refuse(
            place, format('%s is not from %s to %s', value, field.low, field.high));
    end if;
    return value::integer;
end
$_$;

CREATE FUNCTION mainspring.cron_weekday(item text) RETURNS integer
    LANGUAGE plpgsql IMMUTABLE
    AS $_$
declare
    week text := split_part(item, '#', 2);
    weekday integer := mainspring.cron_value(5, item, case when week = '' then rtrim(item, 'L')
                                                           else split_part(item, '#', 1) end) % 7;
begin
    if week = '' then
        return 100 + weekday;
    end if;
    if week !~ '^[1-5]$' then
        perform mainspring.cron_refuse(5,
            item || ' asks for week ' || week || ' of a month; use 1 to 5');
    end if;
    return 10 * week::integer + weekday;
end
$_$;

CREATE FUNCTION mainspring.day_of(instant timestamp with time zone) RETURNS date
    LANGUAGE sql STABLE
    RETURN ((instant AT TIME ZONE 'UTC'::text))::date;

CREATE FUNCTION mainspring.decide_outcomes(parents bigint[], most integer, OUT children bigint[], OUT decided integer) RETURNS record
    LANGUAGE plpgsql
    AS $$
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

CREATE FUNCTION mainspring.declare_schedule(spec jsonb, overwrite boolean) RETURNS text
    LANGUAGE plpgsql
    AS $$
declare
    wanted jsonb := mainspring.schedule_facts(
        jsonb_populate_record(null::mainspring.schedules, spec));
    schedule mainspring.schedules;
    changes jsonb;
begin
    -- The common case by far: the same program starts once more.
    if not overwrite and exists (
        select from mainspring.schedules as s
         where s.tenant_id = spec ->> 'tenant_id' and s.name = spec ->> 'name'
           and s.declared = wanted) then
        return 'unchanged';
    end if;
    schedule := mainspring.store_schedule(jsonb_populate_record(
        null::mainspring.schedules, spec || jsonb_build_object('declared', wanted)));
    if schedule.schedule_id is not null then
        return 'created';
    end if;
    schedule := mainspring.find_schedule(spec ->> 'tenant_id', spec ->> 'name');
    if schedule.declared is null and not overwrite then
        return 'kept';
    end if;
    changes := mainspring.declared_changes(
        wanted, coalesce(schedule.declared, '{}'), mainspring.schedule_facts(schedule), overwrite);
    if changes is null and schedule.declared = wanted then
        return 'unchanged';
    end if;
    perform mainspring.store_schedule(jsonb_populate_record(
        schedule, coalesce(changes, '{}') || jsonb_build_object('declared', wanted)));
    return case when changes is null then 'kept' else 'changed' end;
end
$$;

CREATE FUNCTION mainspring.part_of(field text) RETURNS text
    LANGUAGE sql IMMUTABLE
    RETURN CASE WHEN (field = ANY (ARRAY['cron'::text, 'every'::text, 'at'::text, 'zone'::text])) THEN 'timing'::text WHEN (field = ANY (ARRAY['starts_at'::text, 'ends_at'::text])) THEN 'period'::text WHEN (field = ANY (ARRAY['launcher'::text, 'condition_sql'::text, 'gauge_sql'::text, 'gauge_lower'::text, 'gauge_upper'::text, 'gauge_bounds'::text])) THEN 'condition'::text ELSE field END;

CREATE FUNCTION mainspring.declared_changes(wanted jsonb, known jsonb, current jsonb, overwrite boolean) RETURNS jsonb
    LANGUAGE sql IMMUTABLE
    RETURN (WITH field AS (SELECT name.name, mainspring.part_of(name.name) AS part FROM jsonb_object_keys(((declared_changes.wanted || declared_changes.known) || declared_changes.current)) name(name)), touched AS (SELECT field_1.part FROM field field_1 WHERE ((declared_changes.current -> field_1.name) IS DISTINCT FROM (declared_changes.known -> field_1.name))) SELECT jsonb_object_agg(field.name, (declared_changes.wanted -> field.name)) AS jsonb_object_agg FROM field WHERE (((declared_changes.wanted -> field.name) IS DISTINCT FROM (declared_changes.current -> field.name)) AND (declared_changes.overwrite OR (((declared_changes.wanted -> field.name) IS DISTINCT FROM (declared_changes.known -> field.name)) AND (NOT (field.part IN (SELECT touched.part FROM touched))))) AND ((field.name <> 'condition_role'::text) OR (declared_changes.wanted ? field.name))));

CREATE FUNCTION mainspring.dedupe_key_of(asked mainspring.jobs, dedupe_by text, dedupe_window interval, on_duplicate text) RETURNS text
    LANGUAGE plpgsql STABLE
    AS $$
begin
    if dedupe_window <= '0' then
        perform mainspring.refuse_option('dedupe_window',
            'dedupe_window must be more than zero');
    elsif dedupe_window > mainspring.longest_delay() then
        perform mainspring.refuse_option('dedupe_window',
            'dedupe_window must be at most 36500 days');
    end if;
    perform mainspring.check_text('dedupe_key', asked.dedupe_key);
    if coalesce(on_duplicate, '') not in ('raise', 'existing') then
        perform mainspring.refuse_option('on_duplicate',
            'on_duplicate must be ''raise'' or ''existing''');
    end if;
    if dedupe_by is not null then
        if dedupe_by <> 'content' or asked.dedupe_key is not null then
            perform mainspring.refuse_option('dedupe_by',
                'dedupe_by must be ''content'' and cannot be used with dedupe_key');
        end if;
        return 'content:' || mainspring.content_of(asked);
    end if;
    if dedupe_window is not null and asked.dedupe_key is null then
        perform mainspring.refuse_option('dedupe_window',
            'dedupe_window needs dedupe_key or dedupe_by');
    end if;
    return asked.dedupe_key;
end
$$;

CREATE FUNCTION mainspring.definition_text(definition mainspring.definitions) RETURNS text
    LANGUAGE sql STABLE
    RETURN ((to_jsonb(definition) || jsonb_build_object('timeout', EXTRACT(epoch FROM (definition).timeout), 'backoff_base', EXTRACT(epoch FROM (definition).backoff_base), 'backoff_cap', EXTRACT(epoch FROM (definition).backoff_cap), 'backoff_jitter', EXTRACT(epoch FROM (definition).backoff_jitter), 'retention', EXTRACT(epoch FROM (definition).retention), 'rate_period', EXTRACT(epoch FROM (definition).rate_period), 'approval_expiry', EXTRACT(epoch FROM (definition).approval_expiry))))::text;

CREATE FUNCTION mainspring.delete_from_tenant(tenant text, most integer, OUT what text, OUT deleted bigint, OUT running bigint, OUT is_done boolean) RETURNS record
    LANGUAGE plpgsql
    AS $$
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

CREATE FUNCTION mainspring.delete_job(job_id bigint, tenant text DEFAULT 'default'::text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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

COMMENT ON FUNCTION mainspring.delete_job(job_id bigint, tenant text) IS 'Removes a job that is not running, with its attempts.';

CREATE FUNCTION mainspring.delete_rest_of_tenant(tenant text) RETURNS void
    LANGUAGE plpgsql
    AS $$
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

CREATE FUNCTION mainspring.did_you_mean(name text, known text[]) RETURNS text
    LANGUAGE sql IMMUTABLE
    RETURN COALESCE((('; did you mean '::text || mainspring.closest(name, known)) || '?'::text), ''::text);

CREATE FUNCTION mainspring.differing(facts jsonb, others jsonb) RETURNS jsonb
    LANGUAGE plpgsql STABLE
    AS $$
begin
    return (
        select jsonb_object_agg(name, case when name = 'payload'
                   then mainspring.shown_payload(facts ->> 'definition', value) else value end)
          from jsonb_each(facts) as part (name, value)
         where others -> name is distinct from value);
end
$$;

CREATE TABLE mainspring.dispatches (
    event_id bigint NOT NULL,
    trigger_id bigint NOT NULL,
    job_id bigint,
    dispatched_at timestamp with time zone DEFAULT now() NOT NULL,
    replay integer NOT NULL,
    outcome text NOT NULL,
    trigger_name text NOT NULL COLLATE pg_catalog."C",
    error text,
    CONSTRAINT dispatches_have_a_job_or_an_error CHECK ((((outcome = 'failed'::text) = (job_id IS NULL)) AND ((outcome = 'failed'::text) = (error IS NOT NULL)))),
    CONSTRAINT dispatches_outcome_check CHECK ((outcome = ANY (ARRAY['enqueued'::text, 'duplicate'::text, 'failed'::text])))
);

CREATE FUNCTION mainspring.dispatch(event_ids bigint[], plans jsonb) RETURNS SETOF mainspring.dispatches
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
declare
    plan record;
    made record;
    result mainspring.dispatches;
begin
    perform mainspring.lock_windows(array(
        select mainspring.window_key(windowed.trigger_id, windowed.tenant_id,
                                     windowed.definition, windowed.payload)
          from jsonb_to_recordset(plans) as windowed (
               trigger_id bigint, tenant_id text, definition text, payload text,
               dedupe_window text)
         where windowed.dedupe_window is not null and windowed.payload is not null));
    for plan in
        select * from jsonb_to_recordset(plans) as planned (
            event_id bigint, replay integer, tenant_id text, correlation_id text,
            trigger_id bigint, trigger_name text, definition text, queue text, priority integer,
            dedupe_window text, payload text, error text)
    loop
        continue when exists (select from mainspring.dispatches as known
                               where known.event_id = plan.event_id
                                 and known.trigger_id = plan.trigger_id
                                 and known.replay = plan.replay);
        select plan.event_id, plan.trigger_id, null, now(), plan.replay, 'failed',
               plan.trigger_name, plan.error
          into result;
        if plan.error is null then
            begin
                perform set_config('mainspring.creator', 'trigger:' || plan.trigger_name, true);
                select * into made from mainspring.enqueue_job(
                    plan.definition, plan.payload::jsonb, plan.tenant_id, plan.queue,
                    plan.priority, dedupe_key => case when plan.dedupe_window is not null then
                        mainspring.window_key(plan.trigger_id, plan.tenant_id, plan.definition,
                                              plan.payload) end,
                    dedupe_window => plan.dedupe_window::interval, on_duplicate => 'existing',
                    correlation_id => plan.correlation_id);
                result.job_id := made.job_id;
                result.outcome := case when made.is_new then 'enqueued' else 'duplicate' end;
            exception when others then
                -- What another try or an operator may mend is no fault of the event. Python has
                -- the same rule (domain/sqlstates.py).
                if sqlstate ~ '^(08|40|53|57|58|0A|25|26|28|3D|3F|42)' or sqlstate = '55P03' then
                    raise;
                end if;
                result.error := left(sqlerrm, 2000);
            end;
        end if;
        insert into mainspring.dispatches values (result.*);
        return next result;
    end loop;
    update mainspring.events as event set handled_at = now(), replay_trigger = null
     where event.event_id = any (event_ids);
end
$$;

CREATE FUNCTION mainspring.drop_partition(name text) RETURNS void
    LANGUAGE plpgsql
    AS $_$
declare
    parents bigint[] := '{}';
begin
    perform pg_advisory_xact_lock(hashtext('mainspring.partitions'));
    if name !~ '^(jobs_history|attempts)_\d{8}$' or to_regclass('mainspring.' || name) is null then
        return;
    end if;
    -- Against whoever retries one of its jobs.
    execute format('lock table mainspring.%I in share mode', name);
    if name like 'jobs_history_%' then
        parents := mainspring.parents_in(name);
        execute format(
            'insert into mainspring.changes (tenant_id, moved, state, day, count) '
            'select tenant_id, ''pruned'', state, mainspring.day_of(finished_at), count(*) '
            'from mainspring.%I where job_id <> all ($1) group by 1, 3, 4', name) using parents;
    end if;
    execute format('alter table mainspring.%I detach partition mainspring.%I',
                   regexp_replace(name, '_\d{8}$', ''), name);
    if cardinality(parents) > 0 then
        execute format('insert into mainspring.jobs_history '
                       'select * from mainspring.%I where job_id = any ($1)', name) using parents;
    end if;
    execute format('drop table mainspring.%I', name);
end
$_$;

CREATE FUNCTION mainspring.drop_partitions() RETURNS integer
    LANGUAGE plpgsql
    SET lock_timeout TO '200ms'
    AS $$
declare
    past text;
    dropped integer := 0;
begin
    for past in select * from mainspring.past_partitions() loop
        perform mainspring.drop_partition(past);
        dropped := dropped + 1;
    end loop;
    return dropped;
end
$$;

CREATE FUNCTION mainspring.earlier_contents(tenant text, definition text, payload jsonb, was_compared_by jsonb) RETURNS text[]
    LANGUAGE sql STABLE
    AS $$
    select array[mainspring.content_digest(tenant, definition, was_compared_by),
                 mainspring.content_digest(tenant, definition, payload),
                 mainspring.legacy_content(definition, payload), md5(payload::text)]
$$;

CREATE FUNCTION mainspring.emit(name text, context jsonb DEFAULT '{}'::jsonb, tenant text DEFAULT 'default'::text, correlation_id text DEFAULT NULL::text) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    emitted bigint;
begin
    perform mainspring.ensure_visible(tenant);
    perform mainspring.check_event(emit.name, emit.context);
    perform mainspring.check_text('correlation_id', emit.correlation_id);
    perform mainspring.ensure_tenant(emit.tenant);
    insert into mainspring.events (tenant_id, name, context, correlation_id, emitted_at)
    values (emit.tenant, emit.name, emit.context, emit.correlation_id, clock_timestamp())
    returning event_id into emitted;
    perform mainspring.notify_event();
    return emitted;
end
$$;

COMMENT ON FUNCTION mainspring.emit(name text, context jsonb, tenant text, correlation_id text) IS 'Emits an event in the caller''s transaction and returns its id.';

CREATE FUNCTION mainspring.end_sessions(person bigint, session bigint, tenant text) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    ended mainspring.tokens;
    total bigint := 0;
begin
    perform mainspring.ensure_visible(tenant);
    for ended in
        delete from mainspring.tokens as t
         where t.person_id = end_sessions.person and t.kind = 'session'
           and t.token_id = coalesce(end_sessions.session, t.token_id)
           and t.tenant_id is not distinct from tenant and mainspring.is_visible(t.tenant_id)
        returning *
    loop
        perform mainspring.note_action(coalesce(ended.tenant_id, ''), 'end', 'session', ended.name,
                                       null, null, null);
        total := total + 1;
    end loop;
    return total;
end
$$;

CREATE FUNCTION mainspring.end_spent_jobs(job_ids bigint[], is_worker_dead boolean) RETURNS void
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
declare
    ended mainspring.jobs;
    reason text;
begin
    for ended in
        delete from mainspring.jobs as job
         where job.job_id = any (end_spent_jobs.job_ids) and job.delivery is not null
           and mainspring.is_spent(job, is_worker_dead)
        returning job.*
    loop
        reason := case when is_worker_dead then mainspring.why_lost(ended.worker_id)
                       else 'worker ' || ended.worker_id || ' left before the job was done' end;
        insert into mainspring.jobs_history
        select past.* from mainspring.history_of(
            ended, 'dead_letter', started_at => ended.started_at,
            error => 'lost, and not run again because it runs at most once: ' || reason) as past;
        insert into mainspring.changes (
            tenant_id, queue, definition, moved, state, attempt, count)
        values (ended.tenant_id, ended.queue, ended.definition, 'ended', 'dead_letter', 'lost', 1);
        if not is_worker_dead then
            insert into mainspring.attempts
                (job_id, fence, worker_id, started_at, finished_at, number, status, error,
                 error_key)
            values (ended.job_id, ended.fence, ended.worker_id, ended.started_at, now(),
                    ended.attempt, 'lost', reason, mainspring.lost_worker_key());
            insert into mainspring.failures
                (tenant_id, queue, definition, error_key, sample, count, job_ids, tags)
            values (ended.tenant_id, ended.queue, ended.definition, mainspring.lost_worker_key(),
                    reason, 1, array[ended.job_id], ended.tags);
        end if;
        if ended.limit_name is not null then
            perform mainspring.notify_limit(ended.limit_name, ended.limit_key, ended.tenant_id);
        end if;
        if exists (select from mainspring.dependencies as d
                    where d.parent_id = ended.job_id and d.outcome is null) then
            perform mainspring.notify_parents();
        end if;
    end loop;
end
$$;

CREATE FUNCTION mainspring.enqueue(definition text, payload jsonb DEFAULT '{}'::jsonb, tenant text DEFAULT 'default'::text, queue text DEFAULT NULL::text, priority integer DEFAULT NULL::integer, max_attempts integer DEFAULT NULL::integer, scheduled_for timestamp with time zone DEFAULT NULL::timestamp with time zone, delay interval DEFAULT NULL::interval, deadline timestamp with time zone DEFAULT NULL::timestamp with time zone, dedupe_key text DEFAULT NULL::text, dedupe_by text DEFAULT NULL::text, dedupe_window interval DEFAULT NULL::interval, idempotency_key text DEFAULT NULL::text, on_duplicate text DEFAULT 'raise'::text, correlation_id text DEFAULT NULL::text, tags text[] DEFAULT NULL::text[], limit_key text DEFAULT NULL::text, approvals_needed integer DEFAULT NULL::integer, after bigint[] DEFAULT NULL::bigint[], on_parent_failure text DEFAULT 'cancel'::text, created_by text DEFAULT NULL::text, source text DEFAULT NULL::text, delivery text DEFAULT NULL::text) RETURNS bigint
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    select job_id from mainspring.enqueue_job(
        definition, payload, tenant, queue, priority, max_attempts, scheduled_for, delay, deadline,
        dedupe_key, dedupe_by, dedupe_window, idempotency_key, on_duplicate, correlation_id, tags,
        limit_key, approvals_needed, after, on_parent_failure, created_by, source, delivery)
$$;

COMMENT ON FUNCTION mainspring.enqueue(definition text, payload jsonb, tenant text, queue text, priority integer, max_attempts integer, scheduled_for timestamp with time zone, delay interval, deadline timestamp with time zone, dedupe_key text, dedupe_by text, dedupe_window interval, idempotency_key text, on_duplicate text, correlation_id text, tags text[], limit_key text, approvals_needed integer, after bigint[], on_parent_failure text, created_by text, source text, delivery text) IS 'Enqueues one job in the caller''s transaction and returns its id.';

CREATE FUNCTION mainspring.enqueue_asked(asked mainspring.jobs, delay interval, dedupe_by text, dedupe_window interval, idempotency_key text, on_duplicate text, approvals_needed integer, after bigint[], on_parent_failure text, OUT job_id bigint, OUT is_new boolean) RETURNS record
    LANGUAGE plpgsql
    AS $$
declare
    defined mainspring.definitions := mainspring.active_definition(asked.definition);
    has_parents boolean := coalesce(cardinality(after), 0) > 0;
    content text;
begin
    perform mainspring.ensure_open(asked.definition);
    perform mainspring.ensure_visible(asked.tenant_id);
    perform mainspring.ensure_tenant(asked.tenant_id);
    perform mainspring.check_payload(asked.payload);
    if num_nonnulls(delay, asked.scheduled_for, asked.deadline_at) > 0 then
        perform mainspring.check_times(delay, asked.scheduled_for, asked.deadline_at);
    end if;
    if num_nonnulls(asked.queue, asked.correlation_id, asked.tags, idempotency_key,
                    asked.limit_key) > 0 then
        perform mainspring.check_words(asked.queue, asked.correlation_id, asked.tags);
        perform mainspring.check_text('idempotency_key', idempotency_key);
        perform mainspring.check_text('limit_key', asked.limit_key);
    end if;
    perform mainspring.check_origin(asked.created_by, asked.source);
    asked := mainspring.asked_now(asked, delay);
    perform mainspring.check_delivery(asked.delivery, asked.max_attempts, defined);
    asked.dedupe_key := mainspring.dedupe_key_of(asked, dedupe_by, dedupe_window, on_duplicate);
    if approvals_needed is not null then
        defined := mainspring.with_approvals(defined, approvals_needed);
    end if;
    content := case when idempotency_key is not null then mainspring.content_of(asked) end;
    asked.payload := mainspring.without_fingerprints(asked.payload);
    asked := mainspring.new_job(asked, defined, has_parents);
    is_new := true;
    job_id := asked.job_id;
    if idempotency_key is not null then
        job_id := mainspring.reserve_idempotency(asked, idempotency_key, content);
        is_new := job_id = asked.job_id;
        if not is_new then
            return;
        end if;
    end if;
    if dedupe_window is not null then
        job_id := (mainspring.reserve_key(
            asked.tenant_id, 'window', asked.dedupe_key, job_id, dedupe_window)).job_id;
    end if;
    if job_id = asked.job_id then
        job_id := mainspring.add_job(asked, defined);
    end if;
    is_new := job_id = asked.job_id;
    if not is_new then
        perform mainspring.note_duplicate(asked, job_id, idempotency_key, on_duplicate);
    elsif has_parents then
        perform mainspring.add_parents(job_id, after, asked.tenant_id, on_parent_failure);
    end if;
end
$$;

CREATE FUNCTION mainspring.enqueue_flow(name text, steps jsonb, tenant text DEFAULT 'default'::text, OUT flow_id bigint, OUT job_ids bigint[]) RETURNS record
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
begin
    perform mainspring.ensure_visible(tenant);
    perform mainspring.check_text('name', coalesce(enqueue_flow.name, ''));
    if jsonb_typeof(steps) is distinct from 'array' or jsonb_array_length(steps) = 0 then
        perform mainspring.refuse_option('steps',
            'steps must be a JSON array with at least one step');
    end if;
    if jsonb_array_length(steps) > mainspring.most_steps() then
        perform mainspring.refuse_option('steps', format(
            'a flow can have at most %s steps, not %s; split it into several flows',
            mainspring.most_steps(), jsonb_array_length(steps)));
    end if;
    if pg_column_size(steps) > mainspring.most_flow_bytes() then
        perform mainspring.refuse_option('steps', format(
            'the steps of a flow can have at most %s bytes together; split it into several flows',
            mainspring.most_flow_bytes()));
    end if;
    perform mainspring.ensure_tenant(tenant);
    perform mainspring.check_steps(steps, tenant);
    insert into mainspring.flows as flow (tenant_id, name, created_at)
    values (tenant, enqueue_flow.name, clock_timestamp()) returning flow.flow_id into flow_id;
    select array_agg(nextval('mainspring.job_ids')) into job_ids
      from generate_series(1, jsonb_array_length(steps));
    perform mainspring.add_steps(flow_id, job_ids, steps, tenant);
    insert into mainspring.flow_jobs (flow_id, job_id, step)
    select enqueue_flow.flow_id, job_ids[step.number], coalesce(step.step, '')
      from mainspring.read_steps(steps) as step;
    insert into mainspring.dependencies (job_id, parent_id, on_failure)
    select distinct job_ids[step.number], parent.id, coalesce(step.on_parent_failure, 'cancel')
      from mainspring.read_steps(steps) as step,
           lateral (
               select job_ids[value::integer + 1]
                 from jsonb_array_elements_text(coalesce(step.after, '[]'))
               union
               select value::bigint
                 from jsonb_array_elements_text(coalesce(step.after_jobs, '[]'))
           ) as parent (id);
    if found then
        perform mainspring.notify_parents();
    end if;
end
$$;

COMMENT ON FUNCTION mainspring.enqueue_flow(name text, steps jsonb, tenant text, OUT flow_id bigint, OUT job_ids bigint[]) IS 'Enqueues jobs that wait for each other, in the caller''s transaction.';

CREATE FUNCTION mainspring.enqueue_job(definition text, payload jsonb DEFAULT '{}'::jsonb, tenant text DEFAULT 'default'::text, queue text DEFAULT NULL::text, priority integer DEFAULT NULL::integer, max_attempts integer DEFAULT NULL::integer, scheduled_for timestamp with time zone DEFAULT NULL::timestamp with time zone, delay interval DEFAULT NULL::interval, deadline timestamp with time zone DEFAULT NULL::timestamp with time zone, dedupe_key text DEFAULT NULL::text, dedupe_by text DEFAULT NULL::text, dedupe_window interval DEFAULT NULL::interval, idempotency_key text DEFAULT NULL::text, on_duplicate text DEFAULT 'raise'::text, correlation_id text DEFAULT NULL::text, tags text[] DEFAULT NULL::text[], limit_key text DEFAULT NULL::text, approvals_needed integer DEFAULT NULL::integer, after bigint[] DEFAULT NULL::bigint[], on_parent_failure text DEFAULT 'cancel'::text, created_by text DEFAULT NULL::text, source text DEFAULT NULL::text, delivery text DEFAULT NULL::text, OUT job_id bigint, OUT is_new boolean) RETURNS record
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    notified text;
    asked_at timestamptz := clock_timestamp();
begin
    if num_nonnulls(enqueue_job.dedupe_key, dedupe_by, dedupe_window, idempotency_key, deadline,
                    enqueue_job.limit_key, approvals_needed, after, enqueue_job.delivery) = 0 then
        insert into mainspring.jobs as job (
            tenant_id, queue, definition, definition_version, priority, payload, max_attempts,
            created_at, scheduled_for, waits_for, correlation_id, tags, created_by, source)
        select enqueue_job.tenant, coalesce(enqueue_job.queue, d.queue), d.key, d.version,
               coalesce(enqueue_job.priority % 1001, d.priority), enqueue_job.payload,
               coalesce(enqueue_job.max_attempts, d.max_attempts), asked_at,
               coalesce(enqueue_job.scheduled_for, asked_at + delay, asked_at),
               case when enqueue_job.scheduled_for > asked_at or delay > '0'
                    then 'time'::mainspring.waits_for end,
               enqueue_job.correlation_id, enqueue_job.tags,
               coalesce(enqueue_job.created_by, mainspring.creator()),
               mainspring.given_source(enqueue_job.source, enqueue_job.created_by)
          from mainspring.definitions as d
         where d.key = enqueue_job.definition and d.is_active and d.is_plain
           and (enqueue_job.tenant = 'default' or exists (
                select from mainspring.tenants as t
                 where t.tenant_id = enqueue_job.tenant and t.max_running is null))
           and mainspring.is_visible(tenant) and mainspring.is_plain_request(
               enqueue_job.payload, enqueue_job.queue, enqueue_job.priority,
               enqueue_job.max_attempts, delay, enqueue_job.scheduled_for, on_duplicate)
           and mainspring.are_plain_words(enqueue_job.queue, correlation_id, enqueue_job.tags)
           and mainspring.is_plain_origin(enqueue_job.created_by, enqueue_job.source)
        returning job.job_id, true, case
            when exists (select from mainspring.workers as worker
                          where worker.wants_wake and job.queue = any (worker.queues))
                 and mainspring.ready_message(job.queue, job.scheduled_for) is not null
            then mainspring.send_message(mainspring.ready_message(job.queue, job.scheduled_for))
            when job.waits_for is null and exists (
                select from mainspring.workers as worker where job.queue = any (worker.queues))
            then mainspring.notify_lane(job.queue, job.priority, job.tenant_id, job.job_id) end
          into job_id, is_new, notified;
    end if;
    if is_new is null then
        select * into job_id, is_new from mainspring.enqueue_asked(
            mainspring.asked_job(definition, payload, tenant, queue, priority, max_attempts,
                scheduled_for, deadline, dedupe_key, correlation_id, tags, limit_key, null,
                created_by, source, delivery), delay, dedupe_by, dedupe_window, idempotency_key,
            on_duplicate, approvals_needed, after, on_parent_failure);
    end if;
end
$$;

COMMENT ON FUNCTION mainspring.enqueue_job(definition text, payload jsonb, tenant text, queue text, priority integer, max_attempts integer, scheduled_for timestamp with time zone, delay interval, deadline timestamp with time zone, dedupe_key text, dedupe_by text, dedupe_window interval, idempotency_key text, on_duplicate text, correlation_id text, tags text[], limit_key text, approvals_needed integer, after bigint[], on_parent_failure text, created_by text, source text, delivery text, OUT job_id bigint, OUT is_new boolean) IS 'Enqueues one job in the caller''s transaction; returns whether it is new or already existed.';

CREATE FUNCTION mainspring.enqueue_many(definition text, payloads jsonb[], tenant text DEFAULT 'default'::text, queue text DEFAULT NULL::text, priority integer DEFAULT NULL::integer, max_attempts integer DEFAULT NULL::integer, scheduled_for timestamp with time zone DEFAULT NULL::timestamp with time zone, delay interval DEFAULT NULL::interval, deadline timestamp with time zone DEFAULT NULL::timestamp with time zone, dedupe_keys text[] DEFAULT NULL::text[], correlation_id text DEFAULT NULL::text, tags text[] DEFAULT NULL::text[], limit_key text DEFAULT NULL::text, approvals_needed integer DEFAULT NULL::integer, created_by text DEFAULT NULL::text, source text DEFAULT NULL::text, delivery text DEFAULT NULL::text) RETURNS SETOF bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    asked mainspring.jobs;
    defined mainspring.definitions;
begin
    perform mainspring.ensure_visible(tenant);
    perform mainspring.ensure_open(definition);
    defined := mainspring.active_definition(definition);
    perform mainspring.ensure_tenant(tenant);
    asked := mainspring.asked_job(
        definition, null, tenant, queue, priority, max_attempts, scheduled_for, deadline,
        null, correlation_id, tags, limit_key, null, created_by, source, delivery);
    perform mainspring.check_origin(created_by, source);
    perform mainspring.check_delivery(delivery, max_attempts, defined);
    perform mainspring.check_times(delay, scheduled_for, deadline);
    perform mainspring.check_words(queue, correlation_id, tags);
    perform mainspring.check_bulk(payloads, dedupe_keys);
    defined := mainspring.with_approvals(defined, approvals_needed);
    perform mainspring.check_text('limit_key', limit_key);
    asked.job_id := 0;  -- Each job takes an id of its own.
    asked := mainspring.asked_now(asked, delay);
    return query select * from mainspring.add_jobs(
        mainspring.new_job(asked, defined), defined, payloads, dedupe_keys, limit_key);
end
$$;

COMMENT ON FUNCTION mainspring.enqueue_many(definition text, payloads jsonb[], tenant text, queue text, priority integer, max_attempts integer, scheduled_for timestamp with time zone, delay interval, deadline timestamp with time zone, dedupe_keys text[], correlation_id text, tags text[], limit_key text, approvals_needed integer, created_by text, source text, delivery text) IS 'Enqueues one job per payload; skips payloads whose dedupe key is taken.';

CREATE FUNCTION mainspring.enqueued_text(job_id bigint) RETURNS text
    LANGUAGE plpgsql
    AS $$
begin
    return (select to_jsonb(job)::text from mainspring.job_status as job
             where job.job_id = enqueued_text.job_id);
end
$$;

CREATE FUNCTION mainspring.ensure_app_role() RETURNS void
    LANGUAGE plpgsql
    AS $$
begin
    if to_regrole('mainspring_app') is null then
        begin
            create role mainspring_app nologin;
        exception
            when duplicate_object or unique_violation then
                null;
            when insufficient_privilege then
                perform mainspring.refuse('MS083', format('%I does not own this database and may '
                    || 'not create the role that requests run as; ask an administrator to run: '
                    || 'create role mainspring_app nologin; %s', session_user,
                    mainspring.grant_of('mainspring_app', session_user)), '{}');
        end;
    end if;
    if not mainspring.may_set_role(session_user, 'mainspring_app') then
        begin
            execute mainspring.grant_of('mainspring_app', session_user);
        exception
            when insufficient_privilege then
                perform mainspring.refuse('MS083', format('%I does not own this database and may '
                    || 'not become the role mainspring_app, which requests run as; ask an '
                    || 'administrator to run: %s', session_user,
                    mainspring.grant_of('mainspring_app', session_user)), '{}');
        end;
    end if;
end
$$;

CREATE FUNCTION mainspring.ensure_caller(role text) RETURNS void
    LANGUAGE plpgsql
    AS $_$
declare
    caller text := mainspring.caller_of(role);
begin
    if to_regproc('mainspring_calls.' || caller) is not null then
        return;
    end if;
    execute format($create$
        create function mainspring_calls.%I(
            namespace text, name text, payload jsonb, takes_payload boolean)
        returns jsonb
        language plpgsql
        security definer
        set search_path = pg_catalog, pg_temp
        as $body$
        declare
            answer jsonb;
        begin
            perform set_config('search_path', format('pg_catalog, %%I, pg_temp', namespace), true);
            execute format('select to_jsonb(%%I.%%I(%%s))', namespace, name,
                           case when takes_payload then '$1' else '' end)
               into answer using payload;
            return answer;
        end
        $body$
        $create$, caller);
    execute format('revoke execute on function mainspring_calls.%I from public', caller);
    if role <> current_user then
        -- Whoever owns a function must be able to create one there at that moment.
        execute format('grant create on schema mainspring_calls to %I', role);
        execute format('alter function mainspring_calls.%I owner to %I', caller, role);
        execute format('revoke create on schema mainspring_calls from %I', role);
    end if;
end
$_$;

CREATE FUNCTION mainspring.ensure_flow(flow_id bigint, tenant text) RETURNS void
    LANGUAGE plpgsql
    AS $$
begin
    if not exists (select from mainspring.flows as flow
                    where flow.flow_id = ensure_flow.flow_id and flow.tenant_id = tenant
                      and mainspring.is_visible(tenant)
                      and mainspring.is_own(flow.created_by)) then
        perform mainspring.refuse('MS070',
            'there is no flow ' || coalesce(flow_id::text, 'null'),
            jsonb_build_object('flow_id', flow_id));
    end if;
end
$$;

CREATE FUNCTION mainspring.ensure_known_tenant(tenant text) RETURNS void
    LANGUAGE plpgsql STABLE
    AS $$
begin
    if not exists (select from mainspring.tenants as t where t.tenant_id = tenant) then
        perform mainspring.refuse('MS003', 'there is no tenant '
            || coalesce(quote_literal(tenant), 'null'),
            '{"option": "tenant", "problem": "does not exist"}');
    end if;
end
$$;

CREATE FUNCTION mainspring.ensure_open(definition text) RETURNS void
    LANGUAGE plpgsql STABLE
    AS $$
begin
    if mainspring.is_closed(definition) then
        perform mainspring.refuse('MS003', 'definition ' || mainspring.why_closed(definition),
            '{"option": "definition"}');
    end if;
end
$$;

CREATE FUNCTION mainspring.ensure_partitions(days_ahead integer) RETURNS integer
    LANGUAGE plpgsql
    SET lock_timeout TO '200ms'
    AS $$
declare
    parent text;
    day date;
    name text;
    bounds text[];
    is_free boolean;
    made integer := 0;
begin
    perform pg_advisory_xact_lock(hashtext('mainspring.partitions'));
    foreach parent in array array['jobs_history', 'attempts'] loop
        for day in select (now() at time zone 'utc')::date + step
                     from generate_series(0, days_ahead) as step loop
            name := parent || '_' || to_char(day, 'YYYYMMDD');
            continue when to_regclass('mainspring.' || name) is not null;
            bounds := array[day::text || 'T00:00:00Z', (day + 1)::text || 'T00:00:00Z'];
            -- Rows of the day that already lie in the default partition stay there.
            execute format(
                'select not exists (select from mainspring.%I '
                'where finished_at >= %L and finished_at < %L)',
                parent || '_default', bounds[1], bounds[2]) into is_free;
            continue when not is_free;
            execute format('create table mainspring.%I (like mainspring.%I including all)',
                           name, parent);
            execute format(
                'alter table mainspring.%I attach partition mainspring.%I '
                'for values from (%L) to (%L)', parent, name, bounds[1], bounds[2]);
            made := made + 1;
        end loop;
    end loop;
    return made;
end
$$;

CREATE FUNCTION mainspring.ensure_retention_visible(tenant text) RETURNS void
    LANGUAGE plpgsql STABLE
    AS $$
begin
    perform mainspring.ensure_visible(coalesce(ensure_retention_visible.tenant, '*'));
end
$$;

CREATE FUNCTION mainspring.ensure_safe_delete(pruned regclass) RETURNS void
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    risk record;
begin
    select * into risk from mainspring.risks_of_delete(pruned) limit 1;
    if found then
        perform mainspring.refuse('MS003', format(
            'table %s cannot be pruned with the rights of %s: %s, whose code a delete could run; '
            'run `%s`, or delete the rows in a definition of kind sql under a role of its own',
            pruned, current_user, risk.reason, risk.remedy), '{"option": "table"}');
    end if;
end
$$;

CREATE FUNCTION mainspring.ensure_tenant(tenant text) RETURNS void
    LANGUAGE plpgsql STABLE
    AS $$
declare
    is_enabled boolean := (select t.disabled_at is null from mainspring.tenants as t
                            where t.tenant_id = ensure_tenant.tenant);
begin
    if is_enabled is null then
        perform mainspring.refuse('MS003', 'tenant does not exist: '
            || coalesce(quote_literal(tenant), 'null'), '{"option": "tenant"}');
    elsif not is_enabled then
        perform mainspring.refuse('MS003', 'tenant is disabled: ' || quote_literal(tenant)
            || '; enable it first', '{"option": "tenant"}');
    end if;
end
$$;

CREATE FUNCTION mainspring.ensure_visible(tenant text) RETURNS void
    LANGUAGE plpgsql STABLE
    AS $$
begin
    if not mainspring.is_visible(tenant) then
        perform mainspring.refuse('MS081', 'there is no tenant ' || quote_literal(tenant),
                                  jsonb_build_object('tenant_id', tenant));
    end if;
end
$$;

CREATE FUNCTION mainspring.enter(digest bytea) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
declare
    shown record;
begin
    select * into shown from mainspring.bearer_of(enter.digest);
    if shown.token_id is null then
        perform mainspring.refuse('MS080', mainspring.why_no_bearer(enter.digest), '{}');
    end if;
    perform set_config('mainspring.actor', shown.actor, true),
            set_config('mainspring.creator', shown.actor, true),
            set_config('mainspring.identity',
                       array[shown.actor, shown.actor_id, shown.voter]::text, true),
            set_config('mainspring.approver', coalesce(shown.approver::text, ''), true);
    if shown.role is distinct from 'operator' then
        -- A worker of several tenants sees no tenant's data but the jobs that it claims.
        perform set_config('mainspring.tenant', coalesce(shown.tenant_id, ''), true),
                set_config('mainspring.member',
                           case when shown.role = 'member' then shown.actor else '' end, true),
                set_config('role', mainspring.app_role(), true);
    end if;
    return true;
end
$$;

CREATE FUNCTION mainspring.error_line(error text) RETURNS text
    LANGUAGE sql IMMUTABLE
    RETURN CASE WHEN (length(split_part("left"(error, 1001), '
'::text, 1)) > 1000) THEN ("left"(error, 999) || '…'::text) ELSE split_part("left"(error, 1001), '
'::text, 1) END;

CREATE FUNCTION mainspring.has_error_key(filter jsonb, job_id bigint, state mainspring.job_state, attempt integer, created_at timestamp with time zone, finished_at timestamp with time zone) RETURNS boolean
    LANGUAGE plpgsql STABLE
    AS $$
#variable_conflict use_column
begin
    return state <> 'canceled' and attempt > 0 and coalesce(filter -> 'error_key' ? (
        select past.error_key from mainspring.attempt_status as past
         where past.job_id = has_error_key.job_id and past.error_key is not null
           and past.finished_at >= has_error_key.created_at - interval '1 minute'
           and past.finished_at
               <= coalesce(has_error_key.finished_at, now()) + interval '1 minute'
         order by past.number desc, past.finished_at desc limit 1), false);
end
$$;

CREATE FUNCTION mainspring.error_matches(filter jsonb, job_id bigint, state mainspring.job_state, attempt integer, created_at timestamp with time zone, finished_at timestamp with time zone) RETURNS boolean
    LANGUAGE sql STABLE
    RETURN (((filter -> 'error_key'::text) IS NULL) OR mainspring.has_error_key(filter, job_id, state, attempt, created_at, finished_at));

CREATE FUNCTION mainspring.event_matches(pattern text, name text) RETURNS boolean
    LANGUAGE sql IMMUTABLE
    RETURN ((pattern = ANY (ARRAY['*'::text, name])) OR (("right"(pattern, 2) = '.*'::text) AND starts_with(name, "left"(pattern, '-1'::integer))));

CREATE FUNCTION mainspring.expire_approvals(most integer, chosen bigint[] DEFAULT NULL::bigint[]) RETURNS integer
    LANGUAGE plpgsql
    AS $$
declare
    late mainspring.approvals;
    settled integer := 0;
begin
    for late in
        select * from mainspring.approvals as asked
         where asked.decided_at is null and asked.expires_at <= now()
           and (expire_approvals.chosen is null or asked.job_id = any (expire_approvals.chosen))
           and not exists (select from mainspring.set_aside as aside
                            where aside.duty = 'expire_approvals' and aside.key = asked.job_id
                              and aside.again_at > now())
         order by asked.expires_at limit most for update of asked skip locked
    loop
        update mainspring.jobs as job
           set cancel_requested_at = now(),
               last_error = 'nobody approved it before ' || to_char(
                   late.expires_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS "UTC"')
         where job.job_id = late.job_id and job.state = 'awaiting_approval';
        if found then
            update mainspring.approvals as asked set decision = 'expired', decided_at = now()
             where asked.job_id = late.job_id;
            perform mainspring.settle_cancel(late.job_id);
        else
            update mainspring.approvals as asked set expires_at = null
             where asked.job_id = late.job_id;
        end if;
        settled := settled + 1;
    end loop;
    return settled;
end
$$;

CREATE FUNCTION mainspring.extras_of(job mainspring.jobs, rated text[]) RETURNS text
    LANGUAGE sql STABLE
    RETURN (CASE WHEN ((num_nonnulls((job).checkpoint, (job).correlation_id, (job).tags, (job).origin, (job).cancel_requested_at, (job).suspected_at, (job).delivery) > 0) OR ((job).losses > 0) OR ((job).limit_name = ANY (rated))) THEN jsonb_build_object('checkpoint', (job).checkpoint, 'correlation_id', (job).correlation_id, 'tags', (job).tags, 'origin', (job).origin, 'slot_at', (job).slot_at, 'is_suspect', (((job).suspected_at IS NOT NULL) OR ((job).losses > 0)), 'runs_once', ((job).delivery IS NOT NULL), 'is_rated', ((job).limit_name = ANY (rated))) ELSE NULL::jsonb END)::text;

CREATE FUNCTION mainspring.failure_of_slots(schedule_id bigint, slots timestamp with time zone[]) RETURNS text
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
begin
    return (
        select slot.reason from mainspring.slots as slot
         where slot.schedule_id = failure_of_slots.schedule_id and slot.outcome = 'failed'
           and slot.scheduled_for = any (failure_of_slots.slots)
         order by slot.scheduled_for desc limit 1);
end
$$;

CREATE FUNCTION mainspring.figures_by(steps text[], starts timestamp with time zone[], ends timestamp with time zone[], span interval, keys text[], tenant text DEFAULT NULL::text, queues text[] DEFAULT NULL::text[], definitions text[] DEFAULT NULL::text[]) RETURNS SETOF mainspring.figures
    LANGUAGE plpgsql STABLE
    AS $$
#variable_conflict use_column
begin
    return query
    with chosen as materialized (
        select figure.*, date_bin(span, at, 'epoch') as since,
               case when 'tenant' = any (keys) then tenant_id else '' end as of_tenant,
               case when 'queue' = any (keys) then queue else '' end as of_queue,
               case when 'definition' = any (keys) then definition else '' end as of_definition
          from unnest(steps, starts, ends) as part (step, start, finish)
          join mainspring.figure_status as figure
            on figure.step = part.step and at >= part.start and at < part.finish
         where (figures_by.tenant is null or tenant_id = figures_by.tenant)
           and (figures_by.queues is null or queue = any (figures_by.queues))
           and (figures_by.definitions is null or definition = any (figures_by.definitions))
    ), buckets as (
        select since, of_tenant, of_queue, of_definition,
               array_agg(array[number, total]) filter (where kind = 'wait') as waits,
               array_agg(array[number, total]) filter (where kind = 'run') as runs
          from (select since, of_tenant, of_queue, of_definition, kind, number,
                       sum(count)::bigint as total
                  from chosen, lateral (
                       select 'wait' as kind, wait_buckets[i][1] as number,
                              wait_buckets[i][2] as count
                         from generate_subscripts(wait_buckets, 1) as i
                       union all
                       select 'run', run_buckets[i][1], run_buckets[i][2]
                         from generate_subscripts(run_buckets, 1) as i) as counted
                 group by 1, 2, 3, 4, 5, 6) as bucket
         group by 1, 2, 3, 4
    ), summed as (
        select since, of_tenant, of_queue, of_definition,
               sum(enqueued)::bigint, sum(started)::bigint, sum(succeeded)::bigint,
               sum(failed)::bigint, sum(dead_letter)::bigint, sum(canceled)::bigint,
               sum(deleted)::bigint, sum(revived)::bigint, sum(attempts_succeeded)::bigint,
               sum(attempts_failed)::bigint, sum(attempts_timeout)::bigint,
               sum(attempts_canceled)::bigint, sum(attempts_snoozed)::bigint,
               sum(attempts_lost)::bigint, max(ready), max(running), max(oldest_ready_seconds),
               sum(wait_sum), max(wait_worst), sum(run_sum), max(run_worst)
          from chosen group by since, of_tenant, of_queue, of_definition
    )
    select 'span', summed.*, coalesce(waits, '{}'), coalesce(runs, '{}')
      from summed left join buckets using (since, of_tenant, of_queue, of_definition);
end
$$;

CREATE FUNCTION mainspring.figures_of(changed mainspring.changes[]) RETURNS SETOF mainspring.figures
    LANGUAGE sql STABLE
    AS $$
    with summed as (
        select tenant_id, queue, definition, 0::bigint, 0::bigint,
               coalesce(sum(count) filter (where moved = 'ended' and state = 'succeeded'), 0),
               coalesce(sum(count) filter (where moved = 'ended' and state = 'failed'), 0),
               coalesce(sum(count) filter (where moved = 'ended' and state = 'dead_letter'), 0),
               coalesce(sum(count) filter (where moved = 'ended' and state = 'canceled'), 0),
               coalesce(sum(count) filter (where moved = 'deleted'), 0),
               coalesce(sum(count) filter (where moved = 'revived'), 0),
               coalesce(sum(count) filter (where attempt = 'succeeded'), 0),
               coalesce(sum(count) filter (where attempt = 'failed'), 0),
               coalesce(sum(count) filter (where attempt = 'timeout'), 0),
               coalesce(sum(count) filter (where attempt = 'canceled'), 0),
               coalesce(sum(count) filter (where attempt = 'snoozed'), 0),
               coalesce(sum(count) filter (where attempt = 'lost'), 0),
               0::bigint, 0::bigint, 0::double precision,
               coalesce(sum(wait_sum), 0), coalesce(max(wait_worst), 0),
               coalesce(sum(run_sum), 0), coalesce(max(run_worst), 0)
          from unnest(changed) as change
         where moved <> 'pruned'
         group by tenant_id, queue, definition
    )
    select 'minute', date_trunc('minute', now()), summed.*, coalesce(buckets.waits, '{}'),
           coalesce(buckets.runs, '{}')
      from summed
      left join mainspring.buckets_of(changed) as buckets using (tenant_id, queue, definition)
$$;

CREATE FUNCTION mainspring.find_function(full_name text, OUT namespace text, OUT name text, OUT argument text, OUT guardian text) RETURNS record
    LANGUAGE plpgsql STABLE
    AS $$
declare
    parts text[];
begin
    begin
        parts := parse_ident(full_name);
    exception when invalid_parameter_value then
        return;
    end;
    if cardinality(parts) <> 2 then
        return;
    end if;
    select n.nspname, p.proname, case when p.pronargs = 1 then t.typname end,
           -- Whoever owns the schema can replace what is in it.
           case when s.rolsuper or s.oid = p.proowner or s.rolname = 'pg_database_owner'
                then o.rolname end
      into find_function.namespace, find_function.name, find_function.argument,
           find_function.guardian
      from pg_catalog.pg_proc as p
      join pg_catalog.pg_namespace as n on n.oid = p.pronamespace
      join pg_catalog.pg_roles as o on o.oid = p.proowner
      join pg_catalog.pg_roles as s on s.oid = n.nspowner
      left join pg_catalog.pg_type as t on t.oid = p.proargtypes[0]
     where n.nspname = parts[1] and p.proname = parts[2] and p.prokind = 'f' and not p.proretset
       and p.prorettype = any ('{jsonb,json}'::pg_catalog.regtype[])
       and (p.pronargs = 0 or (p.pronargs = 1
                               and p.proargtypes[0] = any ('{jsonb,json}'::pg_catalog.regtype[])))
     order by p.pronargs desc limit 1;
end
$$;

CREATE FUNCTION mainspring.find_person() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    select person.person_id into new.person_id from mainspring.people as person
     where person.name = new.person and person.tenant_id is not distinct from new.tenant_id;
    return new;
end
$$;

CREATE FUNCTION mainspring.find_schedule(tenant text, name text) RETURNS mainspring.schedules
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
declare
    found_schedule mainspring.schedules;
begin
    select * into found_schedule from mainspring.schedules as s
     where s.tenant_id = find_schedule.tenant and s.name = find_schedule.name for update;
    if not found then
        perform mainspring.refuse('MS040', 'there is no schedule '
            || coalesce(quote_literal(find_schedule.name), 'null')
            || mainspring.did_you_mean(find_schedule.name, array(
                select quote_literal(s.name) from mainspring.schedules as s
                 where s.tenant_id = find_schedule.tenant)),
            jsonb_build_object('name', find_schedule.name));
    end if;
    return found_schedule;
end
$$;

CREATE FUNCTION mainspring.fired_slots(schedule_id bigint, slots timestamp with time zone[]) RETURNS jsonb
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
begin
    return (
        select jsonb_build_object(
                   'tenant', schedule.tenant_id, 'definition', schedule.definition,
                   'schedule', schedule.name,
                   'slots', jsonb_agg(slot.scheduled_for order by slot.scheduled_for),
                   'job_ids', jsonb_agg(slot.job_id order by slot.scheduled_for))
          from mainspring.slots as slot
          join mainspring.schedules as schedule using (schedule_id)
         where slot.schedule_id = fired_slots.schedule_id
           and slot.scheduled_for = any (fired_slots.slots)
           and slot.outcome = 'enqueued' and slot.fired_at = now()
         group by schedule.schedule_id);
end
$$;

CREATE FUNCTION mainspring.first_wait(needs_approval boolean, has_parents boolean, is_behind_others boolean, due_at timestamp with time zone, limit_name text) RETURNS mainspring.waits_for
    LANGUAGE sql
    RETURN CASE WHEN needs_approval THEN 'approval'::mainspring.waits_for WHEN has_parents THEN 'parents'::mainspring.waits_for WHEN is_behind_others THEN 'turn'::mainspring.waits_for WHEN (due_at > clock_timestamp()) THEN 'time'::mainspring.waits_for WHEN (limit_name IS NOT NULL) THEN 'limit'::mainspring.waits_for ELSE NULL::mainspring.waits_for END;

CREATE FUNCTION mainspring.fitting_schema(schedule mainspring.schedules) RETURNS uuid
    LANGUAGE plpgsql STABLE
    AS $_$
declare
    defined mainspring.definitions;
begin
    select * into defined from mainspring.definitions as d where d.key = schedule.definition;
    if defined.arg_schema is null then
        return mainspring.schema_key_of(null);
    elsif schedule.is_templated
          or position('"$mainspring"' in schedule.payload::text) > 0
          or not mainspring.is_quickly_checked(defined.arg_schema, schedule.payload) then
        return '00000000-0000-0000-0000-000000000000';
    elsif mainspring.is_known_schema(defined.arg_schema)
          and mainspring.wrong_value(defined.arg_schema, schedule.payload, '') is null then
        return defined.schema_key;
    end if;
    return '00000000-0000-0000-0000-000000000000';
end
$_$;

CREATE FUNCTION mainspring.fold_failures(most integer) RETURNS integer
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
declare
    folded integer;
begin
    if not pg_try_advisory_xact_lock(hashtext('mainspring.failures')) then
        return 0;
    end if;
    with taken as (
        delete from mainspring.failures as failure
         where failure.ctid = any (array(
            select old.ctid from mainspring.failures as old limit fold_failures.most
               for update skip locked))
        returning mainspring.day_of(failure.at) as day, failure.*
    ), keyed as (
        select day, tenant_id, definition, error_key, sum(count) as failed from taken
         group by day, tenant_id, definition, error_key
    ), known as (
        select day, tenant_id, definition,
               array_agg(error_key) filter (where error_key <> '~other') as error_keys
          from mainspring.error_days as kept
         where (day, tenant_id, definition) in (select day, tenant_id, definition from keyed)
         group by day, tenant_id, definition
    ), placed as (
        select keyed.*, case when spot <= mainspring.most_error_groups() then error_key
                             else '~other' end as group_key
          from (select keyed.*, case when not is_known then cardinality(error_keys) + row_number()
                           over (partition by day, tenant_id, definition, is_known
                                 order by failed desc, error_key) else 0 end as spot
                  from (select keyed.*, coalesce(error_keys, '{}') as error_keys,
                               coalesce(error_key = any (error_keys), false) as is_known
                          from keyed left join known using (day, tenant_id, definition)) as keyed
               ) as keyed
    ), added as (
        insert into mainspring.error_days as kept
            (day, tenant_id, definition, error_key, count, first_at, last_at, sample, job_ids)
        select day, tenant_id, definition, group_key, sum(count), min(at), max(at),
               (array_agg(sample order by at desc))[1],
               mainspring.newest_of(string_agg(array_to_string(job_ids, ','), ','))
          from taken join placed using (day, tenant_id, definition, error_key)
         group by day, tenant_id, definition, group_key
        on conflict (day, tenant_id, definition, error_key) do update
            set count = kept.count + excluded.count,
                first_at = least(kept.first_at, excluded.first_at),
                last_at = greatest(kept.last_at, excluded.last_at),
                sample = case when excluded.last_at >= kept.last_at then excluded.sample
                              else kept.sample end,
                job_ids = mainspring.newest_jobs(kept.job_ids || excluded.job_ids)
    )
    select count(*) into folded from taken;
    return folded;
end
$$;

CREATE FUNCTION mainspring.forget_schedule() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    -- First of all: whoever fires it right now holds this row.
    delete from mainspring.clocks where schedule_id = old.schedule_id;
    delete from mainspring.slots where schedule_id = old.schedule_id;
    delete from mainspring.schedule_figures where schedule_id = old.schedule_id;
    return null;
end
$$;

CREATE FUNCTION mainspring.free_of_keys(names text[], keys text[]) RETURNS TABLE(number bigint, free bigint, next_in double precision)
    LANGUAGE plpgsql STABLE
    AS $$
begin
    return query
    select asked.number, least(known.key_concurrency - held.places, bucket.tokens - held.unstarted),
           case when bucket.tokens < 1 and held.unstarted = 0 then bucket.next_in end
      from (select given.name, given.key,
                   row_number() over (order by given.name, given.key) as number
              from unnest(names, keys) as given (name, key)
             group by given.name, given.key) as asked
      left join mainspring.limits as known on known.name = asked.name,
           lateral (
               select count(*) as places,
                      count(*) filter (where job.probed_at is null
                                         and known.rate_count is not null) as unstarted
                 from mainspring.jobs as job
                where num_nonnulls(known.key_concurrency, known.rate_count) > 0
                  and job.limit_name = asked.name and job.limit_key = asked.key
                  and job.waits_for is null) as held,
           lateral (
               select max(filled.tokens) as tokens, max(filled.next_in) as next_in
                 from mainspring.bucket_of(
                          known.name, asked.key, known.burst, mainspring.token_seconds(
                              known.rate_count, known.rate_period)) as filled
                where known.rate_count is not null) as bucket;
end
$$;

CREATE FUNCTION mainspring.free_of_limits(names text[]) RETURNS TABLE(number bigint, name text, free bigint, is_keyed boolean, key_places integer)
    LANGUAGE sql STABLE
    AS $$
    select asked.number, asked.name,
           case when known.concurrency is not null then known.concurrency - (
               select count(*) from mainspring.jobs as held
                where held.limit_name = known.name and held.waits_for is null) end,
           known.key_concurrency is not null
           and num_nonnulls(known.concurrency, known.rate_count) = 0,
           known.key_concurrency
      from (select given.name, row_number() over (order by given.name) as number
              from unnest(names) as given (name) group by given.name) as asked
      left join mainspring.limits as known on known.name = asked.name
$$;

CREATE FUNCTION mainspring.free_of_tenants(tenants text[]) RETURNS TABLE(number bigint, free bigint)
    LANGUAGE sql STABLE
    AS $$
    select asked.number, known.max_running - coalesce(held.places, 0)
      from (select given.tenant_id, row_number() over (order by given.tenant_id) as number
              from unnest(tenants) as given (tenant_id) group by given.tenant_id) as asked
      left join mainspring.tenants as known on known.tenant_id = asked.tenant_id
      left join (select job.tenant_id, count(*) as places from mainspring.jobs as job
                  where job.limit_name is not null and job.waits_for is null
                    and (select bool_or(capped.max_running is not null)
                           from mainspring.tenants as capped
                          where capped.tenant_id = any (tenants))
                  group by job.tenant_id) as held on held.tenant_id = asked.tenant_id
$$;

CREATE FUNCTION mainspring.free_places(names text[], keys text[], tenants text[], most integer, OUT limits_free integer[], OUT keys_free integer[], OUT tenants_free integer[], OUT shared text[], OUT shared_free integer[], OUT is_shared boolean, OUT next_in double precision, OUT keyed_names text[], OUT keyed_places integer[]) RETURNS record
    LANGUAGE plpgsql STABLE
    AS $$
declare
    is_capped boolean;
begin
    select array_agg(least(free, most + 1)::integer order by number),
           coalesce(array_agg(name order by number) filter (where free is not null), '{}'),
           coalesce(array_agg(least(free, most + 1)::integer order by number)
                        filter (where free is not null), '{}'),
           coalesce(array_agg(name order by number) filter (where is_keyed), '{}'),
           coalesce(array_agg(key_places order by number) filter (where is_keyed), '{}')
      into limits_free, shared, shared_free, keyed_names, keyed_places
      from mainspring.free_of_limits(names);
    select array_agg(least(free, most)::integer order by number), min(keys_of.next_in)
      into keys_free, next_in
      from mainspring.free_of_keys(names, keys) as keys_of;
    select array_agg(least(free, most)::integer order by number), bool_or(free is not null)
      into tenants_free, is_capped
      from mainspring.free_of_tenants(tenants);
    is_shared := shared <> '{}' or is_capped or cardinality(keys_free) < cardinality(names);
end
$$;

CREATE FUNCTION mainspring.free_slot(schedule mainspring.schedules, asked timestamp with time zone) RETURNS timestamp with time zone
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
declare
    taken mainspring.slots;
    shown text := to_char(asked at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"');
begin
    if asked is null then
        return clock_timestamp();
    end if;
    if asked > clock_timestamp() or asked < '0001-01-02T00:00:00Z' then
        perform mainspring.refuse_schedule(
            'slot', shown || ' is not in the past; without a slot the schedule is fired now');
    end if;
    select * into taken from mainspring.slots as slot
     where slot.schedule_id = schedule.schedule_id and slot.scheduled_for = asked
       and slot.outcome in ('pending', 'enqueued');
    if found then
        perform mainspring.refuse('MS043',
            format('slot %s of schedule %L is already claimed: %s', shown, schedule.name,
                   coalesce('job ' || taken.job_id, 'it waits for a scheduler')),
            jsonb_build_object('name', schedule.name, 'slot_at', asked, 'job_id', taken.job_id));
    end if;
    return asked;
end
$$;

CREATE FUNCTION mainspring.full_limits(shared text[], free integer[], given text[]) RETURNS text[]
    LANGUAGE sql IMMUTABLE
    RETURN ARRAY(SELECT counted.name FROM UNNEST(full_limits.shared, full_limits.free) counted(name, free) WHERE (counted.free <= (SELECT count(*) AS count FROM unnest(full_limits.given) gone(name) WHERE (gone.name = counted.name))));

CREATE FUNCTION mainspring.functions_of_table(id regclass) RETURNS SETOF regprocedure
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
select distinct coalesce(sign.oprcode, used.refobjid)::regprocedure
  from pg_depend as part
  join pg_depend as used on used.classid = part.classid and used.objid = part.objid
  left join pg_operator as sign
    on used.refclassid = 'pg_operator'::regclass and sign.oid = used.refobjid
 where part.refclassid = 'pg_class'::regclass and part.refobjid = functions_of_table.id
   -- Other dependencies are those of views and functions that read the table.
   and part.deptype in ('a', 'i', 'S')
   and used.refclassid in ('pg_proc'::regclass, 'pg_operator'::regclass)
$$;

CREATE FUNCTION mainspring.given_instant(schedule mainspring.schedules) RETURNS timestamp with time zone
    LANGUAGE plpgsql
    AS $$
begin
    if schedule.run_at is not null and not schedule.enabled then
        perform mainspring.refuse_schedule('run_at', 'the schedule is disabled; enable it first');
    end if;
    if schedule.run_at > '9999-12-30T00:00:00Z' then
        perform mainspring.refuse_schedule('run_at', 'must be in the years 1 to 9999');
    end if;
    return case when schedule.run_at is not null then greatest(schedule.run_at, 'epoch') end;
end
$$;

CREATE FUNCTION mainspring.given_source(source text, created_by text) RETURNS text
    LANGUAGE sql STABLE
    RETURN CASE WHEN ((source IS NULL) AND (created_by IS NOT NULL) AND (mainspring.creator() IS NULL) AND (created_by !~ '^(system|trigger|job):'::text)) THEN 'code'::text ELSE source END;

CREATE FUNCTION mainspring.grant_of(role name, member name) RETURNS text
    LANGUAGE plpgsql STABLE
    AS $$
begin
    return format('grant %I to %I', role, member)
        || case when current_setting('server_version_num')::integer >= 160000
                then ' with set true' else '' end;
end
$$;

CREATE FUNCTION mainspring.grant_places(names text[], keys text[], tenants text[], most integer, OUT is_ours boolean, OUT granted integer, OUT queues text[], OUT unfinished integer[], OUT shared text[], OUT full_ones text[], OUT next_in double precision, OUT keyed_names text[], OUT keyed_places integer[]) RETURNS record
    LANGUAGE plpgsql
    AS $$
declare
    free record;
    picked record;
begin
    granted := 0;
    unfinished := '{}';
    queues := '{}';
    shared := '{}';
    full_ones := '{}';
    is_ours := pg_try_advisory_xact_lock(hashtext('mainspring.limits'));
    if not is_ours then
        return;
    end if;
    -- A grant that a crash undoes is given again.
    perform set_config('synchronous_commit', 'off', true);
    free := mainspring.free_places(names, keys, tenants, most);
    picked := mainspring.pick_limited(
        array(select distinct unnest(worker.queues) from mainspring.workers as worker
               where worker.expires_at > now()),
        names, keys, tenants, array_fill(most, array[cardinality(names)]), free.limits_free,
        free.keys_free, free.tenants_free, most, lowest => 1000, is_shared => true);
    with ready as (
        update mainspring.jobs as job set waits_for = null, ready_at = clock_timestamp()
         where job.ctid = any (picked.places)
        returning job.queue
    )
    select count(*), coalesce(array_agg(distinct ready.queue), '{}') into granted, queues
      from ready;
    unfinished := picked.unfinished;
    shared := free.shared;
    next_in := free.next_in;
    keyed_names := free.keyed_names;
    keyed_places := free.keyed_places;
    full_ones := mainspring.full_limits(free.shared, free.shared_free, picked.limits);
end
$$;

CREATE FUNCTION mainspring.has_foreign_mark(value jsonb) RETURNS boolean
    LANGUAGE sql IMMUTABLE
    RETURN (mainspring.has_mark(value) AND (strpos(regexp_replace((value)::text, ('\{"key": "[0-9a-f]{8}", ("nonce": "[A-Za-z0-9+/=]+", )?"value": "[A-Za-z0-9+/=]+", '::text || '"\$mainspring": "encrypted"(, "fingerprint": "[0-9a-f]{64}")?\}'::text), ''::text, 'g'::text), '"$mainspring": '::text) > 0));

CREATE FUNCTION mainspring.has_json_type(value jsonb, types jsonb) RETURNS boolean
    LANGUAGE sql IMMUTABLE
    RETURN ((types ? jsonb_typeof(value)) OR ((jsonb_typeof(value) = 'number'::text) AND (types ? 'integer'::text) AND (((value #>> '{}'::text[]))::numeric = trunc(((value #>> '{}'::text[]))::numeric))));

CREATE FUNCTION mainspring.has_rights_of(member name, role name) RETURNS boolean
    LANGUAGE plpgsql STABLE
    AS $$
begin
    return pg_has_role(member, role, 'USAGE') or mainspring.may_set_role(member, role);
end
$$;

CREATE FUNCTION mainspring.hint_of_offset(name text) RETURNS text
    LANGUAGE plpgsql IMMUTABLE
    AS $_$
declare
    parts text[] := regexp_match(upper(name), '^([A-Z]{0,4})([+-]?)([0-9]{1,2})(:?00)?$');
    hours integer := parts[3]::integer;
    is_ahead boolean := parts[2] = '+';
    meant text[] := mainspring.zones_of_abbreviation(parts[1]);
begin
    if meant is not null then
        return format('did you mean ''%s''?', array_to_string(meant, ''' or '''));
    elsif parts[1] in ('', 'UTC', 'GMT') and parts[2] <> ''
          and hours between 1 and (case when is_ahead then 14 else 12 end) then
        return format('did you mean ''Etc/GMT%s%s''? That is %s hours %s UTC: the signs of these '
                      || 'zones are reversed', case when is_ahead then '-' else '+' end, hours,
                      hours, case when is_ahead then 'ahead of' else 'behind' end);
    end if;
    return null;
end
$_$;

CREATE FUNCTION mainspring.history_begins_at() RETURNS timestamp with time zone
    LANGUAGE sql STABLE
    AS $_$
    select least(
        (select min(substring(child.relname from '_(\d{8})$')::date)::timestamp at time zone 'UTC'
           from pg_catalog.pg_inherits as link
           join pg_catalog.pg_class as child on child.oid = link.inhrelid
          where link.inhparent = 'mainspring.jobs_history'::regclass),
        (select min(past.finished_at) from mainspring.jobs_history_default as past))
$_$;

CREATE FUNCTION mainspring.history_of(job mainspring.jobs, state mainspring.job_state, started_at timestamp with time zone, result jsonb DEFAULT NULL::jsonb, failed integer DEFAULT 0, losses integer DEFAULT NULL::integer, error text DEFAULT NULL::text, finished_at timestamp with time zone DEFAULT NULL::timestamp with time zone, progress jsonb DEFAULT NULL::jsonb) RETURNS SETOF mainspring.jobs_history
    LANGUAGE sql STABLE
    AS $$
    select job.job_id, null::bigint, null::bigint, job.created_at, job.scheduled_for,
           history_of.started_at, coalesce(history_of.finished_at, statement_timestamp()),
           job.deadline_at, job.cancel_requested_at, null::timestamptz, job.attempt,
           job.failures + failed, coalesce(history_of.losses, job.losses), job.max_attempts,
           history_of.state, null::mainspring.waits_for, job.priority, job.tenant_id, job.queue,
           job.definition, job.payload, job.dedupe_key, job.correlation_id, job.tags,
           coalesce(history_of.progress, job.progress), job.checkpoint, history_of.result,
           coalesce(error, job.last_error), job.schedule_id, job.slot_at,
           job.origin, job.definition_version, job.created_by, job.delivery, job.source,
           job.ready_at
$$;

CREATE FUNCTION mainspring.hold_jobs(INOUT job_ids bigint[], INOUT states mainspring.job_state[], tenant text, is_patient boolean) RETURNS record
    LANGUAGE plpgsql
    AS $$
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

CREATE FUNCTION mainspring.identity() RETURNS text[]
    LANGUAGE plpgsql STABLE
    AS $$
declare
    who text := mainspring.actor();
    shown text[];
begin
    if not mainspring.is_program() then
        return array[who, 'sql:' || who, 'sql:' || who];
    end if;
    shown := nullif(current_setting('mainspring.identity', true), '')::text[];
    if shown[1] = who then
        return shown;
    end if;
    return case when coalesce(current_setting('mainspring.actor', true), '') = ''
                then array[who, 'sql:' || who, 'sql:' || who]
                when who = 'scheduler' then array[who, 'system', 'system']
                else array[who, 'name:' || who, 'name:' || who] end;
end
$$;

CREATE FUNCTION mainspring.install_schedule(spec jsonb) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
declare
    stored mainspring.schedules;
begin
    insert into mainspring.installed (name) values ('schedule ' || (spec ->> 'name'))
    on conflict do nothing;
    if not found then
        return false;
    end if;
    if spec ->> 'replaces' is not null then
        insert into mainspring.installed (name) values ('schedule ' || (spec ->> 'replaces'))
        on conflict do nothing;
        if not found then
            return false;
        end if;
    end if;
    stored := mainspring.store_schedule(jsonb_populate_record(null::mainspring.schedules, spec));
    return stored.schedule_id is not null;
end
$$;

CREATE FUNCTION mainspring.is_approver(approvers text[], tenant text) RETURNS boolean
    LANGUAGE plpgsql STABLE
    AS $$
begin
    if approvers is null then
        return not mainspring.is_isolated()
            or coalesce(current_setting('mainspring.member', true), '') = '';
    end if;
    return approvers && mainspring.approver_names(tenant)
        or exists (select from unnest(approvers) as approver
                     join pg_catalog.pg_roles as role on role.rolname = approver
                    where mainspring.actor() = session_user
                      and mainspring.has_rights_of(session_user, role.rolname)
                      and not (select rolsuper from pg_catalog.pg_roles
                                where rolname = session_user));
end
$$;

CREATE FUNCTION mainspring.is_isolated() RETURNS boolean
    LANGUAGE sql STABLE
    RETURN (current_setting('role'::text) = ANY (ARRAY['pg_database_owner'::text, 'mainspring_app'::text]));

CREATE FUNCTION mainspring.is_closed(definition text) RETURNS boolean
    LANGUAGE sql STABLE
    RETURN COALESCE(((definition ~~ 'mainspring.%'::text) AND ((definition = ANY (ARRAY['mainspring.bulk'::text, 'mainspring.delete_tenant'::text])) OR mainspring.is_isolated() OR (NOT mainspring.is_program()))), false);

CREATE FUNCTION mainspring.is_deactivated(key text) RETURNS boolean
    LANGUAGE sql STABLE
    RETURN (EXISTS (SELECT FROM mainspring.definitions d WHERE ((d.key = is_deactivated.key) AND (NOT d.is_active))));

CREATE FUNCTION mainspring.is_event_name(name text) RETURNS boolean
    LANGUAGE sql IMMUTABLE
    RETURN ((length(name) <= 200) AND (name ~ '^[A-Za-z0-9_:-]+(\.[A-Za-z0-9_:-]+)*$'::text));

CREATE FUNCTION mainspring.is_known_schema(arg_schema jsonb) RETURNS boolean
    LANGUAGE plpgsql STABLE
    AS $$
begin
    return jsonb_typeof(arg_schema) = 'boolean' and arg_schema = 'true'
        or jsonb_typeof(arg_schema) = 'object'
           and arg_schema - array['type', 'enum', 'const', 'anyOf', 'required', 'properties',
                                  'items', 'additionalProperties', 'default', 'title',
                                  'description', 'writeOnly'] = '{}'
           and not exists (
               select from (select value from jsonb_each(
                                case jsonb_typeof(arg_schema -> 'properties') when 'object'
                                     then arg_schema -> 'properties' end)
                            union all
                            select value from jsonb_array_elements(
                                case jsonb_typeof(arg_schema -> 'anyOf') when 'array'
                                     then arg_schema -> 'anyOf' end) as value
                            union all
                            select arg_schema -> 'items' where arg_schema ? 'items'
                            union all
                            select arg_schema -> 'additionalProperties'
                             where jsonb_typeof(arg_schema -> 'additionalProperties') = 'object'
                           ) as part
                where mainspring.is_known_schema(part.value) is not true);
end
$$;

CREATE FUNCTION mainspring.is_marked(schema jsonb) RETURNS boolean
    LANGUAGE sql IMMUTABLE
    RETURN COALESCE((((schema -> 'writeOnly'::text) = 'true'::jsonb) OR ((schema ->> 'format'::text) = 'password'::text)), false);

CREATE FUNCTION mainspring.is_open_value(value jsonb) RETURNS boolean
    LANGUAGE sql IMMUTABLE
    RETURN CASE jsonb_typeof(value) WHEN 'string'::text THEN ((value #>> '{}'::text[]) ~~ '%{{%'::text) WHEN 'object'::text THEN (value ? '$mainspring'::text) ELSE false END;

CREATE FUNCTION mainspring.is_own(creator text) RETURNS boolean
    LANGUAGE sql STABLE
    RETURN ((NOT mainspring.is_isolated()) OR (COALESCE(current_setting('mainspring.member'::text, true), ''::text) = ANY (ARRAY[''::text, creator])));

CREATE TABLE mainspring.tenants (
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    weight integer DEFAULT 1 NOT NULL,
    max_running integer,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    zone text DEFAULT 'UTC'::text NOT NULL,
    disabled_at timestamp with time zone,
    enabled_max_running integer,
    CONSTRAINT default_tenant_is_enabled CHECK (((tenant_id <> 'default'::text) OR (disabled_at IS NULL))),
    CONSTRAINT tenants_enabled_max_running_check CHECK ((enabled_max_running >= 0)),
    CONSTRAINT tenants_max_running_check CHECK ((max_running >= 0)),
    CONSTRAINT tenants_tenant_id_check CHECK ((tenant_id <> ''::text)),
    CONSTRAINT tenants_weight_check CHECK (((weight >= 1) AND (weight <= 1000)))
);

CREATE FUNCTION mainspring.is_plain(schedule mainspring.schedules) RETURNS boolean
    LANGUAGE sql STABLE
    RETURN ((num_nonnulls((schedule).launcher, (schedule).condition_sql, (schedule).gauge_sql, (schedule).delivery) = 0) AND (NOT (schedule).is_templated) AND (NOT (EXISTS (SELECT FROM mainspring.tenants t WHERE ((t.tenant_id = (is_plain.schedule).tenant_id) AND (t.max_running IS NOT NULL))))));

CREATE FUNCTION mainspring.is_plain_definition(definition mainspring.definitions) RETURNS boolean
    LANGUAGE sql STABLE
    RETURN (((definition).limit_name IS NULL) AND ((definition).approvals_needed = 0) AND ((definition).delivery = 'at_least_once'::text) AND ((definition).key !~~ 'mainspring.%'::text) AND (NOT (EXISTS (SELECT FROM mainspring.tenants t WHERE ((t.tenant_id = 'default'::text) AND (t.max_running IS NOT NULL))))));

CREATE FUNCTION mainspring.is_source(source text) RETURNS boolean
    LANGUAGE sql IMMUTABLE
    RETURN ((source IS NULL) OR ((source ~ '^[a-z][a-z0-9_.-]{0,49}$'::text) AND (source <> ALL (ARRAY['schedule'::text, 'trigger'::text, 'job'::text, 'system'::text]))));

CREATE FUNCTION mainspring.may_create_as(created_by text) RETURNS boolean
    LANGUAGE sql STABLE
    RETURN ((created_by IS NULL) OR (((length(created_by) >= 1) AND (length(created_by) <= 500)) AND mainspring.is_own(created_by) AND ((created_by !~ '^(system|trigger|job):'::text) OR (mainspring.is_program() AND (NOT mainspring.is_isolated())))));

CREATE FUNCTION mainspring.is_plain_origin(created_by text, source text) RETURNS boolean
    LANGUAGE sql STABLE
    RETURN (mainspring.may_create_as(created_by) AND mainspring.is_source(source));

CREATE FUNCTION mainspring.is_plain_request(payload jsonb, queue text, priority integer, max_attempts integer, delay interval, scheduled_for timestamp with time zone, on_duplicate text) RETURNS boolean
    LANGUAGE sql STABLE
    RETURN ((jsonb_typeof(payload) = 'object'::text) AND (pg_column_size(payload) <= 65536) AND (pg_column_compression(payload) IS NULL) AND (strpos((payload)::text, '"$mainspring": '::text) = 0) AND (on_duplicate = ANY (ARRAY['raise'::text, 'existing'::text])) AND ((COALESCE(length(queue), 1) >= 1) AND (COALESCE(length(queue), 1) <= 500)) AND ((COALESCE(priority, 0) >= 0) AND (COALESCE(priority, 0) <= 1000)) AND ((COALESCE(max_attempts, 1) >= 1) AND (COALESCE(max_attempts, 1) <= 1000)) AND ((delay IS NULL) OR (((delay >= '00:00:00'::interval) AND (delay <= '36500 days'::interval)) AND (scheduled_for IS NULL))) AND ((COALESCE(scheduled_for, now()) >= '0001-01-02 00:00:00+00'::timestamp with time zone) AND (COALESCE(scheduled_for, now()) <= '9999-12-30 00:00:00+00'::timestamp with time zone)));

CREATE FUNCTION mainspring.is_quickly_checked(arg_schema jsonb, payload jsonb) RETURNS boolean
    LANGUAGE sql IMMUTABLE
    RETURN (((octet_length((arg_schema)::text))::bigint * octet_length((payload)::text)) <= 2097152);

CREATE FUNCTION mainspring.is_related(filter jsonb, job_id bigint, creator text) RETURNS boolean
    LANGUAGE plpgsql STABLE
    AS $$
begin
    return (filter -> 'flow_id' is null or exists (
            select from mainspring.flow_jobs as member
             where member.job_id = is_related.job_id
               and filter -> 'flow_id' ? member.flow_id::text))
       and (filter -> 'event_id' is null or exists (
            select from mainspring.dispatches as dispatch
             where dispatch.job_id = is_related.job_id and dispatch.outcome = 'enqueued'
               and filter -> 'event_id' ? dispatch.event_id::text))
       and (filter -> 'parent_id' is null
            or (creator like 'job:%' and filter -> 'parent_id' ? substr(creator, 5))
            or exists (select from mainspring.dependencies as dependency
                        where dependency.job_id = is_related.job_id
                          and filter -> 'parent_id' ? dependency.parent_id::text));
end
$$;

CREATE TABLE mainspring.receipts (
    job_id bigint NOT NULL,
    fence bigint NOT NULL,
    result jsonb NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE SEQUENCE mainspring.worker_ids
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

CREATE TABLE mainspring.workers (
    worker_id bigint DEFAULT nextval('mainspring.worker_ids'::regclass) NOT NULL,
    started_at timestamp with time zone DEFAULT now() NOT NULL,
    renewed_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    recovered_at timestamp with time zone,
    pid integer NOT NULL,
    concurrency integer NOT NULL,
    wants_wake boolean DEFAULT true NOT NULL,
    is_stopping boolean DEFAULT false NOT NULL,
    name text NOT NULL,
    host text NOT NULL,
    process_identity text NOT NULL,
    queues text[] NOT NULL,
    version text NOT NULL,
    died_at timestamp with time zone,
    records_starts boolean DEFAULT false NOT NULL,
    survived boolean DEFAULT false NOT NULL,
    schema_number integer,
    clock_offset_ms bigint,
    round_trip_ms real
)
WITH (fillfactor='50', autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='200');

CREATE FUNCTION mainspring.is_spent(job mainspring.jobs, is_worker_dead boolean) RETURNS boolean
    LANGUAGE sql STABLE
    RETURN (((job).delivery = 'at_most_once'::text) AND ((NOT ((job).begun_fence IS DISTINCT FROM (job).fence)) OR (is_worker_dead AND (NOT (EXISTS (SELECT FROM mainspring.workers worker WHERE ((worker.worker_id = (is_spent.job).worker_id) AND worker.records_starts)))))) AND (NOT (EXISTS (SELECT FROM mainspring.receipts receipt WHERE (receipt.job_id = (is_spent.job).job_id)))));

CREATE FUNCTION mainspring.is_visible(tenant text) RETURNS boolean
    LANGUAGE sql STABLE
    RETURN ((NOT mainspring.is_isolated()) OR (COALESCE(current_setting('mainspring.tenant'::text, true), ''::text) = tenant));

CREATE FUNCTION mainspring.is_zone(name text) RETURNS boolean
    LANGUAGE plpgsql STRICT
    SET "TimeZone" TO 'UTC'
    AS $$
begin
    return name = 'UTC' or (
        length(name) <= 64 and name !~ '^(localtime|posixrules|Factory|posix/|right/)'
        and set_config('timezone', name, true) = name and (
        name !~ '[0-9]'
        or exists (select from pg_timezone_names as known where known.name = is_zone.name)));
exception when invalid_parameter_value then
    return false;
end
$$;

CREATE FUNCTION mainspring.parts_sought(asked jsonb) RETURNS text[]
    LANGUAGE sql IMMUTABLE
    AS $$
    select array_agg('%' || replace(replace(replace(
               lower(part), '\', '\\'), '%', '\%'), '_', '\_') || '%')
      from jsonb_array_elements_text(
               case jsonb_typeof(asked) when 'array' then asked
                                        else jsonb_build_array(asked) end) as part
$$;

CREATE FUNCTION mainspring.job_matches(filter jsonb, state mainspring.job_state, queue text, definition text, source text, tags text[], created_at timestamp with time zone, last_error text) RETURNS boolean
    LANGUAGE sql STABLE
    RETURN (((COALESCE((filter -> 'state'::text), (filter -> 'status'::text)) IS NULL) OR (COALESCE((filter -> 'state'::text), (filter -> 'status'::text)) ? (state)::text)) AND (((filter -> 'queue'::text) IS NULL) OR ((filter -> 'queue'::text) ? queue)) AND (((filter -> 'definition'::text) IS NULL) OR ((filter -> 'definition'::text) ? definition)) AND (((filter -> 'source'::text) IS NULL) OR ((filter -> 'source'::text) ? source)) AND (((filter -> 'tag'::text) IS NULL) OR ((filter -> 'tag'::text) ?| tags)) AND (((filter ->> 'created_after'::text) IS NULL) OR (created_at >= ((filter ->> 'created_after'::text))::timestamp with time zone)) AND (((filter ->> 'created_before'::text) IS NULL) OR (created_at < ((filter ->> 'created_before'::text))::timestamp with time zone)) AND (((filter -> 'error'::text) IS NULL) OR (lower(last_error) ~~ ANY (mainspring.parts_sought((filter -> 'error'::text))))));

CREATE FUNCTION mainspring.keep_built_in_schedule() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    problem text := old.definition || ' is built in and for operators only';
begin
    if not mainspring.acts_as_owner() then
        raise exception using errcode = 'MS041', message = 'definition: ' || problem,
            detail = jsonb_build_object('field', 'definition', 'problem', problem);
    end if;
    return case when tg_op = 'DELETE' then old else new end;
end
$$;

CREATE FUNCTION mainspring.keep_depth(depth mainspring.depths) RETURNS void
    LANGUAGE sql
    AS $$
    insert into mainspring.depths as known
    select depth.tenant_id, depth.queue, depth.definition, coalesce(depth.live, 0),
           coalesce(depth.ready, 0), coalesce(depth.running, 0), coalesce(depth.waiting_time, 0),
           coalesce(depth.waiting_limit, 0), coalesce(depth.waiting_turn, 0),
           coalesce(depth.waiting_handler, 0), coalesce(depth.awaiting_approval, 0),
           coalesce(depth.blocked, 0), depth.oldest_ready_at, depth.enqueued_over,
           depth.started_over, now(), now()
    on conflict (tenant_id, queue, definition) do update
       set live = excluded.live, ready = excluded.ready, running = excluded.running,
           waiting_time = excluded.waiting_time, waiting_limit = excluded.waiting_limit,
           waiting_turn = excluded.waiting_turn, waiting_handler = excluded.waiting_handler,
           awaiting_approval = excluded.awaiting_approval, blocked = excluded.blocked,
           oldest_ready_at = excluded.oldest_ready_at, enqueued_over = excluded.enqueued_over,
           started_over = excluded.started_over, changed_at = now(), seen_at = now()
$$;

CREATE FUNCTION mainspring.keep_limit() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    if tg_op <> 'INSERT' and old.limit_name = old.key
       and (tg_op = 'DELETE' or new.limit_name is distinct from new.key) then
        delete from mainspring.limits as known where known.name = old.key;
    end if;
    if tg_op <> 'DELETE' and new.limit_name = new.key then
        perform mainspring.write_limit(
            new.key, new.concurrency, new.key_concurrency, new.rate_count, new.rate_period,
            coalesce(new.burst, 1));
    end if;
    return null;
end
$$;

CREATE FUNCTION mainspring.keep_used_definition() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    used text;
begin
    select 'schedule ' || quote_literal(s.name) || ' of tenant ' || s.tenant_id into used
      from mainspring.schedules as s where s.definition = old.key order by s.schedule_id limit 1;
    if used is null then
        select 'trigger ' || quote_literal(t.name) || ' of tenant ' || t.tenant_id into used
          from mainspring.triggers as t where t.definition = old.key order by t.trigger_id limit 1;
    end if;
    if used is not null then
        perform mainspring.refuse_definition(old.key, 'key', format(
            'is used by the %s; delete that first, or deactivate the definition', used));
    end if;
    return old;
end
$$;

CREATE FUNCTION mainspring.keep_version() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    insert into mainspring.definition_versions select (mainspring.version_of(new)).*
    on conflict (key, version) do nothing;
    return null;
end
$$;

CREATE FUNCTION mainspring.keyed_digest(purpose text, content text) RETURNS text
    LANGUAGE plpgsql STABLE
    AS $$
declare
    own_key bytea;
begin
    select own.key into strict own_key
      from mainspring.installation_keys as own where own.name = purpose;
    return encode(sha256(substr(own_key, 33) || sha256(
        substr(own_key, 1, 32) || convert_to(content, 'UTF8'))), 'hex');
end
$$;

CREATE FUNCTION mainspring.keys_with_figures(depths_now mainspring.depths[], changed mainspring.changes[], most integer) RETURNS TABLE(tenant_id text, queue text, definition text)
    LANGUAGE sql STABLE
    AS $$
    with busy as (
        select tenant_id, queue, definition, sum(busy) as busy
          from (select tenant_id, queue, definition, live from unnest(depths_now)
                union all
                select tenant_id, queue, definition, count from unnest(changed)
                 where moved <> 'pruned') as each (tenant_id, queue, definition, busy)
         where not exists (
             select from mainspring.depths as known
              where (known.tenant_id, known.queue, known.definition)
                    = (each.tenant_id, each.queue, each.definition))
         group by 1, 2, 3
    )
    select known.tenant_id, known.queue, known.definition from mainspring.depths as known
    union all
    (select tenant_id, queue, definition from busy order by busy desc
      limit greatest(0, most - (select count(*) from mainspring.depths)))
$$;

CREATE FUNCTION mainspring.largest_count() RETURNS integer
    LANGUAGE sql IMMUTABLE
    RETURN 1000000000;

CREATE FUNCTION mainspring.legacy_content(definition text, payload jsonb) RETURNS text
    LANGUAGE sql IMMUTABLE
    RETURN md5(((definition || '
'::text) || (payload)::text));

CREATE FUNCTION mainspring.limit_key_of(payload jsonb, path text[], given text) RETURNS text
    LANGUAGE sql IMMUTABLE
    RETURN CASE WHEN (length(COALESCE(given, (payload #>> path), ''::text)) > 500) THEN ('md5:'::text || md5(COALESCE(given, (payload #>> path)))) ELSE COALESCE(given, (payload #>> path), ''::text) END;

CREATE FUNCTION mainspring.limit_name_of(definition mainspring.definitions, is_new boolean) RETURNS text
    LANGUAGE plpgsql
    AS $$
begin
    if num_nonnulls(definition.concurrency, definition.key_concurrency, definition.rate_count) > 0
    then
        if definition.limit_name <> definition.key then
            perform mainspring.refuse_definition(definition.key, 'limit',
                'names a shared limit, so concurrency, key_concurrency and rate cannot be set');
        end if;
        return definition.key;
    elsif definition.limit_name = definition.key then
        if is_new then
            perform mainspring.refuse_definition(definition.key, 'limit',
                'must differ from the key; set concurrency, key_concurrency or rate for a limit '
                || 'of its own');
        end if;
        return null;
    end if;
    return definition.limit_name;
end
$$;

CREATE FUNCTION mainspring.limit_of(defined mainspring.definitions, tenant text, payload jsonb, given text, OUT limit_name text, OUT limit_key text) RETURNS record
    LANGUAGE plpgsql STABLE
    AS $$
begin
    if defined.key = 'mainspring.bulk' then
        return;
    end if;
    limit_name := defined.limit_name;
    if limit_name is null and given is not null then
        perform mainspring.refuse_option('limit_key',
            'limit_key is given, but ' || defined.key || ' has no limit');
    end if;
    if limit_name is null and exists (select from mainspring.tenants as t
                                       where t.tenant_id = tenant and t.max_running is not null)
    then
        limit_name := '';
    end if;
    if limit_name is not null then
        limit_key := mainspring.limit_key_of(payload, defined.limit_by, given);
    end if;
end
$$;

CREATE FUNCTION mainspring.live_again(ended mainspring.jobs_history, payload jsonb) RETURNS mainspring.jobs
    LANGUAGE plpgsql
    AS $$
declare
    job mainspring.jobs := mainspring.asked_job(
        ended.definition, coalesce(payload, ended.payload), ended.tenant_id, ended.queue,
        ended.priority, ended.max_attempts, clock_timestamp(), null, ended.dedupe_key,
        ended.correlation_id, ended.tags,
        delivery => coalesce(ended.delivery, 'at_least_once'));
begin
    job.job_id := ended.job_id;
    job.definition_version := ended.definition_version;
    job.created_at := ended.created_at;
    job.created_by := ended.created_by;
    job.source := ended.source;
    job.attempt := ended.attempt;
    job.checkpoint := ended.checkpoint;
    job.last_error := ended.last_error;
    job.schedule_id := ended.schedule_id;
    job.slot_at := ended.slot_at;
    job.origin := ended.origin;
    -- A key of the content goes with the content.
    if ended.dedupe_key in (
        'content:' || mainspring.content_digest(ended.tenant_id, ended.definition, ended.payload),
        'content:' || mainspring.legacy_content(ended.definition, ended.payload)) then
        job.dedupe_key := 'content:' || mainspring.content_of(job);
    end if;
    return job;
end
$$;

CREATE FUNCTION mainspring.live_depths() RETURNS SETOF mainspring.depths
    LANGUAGE sql STABLE
    AS $$
    select tenant_id, queue, definition, count(*),
           count(*) filter (where state = 'queued' and waits_for is null),
           count(*) filter (where state = 'running'),
           count(*) filter (where waits_for = 'time'), count(*) filter (where waits_for = 'limit'),
           count(*) filter (where waits_for = 'turn'),
           count(*) filter (where waits_for = 'handler'),
           count(*) filter (where state = 'awaiting_approval'),
           count(*) filter (where state = 'blocked'),
           min(coalesce(ready_at, scheduled_for))
               filter (where state = 'queued' and waits_for is null),
           0::bigint, 0::bigint, now(), now()
      from mainspring.jobs
     group by tenant_id, queue, definition
$$;

CREATE FUNCTION mainspring.live_runs(schedule_id bigint) RETURNS bigint
    LANGUAGE sql STABLE
    RETURN (SELECT count(*) AS count FROM mainspring.jobs job WHERE ((job.schedule_id = live_runs.schedule_id) AND (job.slot_at IS NOT NULL)));

CREATE TABLE mainspring.approvals (
    job_id bigint NOT NULL,
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    needed smallint NOT NULL,
    approvers text[],
    requested_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone,
    decided_at timestamp with time zone,
    decision text,
    CONSTRAINT approvals_check CHECK (((decided_at IS NULL) = (decision IS NULL))),
    CONSTRAINT approvals_decision_check CHECK ((decision = ANY (ARRAY['approved'::text, 'rejected'::text, 'expired'::text]))),
    CONSTRAINT approvals_needed_check CHECK (((needed >= 1) AND (needed <= 100)))
);

CREATE FUNCTION mainspring.lock_approval(job_id bigint, tenant text, target text) RETURNS mainspring.approvals
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
declare
    asked mainspring.approvals;
    found_job record;
    may_decide boolean;
begin
    select * into asked from mainspring.approvals as a
     where a.job_id = lock_approval.job_id and a.tenant_id = tenant for update;
    may_decide := asked.job_id is not null and mainspring.is_approver(asked.approvers, tenant);
    select job.state, job.created_by into found_job from mainspring.all_jobs as job
     where job.job_id = lock_approval.job_id and job.tenant_id = tenant;
    if found_job.state is null or not (may_decide or mainspring.is_own(found_job.created_by)) then
        perform mainspring.refuse_job(lock_approval.job_id);
    end if;
    if asked.job_id is null or found_job.state <> 'awaiting_approval'
       or asked.decided_at is not null or asked.expires_at <= clock_timestamp() then
        perform mainspring.refuse_move(lock_approval.job_id, found_job.state, target);
    end if;
    if not may_decide then
        asked.approvers := coalesce(asked.approvers, array['role:admin', 'role:operator']);
        perform mainspring.refuse('MS032', mainspring.actor() || ' may not decide on job '
            || lock_approval.job_id || '; ' || array_to_string(asked.approvers, ', ') || ' may',
            jsonb_build_object('job_id', lock_approval.job_id, 'actor', mainspring.actor(),
                               'approvers', asked.approvers));
    end if;
    return asked;
end
$$;

CREATE FUNCTION mainspring.lock_for_plan(plan jsonb) RETURNS mainspring.schedules
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
declare
    schedule mainspring.schedules;
begin
    if plan ->> 'waits' = 'true' then
        perform from mainspring.schedules as s
          where s.schedule_id = (plan ->> 'schedule_id')::bigint for update;
        perform from mainspring.clocks as c
          where c.schedule_id = (plan ->> 'schedule_id')::bigint for update;
    end if;
    select * into schedule from mainspring.schedules as s
     where s.schedule_id = (plan ->> 'schedule_id')::bigint and s.enabled
       for update skip locked;
    perform from mainspring.clocks as c
      where c.schedule_id = schedule.schedule_id and c.revision = (plan ->> 'revision')::bigint
        for update skip locked;
    return case when found then schedule end;
end
$$;

CREATE FUNCTION mainspring.lock_settling() RETURNS boolean
    LANGUAGE sql
    AS $$ select pg_try_advisory_xact_lock(hashtext('mainspring.flows')) $$;

CREATE FUNCTION mainspring.lock_windows(keys text[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
begin
    perform pg_advisory_xact_lock(lock_id)
       from (select distinct hashtextextended('mainspring.' || key, 0) as lock_id
               from unnest(keys) as key where key is not null
              order by lock_id) as sorted;
end
$$;

CREATE FUNCTION mainspring.log_out(digest bytea) RETURNS void
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
declare
    ended mainspring.tokens;
    someone mainspring.people;
begin
    delete from mainspring.tokens as t
     where t.digest = log_out.digest and t.kind in ('session', 'console')
    returning * into ended;
    select * into someone from mainspring.people as person
     where person.person_id = ended.person_id and ended.kind = 'session';
    if someone.person_id is not null then
        perform mainspring.note_session(someone, 'logout', null);
    end if;
end
$$;

CREATE FUNCTION mainspring.longest_delay() RETURNS interval
    LANGUAGE sql IMMUTABLE
    RETURN '36500 days'::interval;

CREATE FUNCTION mainspring.longest_text() RETURNS integer
    LANGUAGE sql IMMUTABLE
    RETURN 10000;

CREATE FUNCTION mainspring.look(most_keys integer, most_changes integer) RETURNS bigint
    LANGUAGE plpgsql
    AS $$
declare
    changed mainspring.changes[];
    depths_now mainspring.depths[];
    total bigint;
begin
    with taken as (
        delete from mainspring.changes as change
         where change.ctid = any (array(
            select old.ctid from mainspring.changes as old limit most_changes))
        returning change
    )
    select (select coalesce(array_agg(taken.change), '{}') from taken),
           (select coalesce(array_agg(seen), '{}') from mainspring.live_depths() as seen)
      into changed, depths_now;
    total := cardinality(changed);
    perform mainspring.add_to_tallies(changed);
    changed := changed || mainspring.zero_changes(depths_now);
    select capped.depths_now, capped.changed into depths_now, changed
      from mainspring.cap_keys(depths_now, changed, most_keys) as capped;
    perform mainspring.add_figures(array_agg(figure))
       from mainspring.balance(depths_now, changed) as counted,
            lateral mainspring.of_each_step(counted) as figure;
    insert into mainspring.watches as watch (name, last_at, took)
    values ('figures', now(), clock_timestamp() - now())
    on conflict (name) do update set last_at = excluded.last_at, took = excluded.took;
    return total;
end
$$;

CREATE FUNCTION mainspring.lost_worker_key() RETURNS text
    LANGUAGE sql IMMUTABLE
    RETURN '4eef111bb3bc'::text;

CREATE FUNCTION mainspring.max_payload_bytes() RETURNS integer
    LANGUAGE sql STABLE
    AS $$
    select least(coalesce(nullif(case
               when mainspring.is_program()
               then current_setting('mainspring.max_payload_bytes', true)
               else mainspring.setting_of_database('mainspring.max_payload_bytes') end,
               '')::bigint, 1048576), 67108864)::integer
$$;

CREATE FUNCTION mainspring.may_fire(schedule mainspring.schedules) RETURNS boolean
    LANGUAGE sql STABLE
    RETURN ((schedule).enabled AND (NOT (EXISTS (SELECT FROM mainspring.tenants t WHERE ((t.tenant_id = (may_fire.schedule).tenant_id) AND (t.disabled_at IS NOT NULL))))));

CREATE FUNCTION mainspring.may_set_role(member name, role name) RETURNS boolean
    LANGUAGE plpgsql STABLE
    AS $$
begin
    return pg_has_role(member, role, case when current_setting('server_version_num')::integer
                                               >= 160000 then 'SET' else 'MEMBER' end);
end
$$;

CREATE FUNCTION mainspring.meant_definition(key text) RETURNS text
    LANGUAGE plpgsql STABLE
    AS $$
begin
    return mainspring.did_you_mean(meant_definition.key, array(
        select quote_literal(known.key) from mainspring.definitions as known
         where known.is_active and known.key not like 'mainspring.%'));
end
$$;

CREATE FUNCTION mainspring.meant_function(full_name text, name text) RETURNS text
    LANGUAGE plpgsql STABLE
    AS $_$
declare
    named text[] := array(
        select distinct format('%I.%I', n.nspname, p.proname)
          from pg_catalog.pg_proc as p join pg_catalog.pg_namespace as n on n.oid = p.pronamespace
         where n.nspname !~ '^(pg_|information_schema$|mainspring)' and p.prokind = 'f'
           and p.prorettype = any ('{jsonb,json}'::pg_catalog.regtype[]));
begin
    return coalesce(
        (select '; did you mean ' || string_agg(same.known, ' or ' order by same.known) || '?'
           from (select known from unnest(named) as known
                  where split_part(known, '.', 2) = meant_function.name
                  order by known limit 3) as same),
        mainspring.did_you_mean(full_name, named));
end
$_$;

CREATE FUNCTION mainspring.merged_depths(depths_now mainspring.depths[]) RETURNS mainspring.depths[]
    LANGUAGE sql STABLE
    AS $$
    select coalesce(array_agg(merged::mainspring.depths), '{}')
      from (select tenant_id, queue, definition, sum(live), sum(ready), sum(running),
                   sum(waiting_time), sum(waiting_limit), sum(waiting_turn),
                   sum(waiting_handler), sum(awaiting_approval), sum(blocked),
                   min(oldest_ready_at), 0::bigint, 0::bigint, now(), now()
              from unnest(depths_now) group by tenant_id, queue, definition) as merged
$$;

CREATE FUNCTION mainspring.missing_app_grants(app name) RETURNS SETOF text
    LANGUAGE sql STABLE
    AS $$
select format('grant usage on schema mainspring to %I', app)
 where not has_schema_privilege(app, 'mainspring', 'usage')
union all
select format('grant select on mainspring.%I to %I', view.relname, app)
  from pg_catalog.pg_class as view
 where view.relnamespace = 'mainspring'::regnamespace and view.relkind = 'v'
   and view.relname not in ('bearers', 'all_jobs')
   and not has_table_privilege(app, view.oid, 'select')
union all
select format('grant %s on mainspring.%I to %I', used.rights, used.name, app)
  from (values
      ('audit', 'select'),
      ('clocks', 'select'),
      ('definitions', 'select'),
      ('definition_versions', 'select'),
      ('jobs', 'insert, select'),
      ('people', 'select, insert, update, delete'),
      ('replies', 'select, insert, update'),
      ('schedules', 'select, insert, update, delete'),
      ('tenants', 'select'),
      ('tokens', 'select, insert, update'),
      ('triggers', 'select, insert, update, delete'),
      ('workers', 'select')) as used (name, rights)
 where not has_table_privilege(app, 'mainspring.' || used.name, 'select')
union all
select format('grant execute on function %s to %I', called.oid::regprocedure, app)
  from pg_catalog.pg_proc as called
 where called.pronamespace = 'mainspring'::regnamespace
   and not called.proname = any (array[
       'app_role', 'ask_as_reader', 'bearer', 'bearer_of', 'call_function', 'change_jobs',
       'delete_from_tenant', 'delete_rest_of_tenant', 'ensure_app_role', 'enter',
       'log_out', 'missing_app_grants', 'open_to_app', 'pause_queue', 'receipt_token',
       'remove_limit', 'resume_queue', 'set_limit', 'start_tenant_deletion', 'use_login'])
   and not has_function_privilege(app, called.oid, 'execute')
$$;

CREATE FUNCTION mainspring.most_dependencies() RETURNS integer
    LANGUAGE sql IMMUTABLE
    RETURN 50000;

CREATE FUNCTION mainspring.most_error_groups() RETURNS integer
    LANGUAGE sql IMMUTABLE
    RETURN 200;

CREATE FUNCTION mainspring.most_flow_bytes() RETURNS integer
    LANGUAGE sql IMMUTABLE
    RETURN 67108864;

CREATE FUNCTION mainspring.most_jobs() RETURNS integer
    LANGUAGE sql IMMUTABLE
    RETURN 1000000;

CREATE FUNCTION mainspring.most_parents() RETURNS integer
    LANGUAGE sql IMMUTABLE
    RETURN 10000;

CREATE FUNCTION mainspring.most_steps() RETURNS integer
    LANGUAGE sql IMMUTABLE
    RETURN 10000;

CREATE FUNCTION mainspring.move_jobs_of_definition() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    update mainspring.jobs as job
       set limit_name = owner.limit_name,
           limit_key = case when owner.limit_name is null then null
                            -- One that was given with the job stays.
                            when job.limit_name <> ''
                                 and new.limit_by is not distinct from old.limit_by
                            then job.limit_key
                            else mainspring.limit_key_of(job.payload, new.limit_by, null) end,
           waits_for = case when job.state = 'queued'
                                 and (job.waits_for is null or job.waits_for = 'limit')
                            then mainspring.wait_of(owner.limit_name) else job.waits_for end,
           ready_at = case when job.state = 'queued' and job.waits_for = 'limit'
                                and owner.limit_name is null
                           then clock_timestamp() else job.ready_at end
      from (select t.tenant_id,
                   coalesce(new.limit_name, case when t.max_running is not null then '' end)
                       as limit_name
              from mainspring.tenants as t) as owner
     where job.definition = new.key and owner.tenant_id = job.tenant_id;
    perform mainspring.notify_limits_changed();
    perform mainspring.notify_queue(new.queue);
    return null;
end
$$;

CREATE FUNCTION mainspring.move_jobs_of_tenant() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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

CREATE FUNCTION mainspring.move_on(job_id bigint) RETURNS mainspring.job_state
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
declare
    moved mainspring.jobs;
begin
    update mainspring.jobs as job
       set waits_for = next.waits_for, state = mainspring.state_of(next.waits_for),
           ready_at = case when next.waits_for is null then clock_timestamp() end
      from (select held.job_id,
                   mainspring.first_wait(
                       false,
                       exists (select from mainspring.dependencies as d
                                where d.job_id = held.job_id and d.outcome is null),
                       held.slot_at is not null, held.scheduled_for, held.limit_name) as waits_for
              from mainspring.jobs as held where held.job_id = move_on.job_id) as next
     where job.job_id = next.job_id and job.state in ('awaiting_approval', 'blocked')
    returning job.* into moved;
    if moved.waits_for = 'turn' then
        perform mainspring.release_turn(moved.schedule_id);
    elsif moved.waits_for = 'time' then
        perform mainspring.notify_job_ready(moved.queue, moved.scheduled_for);
    elsif moved.state = 'queued' then
        perform mainspring.notify_released(moved);
    elsif moved.waits_for = 'parents' then
        perform mainspring.notify_parents();
    end if;
    return moved.state;
end
$$;

CREATE TABLE mainspring.clocks (
    schedule_id bigint NOT NULL,
    revision bigint DEFAULT 0 NOT NULL,
    next_run_at timestamp with time zone,
    next_slot_at timestamp with time zone,
    changed_at timestamp with time zone DEFAULT now() NOT NULL,
    checking_until timestamp with time zone,
    last_slot_at timestamp with time zone,
    last_enqueued_at timestamp with time zone,
    last_skipped_at timestamp with time zone,
    last_failed_at timestamp with time zone,
    enqueued_count bigint DEFAULT 0 NOT NULL,
    skipped_count bigint DEFAULT 0 NOT NULL,
    failed_count bigint DEFAULT 0 NOT NULL,
    missed_count bigint DEFAULT 0 NOT NULL,
    lateness_total interval DEFAULT '00:00:00'::interval NOT NULL,
    lateness_worst interval DEFAULT '00:00:00'::interval NOT NULL,
    plan_key uuid NOT NULL,
    retry_count integer DEFAULT 0 NOT NULL,
    is_plain boolean NOT NULL,
    gauge_is_high boolean DEFAULT false NOT NULL,
    definition text NOT NULL COLLATE pg_catalog."C",
    checking_by text,
    last_error text,
    gauge_value double precision,
    gauge_read_at timestamp with time zone,
    schema_key uuid DEFAULT 'd41d8cd9-8f00-b204-e980-0998ecf8427e'::uuid NOT NULL
)
WITH (fillfactor='70', autovacuum_vacuum_scale_factor='0.02', autovacuum_vacuum_threshold='1000', autovacuum_analyze_scale_factor='0.1', autovacuum_vacuum_cost_delay='0');

CREATE FUNCTION mainspring.needs_look(schedule mainspring.schedules, force boolean) RETURNS boolean
    LANGUAGE sql STABLE
    RETURN (((schedule).launcher IS NOT NULL) OR (schedule).is_templated OR ((num_nonnulls((schedule).condition_sql, (schedule).gauge_sql) > 0) AND (NOT force)) OR (EXISTS (SELECT FROM (mainspring.definitions d JOIN mainspring.clocks c ON ((c.schedule_id = (needs_look.schedule).schedule_id))) WHERE ((d.key = (needs_look.schedule).definition) AND (d.schema_key <> c.schema_key)))));

CREATE FUNCTION mainspring.new_job(asked mainspring.jobs, defined mainspring.definitions, has_parents boolean DEFAULT false, is_behind_others boolean DEFAULT false) RETURNS mainspring.jobs
    LANGUAGE plpgsql
    AS $$
declare
    place record := mainspring.limit_of(
        defined, asked.tenant_id, coalesce(asked.payload, '{}'), asked.limit_key);
begin
    if asked.created_at is null then
        asked := mainspring.asked_now(asked, null);
    end if;
    asked.job_id := coalesce(asked.job_id, nextval('mainspring.job_ids'));
    asked.definition_version := coalesce(asked.definition_version, defined.version);
    asked.queue := coalesce(asked.queue, defined.queue);
    asked.priority := coalesce(asked.priority, defined.priority);
    asked.delivery := nullif(coalesce(asked.delivery, defined.delivery), 'at_least_once');
    asked.max_attempts := case when asked.delivery is null
                               then coalesce(asked.max_attempts, defined.max_attempts) else 1 end;
    asked.payload := coalesce(asked.payload, '{}');
    asked.scheduled_for := coalesce(asked.scheduled_for, asked.created_at);
    asked.attempt := coalesce(asked.attempt, 0);
    asked.failures := 0;
    asked.losses := 0;
    asked.limit_name := place.limit_name;
    asked.limit_key := place.limit_key;
    asked.waits_for := mainspring.first_wait(
        defined.approvals_needed > 0, has_parents, is_behind_others, asked.scheduled_for,
        asked.limit_name);
    asked.state := mainspring.state_of(asked.waits_for);
    return asked;
end
$$;

CREATE FUNCTION mainspring.newest_jobs(job_ids bigint[]) RETURNS bigint[]
    LANGUAGE sql IMMUTABLE
    RETURN ARRAY(SELECT DISTINCT job_id.job_id FROM unnest(newest_jobs.job_ids) job_id(job_id) ORDER BY job_id.job_id DESC LIMIT 5);

CREATE FUNCTION mainspring.newest_of(lists text) RETURNS bigint[]
    LANGUAGE sql IMMUTABLE
    RETURN mainspring.newest_jobs((string_to_array(lists, ','::text))::bigint[]);

CREATE FUNCTION mainspring.note_action(tenant text, action text, noun text, subject text, reason text, before jsonb, after jsonb) RETURNS void
    LANGUAGE plpgsql
    AS $$
begin
    insert into mainspring.audit (
        at, tenant_id, actor, actor_id, action, noun, subject, reason, before, after)
    values (clock_timestamp(), note_action.tenant, mainspring.actor(), (mainspring.identity())[2],
            note_action.action, note_action.noun, note_action.subject, note_action.reason,
            note_action.before, note_action.after);
end
$$;

CREATE FUNCTION mainspring.note_duplicate(asked mainspring.jobs, holder bigint, idempotency_key text, on_duplicate text) RETURNS void
    LANGUAGE plpgsql
    AS $$
begin
    if on_duplicate = 'raise' then
        perform mainspring.refuse_duplicate(asked.dedupe_key, holder);
    end if;
    update mainspring.enqueue_keys as known set job_id = holder
     where known.tenant_id = asked.tenant_id
       and (known.kind, known.key) in (('idempotency', idempotency_key),
                                       ('window', asked.dedupe_key))
       and known.job_id <> holder;
end
$$;

CREATE FUNCTION mainspring.note_failure(schedule mainspring.schedules, failures integer, problem text) RETURNS void
    LANGUAGE plpgsql
    AS $$
declare
    again_at timestamptz := now() + least(2 ^ least(failures, 6), 60) * interval '1 minute';
begin
    update mainspring.clocks as c
       set retry_count = failures, failed_count = c.failed_count + 1, last_failed_at = now(),
           last_error = left(problem, 2000), next_slot_at = again_at, next_run_at = again_at
     where c.schedule_id = schedule.schedule_id;
    if failures >= schedule.max_retries then
        update mainspring.schedules as s
           set enabled = false,
               disabled_reason = case failures when 1 then 'failed once'
                                     else 'failed ' || failures || ' times in a row' end
                                 || '; last error: ' || left(problem, 1000)
         where s.schedule_id = schedule.schedule_id;
    end if;
end
$$;

CREATE FUNCTION mainspring.note_session(person mainspring.people, action text, after jsonb) RETURNS void
    LANGUAGE sql
    AS $$
insert into mainspring.audit (tenant_id, actor, actor_id, action, noun, subject, after)
values (coalesce(person.tenant_id, ''), person.name, 'person:' || person.person_id,
        note_session.action, 'session', person.name, note_session.after)
$$;

CREATE FUNCTION mainspring.note_vote(asked mainspring.approvals, action text, reason text, became mainspring.job_state) RETURNS void
    LANGUAGE plpgsql
    AS $$
begin
    perform mainspring.note_action(
        asked.tenant_id, action, 'job', asked.job_id::text, nullif(reason, ''),
        jsonb_build_object('state', 'awaiting_approval'), jsonb_build_object('state', became));
end
$$;

CREATE FUNCTION mainspring.notify_cancel(worker_id bigint) RETURNS void
    LANGUAGE sql
    AS $$ select mainspring.send_message('cancel:' || worker_id) $$;

CREATE FUNCTION mainspring.notify_due_soon() RETURNS void
    LANGUAGE sql
    AS $$ select mainspring.send_message('due:') $$;

CREATE FUNCTION mainspring.notify_enqueued(queue text, priority integer, tenant text, first_id bigint, due_at timestamp with time zone) RETURNS void
    LANGUAGE plpgsql
    AS $$
begin
    if exists (select from mainspring.workers as worker
                where worker.wants_wake and notify_enqueued.queue = any (worker.queues)) then
        perform mainspring.notify_job_ready(notify_enqueued.queue, notify_enqueued.due_at);
    elsif notify_enqueued.due_at <= clock_timestamp() and exists (
        select from mainspring.workers as worker
         where notify_enqueued.queue = any (worker.queues)) then
        perform mainspring.notify_lane(
            notify_enqueued.queue, notify_enqueued.priority, notify_enqueued.tenant,
            notify_enqueued.first_id);
    end if;
end
$$;

CREATE FUNCTION mainspring.notify_event() RETURNS void
    LANGUAGE sql
    AS $$ select mainspring.send_message('event:') $$;

CREATE FUNCTION mainspring.notify_job_ready(queue text, due_at timestamp with time zone DEFAULT clock_timestamp()) RETURNS void
    LANGUAGE plpgsql
    AS $$
begin
    if exists (select from mainspring.workers as worker
                where worker.wants_wake and notify_job_ready.queue = any (worker.queues))
       and mainspring.ready_message(queue, due_at) is not null then
        perform mainspring.send_message(mainspring.ready_message(queue, due_at));
    end if;
end
$$;

CREATE FUNCTION mainspring.notify_jobs(queue text, priority integer, tenant text, job_ids bigint[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
declare
    message text := 'jobs:' || json_build_array(
        notify_jobs.queue, notify_jobs.priority, notify_jobs.tenant,
        (select t.weight from mainspring.tenants as t where t.tenant_id = notify_jobs.tenant),
        notify_jobs.job_ids);
begin
    -- A message can have 8000 bytes.
    if octet_length(message) <= 7000 and exists (
        select from mainspring.workers as worker
         where worker.wants_wake and notify_jobs.queue = any (worker.queues)) then
        perform mainspring.send_message(message);
    end if;
end
$$;

CREATE FUNCTION mainspring.notify_lane(queue text, priority integer, tenant text, first_id bigint) RETURNS void
    LANGUAGE plpgsql
    AS $$
begin
    if length(notify_lane.queue) <= 500 and length(notify_lane.tenant) <= 500 and not exists (
        select from mainspring.jobs as job
         where job.queue = notify_lane.queue and job.priority = notify_lane.priority
           and job.tenant_id = notify_lane.tenant
           and job.job_id between notify_lane.first_id - 1000 and notify_lane.first_id - 1
           and job.state = 'queued' and job.waits_for is null) then
        perform mainspring.send_message('lane:' || json_build_array(
            notify_lane.queue, notify_lane.priority, notify_lane.tenant, notify_lane.first_id,
            t.weight))
           from mainspring.tenants as t where t.tenant_id = notify_lane.tenant;
    end if;
end
$$;

CREATE FUNCTION mainspring.notify_limit(limit_name text DEFAULT NULL::text, limit_key text DEFAULT NULL::text, tenant text DEFAULT NULL::text) RETURNS void
    LANGUAGE plpgsql
    AS $$
declare
    subject text := jsonb_build_array(limit_name, limit_key, tenant)::text;
begin
    if exists (select from mainspring.workers as worker where worker.wants_wake) then
        -- A message can have 8000 bytes.
        perform mainspring.send_message(
            'limit:' || case when limit_name is null or octet_length(subject) > 7000
                             then '' else subject end);
    end if;
end
$$;

CREATE FUNCTION mainspring.notify_limits_changed() RETURNS void
    LANGUAGE sql
    AS $$ select mainspring.send_message('limit:') $$;

CREATE FUNCTION mainspring.notify_parents() RETURNS void
    LANGUAGE sql
    AS $$ select mainspring.send_message('parents:') $$;

CREATE FUNCTION mainspring.notify_queue(queue text) RETURNS void
    LANGUAGE sql
    AS $$ select mainspring.send_message('ready:' || queue) $$;

CREATE FUNCTION mainspring.notify_released(job mainspring.jobs) RETURNS void
    LANGUAGE plpgsql
    AS $$
begin
    if job.limit_name is null then
        perform mainspring.notify_job_ready(job.queue);
    else
        perform mainspring.notify_limit(job.limit_name, job.limit_key, job.tenant_id);
    end if;
end
$$;

CREATE FUNCTION mainspring.notify_schedule() RETURNS void
    LANGUAGE sql
    AS $$ select mainspring.send_message('schedule:') $$;

CREATE FUNCTION mainspring.of_each_step(figure mainspring.figures) RETURNS SETOF mainspring.figures
    LANGUAGE plpgsql IMMUTABLE
    AS $$
begin
    if figure.enqueued + figure.started + figure.succeeded + figure.failed + figure.dead_letter
       + figure.canceled + figure.deleted + figure.revived + figure.attempts_failed
       + figure.attempts_timeout + figure.attempts_canceled + figure.attempts_snoozed
       + figure.attempts_lost + figure.ready + figure.running = 0 then
        return;
    end if;
    return next figure;
    figure.step := 'ever';
    figure.at := 'epoch';
    return next figure;
end
$$;

CREATE FUNCTION mainspring.open_login(person bigint, prefix text, digest bytea, life interval, ends_by timestamp with time zone, is_link boolean, tenant text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    someone mainspring.people;
    who text[] := case when is_link then mainspring.identity()
                       else array['provider', 'system'] end;
begin
    perform mainspring.ensure_visible(tenant);
    select * into someone from mainspring.people as p
     where p.person_id = open_login.person and p.disabled_at is null
       and p.tenant_id is not distinct from tenant and mainspring.is_visible(p.tenant_id);
    if someone.person_id is null then
        return false;
    end if;
    insert into mainspring.tokens (
        kind, name, prefix, digest, role, tenant_id, expires_at, person, person_id, created_by,
        created_by_id, ends_by)
    values ('login', someone.name, open_login.prefix, open_login.digest, someone.role,
            someone.tenant_id, least(now() + life, open_login.ends_by), someone.name,
            someone.person_id, who[1], who[2], open_login.ends_by);
    if is_link then
        perform mainspring.note_action(coalesce(someone.tenant_id, ''), 'create', 'login_link',
                                       someone.name, null, null, null);
    end if;
    return true;
end
$$;

CREATE FUNCTION mainspring.open_to_app() RETURNS void
    LANGUAGE plpgsql
    AS $$
declare
    app name := mainspring.app_role();
    missing text;
begin
    if not mainspring.may_set_role(session_user, app) then
        perform mainspring.ensure_app_role();
        app := 'mainspring_app';
    end if;
    for missing in select mainspring.missing_app_grants(app) loop
        execute missing;
    end loop;
end
$$;

CREATE FUNCTION mainspring.origin_matches(filter jsonb, created_by text, schedule text, slot_at timestamp with time zone, trigger text, worker_id bigint, definition_version integer) RETURNS boolean
    LANGUAGE sql STABLE
    RETURN ((((filter -> 'created_by'::text) IS NULL) OR ((filter -> 'created_by'::text) ? created_by)) AND (((filter -> 'schedule'::text) IS NULL) OR ((filter -> 'schedule'::text) ? schedule)) AND (((filter ->> 'slot_at'::text) IS NULL) OR (slot_at = ((filter ->> 'slot_at'::text))::timestamp with time zone)) AND (((filter -> 'trigger'::text) IS NULL) OR ((filter -> 'trigger'::text) ? trigger)) AND (((filter -> 'worker_id'::text) IS NULL) OR ((filter -> 'worker_id'::text) ? (worker_id)::text)) AND (((filter -> 'definition_version'::text) IS NULL) OR ((filter -> 'definition_version'::text) ? (definition_version)::text)));

CREATE FUNCTION mainspring.other_schemas(definition mainspring.definitions) RETURNS jsonb
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
select jsonb_agg(distinct coalesce(known.arg_schema, '{}'))
  from mainspring.worker_schemas as known join mainspring.workers as worker using (worker_id)
 where known.key = definition.key and known.arg_schema is distinct from definition.arg_schema
   and worker.expires_at > now() and not worker.is_stopping
$$;

CREATE FUNCTION mainspring.own_name(name text, tenant text) RETURNS text[]
    LANGUAGE sql STABLE
    RETURN CASE WHEN ((tenant IS NOT NULL) AND ((EXISTS (SELECT FROM mainspring.people person WHERE ((person.tenant_id IS NULL) AND (person.name = own_name.name)))) OR (EXISTS (SELECT FROM mainspring.tokens token WHERE ((token.tenant_id IS NULL) AND (token.name = own_name.name) AND (token.revoked_at IS NULL) AND (token.kind = 'token'::text)))))) THEN '{}'::text[] ELSE ARRAY[name] END;

CREATE FUNCTION mainspring.owner_name() RETURNS text
    LANGUAGE sql STABLE
    RETURN (SELECT owner.rolname FROM (pg_roles owner JOIN pg_namespace own ON ((own.nspowner = owner.oid))) WHERE (own.nspname = 'mainspring'::name));

CREATE FUNCTION mainspring.parents_in(partition_name text) RETURNS bigint[]
    LANGUAGE plpgsql STABLE
    AS $_$
declare
    first_id bigint;
    last_id bigint;
    parents bigint[];
begin
    execute format('select min(job_id), max(job_id) from mainspring.%I', partition_name)
       into first_id, last_id;
    execute format(
        'select array_agg(distinct known.parent_id) '
        'from (select job_id, parent_id from mainspring.dependencies '
        'where parent_id between $1 and $2 and outcome is null union all '
        'select job_id, parent_id from mainspring.dependencies '
        'where parent_id between $1 and $2 and outcome is not null) as known '
        'where exists (select from mainspring.jobs as child where child.job_id = known.job_id) '
        'and exists (select from mainspring.%I as past where past.job_id = known.parent_id)',
        partition_name) into parents using first_id, last_id;
    return coalesce(parents, '{}');
end
$_$;

CREATE FUNCTION mainspring.past_jobs_by_day(tenant text, state text, keep interval) RETURNS TABLE(day date, count bigint, already bigint)
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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

CREATE FUNCTION mainspring.past_partitions() RETURNS SETOF text
    LANGUAGE sql STABLE
    AS $_$
    select child.relname::text
      from pg_catalog.pg_inherits as link
      join pg_catalog.pg_class as child on child.oid = link.inhrelid
     where link.inhparent in ('mainspring.jobs_history'::regclass, 'mainspring.attempts'::regclass)
       and exists (select from mainspring.retention as policy
                    where policy.tenant_id is null and policy.state is null)
       and substring(child.relname from '_(\d{8})$')::date < (
           (now() at time zone 'utc')
           - greatest((select max(policy.keep) from mainspring.retention as policy),
                      (select max(d.retention) from mainspring.definitions as d)))::date
     order by right(child.relname, 8), child.relname
$_$;

CREATE FUNCTION mainspring.past_records_by_day(kind text, tenant text, fallback interval, keep interval) RETURNS TABLE(day date, count bigint, already bigint)
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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

CREATE FUNCTION mainspring.paths_of(definition text, version integer) RETURNS jsonb
    LANGUAGE sql STABLE
    RETURN (SELECT jsonb_agg(DISTINCT path.value) AS jsonb_agg FROM mainspring.definition_versions kept, LATERAL jsonb_array_elements(kept.secret_paths) path(value) WHERE ((kept.key = paths_of.definition) AND (kept.secret_paths IS NOT NULL) AND (kept.version = ANY (ARRAY[paths_of.version, (SELECT now.version FROM mainspring.definitions now WHERE (now.key = paths_of.definition))]))));

CREATE TABLE mainspring.queues (
    name text NOT NULL COLLATE pg_catalog."C",
    paused_at timestamp with time zone DEFAULT now() NOT NULL,
    paused_until timestamp with time zone,
    paused_by text NOT NULL,
    reason text DEFAULT ''::text NOT NULL,
    CONSTRAINT queues_name_check CHECK (((name <> ''::text) AND (octet_length(name) <= 2000)))
);

CREATE FUNCTION mainspring.pause_queue(name text, reason text DEFAULT ''::text, until timestamp with time zone DEFAULT NULL::timestamp with time zone, duration interval DEFAULT NULL::interval) RETURNS mainspring.queues
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    was mainspring.queues;
    made mainspring.queues;
begin
    perform mainspring.check_pause(pause_queue.name, pause_queue.reason, pause_queue.until,
                                   pause_queue.duration);
    select * into was from mainspring.queues as paused
     where paused.name = pause_queue.name
       and (paused.paused_until is null or paused.paused_until > clock_timestamp()) for update;
    insert into mainspring.queues as paused (name, paused_at, paused_until, paused_by, reason)
    values (pause_queue.name, coalesce(was.paused_at, clock_timestamp()),
            coalesce(pause_queue.until, clock_timestamp() + pause_queue.duration),
            mainspring.actor(), pause_queue.reason)
    on conflict on constraint queues_pkey do update
       set paused_at = excluded.paused_at, paused_until = excluded.paused_until,
           paused_by = excluded.paused_by, reason = excluded.reason
    returning * into made;
    perform mainspring.note_action('', 'pause', 'queue', made.name, nullif(made.reason, ''),
        case when was.name is not null
             then jsonb_build_object('paused_until', was.paused_until) end,
        jsonb_build_object('paused_until', made.paused_until));
    return made;
end
$$;

COMMENT ON FUNCTION mainspring.pause_queue(name text, reason text, until timestamp with time zone, duration interval) IS 'Pauses a queue: nothing of it is claimed until it is resumed, or until an instant, or for a while. Returns the pause.';

CREATE FUNCTION mainspring.pick_limited(queues text[], names text[], keys text[], tenants text[], shares integer[], limits_free integer[], keys_free integer[], tenants_free integer[], most integer, lowest integer, is_shared boolean, OUT places tid[], OUT limits text[], OUT unfinished integer[]) RETURNS record
    LANGUAGE plpgsql
    AS $$
declare
    quota integer := greatest(1, most / greatest(1, cardinality(names)));
begin
    with asked as materialized (
        -- Places by number: to join by names would compare each key with all others.
        select given.*, dense_rank() over (order by name) as limit_no,
               dense_rank() over (order by name, key) as key_no,
               dense_rank() over (order by tenant_id) as tenant_no
          from unnest(names, keys, tenants, shares) with ordinality
               as given (name, key, tenant_id, share, number)
    ), candidate as materialized (
        select first.*, asked.number, asked.name, share, limit_no, key_no, tenant_no
          from asked, unnest(mainspring.unpaused(queues)) as served (queue),
               lateral (
                   select waiting.ctid as place, waiting.job_id, waiting.priority
                     from mainspring.jobs as waiting
                    where waiting.waits_for = 'limit' and waiting.limit_name = asked.name
                      and waiting.limit_key = asked.key and waiting.tenant_id = asked.tenant_id
                      and hashtextextended(waiting.queue, 0) = hashtextextended(served.queue, 0)
                      and waiting.queue = served.queue
                      and waiting.priority <= lowest - (share = 0)::integer
                      and waiting.cancel_requested_at is null
                      and (waiting.deadline_at is null or waiting.deadline_at > now())
                    order by waiting.priority, waiting.job_id
                    limit greatest(0, least(limits_free[limit_no], keys_free[key_no],
                                            tenants_free[tenant_no], quota))
                      for update skip locked) as first
    ), ranked as (
        -- The first of all is that of its limit, key and tenant: something goes if anything can.
        select *, row_number() over (partition by limit_no order by priority, job_id) as in_limit,
               row_number() over (partition by key_no order by priority, job_id) as in_key,
               row_number() over (partition by tenant_no order by priority, job_id) as in_tenant
          from candidate where is_shared
    ), fitting as (
        select *, priority < lowest or in_tenant <= share as is_due,
               row_number() over (order by priority >= lowest and in_tenant > share,
                                           priority, job_id) as rank
          from ranked
         where in_limit <= limits_free[limit_no] and in_key <= keys_free[key_no]
           and in_tenant <= tenants_free[tenant_no]
    ), picked as (
        select place, name from fitting where is_due and rank <= most
        union all
        select place, name from candidate where not is_shared
    )
    select array(select place from picked), array(select name from picked where is_shared),
           array(select number from candidate group by number having count(*) >= quota
                 union
                 select number from fitting where not is_due or rank > most)
      into places, limits, unfinished;
end
$$;

CREATE FUNCTION mainspring.plan_key(schedule mainspring.schedules) RETURNS uuid
    LANGUAGE plpgsql IMMUTABLE
    AS $$
declare
    facts record := row(
        schedule.cron, schedule.every, schedule.at, schedule.zone, schedule.dst_gap,
        schedule.dst_fold, schedule.calendar, schedule.starts_at, schedule.ends_at,
        schedule.paused_until, schedule.misfire_grace, schedule.catch_up, schedule.catch_up_limit,
        schedule.catch_up_max_age, schedule.definition,
        mainspring.counted_from(schedule), mainspring.spread_by(schedule));
begin
    return (lpad(to_hex(hash_record_extended(facts, 0)), 16, '0')
            || lpad(to_hex(hash_record_extended(facts, 1)), 16, '0'))::uuid;
end
$$;

CREATE FUNCTION mainspring.prepare_bulk(definition text, count integer, tenant text, queue text, priority integer, max_attempts integer, scheduled_for timestamp with time zone, delay interval, deadline timestamp with time zone, OUT job_version integer, OUT job_queue text, OUT job_priority integer, OUT job_max_attempts integer, OUT due_at timestamp with time zone, OUT is_plain boolean, OUT first_id bigint, OUT last_id bigint, OUT job_ids bigint[]) RETURNS record
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
declare
    defined mainspring.definitions;
begin
    perform mainspring.ensure_visible(tenant);
    perform mainspring.ensure_open(prepare_bulk.definition);
    defined := mainspring.active_definition(prepare_bulk.definition);
    perform mainspring.ensure_tenant(tenant);
    perform mainspring.check_numbers(prepare_bulk.priority, prepare_bulk.max_attempts);
    perform mainspring.check_times(
        prepare_bulk.delay, prepare_bulk.scheduled_for, prepare_bulk.deadline);
    perform mainspring.check_queue(prepare_bulk.queue);
    job_version := defined.version;
    job_queue := coalesce(prepare_bulk.queue, defined.queue);
    job_priority := coalesce(prepare_bulk.priority, defined.priority);
    job_max_attempts := coalesce(prepare_bulk.max_attempts, defined.max_attempts);
    due_at := coalesce(prepare_bulk.scheduled_for, clock_timestamp() + prepare_bulk.delay,
                       clock_timestamp());
    is_plain := defined.is_plain and not exists (
        select from mainspring.tenants as t
         where t.tenant_id = prepare_bulk.tenant and t.max_running is not null);
    if not is_plain then
        return;
    end if;
    select array_agg(nextval('mainspring.job_ids')) into job_ids
      from generate_series(1, prepare_bulk.count);
    first_id := job_ids[1];
    last_id := job_ids[prepare_bulk.count];
    if last_id - first_id + 1 = prepare_bulk.count then
        job_ids := null;  -- An unbroken run, which is quicker to send as its two ends.
    end if;
end
$$;

CREATE FUNCTION mainspring.prepare_definition() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    wrong text[];
begin
    perform mainspring.check_definition_key(new);
    if tg_op = 'UPDATE' and new.kind <> old.kind then
        perform mainspring.refuse_definition(
            new.key, 'kind', format('is %s and cannot be changed', old.kind));
    end if;
    new.limit_name := mainspring.limit_name_of(new, tg_op = 'INSERT');
    new.max_attempts := case when new.delivery = 'at_most_once' then 1 else new.max_attempts end;
    new.is_plain := mainspring.is_plain_definition(new);
    if tg_op = 'UPDATE' and new is not distinct from old then
        return new;
    end if;
    wrong := mainspring.wrong_default(new);
    -- An older one that is larger can still be deactivated.
    if tg_op = 'INSERT'
       or (new.description, new.tags, new.approvers, new.arg_schema, new.spec) is distinct from
          (old.description, old.tags, old.approvers, old.arg_schema, old.spec) then
        wrong := coalesce(wrong, mainspring.wrong_definition_size(new));
    end if;
    if wrong is not null then
        perform mainspring.refuse_definition(new.key, wrong[1], wrong[2]);
    end if;
    if new.limit_by is not null and new.limit_name is null then
        perform mainspring.refuse_definition(new.key, 'limit_by',
            'needs a limit: give concurrency, key_concurrency, rate or limit');
    end if;
    if tg_op = 'INSERT' or new.kind = 'command' or new.spec is distinct from old.spec then
        perform mainspring.check_definition_spec(new);
    end if;
    new.updated_at := now();
    new.secret_paths := mainspring.secret_paths(new.arg_schema);
    new.schema_key := mainspring.schema_key_of(new.arg_schema);
    if tg_op = 'INSERT' then
        -- Of one that was deleted there may still be jobs.
        new.version := 1 + coalesce((select max(kept.version)
                                       from mainspring.definition_versions as kept
                                      where kept.key = new.key), 0);
    elsif to_jsonb(mainspring.version_of(new)) - 'secret_paths'
          is distinct from to_jsonb(mainspring.version_of(old)) - 'secret_paths' then
        new.version := old.version + 1;
    end if;
    return new;
end
$$;

CREATE FUNCTION mainspring.prepare_schedule() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    if tg_op = 'UPDATE' and new is not distinct from old then
        return new;
    end if;
    new.zone := coalesce(new.zone, (select t.zone from mainspring.tenants as t
                                     where t.tenant_id = new.tenant_id), 'UTC');
    -- What has gone wrong since it was written can still be stopped.
    if tg_op = 'INSERT' or new.enabled or not old.enabled then
        perform mainspring.check_schedule(new);
    end if;
    if tg_op = 'INSERT' then
        perform mainspring.ensure_known_tenant(new.tenant_id);
    end if;
    if tg_op = 'INSERT' or new.definition <> old.definition then
        perform mainspring.warn_of_definition(new.definition, 'schedule');
    end if;
    -- A launcher makes the payload of each job.
    if new.launcher is null and (
        tg_op = 'INSERT' or (new.definition, new.payload, new.launcher)
                            is distinct from (old.definition, old.payload, old.launcher)) then
        perform mainspring.check_saved_payload(new.definition, new.payload);
    end if;
    new.updated_at := now();
    new.is_templated := new.payload::text like '%{{%';
    new.origin := jsonb_strip_nulls(
        jsonb_build_object('schedule', new.name, 'launcher', new.launcher));
    if tg_op = 'UPDATE' and new.enabled and not old.enabled then
        new.disabled_reason := null;
    end if;
    return new;
end
$$;

CREATE FUNCTION mainspring.prepare_trigger() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    wrong text[] := mainspring.wrong_trigger(new);
begin
    if wrong is not null then
        perform mainspring.refuse_trigger(wrong[1], wrong[2]);
    end if;
    if tg_op = 'INSERT' then
        perform mainspring.ensure_known_tenant(new.tenant_id);
    end if;
    if tg_op = 'INSERT' or new.definition <> old.definition then
        perform mainspring.warn_of_definition(new.definition, 'trigger');
    end if;
    -- An older one that is larger can still be disabled.
    if octet_length(new.payload::text) > 65536
       and (tg_op = 'INSERT' or new.payload is distinct from old.payload) then
        perform mainspring.refuse_trigger('payload', format(
            'is %s bytes, the limit is 65536; put large values into the event',
            octet_length(new.payload::text)));
    end if;
    if tg_op = 'INSERT'
       or (new.definition, new.payload) is distinct from (old.definition, old.payload) then
        perform mainspring.check_saved_payload(new.definition, new.payload);
    end if;
    if tg_op = 'UPDATE' and new is distinct from old then
        new.updated_at := now();
    end if;
    return new;
end
$$;

CREATE FUNCTION mainspring.prunable_table(full_name text) RETURNS regclass
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    parts text[];
    found_table oid;
    kind "char";
begin
    begin
        parts := parse_ident(full_name);
    exception when invalid_parameter_value then
        parts := '{}';
    end;
    if coalesce(cardinality(parts), 0) <> 2 then
        perform mainspring.refuse('MS003', format(
            'table %s must be a name with its schema, such as civic.sessions',
            coalesce(quote_literal(full_name), 'null')), '{"option": "table"}');
    end if;
    if parts[1] in ('mainspring', 'mainspring_calls', 'information_schema')
       or starts_with(parts[1], 'pg_') then
        perform mainspring.refuse('MS003', format(
            'table %s is in a schema that cannot be pruned', full_name), '{"option": "table"}');
    end if;
    select c.oid, c.relkind into found_table, kind
      from pg_class as c join pg_namespace as n on n.oid = c.relnamespace
     where n.nspname = parts[1] and c.relname = parts[2];
    if kind is distinct from 'r' then
        perform mainspring.refuse('MS003', format('table %s %s', full_name,
            case when kind is null then 'does not exist'
                 when kind = 'p' then 'is partitioned; name one of its partitions, or drop them'
                 else 'is not a table' end), '{"option": "table"}');
    end if;
    return found_table;
end
$$;

CREATE FUNCTION mainspring.prune_receipts(most integer) RETURNS integer
    LANGUAGE plpgsql
    AS $$
declare
    pruned integer;
begin
    delete from mainspring.receipts as receipt
     where receipt.job_id = any (array(
         select old.job_id from mainspring.receipts as old
          where not exists (select from mainspring.jobs as job where job.job_id = old.job_id)
          limit most));
    get diagnostics pruned = row_count;
    return pruned;
end
$$;

CREATE FUNCTION mainspring.prune_table(full_name text, column_name text, age interval, batch integer) RETURNS bigint
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
declare
    -- As text it is quoted and has its schema, since that is not in the search path.
    pruned regclass := mainspring.prunable_table(full_name);
    attribute record;
    is_indexed boolean;
    removed bigint;
begin
    select a.attnum, format_type(a.atttypid, null) as type into attribute
      from pg_attribute as a
     where a.attrelid = pruned and a.attname = column_name and a.attnum > 0
       and not a.attisdropped;
    if attribute.type is null or attribute.type not in (
        'date', 'timestamp without time zone', 'timestamp with time zone') then
        perform mainspring.refuse('MS003', format('column %s of %s %s',
            coalesce(quote_literal(column_name), 'null'), full_name,
            case when attribute.type is null then 'does not exist'
                 else 'is ' || attribute.type || ', neither a date nor a timestamp' end),
            '{"option": "column"}');
    end if;
    if age is null or age <= '0' then
        perform mainspring.refuse('MS003', 'age must be more than zero', '{"option": "age"}');
    end if;
    if batch is null or batch not between 1 and 100000 then
        perform mainspring.refuse('MS003', 'batch must be from 1 to 100000',
            '{"option": "batch"}');
    end if;
    perform mainspring.ensure_safe_delete(pruned);
    is_indexed := exists (
        select from pg_index as i
         where i.indrelid = pruned and i.indisvalid and i.indpred is null
           and i.indkey[0] = attribute.attnum);
    execute format(
        'delete from only %1$s where ctid = any (array(
             select ctid from only %1$s where %2$I < $1::%3$s %4$s limit $2
                for update skip locked))',
        pruned, column_name, attribute.type,
        case when is_indexed then format('order by %I', column_name) else '' end)
      using now() - age, batch;
    get diagnostics removed = row_count;
    return removed;
end
$_$;

CREATE FUNCTION mainspring.put_aside(duty text, key bigint, reason text, pauses interval[]) RETURNS integer
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
declare
    tries integer;
begin
    insert into mainspring.set_aside as aside (duty, key, reason, again_at)
    values (put_aside.duty, put_aside.key, put_aside.reason, now() + pauses[1])
    on conflict (duty, key) do update
       set tries = aside.tries + 1, reason = excluded.reason, failed_at = now(),
           again_at = now() + pauses[least(aside.tries + 1, cardinality(pauses))]
    returning aside.tries into tries;
    begin
        update mainspring.jobs as job
           set last_error = 'set aside by ' || put_aside.duty || ': ' || put_aside.reason
         where job.job_id = put_aside.key;
    exception when others then
        -- What keeps the row from being processed may keep it from being written at all.
        null;
    end;
    return tries;
end
$$;

CREATE FUNCTION mainspring.put_back(job_id bigint, payload jsonb, tenant text) RETURNS bigint
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
declare
    ended mainspring.jobs_history;
    again mainspring.jobs;
    defined mainspring.definitions;
    has_parents boolean := exists (
        select from mainspring.dependencies as d
         where d.job_id = put_back.job_id and d.outcome is null);
    holder bigint;
begin
    if put_back.payload is not null then
        perform mainspring.check_payload(put_back.payload);
    end if;
    ended := mainspring.take_from_history(put_back.job_id, put_back.tenant);
    if put_back.payload is not null then
        perform mainspring.ensure_open(ended.definition);
    end if;
    -- Who edits a payload has seen a redacted one.
    again := mainspring.live_again(ended, mainspring.restored(
        put_back.payload, ended.payload,
        mainspring.paths_of(ended.definition, ended.definition_version)));
    select * into defined from mainspring.definitions as d where d.key = ended.definition;
    -- What was not approved, or not like this, has to be approved first.
    defined.approvals_needed := coalesce((
        select asked.needed from mainspring.approvals as asked
         where asked.job_id = ended.job_id
           and (asked.decision is distinct from 'approved' or again.payload <> ended.payload)), 0);
    again := mainspring.new_job(
        again, defined, has_parents, is_behind_others => ended.slot_at is not null);
    update mainspring.slots as slot
       set run_state = null, started_at = null, finished_at = null, message = null,
           details = null, is_details_omitted = false
     where slot.schedule_id = ended.schedule_id and slot.scheduled_for = ended.slot_at
       and slot.job_id = ended.job_id;
    holder := mainspring.add_job(again, defined);
    if holder <> ended.job_id then
        perform mainspring.refuse_duplicate(again.dedupe_key, holder);
    end if;
    if has_parents then
        perform mainspring.notify_parents();
    elsif again.waits_for is null then
        perform mainspring.notify_jobs(
            again.queue, again.priority, again.tenant_id, array[again.job_id]);
    end if;
    return ended.job_id;
end
$$;

CREATE FUNCTION mainspring.read_steps(steps jsonb) RETURNS TABLE(step text, definition text, payload jsonb, queue text, priority integer, max_attempts integer, correlation_id text, tags text[], limit_key text, approvals_needed integer, on_parent_failure text, scheduled_for timestamp with time zone, delay double precision, after jsonb, after_jobs jsonb, created_by text, source text, delivery text, number bigint)
    LANGUAGE sql STABLE
    AS $$
    select given.* from rows from (jsonb_to_recordset(steps) as (
        step text, definition text, payload jsonb, queue text, priority integer,
        max_attempts integer, correlation_id text, tags text[], limit_key text,
        approvals_needed integer, on_parent_failure text, scheduled_for timestamptz,
        delay double precision, after jsonb, after_jobs jsonb, created_by text, source text,
        delivery text)) with ordinality as given
$$;

CREATE FUNCTION mainspring.ready_message(queue text, due_at timestamp with time zone) RETURNS text
    LANGUAGE sql
    RETURN CASE WHEN (due_at <= clock_timestamp()) THEN ('ready:'::text || queue) WHEN (due_at < (clock_timestamp() + '00:00:15'::interval)) THEN 'due:'::text ELSE NULL::text END;

CREATE TABLE mainspring.installation_keys (
    name text NOT NULL,
    key bytea NOT NULL
);

CREATE FUNCTION mainspring.receipt_token(job_id bigint, fence bigint) RETURNS bytea
    LANGUAGE sql STABLE
    RETURN (SELECT sha256((secret.key || sha256((secret.key || convert_to(((receipt_token.job_id || ':'::text) || receipt_token.fence), 'UTF8'::name))))) AS sha256 FROM mainspring.installation_keys secret WHERE (secret.name = 'receipts'::text));

CREATE FUNCTION mainspring.record_policies(kind text, fallback interval, tenant text DEFAULT NULL::text, asked interval DEFAULT NULL::interval) RETURNS TABLE(tenant_id text, keep interval, was interval)
    LANGUAGE sql STABLE
    AS $$
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

CREATE FUNCTION mainspring.redacted(payload jsonb, paths jsonb) RETURNS jsonb
    LANGUAGE plpgsql IMMUTABLE
    AS $$
declare
    path jsonb;
begin
    for path in select jsonb_array_elements(paths) loop
        payload := mainspring.redacted_at(payload, array(select jsonb_array_elements_text(path)));
    end loop;
    return payload;
end
$$;

CREATE FUNCTION mainspring.redacted_at(value jsonb, path text[]) RETURNS jsonb
    LANGUAGE plpgsql IMMUTABLE
    AS $$
begin
    if value is null or value = 'null' then
        return value;
    elsif cardinality(path) = 0 then
        return '"[redacted]"';
    elsif jsonb_typeof(value) = 'object' then
        return (select coalesce(jsonb_object_agg(key, case when path[1] in ('*', key)
                                    then mainspring.redacted_at(member, path[2:])
                                    else member end), '{}')
                  from jsonb_each(value) as part (key, member));
    elsif jsonb_typeof(value) = 'array' and path[1] = '*' then
        return (select coalesce(jsonb_agg(mainspring.redacted_at(member, path[2:])
                                          order by position), '[]')
                  from jsonb_array_elements(value) with ordinality as part (member, position));
    end if;
    return value;
end
$$;

CREATE FUNCTION mainspring.refuse(code text, message text, detail jsonb DEFAULT '{}'::jsonb) RETURNS void
    LANGUAGE plpgsql
    AS $$
begin
    raise exception using errcode = code, message = message, detail = detail::text;
end
$$;

CREATE FUNCTION mainspring.refuse_definition(key text, field text, problem text) RETURNS void
    LANGUAGE plpgsql
    AS $$
begin
    perform mainspring.refuse('MS050', key || ': ' || field || ' ' || problem,
        jsonb_build_object('key', key, 'field', field, 'problem', problem));
end
$$;

CREATE FUNCTION mainspring.refuse_duplicate(key text, holder bigint) RETURNS void
    LANGUAGE plpgsql
    AS $$
begin
    perform mainspring.refuse('MS020', 'job ' || holder || ' already has the dedupe key '
        || quote_literal(key), jsonb_build_object('key', key, 'job_id', holder));
end
$$;

CREATE FUNCTION mainspring.refuse_event(field text, problem text) RETURNS void
    LANGUAGE plpgsql
    AS $$
begin
    perform mainspring.refuse('MS060', field || ': ' || problem,
        jsonb_build_object('field', field, 'problem', problem));
end
$$;

CREATE FUNCTION mainspring.refuse_job(job_id bigint) RETURNS void
    LANGUAGE plpgsql
    AS $$
begin
    perform mainspring.refuse('MS030', 'there is no job ' || coalesce(job_id::text, 'null'),
        jsonb_build_object('job_id', job_id));
end
$$;

CREATE FUNCTION mainspring.refuse_move(job_id bigint, state mainspring.job_state, target text) RETURNS void
    LANGUAGE plpgsql
    AS $$
begin
    perform mainspring.refuse('MS031',
        'job ' || job_id || ' is ' || state || '; it cannot become ' || target,
        jsonb_build_object('job_id', job_id, 'state', state, 'target', target));
end
$$;

CREATE FUNCTION mainspring.refuse_option(option text, problem text) RETURNS void
    LANGUAGE plpgsql
    AS $$
begin
    perform mainspring.refuse('MS003', problem, jsonb_build_object('option', option));
end
$$;

CREATE FUNCTION mainspring.refuse_schedule(field text, problem text) RETURNS void
    LANGUAGE plpgsql
    AS $$
begin
    perform mainspring.refuse('MS041', field || ': ' || problem,
        jsonb_build_object('field', field, 'problem', problem));
end
$$;

CREATE FUNCTION mainspring.refuse_trigger(field text, problem text) RETURNS void
    LANGUAGE plpgsql
    AS $$
begin
    perform mainspring.refuse('MS061', field || ': ' || problem,
        jsonb_build_object('field', field, 'problem', problem));
end
$$;

CREATE FUNCTION mainspring.reject(job_id bigint, reason text, tenant text DEFAULT 'default'::text) RETURNS mainspring.job_state
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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

COMMENT ON FUNCTION mainspring.reject(job_id bigint, reason text, tenant text) IS 'Rejects a job that awaits approval, as the calling user; the job is canceled.';

CREATE FUNCTION mainspring.release_turn(schedule_id bigint) RETURNS void
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
declare
    free bigint;
    released mainspring.jobs;
begin
    select coalesce(max(schedule.max_running), 1) into free from mainspring.schedules as schedule
     where schedule.schedule_id = release_turn.schedule_id;
    select free - count(*) into free from mainspring.jobs as job
     where job.schedule_id = release_turn.schedule_id and job.slot_at is not null
       and (job.waits_for is null or job.waits_for not in ('turn', 'approval'));
    if free > 0 then
        for released in
            update mainspring.jobs as job
               set waits_for = mainspring.wait_of(job.limit_name), ready_at = null,
                   scheduled_for = clock_timestamp()
             where job.job_id = any (array(
                select waiting.job_id from mainspring.jobs as waiting
                 where waiting.schedule_id = release_turn.schedule_id
                   and waiting.waits_for = 'turn'
                 order by waiting.slot_at limit free for update skip locked))
            returning job.*
        loop
            perform mainspring.notify_released(released);
        end loop;
    end if;
end
$$;

CREATE FUNCTION mainspring.remove_jobs(job_ids bigint[], tenant text) RETURNS TABLE(job_id bigint, state mainspring.job_state)
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
declare
    removed bigint[];
    states mainspring.job_state[];
    schedule_ids bigint[];
begin
    perform mainspring.notify_limit(freed.limit_name, freed.limit_key, freed.tenant_id)
       from (select distinct job.limit_name, job.limit_key, job.tenant_id
               from mainspring.jobs as job
              where job.job_id = any (remove_jobs.job_ids)
                and job.tenant_id = remove_jobs.tenant and job.state <> 'running'
                and job.limit_name is not null and job.waits_for is null) as freed;
    with gone as (
        delete from mainspring.jobs as job
         where job.job_id = any (remove_jobs.job_ids) and job.tenant_id = remove_jobs.tenant
           and job.state <> 'running'
        returning job.job_id, job.state, job.schedule_id, job.slot_at, job.tenant_id, job.queue,
                  job.definition
    ), closed as (
        update mainspring.slots as slot
           set run_state = 'canceled', finished_at = clock_timestamp(),
               reason = 'its job was deleted'
          from gone
         where slot.schedule_id = gone.schedule_id and slot.scheduled_for = gone.slot_at
    ), past as (
        delete from mainspring.jobs_history as job
         where job.job_id = any (remove_jobs.job_ids) and job.tenant_id = remove_jobs.tenant
        returning job.job_id, job.state, job.tenant_id, job.finished_at
    ), deleted as (
        insert into mainspring.changes (tenant_id, queue, definition, moved, count)
        select tenant_id, queue, definition, 'deleted', count(*) from gone
         group by tenant_id, queue, definition
    ), pruned as (
        insert into mainspring.changes (tenant_id, moved, state, day, count)
        select tenant_id, 'pruned', state, mainspring.day_of(finished_at), count(*) from past
         group by tenant_id, state, mainspring.day_of(finished_at)
    ), every as (
        select gone.job_id, gone.state, gone.schedule_id, gone.slot_at from gone
        union all select past.job_id, past.state, null, null from past
    )
    select array_agg(every.job_id), array_agg(every.state),
           array_agg(distinct every.schedule_id) filter (where every.slot_at is not null)
      into removed, states, schedule_ids
      from every;
    perform mainspring.release_turn(schedule_id) from unnest(schedule_ids) as schedule_id;
    delete from mainspring.attempts as attempt where attempt.job_id = any (removed);
    delete from mainspring.outputs as output where output.job_id = any (removed);
    delete from mainspring.approvals as asked where asked.job_id = any (removed);
    delete from mainspring.dependencies as d where d.job_id = any (removed);
    if exists (select from mainspring.dependencies as d
                where d.parent_id = any (removed) and d.outcome is null) then
        perform mainspring.notify_parents();
    end if;
    return query select * from unnest(removed, states);
end
$$;

CREATE FUNCTION mainspring.remove_limit(name text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    if exists (select from mainspring.definitions as d
                where d.key = remove_limit.name and d.limit_name = d.key) then
        perform mainspring.refuse('MS003', 'name belongs to a definition with a limit of its own; '
            || 'change the definition', '{"option": "name"}');
    end if;
    delete from mainspring.limits as known where known.name = remove_limit.name;
    return found;
end
$$;

COMMENT ON FUNCTION mainspring.remove_limit(name text) IS 'Removes a limit and releases the jobs that wait for it; returns whether it existed.';

CREATE FUNCTION mainspring.renewed_key(key text, earlier text[], content text) RETURNS text
    LANGUAGE sql IMMUTABLE
    RETURN CASE WHEN ((key ~ '^(content|trigger:[0-9]+):[0-9a-f]+$'::text) AND ("substring"(key, '[^:]+$'::text) = ANY (earlier))) THEN regexp_replace(key, '[^:]+$'::text, content) ELSE key END;

CREATE TABLE mainspring.enqueue_keys (
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    job_id bigint NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    fingerprint text,
    CONSTRAINT enqueue_keys_kind_check CHECK ((kind = ANY (ARRAY['idempotency'::text, 'window'::text])))
);

CREATE FUNCTION mainspring.renewed_request(kept mainspring.enqueue_keys, earlier text[], content text) RETURNS text
    LANGUAGE sql STABLE
    AS $$
    select case when kept.fingerprint = any (earlier) or exists (
                    select from unnest(earlier) as known
                     where kept.fingerprint = mainspring.request_digest(kept.key, known))
                then mainspring.request_digest(kept.key, content) else kept.fingerprint end
$$;

CREATE FUNCTION mainspring.replay_event(event_id bigint, trigger text DEFAULT NULL::text, tenant text DEFAULT 'default'::text) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    known mainspring.events;
    chosen mainspring.triggers;
begin
    perform mainspring.ensure_visible(tenant);
    select * into known from mainspring.events as event
     where event.event_id = replay_event.event_id and event.tenant_id = replay_event.tenant
       for update;
    if not found then
        perform mainspring.refuse('MS062',
            'there is no event ' || coalesce(replay_event.event_id::text, 'null'),
            jsonb_build_object('event_id', replay_event.event_id));
    end if;
    if known.handled_at is null then
        perform mainspring.refuse('MS063', 'event ' || known.event_id
            || ' has not been handled yet; it will be as soon as a scheduler runs',
            jsonb_build_object('event_id', known.event_id));
    end if;
    if replay_event.trigger is not null then
        select * into chosen from mainspring.triggers as t
         where t.tenant_id = replay_event.tenant and t.name = replay_event.trigger;
        if not found then
            perform mainspring.refuse('MS064',
                'there is no trigger ' || quote_literal(replay_event.trigger),
                jsonb_build_object('name', replay_event.trigger));
        end if;
        if not mainspring.event_matches(chosen.event, known.name) then
            perform mainspring.refuse('MS003', format(
                'trigger %L is for %L, which does not match %L',
                chosen.name, chosen.event, known.name), '{"option": "trigger"}');
        end if;
        if not chosen.is_enabled then
            perform mainspring.refuse('MS003',
                format('trigger %L is disabled; enable it first', chosen.name),
                '{"option": "trigger"}');
        end if;
    end if;
    update mainspring.events as event
       set handled_at = null, replays = event.replays + 1, replay_trigger = replay_event.trigger
     where event.event_id = known.event_id;
    perform mainspring.notify_event();
    return known.replays + 1;
end
$$;

COMMENT ON FUNCTION mainspring.replay_event(event_id bigint, trigger text, tenant text) IS 'Dispatches a handled event again, to one trigger or all; returns the replay''s number.';

CREATE FUNCTION mainspring.request_digest(key text, content text) RETURNS text
    LANGUAGE sql STABLE
    AS $$ select mainspring.keyed_digest('content', key || e'\n' || content) $$;

CREATE FUNCTION mainspring.requeue_jobs(job_ids bigint[], waits mainspring.waits_for[], have_begun boolean DEFAULT true, due_ats timestamp with time zone[] DEFAULT NULL::timestamp with time zone[], failures integer[] DEFAULT NULL::integer[], losses integer[] DEFAULT NULL::integer[], errors text[] DEFAULT NULL::text[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
declare
    freed record;
begin
    perform mainspring.end_spent_jobs(job_ids, have_begun);
    with requeued as (
        update mainspring.jobs as job
           set state = 'queued', fence = null, worker_id = null, started_at = null,
               progress = null,
               waits_for = coalesce(held.waits_for, mainspring.wait_of(job.limit_name)),
               scheduled_for = coalesce(held.due_at, job.scheduled_for),
               -- Due at another instant, or at once after a run, or as it was.
               ready_at = case when held.due_at is not null then null
                               when have_begun then now() else job.ready_at end,
               attempt = job.attempt - (not have_begun)::integer,
               failures = job.failures + coalesce(held.failed, 0),
               losses = coalesce(held.losses, job.losses),
               suspected_at = case when held.losses is null then job.suspected_at
                                   else coalesce(job.suspected_at, now()) end,
               last_error = coalesce(held.error, job.last_error)
          from unnest(requeue_jobs.job_ids, requeue_jobs.waits, requeue_jobs.due_ats,
                      requeue_jobs.failures, requeue_jobs.losses, requeue_jobs.errors)
               as held (job_id, waits_for, due_at, failed, losses, error)
         where job.job_id = held.job_id
        returning job.limit_name, job.limit_key, job.tenant_id
    )
    select array_agg(limit_name) as names, array_agg(limit_key) as keys,
           array_agg(tenant_id) as tenants
      into freed
      from (select distinct * from requeued where limit_name is not null) as limited;
    perform mainspring.notify_limit(place.limit_name, place.limit_key, place.tenant_id)
       from unnest(freed.names, freed.keys, freed.tenants)
            as place (limit_name, limit_key, tenant_id);
end
$$;

CREATE FUNCTION mainspring.reserve_idempotency(asked mainspring.jobs, key text, content text) RETURNS bigint
    LANGUAGE plpgsql
    AS $$
declare
    request text := mainspring.request_digest(key, content);
    held mainspring.enqueue_keys := mainspring.reserve_key(
        asked.tenant_id, 'idempotency', key, asked.job_id, interval '7 days', request);
begin
    -- A request that an earlier release took is known by what that kept of it.
    if held.fingerprint not in (
        request, mainspring.legacy_content(asked.definition, asked.payload)) then
        perform mainspring.refuse('MS021', 'the idempotency key ' || quote_literal(key)
            || ' belongs to job ' || held.job_id || ', which has a different definition or payload',
            jsonb_build_object('key', key, 'job_id', held.job_id));
    end if;
    return held.job_id;
end
$$;

CREATE FUNCTION mainspring.reserve_key(tenant text, kind text, key text, job_id bigint, lifetime interval, fingerprint text DEFAULT NULL::text) RETURNS mainspring.enqueue_keys
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
declare
    holder mainspring.enqueue_keys;
begin
    loop
        insert into mainspring.enqueue_keys (tenant_id, kind, key, job_id, expires_at, fingerprint)
        values (reserve_key.tenant, reserve_key.kind, reserve_key.key, reserve_key.job_id,
                clock_timestamp() + reserve_key.lifetime, reserve_key.fingerprint)
        on conflict do nothing
        returning * into holder;
        exit when found;
        select * into holder from mainspring.enqueue_keys as held
         where held.tenant_id = reserve_key.tenant and held.kind = reserve_key.kind
           and held.key = reserve_key.key and held.expires_at > clock_timestamp();
        exit when found;
        delete from mainspring.enqueue_keys as held
         where held.tenant_id = reserve_key.tenant and held.kind = reserve_key.kind
           and held.key = reserve_key.key and held.expires_at <= clock_timestamp();
    end loop;
    return holder;
end
$$;

CREATE FUNCTION mainspring.restored(edited jsonb, stored jsonb, paths jsonb) RETURNS jsonb
    LANGUAGE plpgsql IMMUTABLE
    AS $$
declare
    path jsonb;
begin
    for path in select jsonb_array_elements(paths) loop
        edited := mainspring.restored_at(
            edited, stored, array(select jsonb_array_elements_text(path)));
    end loop;
    return edited;
end
$$;

CREATE FUNCTION mainspring.restored_at(edited jsonb, stored jsonb, path text[]) RETURNS jsonb
    LANGUAGE plpgsql IMMUTABLE
    AS $$
begin
    if cardinality(path) = 0 then
        if edited = '"[redacted]"' and stored is null then
            perform mainspring.refuse('MS001', 'the payload contains [redacted] where nothing is '
                || 'stored or where an array has a different length; pass the real value');
        end if;
        return case when edited = '"[redacted]"' then stored else edited end;
    elsif jsonb_typeof(edited) = 'object' then
        return (select coalesce(jsonb_object_agg(key, case when path[1] in ('*', key)
                                    then mainspring.restored_at(member,
                                        case when jsonb_typeof(stored) = 'object'
                                             then stored -> key end, path[2:])
                                    else member end), '{}')
                  from jsonb_each(edited) as part (key, member));
    elsif jsonb_typeof(edited) = 'array' and path[1] = '*' then
        return (select coalesce(jsonb_agg(mainspring.restored_at(member,
                                    case when jsonb_typeof(stored) = 'array'
                                              and jsonb_array_length(stored)
                                                  = jsonb_array_length(edited)
                                         then stored -> (position - 1)::integer end, path[2:])
                                          order by position), '[]')
                  from jsonb_array_elements(edited) with ordinality as part (member, position));
    end if;
    return edited;
end
$$;

CREATE FUNCTION mainspring.resume_queue(name text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    was mainspring.queues;
begin
    delete from mainspring.queues as paused where paused.name = resume_queue.name
    returning * into was;
    if was.name is null or was.paused_until <= clock_timestamp() then
        return false;
    end if;
    perform mainspring.note_action('', 'resume', 'queue', was.name, nullif(was.reason, ''),
        jsonb_build_object('paused_until', was.paused_until), null);
    perform mainspring.notify_queue(was.name);
    perform mainspring.notify_limits_changed();
    return true;
end
$$;

COMMENT ON FUNCTION mainspring.resume_queue(name text) IS 'Ends the pause of a queue; returns whether it was paused.';

CREATE FUNCTION mainspring.retention_of(tenant text) RETURNS TABLE(kind text, tenant_id text, state text, keep double precision)
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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

CREATE FUNCTION mainspring.retention_policies() RETURNS TABLE(kind text, tenant_id text, state text, keep interval)
    LANGUAGE sql STABLE
    AS $$
select 'jobs', policy.tenant_id, policy.state::text, policy.keep from mainspring.retention as policy
union all
select policy.kind, policy.tenant_id, null, policy.keep from mainspring.record_retention as policy
$$;

CREATE FUNCTION mainspring.retry(job_id bigint, payload jsonb DEFAULT NULL::jsonb, tenant text DEFAULT 'default'::text) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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

COMMENT ON FUNCTION mainspring.retry(job_id bigint, payload jsonb, tenant text) IS 'Puts a failed, dead-lettered or canceled job back to queued, with a new payload if given.';

CREATE FUNCTION mainspring.retry_flow(flow_id bigint, tenant text DEFAULT 'default'::text) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    retried bigint[];
begin
    perform mainspring.ensure_flow(retry_flow.flow_id, tenant);
    select array_agg(past.job_id order by past.job_id) into retried
      from mainspring.flow_jobs as member
      join mainspring.jobs_history as past using (job_id)
     where member.flow_id = retry_flow.flow_id
       and past.state <> 'succeeded';
    update mainspring.dependencies as known set outcome = null
     where known.parent_id = any (retried) and known.job_id = any (retried);
    perform mainspring.put_back(job_id, null, tenant) from unnest(retried) as job_id;
    return coalesce(cardinality(retried), 0);
end
$$;

COMMENT ON FUNCTION mainspring.retry_flow(flow_id bigint, tenant text) IS 'Puts the failed and canceled jobs of a flow back to queued; returns how many there were.';

CREATE FUNCTION mainspring.risks_of_delete(pruned regclass) RETURNS TABLE(reason text, remedy text)
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
with held as (
    select id, c.relowner, c.relacl, n.nspname, n.nspowner
      from mainspring.tables_of_delete(risks_of_delete.pruned) as id
      join pg_class as c on c.oid = id join pg_namespace as n on n.oid = c.relnamespace
), risks (place, role, before, after, remedy) as (
    select 1, relowner, format('%s belongs to ', id), '', format('alter table %s owner to', id)
      from held
    union all
    select 2, nspowner, format('schema %I belongs to ', nspname), '',
           format('alter schema %I owner to', nspname)
      from held where nspowner <> 'pg_database_owner'::regrole
    union all
    select 3, given.grantee, '', format(' may create triggers on %s', id),
           format('revoke trigger on %s from', id)
      from held, aclexplode(relacl) as given where given.privilege_type = 'TRIGGER'
    union all
    select 4, called.proowner, format('%s calls %s of ', held.id, code.id), '',
           format('alter function %s owner to', code.id)
      from held, mainspring.functions_of_table(held.id) as code (id)
      join pg_proc as called on called.oid = code.id
)
select before || shown.name || after,
       remedy || ' ' || case place when 3 then shown.name else quote_ident(current_user) end
  from risks, lateral (
       select case role when 0 then 'public' else role::regrole::text end) as shown (name)
 where role = 0 or not pg_has_role(role, current_user, 'USAGE')
 order by place, before
$$;

CREATE FUNCTION mainspring.run_answer(result jsonb, OUT message text, OUT details jsonb, OUT is_details_omitted boolean) RETURNS record
    LANGUAGE plpgsql IMMUTABLE
    AS $$
begin
    if jsonb_typeof(result -> 'message') = 'string' then
        message := left(result ->> 'message', 2000);
    end if;
    details := nullif(case when message is not null or (result ? 'details')
                                and jsonb_typeof(result) = 'object'
                           then result -> 'details' else result end, 'null');
    is_details_omitted := coalesce(
        pg_column_size(details) > 65536 or octet_length(details::text) > 8192, false);
    if is_details_omitted then
        details := null;
    end if;
end
$$;

CREATE FUNCTION mainspring.run_instant(schedule_id bigint, slot timestamp with time zone, jitter interval) RETURNS timestamp with time zone
    LANGUAGE sql STABLE
    RETURN CASE WHEN (jitter = '00:00:00'::interval) THEN slot ELSE (slot + (jitter * ((((hashint8extended(schedule_id, (EXTRACT(epoch FROM slot))::bigint) & (65535)::bigint))::numeric / 65536.0))::double precision)) END;

CREATE FUNCTION mainspring.schedule_facts(schedule mainspring.schedules) RETURNS jsonb
    LANGUAGE sql STABLE
    SET "TimeZone" TO 'UTC'
    SET "IntervalStyle" TO 'postgres'
    RETURN (SELECT jsonb_object_agg(jsonb_each.key, jsonb_each.value) AS jsonb_object_agg FROM jsonb_each((to_jsonb(schedule_facts.schedule) - ARRAY['schedule_id'::text, 'run_at'::text, 'created_at'::text, 'updated_at'::text, 'anchor_at'::text, 'disabled_reason'::text, 'declared'::text, 'origin'::text, 'is_templated'::text])) jsonb_each(key, value) WHERE (jsonb_each.value <> 'null'::jsonb));

CREATE FUNCTION mainspring.schedule_function(name text, function text, cron text, zone text DEFAULT NULL::text, payload jsonb DEFAULT '{}'::jsonb, description text DEFAULT NULL::text, role text DEFAULT NULL::text, tenant text DEFAULT 'default'::text, enabled boolean DEFAULT NULL::boolean, on_conflict text DEFAULT 'update'::text, max_attempts integer DEFAULT NULL::integer, timeout interval DEFAULT NULL::interval) RETURNS bigint
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
declare
    target text := (
        select format('%I.%I', n.nspname, p.proname)
          from pg_catalog.pg_proc as p join pg_catalog.pg_namespace as n on n.oid = p.pronamespace
         where p.proname = schedule_function.function and pg_catalog.pg_function_is_visible(p.oid)
         limit 1);
    made bigint;
begin
    if on_conflict is null or on_conflict not in ('update', 'nothing') then
        raise exception using errcode = 'MS003', detail = '{"option": "on_conflict"}',
            message = 'on_conflict must be update or nothing';
    end if;
    perform mainspring.check_function_name(schedule_function.function, target);
    target := coalesce(target, schedule_function.function);
    select schedule_id into made from mainspring.schedules as known
     where known.tenant_id = tenant and known.name = schedule_function.name;
    if made is not null and on_conflict = 'nothing' then
        return made;
    end if;
    if not exists (select from mainspring.definitions as known
                    where known.key = target and known.kind = 'sql'
                      and known.spec ->> 'function' = target
                      and known.spec ->> 'role' = coalesce(schedule_function.role,
                                                           known.spec ->> 'role')) then
        insert into mainspring.definitions as known (key, kind, spec, description)
        values (target, 'sql', jsonb_strip_nulls(jsonb_build_object(
                    'function', target, 'role', schedule_function.role)),
                coalesce(schedule_function.description, ''))
        on conflict (key) do update set spec = known.spec || excluded.spec;
    end if;
    update mainspring.definitions as known set timeout = schedule_function.timeout
     where known.key = target and known.timeout <> schedule_function.timeout;
    insert into mainspring.schedules as known (
        tenant_id, name, definition, cron, zone, payload, description, max_attempts, enabled)
    values (tenant, schedule_function.name, target, schedule_function.cron, schedule_function.zone,
            schedule_function.payload, coalesce(schedule_function.description, ''),
            schedule_function.max_attempts, coalesce(schedule_function.enabled, true))
    on conflict (tenant_id, name) do update
       set definition = excluded.definition, cron = excluded.cron, every = null, at = null,
           zone = coalesce(schedule_function.zone, known.zone), payload = excluded.payload,
           description = coalesce(schedule_function.description, known.description),
           max_attempts = coalesce(schedule_function.max_attempts, known.max_attempts),
           enabled = coalesce(schedule_function.enabled, known.enabled)
    returning schedule_id into made;
    return made;
end
$$;

COMMENT ON FUNCTION mainspring.schedule_function(name text, function text, cron text, zone text, payload jsonb, description text, role text, tenant text, enabled boolean, on_conflict text, max_attempts integer, timeout interval) IS 'Runs a SQL function by cron: stores its definition and the schedule, and returns its id.';

CREATE FUNCTION mainspring.schedule_of(schedule_id bigint, origin jsonb) RETURNS text
    LANGUAGE plpgsql STABLE
    AS $$
begin
    return case when schedule_id is not null then coalesce(
        (select schedule.name from mainspring.schedules as schedule
          where schedule.schedule_id = schedule_of.schedule_id), origin ->> 'schedule') end;
end
$$;

CREATE FUNCTION mainspring.schema_at(document jsonb, pointer text) RETURNS jsonb
    LANGUAGE sql IMMUTABLE
    RETURN CASE WHEN ((pointer ~~ '#/%'::text) AND (pointer !~~ '%\%%'::text)) THEN (document #> (SELECT array_agg(replace(replace(step.part, '~1'::text, '/'::text), '~0'::text, '~'::text) ORDER BY step."position") AS array_agg FROM unnest(string_to_array(substr(schema_at.pointer, 3), '/'::text)) WITH ORDINALITY step(part, "position"))) ELSE NULL::jsonb END;

CREATE FUNCTION mainspring.schema_key_of(arg_schema jsonb) RETURNS uuid
    LANGUAGE sql IMMUTABLE
    RETURN (md5(COALESCE((arg_schema)::text, ''::text)))::uuid;

CREATE FUNCTION mainspring.schemas_in(document jsonb, schema jsonb, path text[], refs text[]) RETURNS TABLE(part jsonb, part_path text[], part_refs text[], circle text, is_lost boolean)
    LANGUAGE sql IMMUTABLE
    AS $_$
    with part as (
        select member.value as part,
               case keyword.step when 'name' then path || member.key
                                 when 'any' then path || '*'::text else path end as part_path
          from (values ('properties', 'name'), ('patternProperties', 'any'),
                       ('dependentSchemas', 'here'), ('dependencies', 'here'))
               as keyword (name, step),
               lateral jsonb_each(case when jsonb_typeof(schema -> keyword.name) = 'object'
                                       then schema -> keyword.name else '{}' end) as member
        union all
        select member.value,
               case keyword.step when 'any' then path || '*'::text else path end
          from (values ('additionalProperties', 'any'), ('unevaluatedProperties', 'any'),
                       ('items', 'any'), ('prefixItems', 'any'), ('additionalItems', 'any'),
                       ('unevaluatedItems', 'any'), ('contains', 'any'), ('allOf', 'here'),
                       ('anyOf', 'here'), ('oneOf', 'here'), ('if', 'here'), ('then', 'here'),
                       ('else', 'here')) as keyword (name, step),
               lateral jsonb_array_elements(
                   case jsonb_typeof(schema -> keyword.name)
                        when 'array' then schema -> keyword.name
                        when 'object' then jsonb_build_array(schema -> keyword.name)
                        else '[]' end) as member
    ), referred as (
        select schema ->> keyword as target
          from unnest('{$ref,$dynamicRef,$recursiveRef}'::text[]) as keyword
         where jsonb_typeof(schema -> keyword) = 'string'
    )
    select part, part_path, refs, null, false from part where jsonb_typeof(part) = 'object'
    union all
    select null, path, refs, target, false from referred where target = any (refs)
    union all
    select found, path, refs || target, null, found is null
      from referred, lateral mainspring.schema_at(document, target) as found
     where target <> all (refs) and (found is null or jsonb_typeof(found) = 'object')
$_$;

CREATE FUNCTION mainspring.secret_paths(schema jsonb) RETURNS jsonb
    LANGUAGE plpgsql IMMUTABLE
    AS $_$
declare
    node record;
    walked integer := 0;
    marked jsonb := '[]';
    reaching text[] := '{}';
    circles jsonb := '[]';
begin
    if schema is null or not jsonb_path_exists(
        schema, '$.** ? (@.writeOnly == true || @.format == "password")') then
        return null;
    end if;
    for node in
        with recursive walk as (
            select schema as part, '{}'::text[] as part_path, '{#}'::text[] as part_refs,
                   null::text as circle, false as is_lost
            union all
            select inside.*
              from walk,
                   lateral mainspring.schemas_in(
                       schema, walk.part, walk.part_path, walk.part_refs) as inside
             where walk.part is not null and not mainspring.is_marked(walk.part)
               and cardinality(walk.part_path) < 50
        )
        select * from walk
    loop
        if node.circle is not null then
            circles := circles || jsonb_build_object(
                'path', node.part_path, 'refs', node.part_refs, 'to', node.circle);
            continue;
        end if;
        walked := walked + (not node.is_lost)::integer;
        if walked > 10000 then
            return '[["*"]]';
        end if;
        if node.is_lost or mainspring.is_marked(node.part)
           or cardinality(node.part_path) = 50 then
            marked := marked || jsonb_build_array(to_jsonb(node.part_path));
            reaching := reaching || node.part_refs;
        end if;
    end loop;
    return mainspring.topmost_paths(mainspring.with_circles(marked, reaching, circles));
end
$_$;

CREATE FUNCTION mainspring.seek_jobs(section text, states mainspring.job_state[], asked jsonb, tenant text, behind bigint, up_to bigint, ended_before timestamp with time zone, most_seen integer, most_found integer, OUT job_ids bigint[], OUT seen bigint, OUT edge bigint) RETURNS record
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET jit TO 'off'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_sort TO 'off'
    AS $$
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

CREATE FUNCTION mainspring.send_message(message text) RETURNS void
    LANGUAGE sql
    AS $$ select pg_notify('mainspring', message) $$;

CREATE FUNCTION mainspring.set_clock() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    given timestamptz := mainspring.given_instant(new);
    is_moved boolean := given is not null or (
        new.cron, new.every, new.at, new.zone, new.dst_gap, new.dst_fold, new.starts_at,
        new.ends_at, new.calendar, new.enabled, new.paused_until, new.jitter, new.anchor_at)
        is distinct from (
        old.cron, old.every, old.at, old.zone, old.dst_gap, old.dst_fold, old.starts_at,
        old.ends_at, old.calendar, old.enabled, old.paused_until, old.jitter, old.anchor_at);
    due_at timestamptz := case when mainspring.may_fire(new) then coalesce(given, 'epoch') end;
    key uuid := mainspring.plan_key(new);
    plain boolean := mainspring.is_plain(new);
    fitting uuid := mainspring.fitting_schema(new);
begin
    update mainspring.clocks as clock
       set revision = clock.revision + 1, plan_key = key, is_plain = plain,
           definition = new.definition, schema_key = fitting,
           checking_until = null, checking_by = null,
           next_run_at = case when is_moved then due_at else clock.next_run_at end,
           next_slot_at = case when is_moved then nullif(due_at, 'epoch')
                               else clock.next_slot_at end,
           changed_at = case when is_moved then clock_timestamp() else clock.changed_at end,
           retry_count = case when new.enabled and not old.enabled then 0
                              else clock.retry_count end
     where clock.schedule_id = new.schedule_id
       and (is_moved or (clock.plan_key, clock.is_plain) <> (key, plain)
            or (new.definition, new.payload) is distinct from (old.definition, old.payload));
    if found then
        perform mainspring.notify_schedule();
    end if;
    new.run_at := null;
    return new;
end
$$;

CREATE FUNCTION mainspring.set_limit(name text, concurrency integer DEFAULT NULL::integer, key_concurrency integer DEFAULT NULL::integer, rate_count integer DEFAULT NULL::integer, rate_period interval DEFAULT NULL::interval, burst integer DEFAULT 1) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
#variable_conflict use_column
begin
    perform mainspring.check_text('name', set_limit.name);
    if set_limit.name is null or set_limit.name !~ '^[A-Za-z_][A-Za-z0-9_.:-]{0,199}$' then
        perform mainspring.refuse('MS003', 'name must start with a letter or _ and contain only '
            || 'letters, digits and _ . : - (at most 200 characters)', '{"option": "name"}');
    end if;
    if least(set_limit.concurrency, set_limit.key_concurrency) < 0 then
        perform mainspring.refuse('MS003', 'concurrency must be zero or more',
            '{"option": "concurrency"}');
    end if;
    if set_limit.rate_count < 1 or set_limit.rate_period <= '0'
       or (set_limit.rate_count is null) <> (set_limit.rate_period is null) then
        perform mainspring.refuse('MS003', 'rate must be a count of 1 or more in a period longer '
            || 'than zero', '{"option": "rate"}');
    end if;
    if coalesce(set_limit.burst, 0) < 1 then
        perform mainspring.refuse('MS003', 'burst must be 1 or more', '{"option": "burst"}');
    end if;
    if greatest(set_limit.concurrency, set_limit.key_concurrency, set_limit.rate_count,
                set_limit.burst) > mainspring.largest_count() then
        perform mainspring.refuse('MS003', 'limit must be at most 1000000000',
            '{"option": "limit"}');
    end if;
    if exists (select from mainspring.definitions as d
                where d.key = set_limit.name and d.limit_name = d.key) then
        perform mainspring.refuse('MS003', 'name belongs to a definition with a limit of its own; '
            || 'change the definition', '{"option": "name"}');
    end if;
    perform mainspring.write_limit(
        set_limit.name, set_limit.concurrency, set_limit.key_concurrency, set_limit.rate_count,
        set_limit.rate_period, set_limit.burst);
end
$_$;

COMMENT ON FUNCTION mainspring.set_limit(name text, concurrency integer, key_concurrency integer, rate_count integer, rate_period interval, burst integer) IS 'Sets what a limit allows; null means unlimited.';

CREATE FUNCTION mainspring.set_retention(kind text, tenant text, state text, keep interval) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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

CREATE FUNCTION mainspring.setting_of_database(name text) RETURNS text
    LANGUAGE sql STABLE
    AS $$
    select substr(entry, length(name) + 2)
      from pg_catalog.pg_db_role_setting as kept, unnest(kept.setconfig) as entry
     where kept.setrole = 0 and starts_with(entry, name || '=')
       and kept.setdatabase in (0, (select oid from pg_catalog.pg_database
                                     where datname = current_database()))
     order by kept.setdatabase desc limit 1
$$;

CREATE FUNCTION mainspring.settle_cancel(job_id bigint) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
begin
    return mainspring.settle_cancels(array[job_id]) > 0;
end
$$;

CREATE FUNCTION mainspring.settle_cancels(job_ids bigint[]) RETURNS bigint
    LANGUAGE plpgsql
    AS $$
declare
    moved bigint;
    ended_at timestamptz := clock_timestamp();
begin
    -- Sent when the transaction is committed.
    perform mainspring.notify_limit(freed.limit_name, freed.limit_key, freed.tenant_id)
       from (select distinct job.limit_name, job.limit_key, job.tenant_id
               from mainspring.jobs as job
              where job.job_id = any (settle_cancels.job_ids) and job.state <> 'running'
                and job.cancel_requested_at is not null
                and job.limit_name is not null and job.waits_for is null) as freed;
    with ended as (
        delete from mainspring.jobs as job
         where job.job_id = any (settle_cancels.job_ids) and job.state <> 'running'
           and job.cancel_requested_at is not null
        returning job, job.tenant_id, job.queue, job.definition
    ), changed as (
        insert into mainspring.changes (
            tenant_id, queue, definition, moved, state, day, count)
        select tenant_id, queue, definition, 'ended', 'canceled', mainspring.day_of(ended_at),
               count(*)
          from ended group by tenant_id, queue, definition
    )
    insert into mainspring.jobs_history
    select past.* from ended, lateral mainspring.history_of(
        ended.job, 'canceled', started_at => (ended.job).started_at,
        finished_at => ended_at) as past;
    get diagnostics moved = row_count;
    if moved > 0 and exists (
        select from mainspring.dependencies as d
         where d.parent_id = any (settle_cancels.job_ids) and d.outcome is null) then
        perform mainspring.notify_parents();
    end if;
    return moved;
end
$$;

CREATE FUNCTION mainspring.settle_children(children bigint[]) RETURNS integer
    LANGUAGE plpgsql
    AS $$
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

CREATE FUNCTION mainspring.settle_page(behind_parent bigint, behind_child bigint, most integer, OUT is_ours boolean, OUT settled integer, OUT next_parent bigint, OUT next_child bigint) RETURNS record
    LANGUAGE plpgsql
    AS $$
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

CREATE FUNCTION mainspring.settle_parents(parents bigint[], most integer, OUT is_ours boolean, OUT settled integer) RETURNS record
    LANGUAGE plpgsql
    AS $$
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

CREATE FUNCTION mainspring.settle_slot() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
declare
    answer record := mainspring.run_answer(new.result);
begin
    update mainspring.slots as slot
       set run_state = case when mainspring.was_lost(new.delivery, new.state, new.failures)
                            then 'lost' else new.state::text end,
           started_at = new.started_at,
           finished_at = new.finished_at, message = answer.message, details = answer.details,
           is_details_omitted = answer.is_details_omitted,
           reason = case when new.state <> 'succeeded' then left(new.last_error, 2000) end
     where slot.schedule_id = new.schedule_id and slot.scheduled_for = new.slot_at
       and slot.job_id = new.job_id;
    perform mainspring.release_turn(new.schedule_id);
    return null;
end
$$;

CREATE FUNCTION mainspring.shown_payload(definition text, payload jsonb) RETURNS jsonb
    LANGUAGE sql STABLE
    RETURN COALESCE((SELECT mainspring.redacted(shown_payload.payload, defined.secret_paths) AS redacted FROM mainspring.definitions defined WHERE ((defined.key = shown_payload.definition) AND (defined.secret_paths IS NOT NULL))), payload);

CREATE FUNCTION mainspring.shown_value(value jsonb) RETURNS jsonb
    LANGUAGE plpgsql IMMUTABLE
    AS $_$
begin
    case jsonb_typeof(value)
        when 'object' then
            return (select coalesce(jsonb_object_agg(key, case
                        when member <> 'null' and key ~* ('(password|passwd|passphrase|secret|token'
                             || '|pwd|authorization|(api|access|private)[_-]?key)$')
                        then '"[redacted]"' else mainspring.shown_value(member) end), '{}')
                      from jsonb_each(value) as part (key, member));
        when 'array' then
            return (select coalesce(jsonb_agg(mainspring.shown_value(member) order by position),
                                    '[]')
                      from jsonb_array_elements(value) with ordinality as part (member, position));
        when 'string' then
            return to_jsonb(regexp_replace(
                value #>> '{}', '(://[^\s/:@]*:)[^\s/]+@', '\1[redacted]@', 'g'));
        else
            return value;
    end case;
end
$_$;

CREATE FUNCTION mainspring.source_of(schedule_id bigint, created_by text) RETURNS text
    LANGUAGE sql IMMUTABLE
    RETURN CASE WHEN (schedule_id IS NOT NULL) THEN 'schedule'::text WHEN (created_by ~~ 'trigger:%'::text) THEN 'trigger'::text WHEN (created_by ~~ 'job:%'::text) THEN 'job'::text WHEN (created_by IS NOT NULL) THEN 'api'::text ELSE 'code'::text END;

CREATE FUNCTION mainspring.spread_by(schedule mainspring.schedules) RETURNS text
    LANGUAGE sql IMMUTABLE
    RETURN CASE WHEN ((schedule).cron ~* '(^|[\s,])h'::text) THEN (schedule).name ELSE NULL::text END;

CREATE FUNCTION mainspring.start_bulk(action text, asked jsonb, reason text, tenant text DEFAULT 'default'::text, total bigint DEFAULT NULL::bigint) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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

CREATE FUNCTION mainspring.start_slot(schedule mainspring.schedules, slot timestamp with time zone, source mainspring.slot_trigger, missed integer, payload jsonb DEFAULT NULL::jsonb, definition text DEFAULT NULL::text, in_line boolean DEFAULT false, reserved bigint DEFAULT NULL::bigint, OUT outcome mainspring.slot_outcome, OUT job_id bigint, OUT reason text) RETURNS record
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
declare
    defined mainspring.definitions;
    is_full boolean := mainspring.live_runs(schedule.schedule_id) >= schedule.max_running;
    wanted text := coalesce(start_slot.definition, schedule.definition);
    asked mainspring.jobs;
begin
    outcome := 'failed';
    select * into defined from mainspring.definitions as d where d.key = wanted and d.is_active;
    if not found then
        reason := mainspring.why_unknown(wanted);
        return;
    end if;
    if mainspring.is_closed(wanted) then
        reason := 'definition ' || mainspring.why_closed(wanted);
        return;
    end if;
    if is_full and schedule.overlap = 'skip' and in_line is not true then
        outcome := 'skipped';
        reason := 'an earlier run is still live (overlap = skip)';
        return;
    end if;
    if is_full and schedule.overlap = 'replace' and in_line is not true then
        perform mainspring.stop_runs(schedule.schedule_id);
        is_full := mainspring.live_runs(schedule.schedule_id) >= schedule.max_running;
    end if;
    asked := mainspring.asked_job(
        wanted, coalesce(start_slot.payload, schedule.payload), schedule.tenant_id,
        schedule.queue, schedule.priority, schedule.max_attempts, job_id => reserved,
        delivery => schedule.delivery);
    asked.schedule_id := schedule.schedule_id;
    asked.slot_at := slot;
    asked.origin := schedule.origin || jsonb_build_object('trigger', source, 'missed', missed);
    job_id := mainspring.add_job(
        mainspring.new_job(asked, defined, is_behind_others => is_full), defined);
    outcome := 'enqueued';
end
$$;

CREATE FUNCTION mainspring.start_tenant_deletion(tenant text) RETURNS bigint
    LANGUAGE plpgsql
    AS $$
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

CREATE FUNCTION mainspring.state_of(waits mainspring.waits_for) RETURNS mainspring.job_state
    LANGUAGE sql IMMUTABLE
    RETURN CASE waits WHEN 'approval'::mainspring.waits_for THEN 'awaiting_approval'::mainspring.job_state WHEN 'parents'::mainspring.waits_for THEN 'blocked'::mainspring.job_state ELSE 'queued'::mainspring.job_state END;

CREATE FUNCTION mainspring.stop_job(job_id bigint, reason text, tenant text) RETURNS mainspring.job_state
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
declare
    found_job mainspring.jobs;
    final_state mainspring.job_state;
begin
    select * into found_job from mainspring.jobs as job
     where job.job_id = stop_job.job_id and job.tenant_id = stop_job.tenant for update;
    if not found then
        select state into final_state from mainspring.jobs_history as job
         where job.job_id = stop_job.job_id and job.tenant_id = stop_job.tenant;
        if not found then
            perform mainspring.refuse_job(stop_job.job_id);
        elsif final_state <> 'canceled' then
            perform mainspring.refuse_move(stop_job.job_id, final_state, 'canceled');
        end if;
        return final_state;
    end if;
    perform mainspring.stop_jobs(array[stop_job.job_id], stop_job.reason);
    return case when found_job.state = 'running' then 'running' else 'canceled' end;
end
$$;

CREATE FUNCTION mainspring.stop_jobs(job_ids bigint[], reason text) RETURNS void
    LANGUAGE plpgsql
    AS $$
begin
    update mainspring.jobs as job
       set cancel_requested_at = coalesce(job.cancel_requested_at, clock_timestamp()),
           last_error = stop_jobs.reason
     where job.job_id = any (stop_jobs.job_ids);
    perform mainspring.notify_cancel(running.worker_id)
       from (select distinct job.worker_id from mainspring.jobs as job
              where job.job_id = any (stop_jobs.job_ids) and job.state = 'running') as running;
    perform mainspring.settle_cancels(stop_jobs.job_ids);
end
$$;

CREATE FUNCTION mainspring.stop_runs(schedule_id bigint) RETURNS void
    LANGUAGE plpgsql
    AS $$
begin
    perform mainspring.stop_job(job.job_id, 'replaced by a newer slot of its schedule',
                                job.tenant_id)
       from mainspring.jobs as job
      where job.schedule_id = stop_runs.schedule_id and job.slot_at is not null;
end
$$;

CREATE FUNCTION mainspring.store_schedule(schedule mainspring.schedules) RETURNS mainspring.schedules
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
declare
    stored mainspring.schedules;
begin
    if schedule.schedule_id is null then
        insert into mainspring.schedules (
            tenant_id, name, description, enabled, cron, every, at, zone, dst_gap, dst_fold,
            calendar, starts_at, ends_at, jitter, definition, payload, queue, priority,
            max_attempts, delivery, misfire_grace, catch_up, catch_up_limit, catch_up_max_age,
            overlap, max_running, run_timeout, launcher, condition_sql, gauge_sql, gauge_lower,
            gauge_upper, gauge_bounds, condition_role, condition_timeout, max_retries,
            paused_until, declared)
        values (
            schedule.tenant_id, schedule.name, schedule.description, schedule.enabled,
            schedule.cron, schedule.every, schedule.at, schedule.zone, schedule.dst_gap,
            schedule.dst_fold, schedule.calendar, schedule.starts_at, schedule.ends_at,
            schedule.jitter, schedule.definition, schedule.payload, schedule.queue,
            schedule.priority, schedule.max_attempts, schedule.delivery, schedule.misfire_grace,
            schedule.catch_up, schedule.catch_up_limit, schedule.catch_up_max_age,
            schedule.overlap, schedule.max_running, schedule.run_timeout, schedule.launcher,
            schedule.condition_sql, schedule.gauge_sql, schedule.gauge_lower,
            schedule.gauge_upper, schedule.gauge_bounds,
            coalesce(schedule.condition_role, current_user),
            schedule.condition_timeout, schedule.max_retries, schedule.paused_until,
            schedule.declared)
        on conflict on constraint schedules_name_is_unique do nothing
        returning * into stored;
        return stored;
    end if;
    update mainspring.schedules as s
       set name = schedule.name, description = schedule.description,
           enabled = schedule.enabled, cron = schedule.cron, every = schedule.every,
           at = schedule.at, zone = schedule.zone, dst_gap = schedule.dst_gap,
           dst_fold = schedule.dst_fold, calendar = schedule.calendar,
           starts_at = schedule.starts_at, ends_at = schedule.ends_at,
           jitter = schedule.jitter, definition = schedule.definition,
           payload = schedule.payload, queue = schedule.queue, priority = schedule.priority,
           max_attempts = schedule.max_attempts, delivery = schedule.delivery,
           misfire_grace = schedule.misfire_grace, catch_up = schedule.catch_up,
           catch_up_limit = schedule.catch_up_limit,
           catch_up_max_age = schedule.catch_up_max_age, overlap = schedule.overlap,
           max_running = schedule.max_running, run_timeout = schedule.run_timeout,
           launcher = schedule.launcher, condition_sql = schedule.condition_sql,
           gauge_sql = schedule.gauge_sql, gauge_lower = schedule.gauge_lower,
           gauge_upper = schedule.gauge_upper, gauge_bounds = schedule.gauge_bounds,
           condition_role = schedule.condition_role,
           condition_timeout = schedule.condition_timeout, max_retries = schedule.max_retries,
           paused_until = schedule.paused_until, disabled_reason = schedule.disabled_reason,
           declared = schedule.declared
     where s.schedule_id = schedule.schedule_id
    returning * into stored;
    return stored;
end
$$;

CREATE FUNCTION mainspring.stride_of(count bigint) RETURNS integer
    LANGUAGE sql IMMUTABLE
    RETURN (GREATEST((1)::bigint, (count / 256)))::integer;

CREATE FUNCTION mainspring.summed_buckets(buckets bigint[]) RETURNS bigint[]
    LANGUAGE sql IMMUTABLE
    RETURN (SELECT COALESCE(array_agg(ARRAY[each.bucket, each.count] ORDER BY each.bucket), '{}'::bigint[]) AS "coalesce" FROM (SELECT (summed_buckets.buckets)[place.place][1] AS bucket, (sum((summed_buckets.buckets)[place.place][2]))::bigint AS count FROM generate_subscripts(summed_buckets.buckets, 1) place(place) GROUP BY (summed_buckets.buckets)[place.place][1]) each);

CREATE FUNCTION mainspring.switch_clocks() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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

CREATE FUNCTION mainspring.tables_of_delete(pruned regclass) RETURNS SETOF regclass
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
with recursive reached (id) as (
    select pruned::oid
    union
    select key.conrelid from reached join pg_constraint as key on key.confrelid = reached.id
     where key.contype = 'f' and key.confdeltype in ('c', 'n', 'd')
)
select id::regclass from reached
$$;

CREATE FUNCTION mainspring.tags_of(lists jsonb) RETURNS text[]
    LANGUAGE plpgsql IMMUTABLE
    AS $$
begin
    return case when lists is not null then array(
        select distinct tag from jsonb_array_elements(lists) as list,
               lateral jsonb_array_elements_text(list) as tag
         order by tag limit 20) end;
end
$$;

CREATE FUNCTION mainspring.take_back_places() RETURNS boolean
    LANGUAGE plpgsql
    AS $$
begin
    if not pg_try_advisory_xact_lock(hashtext('mainspring.limits')) then
        return false;
    end if;
    update mainspring.jobs as job set waits_for = 'limit'
     where job.ctid = any (array(
        select ready.ctid from mainspring.jobs as ready
         where ready.limit_name is not null and ready.waits_for is null
           and ready.state = 'queued'
           for update skip locked));
    return true;
end
$$;

CREATE FUNCTION mainspring.take_from_history(job_id bigint, tenant text) RETURNS mainspring.jobs_history
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
declare
    ended mainspring.jobs_history;
    found_state mainspring.job_state;
begin
    delete from mainspring.jobs_history as job
     where job.job_id = take_from_history.job_id and job.tenant_id = take_from_history.tenant
       and job.state <> 'succeeded'
    returning * into ended;
    if not found then
        select state into found_state from mainspring.job_status as job
         where job.job_id = take_from_history.job_id
           and job.tenant_id = take_from_history.tenant;
        if not found then
            perform mainspring.refuse_job(take_from_history.job_id);
        end if;
        perform mainspring.refuse_move(take_from_history.job_id, found_state, 'queued');
    end if;
    insert into mainspring.changes (tenant_id, queue, definition, moved, state, day, count)
    values (ended.tenant_id, ended.queue, ended.definition, 'revived', ended.state,
            mainspring.day_of(ended.finished_at), 1);
    return ended;
end
$$;

CREATE FUNCTION mainspring.take_token(job_id bigint, fence bigint) RETURNS double precision
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
declare
    rate record;
    bucket mainspring.buckets;
    starts_at timestamptz;
begin
    select job.limit_name, job.limit_key, known.burst,
           mainspring.token_seconds(known.rate_count, known.rate_period) as seconds
      into rate
      from mainspring.jobs as job
      left join mainspring.limits as known on known.name = job.limit_name
     where job.job_id = take_token.job_id and job.fence = take_token.fence;
    if not found then
        return null;
    end if;
    if rate.seconds is not null then
        insert into mainspring.buckets (limit_name, limit_key, full_at)
        values (rate.limit_name, rate.limit_key, clock_timestamp())
        on conflict do nothing;
        select * into bucket from mainspring.buckets as known
         where known.limit_name = rate.limit_name and known.limit_key = rate.limit_key for update;
        starts_at := clock_timestamp();
        bucket.full_at := greatest(bucket.full_at, starts_at)
                          + make_interval(secs => rate.seconds);
        if bucket.full_at > starts_at + make_interval(secs => rate.seconds * rate.burst)
                            + interval '1 microsecond' then
            perform from mainspring.jobs as job
              where job.job_id = take_token.job_id and job.fence = take_token.fence for update;
            if found then
                perform mainspring.requeue_jobs(
                    array[take_token.job_id], array['limit'::mainspring.waits_for],
                    have_begun => false);
            end if;
            return extract(epoch from bucket.full_at - starts_at) - rate.seconds * rate.burst;
        end if;
        update mainspring.buckets as known set full_at = bucket.full_at
         where known.limit_name = rate.limit_name and known.limit_key = rate.limit_key;
    end if;
    update mainspring.jobs as job set probed_at = now()
     where job.job_id = take_token.job_id and job.fence = take_token.fence;
    return case when found then 0 end;
end
$$;

CREATE FUNCTION mainspring.texts_of(texts jsonb) RETURNS text[]
    LANGUAGE sql IMMUTABLE
    RETURN CASE WHEN (jsonb_typeof(texts) = 'array'::text) THEN ARRAY(SELECT jsonb_array_elements_text(texts) AS jsonb_array_elements_text) ELSE NULL::text[] END;

CREATE FUNCTION mainspring.token_seconds(rate_count integer, rate_period interval) RETURNS double precision
    LANGUAGE sql IMMUTABLE
    RETURN ((EXTRACT(epoch FROM rate_period) / (rate_count)::numeric))::double precision;

CREATE FUNCTION mainspring.topmost_paths(paths jsonb) RETURNS jsonb
    LANGUAGE sql IMMUTABLE
    RETURN CASE WHEN (EXISTS (SELECT FROM jsonb_array_elements(topmost_paths.paths) path(value) WHERE (path.value = '[]'::jsonb))) THEN '[["*"]]'::jsonb ELSE (SELECT jsonb_agg(each.path ORDER BY each.path) AS jsonb_agg FROM (SELECT DISTINCT path.value AS path FROM jsonb_array_elements(topmost_paths.paths) path(value)) each WHERE (NOT (EXISTS (SELECT FROM jsonb_array_elements(topmost_paths.paths) above(value) WHERE ((jsonb_array_length(above.value) < jsonb_array_length(each.path)) AND (NOT (EXISTS (SELECT FROM generate_series(0, (jsonb_array_length(above.value) - 1)) step(step) WHERE ((above.value -> step.step) <> (each.path -> step.step)))))))))) END;

CREATE FUNCTION mainspring.touch() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    new.updated_at := now();
    return new;
end
$$;

CREATE FUNCTION mainspring.trigger_of(created_by text) RETURNS text
    LANGUAGE sql IMMUTABLE
    RETURN CASE WHEN (created_by ~~ 'trigger:%'::text) THEN substr(created_by, 9) ELSE NULL::text END;

CREATE FUNCTION mainspring.trigger_scheduled_job(name text, tenant text DEFAULT 'default'::text, force boolean DEFAULT false, slot timestamp with time zone DEFAULT NULL::timestamp with time zone) RETURNS jsonb
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    schedule mainspring.schedules;
    started record;
    slot_at timestamptz;
begin
    perform mainspring.ensure_visible(tenant);
    schedule := mainspring.find_schedule(tenant, name);
    perform from mainspring.clocks as c where c.schedule_id = schedule.schedule_id for update;
    slot_at := mainspring.free_slot(schedule, slot);
    if mainspring.needs_look(schedule, force) then
        select 'pending'::mainspring.slot_outcome as outcome, null::bigint as job_id,
               'waiting for a scheduler' as reason into started;
        perform mainspring.notify_schedule();
    else
        select * into started from mainspring.start_slot(schedule, slot_at, 'manual', 0);
    end if;
    if started.outcome = 'failed' then
        perform mainspring.refuse('MS010', started.reason,
                                  mainspring.unknown_facts(schedule.definition));
    end if;
    insert into mainspring.slots
        (schedule_id, scheduled_for, fired_at, outcome, trigger, job_id, reason, is_forced)
    values (schedule.schedule_id, slot_at,
            case when slot is null then slot_at else clock_timestamp() end,
            started.outcome, 'manual', started.job_id, started.reason, force)
    on conflict (schedule_id, scheduled_for) do update
       set fired_at = excluded.fired_at, outcome = excluded.outcome, trigger = 'manual',
           job_id = excluded.job_id, reason = excluded.reason, is_forced = excluded.is_forced;
    update mainspring.clocks as c
       set revision = c.revision + 1, checking_until = null, checking_by = null,
           last_enqueued_at = case when started.outcome = 'enqueued' then clock_timestamp()
                                   else c.last_enqueued_at end,
           last_skipped_at = case when started.outcome = 'skipped' then clock_timestamp()
                                  else c.last_skipped_at end,
           enqueued_count = c.enqueued_count + (started.outcome = 'enqueued')::integer,
           skipped_count = c.skipped_count + (started.outcome = 'skipped')::integer
     where c.schedule_id = schedule.schedule_id;
    if mainspring.creator() is not null then
        perform mainspring.note_action(
            schedule.tenant_id, 'trigger', 'schedule', schedule.name, null, null,
            jsonb_build_object('slot_at', slot_at, 'force', force));
    end if;
    return jsonb_build_object(
        'success', started.outcome in ('enqueued', 'pending'), 'job_name', schedule.name,
        'outcome', started.outcome, 'slot_at', slot_at, 'job_id', started.job_id,
        'message', coalesce(started.reason, 'job ' || started.job_id || ' is enqueued'));
end
$$;

COMMENT ON FUNCTION mainspring.trigger_scheduled_job(name text, tenant text, force boolean, slot timestamp with time zone) IS 'Fires a schedule now, in a slot of its own or in the given past one, which must have no job; checks its condition unless forced.';

CREATE FUNCTION mainspring.try_put_back(job_id bigint, tenant text) RETURNS text
    LANGUAGE plpgsql
    AS $$
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

CREATE FUNCTION mainspring.unknown_facts(key text) RETURNS jsonb
    LANGUAGE sql STABLE
    RETURN (jsonb_build_object('key', key) || (CASE WHEN mainspring.is_deactivated(key) THEN '{"is_deactivated": true}'::text ELSE '{}'::text END)::jsonb);

CREATE FUNCTION mainspring.unpaused(queues text[]) RETURNS text[]
    LANGUAGE plpgsql STABLE
    AS $$
begin
    return array(
        select asked.queue from unnest(queues) as asked (queue)
         where asked.queue <> all (array(
             select paused.name from mainspring.paused_queues as paused)));
end
$$;

CREATE FUNCTION mainspring.unset_retention(kind text, tenant text, state text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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

CREATE TABLE mainspring.dependencies (
    job_id bigint NOT NULL,
    parent_id bigint NOT NULL,
    on_failure text DEFAULT 'cancel'::text NOT NULL,
    outcome mainspring.job_state,
    CONSTRAINT dependencies_check CHECK ((job_id <> parent_id)),
    CONSTRAINT dependencies_on_failure_check CHECK ((on_failure = ANY (ARRAY['cancel'::text, 'continue'::text, 'wait'::text])))
);

CREATE FUNCTION mainspring.unsettled_among(children bigint[]) RETURNS bigint[]
    LANGUAGE sql STABLE
    RETURN ARRAY(SELECT job.job_id FROM mainspring.jobs job WHERE ((job.job_id = ANY (unsettled_among.children)) AND (job.state = ANY (ARRAY['blocked'::mainspring.job_state, 'awaiting_approval'::mainspring.job_state])) AND ((EXISTS (SELECT FROM mainspring.dependencies failed WHERE ((failed.job_id = job.job_id) AND (failed.outcome <> 'succeeded'::mainspring.job_state) AND (failed.on_failure <> 'continue'::text)))) OR ((job.state = 'blocked'::mainspring.job_state) AND (NOT (EXISTS (SELECT FROM mainspring.dependencies open WHERE ((open.job_id = job.job_id) AND (open.outcome IS NULL)))))))));

CREATE FUNCTION mainspring.update_schedule(tenant text, name text, changes jsonb) RETURNS bigint
    LANGUAGE plpgsql
    AS $$
declare
    schedule mainspring.schedules := mainspring.find_schedule(tenant, name);
begin
    -- Who edits a payload has seen a redacted one.
    if changes ? 'payload' then
        changes := changes || jsonb_build_object('payload', mainspring.restored(
            changes -> 'payload', schedule.payload,
            (select defined.secret_paths from mainspring.definitions as defined
              where defined.key = schedule.definition)));
    end if;
    schedule := mainspring.store_schedule(jsonb_populate_record(schedule, changes));
    return schedule.schedule_id;
exception when unique_violation then
    perform mainspring.refuse('MS042',
        'schedule ' || quote_literal(changes ->> 'name') || ' already exists',
        jsonb_build_object('name', changes ->> 'name'));
end
$$;

CREATE FUNCTION mainspring.use_login(login bytea, prefix text, digest bytea, life interval) RETURNS text
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
declare
    used mainspring.tokens;
    someone mainspring.people;
begin
    delete from mainspring.tokens as t
     where t.digest = use_login.login and t.kind = 'login' and t.expires_at > now()
       and t.revoked_at is null
    returning * into used;
    update mainspring.people as person set last_seen_at = now()
     where person.person_id = used.person_id and person.disabled_at is null
    returning * into someone;
    if someone.person_id is null then
        return null;
    end if;
    insert into mainspring.tokens (
        kind, name, prefix, digest, role, tenant_id, expires_at, person, person_id, created_by,
        created_by_id, ends_by)
    values ('session', someone.name, use_login.prefix, use_login.digest, someone.role,
            someone.tenant_id, least(now() + life, used.ends_by), someone.name, someone.person_id,
            used.created_by, used.created_by_id, used.ends_by);
    perform mainspring.note_session(someone, 'login', jsonb_build_object(
        'link_by', used.created_by, 'link_by_id', used.created_by_id));
    return someone.name;
end
$$;

CREATE FUNCTION mainspring.uses_mark() RETURNS text
    LANGUAGE sql IMMUTABLE
    RETURN 'uses the name "$mainspring", which is reserved for encrypted values; rename the field'::text;

CREATE FUNCTION mainspring.validate_constraint(table_name text, constraint_name text) RETURNS void
    LANGUAGE plpgsql
    AS $$
begin
    execute format('alter table mainspring.%I validate constraint %I',
                   table_name, constraint_name);
end
$$;

CREATE FUNCTION mainspring.version_of(definition mainspring.definitions) RETURNS mainspring.definition_versions
    LANGUAGE sql STABLE
    RETURN jsonb_populate_record(NULL::mainspring.definition_versions, (to_jsonb(definition) || jsonb_build_object('created_at', now())));

CREATE FUNCTION mainspring.visible_state(job_id bigint, tenant text) RETURNS mainspring.job_state
    LANGUAGE plpgsql STABLE
    AS $$
declare
    found_state mainspring.job_state;
begin
    select job.state into found_state from mainspring.job_status as job
     where job.job_id = visible_state.job_id and job.tenant_id = visible_state.tenant;
    if found_state is null then
        perform mainspring.refuse_job(visible_state.job_id);
    end if;
    return found_state;
end
$$;

CREATE FUNCTION mainspring.voter(tenant text, OUT id text, OUT name text) RETURNS record
    LANGUAGE plpgsql STABLE
    AS $$
#variable_conflict use_column
declare
    who text[] := mainspring.identity();
begin
    select 'person:' || person.person_id, person.name into id, name
      from mainspring.people as person
     where person.person_id = case when who[3] like 'person:%' then substr(who[3], 8)::bigint end
        or person.name = case when who[3] like 'name:%' then substr(who[3], 6) end
           and coalesce(person.tenant_id, tenant) = tenant
     order by person.tenant_id limit 1;
    id := coalesce(id, who[3]);
    name := coalesce(name, who[1]);
end
$$;

CREATE FUNCTION mainspring.wait_of(limit_name text) RETURNS mainspring.waits_for
    LANGUAGE sql IMMUTABLE
    RETURN CASE WHEN (limit_name IS NOT NULL) THEN 'limit'::mainspring.waits_for ELSE NULL::mainspring.waits_for END;

CREATE FUNCTION mainspring.waiting_children(behind bigint, most integer) RETURNS bigint[]
    LANGUAGE sql STABLE
    RETURN ARRAY(SELECT job.job_id FROM mainspring.jobs job WHERE ((job.state = ANY (ARRAY['blocked'::mainspring.job_state, 'awaiting_approval'::mainspring.job_state])) AND (job.job_id > waiting_children.behind)) ORDER BY job.job_id LIMIT waiting_children.most);

CREATE FUNCTION mainspring.walk_ended(tenant text, of_state mainspring.job_state, creator text, behind bigint, up_to bigint, most integer) RETURNS SETOF mainspring.jobs_history
    LANGUAGE sql STABLE
    AS $$
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

CREATE FUNCTION mainspring.walk_live(creator text, behind bigint, up_to bigint, most integer) RETURNS SETOF mainspring.jobs
    LANGUAGE sql STABLE
    AS $$
    (select job.* from mainspring.jobs as job
      where creator is null and job.job_id > behind and job.job_id <= up_to
      order by job.job_id limit most)
    union all
    (select job.* from mainspring.jobs as job
      where job.created_by = creator and job.job_id > behind and job.job_id <= up_to
      order by job.job_id limit most)
$$;

CREATE FUNCTION mainspring.warn_of_definition(definition text, noun text) RETURNS void
    LANGUAGE plpgsql
    AS $$
begin
    if not exists (select from mainspring.definitions as known
                    where known.key = definition and known.is_active) then
        raise warning using message = mainspring.why_unknown(definition), hint = format(
            'Until the definition is there, the %s fails. To run a SQL function by cron, call '
            'mainspring.schedule_function.', noun);
    end if;
end
$$;

CREATE FUNCTION mainspring.was_lost(delivery text, state mainspring.job_state, failures integer) RETURNS boolean
    LANGUAGE sql IMMUTABLE
    RETURN COALESCE(((delivery = 'at_most_once'::text) AND (state = 'dead_letter'::mainspring.job_state) AND (failures = 0)), false);

CREATE FUNCTION mainspring.why(job_id bigint, tenant text DEFAULT NULL::text) RETURNS jsonb
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET "TimeZone" TO 'UTC'
    SET jit TO 'off'
    SET enable_seqscan TO 'off'
    SET plan_cache_mode TO 'force_custom_plan'
    AS $$
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

COMMENT ON FUNCTION mainspring.why(job_id bigint, tenant text) IS 'Explains the state of a job: the reasons in order of weight, each with what resolves it, and when it may start.';

CREATE FUNCTION mainspring.why_approval(job mainspring.jobs) RETURNS SETOF jsonb
    LANGUAGE plpgsql STABLE
    AS $$
declare
    asked mainspring.approvals;
    given text[];
    missing integer;
begin
    select * into asked from mainspring.approvals as approval where approval.job_id = job.job_id;
    given := array(select coalesce(vote.name, vote.actor) from mainspring.votes as vote
                    where vote.job_id = job.job_id and vote.is_approval order by vote.voted_at);
    missing := asked.needed - cardinality(given);
    return next mainspring.why_reason('approval',
        'It needs ' || missing || ' more of ' || asked.needed || ' approvals'
        || coalesce(' of ' || array_to_string(asked.approvers, ', '), '')
        || case when given <> '{}' then '; approved by ' || array_to_string(given, ', ') else '' end
        || coalesce('. It is canceled at ' || mainspring.why_instant(asked.expires_at), '') || '.',
        since => asked.requested_at,
        facts => jsonb_build_object('needed', asked.needed, 'missing', missing, 'given', given,
                                    'approvers', asked.approvers, 'expires_at', asked.expires_at),
        fix => mainspring.why_command('approvals approve ' || job.job_id, job.tenant_id));
end
$$;

CREATE FUNCTION mainspring.why_begun(job mainspring.jobs, worker mainspring.workers) RETURNS jsonb
    LANGUAGE plpgsql STABLE
    AS $$
declare
    name text := mainspring.why_worker(job.worker_id);
    ends_at timestamptz := job.started_at + (
        select defined.timeout from mainspring.definition_versions as defined
         where defined.key = job.definition and defined.version = job.definition_version);
    usual record;
begin
    if worker.worker_id is not null and not mainspring.why_has_begun(job, worker) then
        return mainspring.why_reason('buffered', name || ' has claimed it and starts it once one '
            || 'of its ' || worker.concurrency || ' places is free; after a second it is handed '
            || 'back.',
            since => job.started_at, facts => jsonb_build_object(
                'worker_id', job.worker_id::text, 'places', worker.concurrency));
    end if;
    select * into usual from mainspring.why_usual(job);
    return mainspring.why_reason('running', 'It runs on ' || name || ' since '
        || mainspring.why_instant(job.started_at) || ' (attempt ' || job.attempt || ' of '
        || job.max_attempts || ')'
        || coalesce(', ' || (job.progress ->> 'current') || coalesce(
               ' of ' || (job.progress ->> 'total'), '') || ' done', '')
        || case when usual.seconds is not null then ', and usually takes '
                     || mainspring.why_span(make_interval(secs => usual.seconds)) else '' end
        || coalesce('; it times out at ' || mainspring.why_instant(ends_at), '') || '.',
        since => job.started_at, until => ends_at, facts => jsonb_build_object(
            'worker_id', job.worker_id::text, 'attempt', job.attempt, 'progress', job.progress,
            'usual_seconds', usual.seconds),
        fix => mainspring.why_command(case when job.definition like 'mainspring.%' then 'admin '
            else '' end || 'jobs cancel ' || job.job_id, job.tenant_id));
end
$$;

CREATE FUNCTION mainspring.why_behind(job mainspring.jobs) RETURNS SETOF jsonb
    LANGUAGE plpgsql STABLE
    AS $$
declare
    better bigint;
    own bigint;
    others bigint;
    places bigint := (select sum(worker.concurrency) from mainspring.why_workers(job) as worker
                       where worker.is_served and not worker.is_stopping);
begin
    -- In the order of the index, which the planner would not use for so large a part of the table.
    select count(*) into better from (
        select from mainspring.jobs as first
         where first.queue = job.queue and first.priority < job.priority
           and first.state = 'queued' and first.waits_for is null
         order by first.priority, first.tenant_id, first.job_id
         limit mainspring.why_most()) as first;
    select count(*) into own from (
        select from mainspring.jobs as first
         where first.queue = job.queue and first.priority = job.priority
           and first.tenant_id = job.tenant_id and first.job_id < job.job_id
           and first.state = 'queued' and first.waits_for is null
         order by first.job_id limit mainspring.why_most()) as first;
    others := mainspring.why_of_others(job);
    if better > 0 then
        return next mainspring.why_reason('behind_priority', mainspring.why_count(better)
            || ' jobs of better priority are ready in its queue ' || job.queue || '.',
            facts => jsonb_build_object('ahead', better, 'places', places,
                                        'priority', job.priority));
    end if;
    if own + others > 0 then
        return next mainspring.why_reason('behind', mainspring.why_count(own)
            || ' jobs of its tenant are before it in its queue ' || job.queue
            || case when others > 0 then ', and ' || mainspring.why_count(others)
                    || ' of other tenants share the workers with them' else '' end || '.',
            facts => jsonb_build_object('ahead', least(own + others, mainspring.why_most()),
                'own', own, 'others', others, 'places', places));
    end if;
end
$$;

CREATE FUNCTION mainspring.why_closed(definition text) RETURNS text
    LANGUAGE sql IMMUTABLE
    RETURN (definition || CASE WHEN (definition = 'mainspring.bulk'::text) THEN (' cannot be enqueued, scheduled or given another payload; request a bulk operation: '::text || 'POST /api/v1/jobs/bulk'::text) WHEN (definition = 'mainspring.delete_tenant'::text) THEN (' cannot be enqueued, scheduled or given another payload; delete the tenant: '::text || 'DELETE /api/v1/tenants/{name}'::text) ELSE ' is built in and for operators only'::text END);

CREATE FUNCTION mainspring.why_word(word text) RETURNS text
    LANGUAGE sql IMMUTABLE
    RETURN CASE WHEN (word ~ '^[A-Za-z0-9_./:@%+=,-]+$'::text) THEN word ELSE ((''''::text || replace(word, ''''::text, '''\'''''::text)) || ''''::text) END;

CREATE FUNCTION mainspring.why_command(command text, tenant text DEFAULT 'default'::text) RETURNS text
    LANGUAGE sql IMMUTABLE
    RETURN (('mainspring '::text || command) || CASE WHEN (tenant <> 'default'::text) THEN (' --tenant '::text || mainspring.why_word(tenant)) ELSE ''::text END);

CREATE FUNCTION mainspring.why_most() RETURNS integer
    LANGUAGE sql IMMUTABLE
    RETURN 1000;

CREATE FUNCTION mainspring.why_count(number bigint) RETURNS text
    LANGUAGE sql IMMUTABLE
    RETURN CASE WHEN (number >= mainspring.why_most()) THEN '1,000 or more'::text ELSE (number)::text END;

CREATE FUNCTION mainspring.why_ended(past mainspring.jobs_history) RETURNS jsonb
    LANGUAGE plpgsql STABLE
    AS $$
declare
    error text := mainspring.why_error(past.last_error);
    is_system boolean := past.definition like 'mainspring.%';
begin
    return jsonb_build_object(
        'job_id', past.job_id::text, 'state', past.state, 'waits_for', null, 'estimate', null,
        'reasons', jsonb_build_array(mainspring.why_reason('ended', case past.state
                when 'succeeded' then 'It succeeded at '
                when 'failed' then 'It failed and is not retried, at '
                when 'dead_letter' then 'All its attempts failed, the last at '
                else 'It was canceled at ' end || mainspring.why_instant(past.finished_at)
                || case when past.attempt > 0 then ', in attempt ' || past.attempt || ' of '
                        || past.max_attempts else '' end
                || case when error <> '' and past.state <> 'succeeded'
                        then ': ' || error else '' end || '.',
            since => past.finished_at,
            facts => jsonb_build_object('attempt', past.attempt, 'failures', past.failures,
                                        'error', nullif(error, '')),
            fix => case when past.state <> 'succeeded' then mainspring.why_command(
                case when is_system then 'admin ' else '' end || 'jobs retry ' || past.job_id,
                past.tenant_id) end)));
end
$$;

CREATE FUNCTION mainspring.why_error(error text) RETURNS text
    LANGUAGE sql IMMUTABLE
    RETURN "left"(split_part(COALESCE(error, ''::text), '
'::text, 1), 200);

CREATE FUNCTION mainspring.why_estimate(job mainspring.jobs, first jsonb) RETURNS jsonb
    LANGUAGE plpgsql STABLE
    AS $$
declare
    ahead bigint := (first -> 'facts' ->> 'ahead')::bigint;
    places integer := (first -> 'facts' ->> 'places')::integer;
    usual record;
begin
    if first ->> 'code' <> 'deadline' and first ->> 'until' is not null then
        return jsonb_build_object('at', first -> 'until',
                                  'basis', 'the instant at which what holds it ends');
    end if;
    if ahead is null or places is null or places = 0 or ahead >= mainspring.why_most() then
        return null;
    end if;
    select * into usual from mainspring.why_usual(job);
    if usual.seconds is null then
        return null;
    end if;
    return jsonb_build_object(
        'at', now() + make_interval(secs => usual.seconds * (ahead + 1) / places),
        'basis', ahead || ' jobs before it, ' || places || ' places, and '
                 || mainspring.why_span(make_interval(secs => usual.seconds))
                 || ' a job as of the latest ' || usual.samples || ' of ' || job.definition);
end
$$;

CREATE FUNCTION mainspring.why_full(job mainspring.jobs) RETURNS SETOF jsonb
    LANGUAGE plpgsql STABLE
    AS $$
declare
    places bigint;
    taken bigint;
    oldest_id bigint;
    oldest mainspring.jobs;
    is_seen boolean;
begin
    select sum(worker.concurrency), sum(running.count),
           (array_agg(running.first_id order by running.first_at))[1]
      into places, taken, oldest_id
      from mainspring.why_workers(job) as worker, lateral (
           select count(*) as count, min(held.started_at) as first_at,
                  (array_agg(held.job_id order by held.started_at))[1] as first_id
             from (select running.job_id, running.started_at
                     from mainspring.jobs as running
                    where running.state = 'running' and running.worker_id = worker.worker_id
                    limit worker.concurrency) as held) as running
     where worker.is_served and not worker.is_stopping;
    if taken < places or coalesce(places, 0) = 0 then
        return;
    end if;
    select * into oldest from mainspring.jobs as running where running.job_id = oldest_id;
    is_seen := mainspring.why_is_seen(oldest.tenant_id, oldest.created_by);
    return next mainspring.why_reason('places_full', 'All ' || places
        || ' places of the workers of its queue ' || job.queue || ' are taken'
        || case when is_seen then '; the oldest job in them is ' || oldest_id || ', since '
                    || mainspring.why_instant(oldest.started_at) else '' end || '.',
        facts => jsonb_build_object('places', places, 'ahead', 0,
                                    'oldest', case when is_seen then oldest_id::text end),
        fix => coalesce(case when is_seen
                             then mainspring.why_command('why ' || oldest_id, oldest.tenant_id) end,
                        'mainspring worker --queues ' || mainspring.why_word(job.queue)));
end
$$;

CREATE FUNCTION mainspring.why_handler(job mainspring.jobs) RETURNS SETOF jsonb
    LANGUAGE plpgsql STABLE
    AS $$
declare
    defined mainspring.definitions;
    alive bigint;
    knows boolean;
begin
    select * into defined from mainspring.definitions as known where known.key = job.definition;
    select count(*), bool_or(exists (
               select from mainspring.worker_schemas as declared
                where declared.worker_id = worker.worker_id and declared.key = job.definition))
      into alive, knows
      from mainspring.why_workers(job) as worker
     where worker.is_served and not worker.is_stopping;
    if not coalesce(knows, false) and coalesce(defined.kind, 'python') in ('python', 'remote') then
        return next mainspring.why_reason('handler',
            case when alive = 0 then 'No worker of its queue is alive'
                 else 'None of the ' || alive || ' live workers of its queue knows the definition '
                      || job.definition end
            || case when defined.key is null then ', and there is no such definition any more'
                    else '' end
            || '; start one that does.',
            facts => jsonb_build_object('definition', job.definition, 'workers', alive,
                                        'version', job.definition_version));
    end if;
end
$$;

CREATE FUNCTION mainspring.why_has_begun(job mainspring.jobs, worker mainspring.workers) RETURNS boolean
    LANGUAGE plpgsql STABLE
    AS $$
declare
    before bigint;
begin
    if job.progress is not null or job.fence in (job.begun_fence, job.alone_fence)
       or job.probed_at is not null or exists (
           select from mainspring.outputs as output
            where output.job_id = job.job_id and output.fence = job.fence) then
        return true;
    end if;
    select count(*) into before from (
        select from mainspring.jobs as other
         where other.state = 'running' and other.worker_id = job.worker_id
           and (other.started_at, other.job_id) < (job.started_at, job.job_id)
         limit worker.concurrency) as other;
    return before < worker.concurrency;
end
$$;

CREATE FUNCTION mainspring.why_span(span interval) RETURNS text
    LANGUAGE sql IMMUTABLE
    RETURN (SELECT CASE WHEN (length.seconds < (10)::numeric) THEN (round(length.seconds, 1) || ' s'::text) WHEN (length.seconds < (100)::numeric) THEN (round(length.seconds) || ' s'::text) WHEN (length.seconds < (7200)::numeric) THEN (round((length.seconds / (60)::numeric)) || ' min'::text) WHEN (length.seconds < (172800)::numeric) THEN (round((length.seconds / (3600)::numeric)) || ' h'::text) ELSE (round((length.seconds / (86400)::numeric)) || ' days'::text) END AS "case" FROM (SELECT GREATEST((0)::numeric, EXTRACT(epoch FROM why_span.span)) AS seconds) length);

CREATE FUNCTION mainspring.why_instant(at timestamp with time zone) RETURNS text
    LANGUAGE sql STABLE
    RETURN (((to_char((at AT TIME ZONE 'UTC'::text), 'YYYY-MM-DD HH24:MI:SS'::text) || ' UTC ('::text) || CASE WHEN (at > statement_timestamp()) THEN ('in '::text || mainspring.why_span((at - statement_timestamp()))) ELSE (mainspring.why_span((statement_timestamp() - at)) || ' ago'::text) END) || ')'::text);

CREATE FUNCTION mainspring.why_is_seen(tenant text, creator text) RETURNS boolean
    LANGUAGE sql STABLE
    RETURN (mainspring.is_visible(tenant) AND mainspring.is_own(creator));

CREATE FUNCTION mainspring.why_later(job mainspring.jobs) RETURNS SETOF jsonb
    LANGUAGE plpgsql STABLE
    AS $$
begin
    if job.deadline_at > clock_timestamp()
       and job.deadline_at <= clock_timestamp() + interval '1 hour' then
        return next mainspring.why_reason('deadline', 'It must start before '
            || mainspring.why_instant(job.deadline_at) || '; else it is canceled.',
            until => job.deadline_at);
    end if;
end
$$;

CREATE FUNCTION mainspring.why_limit(job mainspring.jobs) RETURNS SETOF jsonb
    LANGUAGE plpgsql STABLE
    AS $$
declare
    known mainspring.limits;
begin
    select * into known from mainspring.limits as asked where asked.name = job.limit_name;
    if 0 in (known.concurrency, known.key_concurrency) then
        return next mainspring.why_reason('limit_zero', 'Its limit ' || known.name
            || ' is set to 0: nothing may run.', since => known.updated_at,
            facts => jsonb_build_object('limit', known.name),
            fix => mainspring.why_set_limit(known,
                case when known.concurrency is not null then greatest(known.concurrency, 1) end,
                case when known.key_concurrency is not null
                     then greatest(known.key_concurrency, 1) end));
    end if;
    return query select * from mainspring.why_tenant_cap(job);
    if known.concurrency > 0 then
        return query select * from mainspring.why_places(job, known, false, known.concurrency);
    end if;
    if known.key_concurrency > 0 then
        return query select * from mainspring.why_places(job, known, true, known.key_concurrency);
    end if;
    if known.rate_count is not null then
        return query select * from mainspring.why_rate(job, known);
    end if;
end
$$;

CREATE FUNCTION mainspring.why_live(job mainspring.jobs) RETURNS jsonb
    LANGUAGE plpgsql STABLE
    AS $$
declare
    reasons jsonb := (
        select jsonb_agg(reason order by place)
          from mainspring.why_reasons(job, 3) with ordinality as given (reason, place));
begin
    return jsonb_build_object(
        'job_id', job.job_id::text, 'state', job.state, 'waits_for', job.waits_for,
        'reasons', reasons, 'estimate', case when job.state <> 'running'
            then mainspring.why_estimate(job, reasons -> 0) end);
end
$$;

CREATE FUNCTION mainspring.why_locked(job mainspring.jobs) RETURNS SETOF jsonb
    LANGUAGE plpgsql STABLE
    AS $$
declare
    held record;
begin
    select activity.pid, activity.application_name, activity.xact_start into held
      from mainspring.jobs as row
      join pg_catalog.pg_locks as lock
        on lock.locktype = 'transactionid' and lock.granted and lock.mode = 'ExclusiveLock'
       and lock.transactionid = row.xmax
      join pg_catalog.pg_stat_activity as activity on activity.pid = lock.pid
     where row.job_id = job.job_id and row.xmax <> '0' and activity.pid <> pg_backend_pid();
    if found then
        return next mainspring.why_reason('locked', 'A session'
            || case when mainspring.is_isolated() then ''
                    else coalesce(' of ' || nullif(held.application_name, ''), '')
                         || ' (pid ' || held.pid || ')' end
            || ' has locked its row'
            || coalesce(', in a transaction since ' || mainspring.why_instant(held.xact_start), '')
            || '.', since => held.xact_start,
            facts => case when mainspring.is_isolated() then '{}'
                          else jsonb_build_object('pid', held.pid) end,
            fix => case when not mainspring.is_isolated()
                        then 'select pg_terminate_backend(' || held.pid || ');' end);
    end if;
end
$$;

CREATE FUNCTION mainspring.why_lost(worker_id bigint) RETURNS text
    LANGUAGE sql STABLE
    RETURN COALESCE((SELECT (CASE WHEN (worker.process_identity ~~ 'api:%'::text) THEN format('remote worker %s (worker %s) '::text, worker.name, worker.worker_id) ELSE format('worker %s (pid %s on %s) '::text, worker.worker_id, worker.pid, worker.host) END || CASE WHEN (worker.died_at IS NOT NULL) THEN 'died: its process was killed or crashed'::text WHEN worker.survived THEN 'could not reach the database in time to renew its lease'::text ELSE 'stopped renewing its lease: its process or host is down, or it hangs'::text END) FROM mainspring.workers worker WHERE (worker.worker_id = why_lost.worker_id)), (('worker '::text || worker_id) || ' is gone'::text));

CREATE FUNCTION mainspring.why_missing(job_id bigint) RETURNS jsonb
    LANGUAGE plpgsql STABLE
    AS $$
declare
    newest bigint := (select case when is_called then last_value else 0 end
                        from mainspring.job_ids);
    given_at timestamptz := least(
        (select later.created_at from mainspring.jobs as later
          where later.job_id > why_missing.job_id order by later.job_id limit 1),
        (select later.created_at from mainspring.jobs_history as later
          where later.job_id > why_missing.job_id order by later.job_id limit 1));
    kept interval := least((select min(keep) from mainspring.retention),
                           (select min(retention) from mainspring.definitions));
    gone record;
    reason jsonb;
begin
    select * into gone from mainspring.audit as entry
     where entry.noun = 'job' and entry.subject = why_missing.job_id::text
       and entry.action = 'delete' order by entry.audit_id desc limit 1;
    reason := case
        when job_id > newest or job_id < 1 then mainspring.why_reason('unknown_id',
            'There is no job ' || job_id || case when newest = 0 then '; there has been none yet.'
                else '; the newest is ' || newest || '.' end,
            facts => jsonb_build_object('newest', newest::text))
        when gone.audit_id is not null then mainspring.why_reason('deleted',
            'It was deleted by ' || gone.actor || ' at ' || mainspring.why_instant(gone.at) || '.',
            since => gone.at, facts => jsonb_build_object('actor', gone.actor))
        when given_at < now() - kept then mainspring.why_reason('pruned',
            'It is no longer there: it would be older than what is kept of finished jobs ('
            || mainspring.why_span(kept) || ' at the least).',
            facts => jsonb_build_object('kept_seconds', extract(epoch from kept)))
        else mainspring.why_reason('not_committed', 'Its id has been given out, and it is not '
            || 'to be seen: the transaction that enqueues it is open, or was rolled back.') end;
    return jsonb_build_object('job_id', job_id::text, 'state', null, 'waits_for', null,
                              'reasons', jsonb_build_array(reason), 'estimate', null);
end
$$;

CREATE FUNCTION mainspring.why_no_bearer(digest bytea) RETURNS text
    LANGUAGE sql STABLE
    RETURN COALESCE((SELECT ((('the tenant '::text || quote_literal(owner.tenant_id)) || ' is disabled; ask an operator to '::text) || 'enable it'::text) FROM ((mainspring.tokens token JOIN mainspring.tenants owner USING (tenant_id)) LEFT JOIN mainspring.people person ON ((person.person_id = token.person_id))) WHERE ((token.digest = why_no_bearer.digest) AND (token.kind <> 'login'::text) AND (owner.disabled_at IS NOT NULL) AND (person.disabled_at IS NULL) AND (token.revoked_at IS NULL) AND ((token.expires_at IS NULL) OR (token.expires_at > now())))), 'the token is unknown, expired or revoked'::text);

CREATE FUNCTION mainspring.why_no_function(full_name text) RETURNS text
    LANGUAGE plpgsql STABLE
    AS $$
declare
    parts text[];
    near record;
begin
    begin
        parts := parse_ident(full_name);
    exception when invalid_parameter_value then
        return format('%s is not the name of a function; write it as schema.name, without '
                      || 'arguments', full_name);
    end;
    select p.prokind, p.proretset, p.prorettype, p.prorettype::regtype as returned,
           pg_get_function_identity_arguments(p.oid) as taken into near
      from pg_catalog.pg_proc as p
      join pg_catalog.pg_namespace as n on n.oid = p.pronamespace
     where cardinality(parts) = 2 and n.nspname = parts[1] and p.proname = parts[2]
     order by (p.prorettype = any ('{jsonb,json}'::regtype[])) desc, p.pronargs limit 1;
    return case
        when not found then mainspring.why_unknown_function(full_name, parts)
        when near.prokind = 'p'
        then full_name || ' is a procedure; make it a function that returns jsonb'
        when near.prokind <> 'f' then full_name || ' is an aggregate or window function'
        when near.proretset
        then format('%s returns a set of %s; it must return one jsonb', full_name, near.returned)
        when near.prorettype <> all ('{jsonb,json}'::regtype[])
        then format('%s returns %s; it must return jsonb', full_name, near.returned)
        else format('%s takes (%s); it must take one jsonb or nothing', full_name, near.taken)
    end;
end
$$;

CREATE FUNCTION mainspring.why_not_held(job_ids bigint[], states mainspring.job_state[], tenant text, is_patient boolean) RETURNS TABLE(job_id bigint, reason text)
    LANGUAGE plpgsql STABLE
    AS $$
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

CREATE FUNCTION mainspring.why_of_others(job mainspring.jobs) RETURNS bigint
    LANGUAGE sql STABLE
    AS $$
select (select count(*) from (
            select from mainspring.jobs as other
             where other.queue = job.queue and other.priority = job.priority
               and other.tenant_id < job.tenant_id
               and other.state = 'queued' and other.waits_for is null
             order by other.tenant_id, other.job_id limit mainspring.why_most()) as before)
     + (select count(*) from (
            select from mainspring.jobs as other
             where other.queue = job.queue and other.priority = job.priority
               and other.tenant_id > job.tenant_id
               and other.state = 'queued' and other.waits_for is null
             order by other.tenant_id, other.job_id limit mainspring.why_most()) as behind)
$$;

CREATE FUNCTION mainspring.why_parent(parent_id bigint, levels integer) RETURNS jsonb
    LANGUAGE plpgsql STABLE
    AS $$
declare
    live mainspring.jobs;
    past mainspring.jobs_history;
    reason jsonb;
begin
    select * into live from mainspring.jobs as job where job.job_id = parent_id;
    if not found then
        select * into past from mainspring.jobs_history as job where job.job_id = parent_id;
    end if;
    if not coalesce(mainspring.why_is_seen(coalesce(live.tenant_id, past.tenant_id),
                                           coalesce(live.created_by, past.created_by)), false) then
        return jsonb_build_object('text', 'a job that you may not see');
    end if;
    if live.job_id is not null and levels > 0 then
        select given into reason from mainspring.why_reasons(live, levels - 1) as given limit 1;
    end if;
    return jsonb_build_object(
        'job_id', parent_id::text, 'state', coalesce(live.state, past.state),
        'code', reason -> 'code', 'sentence', reason -> 'sentence', 'fix', reason -> 'fix',
        'text', parent_id || ' (' || coalesce(live.state, past.state)
                || coalesce(': ' || rtrim(reason ->> 'sentence', '.'), '') || ')');
end
$$;

CREATE FUNCTION mainspring.why_parents(job mainspring.jobs, levels integer) RETURNS SETOF jsonb
    LANGUAGE plpgsql STABLE
    AS $$
declare
    failed record;
    open_ids bigint[];
    parents jsonb;
    total bigint;
begin
    for failed in
        select past.* from mainspring.dependencies as dependency
          join mainspring.jobs_history as past on past.job_id = dependency.parent_id
         where dependency.job_id = job.job_id and dependency.outcome is null
           and dependency.on_failure = 'wait' and past.state <> 'succeeded'
           and mainspring.why_is_seen(past.tenant_id, past.created_by)
         order by past.job_id limit 3
    loop
        return next mainspring.why_reason('parent_failed', 'It waits for job ' || failed.job_id
            || ', which is ' || failed.state || ', to be retried.', since => failed.finished_at,
            facts => jsonb_build_object('parent_id', failed.job_id::text, 'state', failed.state),
            fix => mainspring.why_command('jobs retry ' || failed.job_id, failed.tenant_id));
    end loop;
    select count(*), (array_agg(dependency.parent_id order by dependency.parent_id)
                          filter (where live.job_id is not null))[1:20]
      into total, open_ids
      from mainspring.dependencies as dependency
      left join mainspring.jobs as live on live.job_id = dependency.parent_id
     where dependency.job_id = job.job_id;
    if open_ids is not null then
        parents := (select jsonb_agg(mainspring.why_parent(id, levels) order by id)
                      from unnest(open_ids[1:case when levels = 3 then 3 else 1 end]) as id);
        return next mainspring.why_reason('parents', 'It waits for '
            || (select string_agg(each ->> 'text', ', ') from jsonb_array_elements(parents) as each)
            || case when cardinality(open_ids) > jsonb_array_length(parents)
                    then ' and more' else '' end || ', of ' || total || ' jobs in all.',
            since => job.created_at,
            facts => jsonb_build_object('parents', parents, 'open', cardinality(open_ids),
                                        'of', total),
            fix => coalesce(parents -> 0 ->> 'fix', mainspring.why_command(
                'why ' || (parents -> 0 ->> 'job_id'), job.tenant_id)));
    end if;
end
$$;

CREATE TABLE mainspring.limits (
    name text NOT NULL COLLATE pg_catalog."C",
    concurrency integer,
    key_concurrency integer,
    rate_count integer,
    rate_period interval,
    burst integer DEFAULT 1 NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT limits_burst_check CHECK ((burst >= 1)),
    CONSTRAINT limits_check CHECK (((rate_count IS NULL) = (rate_period IS NULL))),
    CONSTRAINT limits_concurrency_check CHECK ((concurrency >= 0)),
    CONSTRAINT limits_key_concurrency_check CHECK ((key_concurrency >= 0)),
    CONSTRAINT limits_name_check CHECK ((name <> ''::text)),
    CONSTRAINT limits_rate_count_check CHECK ((rate_count >= 1)),
    CONSTRAINT limits_rate_period_check CHECK ((rate_period > '00:00:00'::interval))
);

CREATE FUNCTION mainspring.why_places(job mainspring.jobs, known mainspring.limits, is_of_key boolean, most integer) RETURNS SETOF jsonb
    LANGUAGE plpgsql STABLE
    AS $$
declare
    held bigint;
    before bigint;
    oldest mainspring.jobs;
    is_seen boolean;
begin
    select count(*) into held from (
        select from mainspring.jobs as holder
         where holder.limit_name = known.name and holder.waits_for is null
           and (not is_of_key or holder.limit_key = job.limit_key)
         order by holder.limit_key limit most) as holder;
    if held < most or most is null then
        return;
    end if;
    select count(*) into before from (
        select from mainspring.jobs as waiting
         where waiting.waits_for = 'limit' and waiting.limit_name = job.limit_name
           and waiting.limit_key = job.limit_key and waiting.tenant_id = job.tenant_id
           and hashtextextended(waiting.queue, 0) = hashtextextended(job.queue, 0)
           and (waiting.priority, waiting.job_id) < (job.priority, job.job_id)
         order by waiting.priority, waiting.job_id limit mainspring.why_most()) as waiting;
    select * into oldest from (
        select holder.* from mainspring.jobs as holder
         where holder.limit_name = known.name and holder.waits_for is null
           and (not is_of_key or holder.limit_key = job.limit_key)
         order by holder.limit_key limit mainspring.why_most()) as holder
     order by holder.started_at limit 1;
    is_seen := mainspring.why_is_seen(oldest.tenant_id, oldest.created_by);
    return next mainspring.why_reason('limit_places', 'Its limit ' || known.name || ' lets ' || most
        || case when is_of_key then ' of a key' else '' end || ' run at once, and ' || held
        || case when held = 1 then ' does' else ' do' end
        || case when is_seen then ' (the oldest is job ' || oldest.job_id || ', since '
                    || mainspring.why_instant(oldest.started_at) || ')' else '' end
        || '. ' || mainspring.why_count(before) || ' wait before it.',
        facts => jsonb_build_object('limit', known.name, 'places', most, 'held', held,
            'ahead', before, 'is_of_key', is_of_key,
            'oldest', case when is_seen then oldest.job_id::text end),
        fix => mainspring.why_set_limit(known,
            case when is_of_key then known.concurrency else most + 1 end,
            case when is_of_key then most + 1 else known.key_concurrency end));
end
$$;

CREATE FUNCTION mainspring.why_rate(job mainspring.jobs, known mainspring.limits) RETURNS SETOF jsonb
    LANGUAGE plpgsql STABLE
    AS $$
declare
    bucket record;
begin
    select * into bucket from mainspring.bucket_of(
        known.name, job.limit_key, known.burst,
        mainspring.token_seconds(known.rate_count, known.rate_period));
    if bucket.tokens < 1 then
        return next mainspring.why_reason('rate', 'Its limit ' || known.name || ' starts '
            || known.rate_count || ' in ' || mainspring.why_span(known.rate_period)
            || ' for a key; the next may start in '
            || mainspring.why_span(make_interval(secs => bucket.next_in)) || '.',
            until => clock_timestamp() + make_interval(secs => bucket.next_in),
            facts => jsonb_build_object('limit', known.name, 'count', known.rate_count,
                'seconds', extract(epoch from known.rate_period), 'burst', known.burst));
    end if;
end
$$;

CREATE FUNCTION mainspring.why_reason(code text, sentence text, since timestamp with time zone DEFAULT NULL::timestamp with time zone, until timestamp with time zone DEFAULT NULL::timestamp with time zone, facts jsonb DEFAULT '{}'::jsonb, fix text DEFAULT NULL::text) RETURNS jsonb
    LANGUAGE sql IMMUTABLE
    RETURN jsonb_build_object('code', code, 'sentence', sentence, 'since', since, 'until', until, 'facts', facts, 'fix', fix);

CREATE FUNCTION mainspring.why_reasons(job mainspring.jobs, levels integer) RETURNS SETOF jsonb
    LANGUAGE plpgsql STABLE
    AS $$
declare
    reasons jsonb[] := '{}';
begin
    if job.state = 'running' then
        return query select * from mainspring.why_running(job);
    else
        reasons := array(select mainspring.why_stopped(job))
            || case job.waits_for
                   when 'approval' then array(select mainspring.why_approval(job))
                   when 'parents' then array(select mainspring.why_parents(job, levels))
                   when 'time' then array(select mainspring.why_time(job))
                   when 'turn' then array(select mainspring.why_turn(job))
                   when 'handler' then array(select mainspring.why_handler(job))
                   when 'limit' then array(select mainspring.why_limit(job))
                   else '{}' end;
        reasons := reasons || array(select mainspring.why_unclaimed(job, cardinality(reasons) = 0));
        if reasons = '{}' then
            reasons := array[mainspring.why_soon(job)];
        end if;
        return query select unnest(reasons || array(select mainspring.why_later(job)));
    end if;
    if job.losses > 0 then
        return next mainspring.why_reason('unlucky', 'Its worker has died ' || job.losses
            || ' times while it ran nothing else; with some more it is parked in dead_letter.',
            facts => jsonb_build_object('losses', job.losses),
            fix => mainspring.why_command('jobs show ' || job.job_id, job.tenant_id));
    end if;
end
$$;

CREATE FUNCTION mainspring.why_running(job mainspring.jobs) RETURNS SETOF jsonb
    LANGUAGE plpgsql STABLE
    AS $$
declare
    worker mainspring.workers;
begin
    select * into worker from mainspring.workers as holder where holder.worker_id = job.worker_id;
    if job.cancel_requested_at is not null then
        return next mainspring.why_reason('stopping', 'It was asked to stop at '
            || mainspring.why_instant(job.cancel_requested_at)
            || coalesce(' (' || nullif(mainspring.why_error(job.last_error), '') || ')', '')
            || '; if it does not, it is forced to.', since => job.cancel_requested_at,
            facts => jsonb_build_object('reason', job.last_error));
    end if;
    if worker.worker_id is null or worker.renewed_at
       < clock_timestamp() - (worker.expires_at - worker.renewed_at) * 2 / 3 then
        return next mainspring.why_reason('worker_silent', mainspring.why_worker(job.worker_id)
            || ' has been silent'
            || coalesce(' since ' || mainspring.why_instant(worker.renewed_at), '')
            || '; once its lease is over, the job is queued again.',
            since => worker.renewed_at, until => worker.expires_at,
            facts => jsonb_build_object('worker_id', job.worker_id::text));
    end if;
    return next mainspring.why_begun(job, worker);
end
$$;

CREATE FUNCTION mainspring.why_set_limit(known mainspring.limits, concurrency integer, key_concurrency integer) RETURNS text
    LANGUAGE sql STABLE
    RETURN CASE WHEN (EXISTS (SELECT FROM mainspring.definitions own WHERE ((own.key = (why_set_limit.known).name) AND (own.limit_name = own.key)))) THEN mainspring.why_command(((('definitions update '::text || mainspring.why_word((known).name)) || CASE WHEN (concurrency IS DISTINCT FROM (known).concurrency) THEN (' --concurrency '::text || concurrency) ELSE ''::text END) || CASE WHEN (key_concurrency IS DISTINCT FROM (known).key_concurrency) THEN (' --key-concurrency '::text || key_concurrency) ELSE ''::text END)) ELSE mainspring.why_command(((((('limits set '::text || mainspring.why_word((known).name)) || COALESCE((' --concurrency '::text || concurrency), ''::text)) || COALESCE((' --key-concurrency '::text || key_concurrency), ''::text)) || COALESCE(((((' --rate '::text || (known).rate_count) || '/'::text) || (EXTRACT(epoch FROM (known).rate_period))::double precision) || 's'::text), ''::text)) || CASE WHEN ((known).burst > 1) THEN (' --burst '::text || (known).burst) ELSE ''::text END)) END;

CREATE FUNCTION mainspring.why_soon(job mainspring.jobs) RETURNS jsonb
    LANGUAGE sql STABLE
    RETURN mainspring.why_reason('soon'::text, 'Nothing holds it up: a worker looks within a second or so.'::text, since => GREATEST((job).created_at, (job).scheduled_for));

CREATE FUNCTION mainspring.why_stopped(job mainspring.jobs) RETURNS SETOF jsonb
    LANGUAGE plpgsql STABLE
    AS $$
declare
    aside mainspring.set_aside;
begin
    if pg_is_in_recovery() or current_setting('default_transaction_read_only')::boolean then
        return next mainspring.why_reason('read_only', 'The database takes no writes'
            || case when pg_is_in_recovery() then ': it is a standby' else '' end
            || ', so nobody can claim anything.',
            fix => case when not pg_is_in_recovery() then format(
                'begin read write; alter database %I set default_transaction_read_only = off; '
                'commit;', current_database()) end);
    end if;
    if job.cancel_requested_at is not null then
        return next mainspring.why_reason('stopping', 'It was asked to cancel at '
            || mainspring.why_instant(job.cancel_requested_at)
            || ' and is ended by the next worker that looks.', since => job.cancel_requested_at);
    end if;
    if job.deadline_at <= clock_timestamp() then
        return next mainspring.why_reason('deadline', 'It had to start before '
            || mainspring.why_instant(job.deadline_at) || ', and is canceled by the next worker '
            || 'that looks.', until => job.deadline_at);
    end if;
    select * into aside from mainspring.set_aside as kept
     where kept.key = job.job_id and kept.again_at > clock_timestamp()
       and kept.duty = any (case job.waits_for
           when 'time' then '{promote}' when 'handler' then '{release_known}'
           when 'approval' then '{expire_approvals}' when 'parents' then '{settle}'
           when 'turn' then '{release_turns}' else '{claim}' end::text[])
     order by kept.again_at desc limit 1;
    if found then
        return next mainspring.why_reason('set_aside', 'It was set aside because it makes '
            || aside.duty || ' fail (' || mainspring.why_error(aside.reason) || '), ' || aside.tries
            || case when aside.tries = 1 then ' time' else ' times' end || '; the next try is at '
            || mainspring.why_instant(aside.again_at) || '.',
            since => aside.failed_at, until => aside.again_at, facts => jsonb_build_object(
                'duty', aside.duty, 'tries', aside.tries, 'error', aside.reason));
    end if;
end
$$;

CREATE FUNCTION mainspring.why_tenant_cap(job mainspring.jobs) RETURNS SETOF jsonb
    LANGUAGE plpgsql STABLE
    AS $$
declare
    most integer := (select owner.max_running from mainspring.tenants as owner
                      where owner.tenant_id = job.tenant_id);
    held bigint;
begin
    select count(*) into held from (
        select from mainspring.jobs as holder
         where holder.limit_name is not null and holder.waits_for is null
           and holder.tenant_id = job.tenant_id
         order by holder.limit_name, holder.limit_key limit most) as holder;
    if held >= most then
        return next mainspring.why_reason('tenant_cap', 'The tenant ' || job.tenant_id
            || ' may run ' || most || ' jobs at once, and ' || held
            || case when held = 1 then ' does' else ' do' end || '.',
            facts => jsonb_build_object('tenant', job.tenant_id, 'places', most,
                                                'held', held),
            fix => mainspring.why_command('tenants update ' || mainspring.why_word(job.tenant_id)
                                          || ' --max-running ' || most + 1));
    end if;
end
$$;

CREATE FUNCTION mainspring.why_time(job mainspring.jobs) RETURNS SETOF jsonb
    LANGUAGE plpgsql STABLE
    AS $$
declare
    last mainspring.attempts;
    code text;
begin
    if job.scheduled_for <= clock_timestamp() then
        return;
    end if;
    select * into last from mainspring.attempts as attempt
     where attempt.job_id = job.job_id order by attempt.fence desc limit 1;
    code := case when last.status = 'snoozed' then 'snoozed' when last.status = 'lost' then 'jitter'
                 when job.failures > 0 then 'backoff' else 'delay' end;
    return next mainspring.why_reason(code, case code
            when 'snoozed' then 'It has put itself off'
            when 'jitter' then 'It was taken back from ' || mainspring.why_worker(last.worker_id)
            when 'backoff' then 'Attempt ' || job.attempt || ' of ' || job.max_attempts
                || ' failed' || coalesce(' at ' || mainspring.why_instant(last.finished_at), '')
                || coalesce(' (' || nullif(mainspring.why_error(last.error), '') || ')', '')
            else 'It was enqueued for later' end
            || '; it is due at ' || mainspring.why_instant(job.scheduled_for) || '.',
        since => coalesce(last.finished_at, job.created_at), until => job.scheduled_for,
        facts => jsonb_build_object('attempt', job.attempt, 'max_attempts', job.max_attempts,
                                    'failures', job.failures, 'error', last.error));
end
$$;

CREATE FUNCTION mainspring.why_turn(job mainspring.jobs) RETURNS SETOF jsonb
    LANGUAGE plpgsql STABLE
    AS $$
declare
    earlier mainspring.jobs;
begin
    select * into earlier from mainspring.jobs as run
     where run.schedule_id = job.schedule_id and run.job_id <> job.job_id
       and run.waits_for is distinct from 'turn'
     order by run.slot_at limit 1;
    if found then
        return next mainspring.why_reason('turn', 'An earlier run of its schedule '
            || coalesce((select schedule.name from mainspring.schedules as schedule
                          where schedule.schedule_id = job.schedule_id) || ' ', '')
            || '(job ' || earlier.job_id || ') is ' || earlier.state
            || '; they run one after the other.',
            since => job.created_at, facts => jsonb_build_object('job_id', earlier.job_id::text,
                'state', earlier.state, 'slot_at', earlier.slot_at),
            fix => mainspring.why_command('why ' || earlier.job_id, job.tenant_id));
    end if;
end
$$;

CREATE FUNCTION mainspring.why_unclaimed(job mainspring.jobs, is_claimable boolean) RETURNS SETOF jsonb
    LANGUAGE plpgsql STABLE
    AS $$
declare
    pause mainspring.queues;
begin
    select * into pause from mainspring.paused_queues as paused where paused.name = job.queue;
    if found then
        return next mainspring.why_reason('queue_paused', 'Its queue ' || pause.name
            || ' was paused by ' || pause.paused_by || ' at '
            || mainspring.why_instant(pause.paused_at)
            || coalesce(' (' || nullif(mainspring.why_error(pause.reason), '') || ')', '')
            || coalesce(' until ' || mainspring.why_instant(pause.paused_until), '') || '.',
            since => pause.paused_at, until => pause.paused_until,
            facts => jsonb_build_object('queue', pause.name, 'by', pause.paused_by,
                                        'reason', pause.reason),
            fix => mainspring.why_command('queues resume ' || mainspring.why_word(pause.name)));
    end if;
    return query select * from mainspring.why_unserved(job);
    if is_claimable then
        return query select * from mainspring.why_locked(job);
        if job.waits_for is null and job.state = 'queued' then
            return query select * from mainspring.why_behind(job);
        end if;
        return query select * from mainspring.why_full(job);
    end if;
end
$$;

CREATE FUNCTION mainspring.why_unknown(key text) RETURNS text
    LANGUAGE sql STABLE
    RETURN CASE WHEN mainspring.is_deactivated(key) THEN (('definition '::text || quote_literal(key)) || ' is deactivated; activate it first'::text) ELSE (('unknown definition '::text || COALESCE(quote_literal(key), 'null'::text)) || mainspring.meant_definition(key)) END;

CREATE FUNCTION mainspring.why_unknown_function(full_name text, parts text[]) RETURNS text
    LANGUAGE sql STABLE
    RETURN ((full_name || CASE WHEN (cardinality(parts) = 2) THEN ' does not exist'::text ELSE ' needs its schema and nothing else: write it as schema.name'::text END) || COALESCE(NULLIF(mainspring.meant_function(full_name, (parts)[cardinality(parts)]), ''::text), CASE WHEN (cardinality(parts) = 2) THEN '; create it'::text ELSE ''::text END));

CREATE FUNCTION mainspring.why_unserved(job mainspring.jobs) RETURNS SETOF jsonb
    LANGUAGE plpgsql STABLE
    AS $$
declare
    going bigint;
    stopping bigint;
    is_remote boolean := exists (select from mainspring.definitions as defined
                                  where defined.key = job.definition and defined.kind = 'remote');
    near text := mainspring.closest(job.queue, array(
        select distinct served.queue
          from mainspring.worker_status as worker, unnest(worker.queues) as served (queue)
         where worker.is_alive));
begin
    select count(*) filter (where not worker.is_stopping),
           count(*) filter (where worker.is_stopping)
      into going, stopping
      from mainspring.why_workers(job) as worker where worker.is_served;
    if going = 0 then
        return next mainspring.why_reason(
            case when stopping > 0 then 'all_stopping' else 'nobody_serves' end,
            case when stopping = 1 then 'The only worker of its queue ' || job.queue
                                        || ' is stopping.'
                 when stopping > 0 then 'All workers of its queue ' || job.queue || ' are stopping.'
                 else 'No live worker serves its queue ' || job.queue
                      || coalesce('; did you mean ' || near || '?', case when is_remote
                             then '; start the program that runs ' || job.definition
                                  || ', which claims its jobs over the API.' else '.' end) end,
            since => greatest(job.created_at, job.scheduled_for),
            facts => jsonb_build_object('queue', job.queue, 'stopping', stopping, 'near', near),
            fix => case when not is_remote then 'mainspring worker --queues '
                                                || mainspring.why_word(job.queue) end);
    end if;
end
$$;

CREATE FUNCTION mainspring.why_usual(job mainspring.jobs) RETURNS TABLE(seconds double precision, samples bigint)
    LANGUAGE sql STABLE
    AS $$
select percentile_cont(0.5) within group (order by latest.seconds), count(*)
  from (select past.definition, past.state,
               extract(epoch from past.finished_at - past.started_at)::double precision as seconds
          from mainspring.jobs_history as past
         where past.tenant_id = job.tenant_id order by past.job_id desc limit 200) as latest
 where latest.definition = job.definition and latest.state = 'succeeded'
having count(*) >= 3
$$;

CREATE FUNCTION mainspring.why_worker(worker_id bigint) RETURNS text
    LANGUAGE plpgsql STABLE
    AS $$
begin
    return coalesce((select worker.name from mainspring.worker_status as worker
                      where worker.worker_id = why_worker.worker_id), 'worker ' || worker_id);
end
$$;

CREATE FUNCTION mainspring.why_workers(job mainspring.jobs, OUT worker_id bigint, OUT concurrency integer, OUT queues text[], OUT is_stopping boolean, OUT is_served boolean) RETURNS SETOF record
    LANGUAGE sql STABLE
    AS $_$
select worker.worker_id, worker.concurrency, worker.queues, worker.is_stopping,
       job.queue = any (worker.queues)
  from mainspring.workers as worker
 where worker.expires_at > clock_timestamp()
   and coalesce(substring(worker.process_identity from '^api:(.*):[^:]*$'), '*')
       in ('*', job.tenant_id)
$_$;

CREATE FUNCTION mainspring.window_key(trigger_id bigint, tenant text, definition text, payload text) RETURNS text
    LANGUAGE plpgsql STABLE
    AS $$
begin
    -- As jsonb, since the order in which a template names its fields makes no difference.
    return 'trigger:' || trigger_id || ':'
           || mainspring.content_digest(tenant, definition, payload::jsonb);
end
$$;

CREATE FUNCTION mainspring.with_approvals(defined mainspring.definitions, asked integer) RETURNS mainspring.definitions
    LANGUAGE plpgsql IMMUTABLE
    AS $$
begin
    if asked not between 0 and 100 then
        perform mainspring.refuse_option('approvals_needed',
            'approvals_needed must be from 0 to 100, not ' || asked);
    end if;
    defined.approvals_needed := greatest(defined.approvals_needed, asked);
    return defined;
end
$$;

CREATE FUNCTION mainspring.with_circles(marked jsonb, reaching text[], circles jsonb) RETURNS jsonb
    LANGUAGE plpgsql IMMUTABLE
    AS $$
declare
    closing jsonb;
begin
    loop
        select jsonb_agg(circle) into closing from jsonb_array_elements(circles) as circle
         where circle ->> 'to' = any (reaching);
        exit when closing is null;
        select coalesce(jsonb_agg(circle), '[]') into circles
          from jsonb_array_elements(circles) as circle
         where circle ->> 'to' <> all (reaching);
        select marked || jsonb_agg(circle -> 'path') into marked
          from jsonb_array_elements(closing) as circle;
        reaching := reaching || array(
            select jsonb_array_elements_text(circle -> 'refs')
              from jsonb_array_elements(closing) as circle);
    end loop;
    return marked;
end
$$;

CREATE FUNCTION mainspring.without_fingerprints(payload jsonb) RETURNS jsonb
    LANGUAGE sql IMMUTABLE
    RETURN CASE WHEN mainspring.has_mark(payload) THEN (regexp_replace((payload)::text, '("\$mainspring": "encrypted"), "fingerprint": "[0-9a-f]{64}"\}'::text, '\1}'::text, 'g'::text))::jsonb ELSE payload END;

CREATE FUNCTION mainspring.write_limit(name text, concurrency integer, key_concurrency integer, rate_count integer, rate_period interval, burst integer) RETURNS void
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
begin
    insert into mainspring.limits as known (
        name, concurrency, key_concurrency, rate_count, rate_period, burst)
    values (write_limit.name, write_limit.concurrency, write_limit.key_concurrency,
            write_limit.rate_count, write_limit.rate_period, write_limit.burst)
    on conflict (name) do update
       set concurrency = excluded.concurrency, key_concurrency = excluded.key_concurrency,
           rate_count = excluded.rate_count, rate_period = excluded.rate_period,
           burst = excluded.burst
     where (known.concurrency, known.key_concurrency, known.rate_count, known.rate_period,
            known.burst) is distinct from
           (excluded.concurrency, excluded.key_concurrency, excluded.rate_count,
            excluded.rate_period, excluded.burst);
end
$$;

CREATE FUNCTION mainspring.write_slots(schedule mainspring.schedules, plan jsonb) RETURNS TABLE(slot_at timestamp with time zone, outcome mainspring.slot_outcome, reason text, lateness interval)
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
declare
    planned record;
    started record;
begin
    for planned in
        select * from jsonb_to_recordset(plan -> 'slots') as slot (
            at timestamptz, outcome mainspring.slot_outcome, source mainspring.slot_trigger,
            missed integer, reason text, payload jsonb, job_id bigint, gauge_value float)
         order by slot.at
    loop
        select planned.outcome, null::bigint as job_id, planned.reason into started;
        if exists (select from mainspring.slots as slot
                    where slot.schedule_id = schedule.schedule_id
                      and slot.scheduled_for = planned.at) then
            started.outcome := null;
        elsif planned.outcome = 'enqueued' then
            select * into started from mainspring.start_slot(
                schedule, planned.at, planned.source, planned.missed,
                coalesce(planned.payload, plan -> 'payload'), plan ->> 'definition',
                coalesce((plan ->> 'in_line')::boolean, false), planned.job_id);
        end if;
        if started.outcome is not null then
            insert into mainspring.slots
                (schedule_id, scheduled_for, outcome, trigger, job_id, missed, reason, gauge_value)
            values (schedule.schedule_id, planned.at, started.outcome, planned.source,
                    started.job_id, planned.missed, started.reason, planned.gauge_value);
        end if;
        slot_at := planned.at;
        outcome := started.outcome;
        reason := started.reason;
        lateness := case when outcome in ('enqueued', 'skipped') then greatest(
            '0', now() - mainspring.run_instant(schedule.schedule_id, planned.at, schedule.jitter))
            end;
        return next;
    end loop;
end
$$;

CREATE FUNCTION mainspring.wrong_condition(schedule mainspring.schedules) RETURNS text[]
    LANGUAGE plpgsql IMMUTABLE
    AS $$
begin
    return case
        when num_nonnulls(schedule.launcher, schedule.condition_sql, schedule.gauge_sql) > 1
        then '{condition,"give at most one of launcher, condition_sql and gauge_sql"}'
        when schedule.launcher !~ '\S' then '{launcher,must not be empty}'
        when schedule.condition_sql !~ '\S' then '{condition_sql,must not be empty}'
        when schedule.gauge_sql !~ '\S' then '{gauge_sql,must not be empty}'
        when num_nonnulls(schedule.gauge_sql, schedule.gauge_lower, schedule.gauge_upper)
             not in (0, 3) or schedule.gauge_lower > schedule.gauge_upper
        then array['gauge',
                   'needs gauge_sql, gauge_lower and gauge_upper, the lower not above the upper']
        when 'NaN' in (schedule.gauge_lower, schedule.gauge_upper)
             or 'Infinity' in (abs(schedule.gauge_lower), abs(schedule.gauge_upper))
        then '{gauge,needs finite numbers for gauge_lower and gauge_upper}'
        when schedule.gauge_bounds is not null and schedule.gauge_sql is null
        then '{gauge_sql,is required with gauge_bounds}'
    end;
end
$$;

CREATE FUNCTION mainspring.wrong_default(definition mainspring.definitions) RETURNS text[]
    LANGUAGE sql STABLE
    RETURN COALESCE((SELECT ARRAY['queue'::text, problem.problem] AS "array" FROM mainspring.wrong_queue(NULLIF((wrong_default.definition).queue, ''::text)) problem(problem) WHERE (problem.problem IS NOT NULL)), (SELECT ARRAY[bound.field, 'must be from 0 to 36500 days'::text] AS "array" FROM (VALUES ('timeout'::text,(wrong_default.definition).timeout), ('retention'::text,(wrong_default.definition).retention), ('backoff_base'::text,(wrong_default.definition).backoff_base), ('backoff_cap'::text,(wrong_default.definition).backoff_cap), ('backoff_jitter'::text,(wrong_default.definition).backoff_jitter), ('approval_expiry'::text,(wrong_default.definition).approval_expiry)) bound(field, value) WHERE ((bound.value < '00:00:00'::interval) OR (bound.value > mainspring.longest_delay())) LIMIT 1), CASE WHEN ((definition).delivery <> ALL (ARRAY['at_least_once'::text, 'at_most_once'::text])) THEN '{delivery,"must be at_least_once or at_most_once"}'::text[] WHEN ((definition).backoff_factor > ('1000000000'::numeric)::double precision) THEN '{backoff_factor,"must be at most 1e9"}'::text[] WHEN (GREATEST((definition).concurrency, (definition).key_concurrency, (definition).rate_count, (definition).burst) > mainspring.largest_count()) THEN '{limit,"must be at most 1000000000"}'::text[] ELSE NULL::text[] END);

CREATE FUNCTION mainspring.wrong_definition_size(definition mainspring.definitions) RETURNS text[]
    LANGUAGE sql STABLE
    RETURN CASE WHEN (length((definition).description) > mainspring.longest_text()) THEN '{description,"must be at most 10000 characters"}'::text[] WHEN (cardinality((definition).tags) > 50) THEN '{tags,"must have at most 50 entries"}'::text[] WHEN (EXISTS (SELECT FROM unnest((wrong_definition_size.definition).tags) tag(tag) WHERE ((COALESCE(length(tag.tag), 0) < 1) OR (COALESCE(length(tag.tag), 0) > 500)))) THEN '{tags,"must have 1 to 500 characters each"}'::text[] WHEN (cardinality((definition).approvers) > 100) THEN '{approvers,"must have at most 100 entries"}'::text[] WHEN (EXISTS (SELECT FROM unnest((wrong_definition_size.definition).approvers) approver(approver) WHERE ((COALESCE(length(approver.approver), 0) < 1) OR (COALESCE(length(approver.approver), 0) > 500)))) THEN '{approvers,"must have 1 to 500 characters each"}'::text[] WHEN (octet_length(((definition).arg_schema)::text) > 1048576) THEN '{arg_schema,"must be at most 1048576 bytes"}'::text[] WHEN (octet_length(((definition).spec)::text) > 1048576) THEN '{spec,"must be at most 1048576 bytes"}'::text[] ELSE NULL::text[] END;

CREATE FUNCTION mainspring.wrong_duration(schedule mainspring.schedules) RETURNS text[]
    LANGUAGE sql STABLE
    RETURN (SELECT ARRAY[bound.field, format('must be from %s to %s'::text, bound.shortest, bound.longest)] AS "array" FROM (VALUES ('every'::text,(wrong_duration.schedule).every,'1 second'::text,'36500 days'::text), ('jitter'::text,(wrong_duration.schedule).jitter,'0'::text,'36500 days'::text), ('misfire_grace'::text,(wrong_duration.schedule).misfire_grace,'0'::text,'36500 days'::text), ('catch_up_max_age'::text,(wrong_duration.schedule).catch_up_max_age,'1 second'::text,'36500 days'::text), ('run_timeout'::text,(wrong_duration.schedule).run_timeout,'1 second'::text,'36500 days'::text), ('condition_timeout'::text,(wrong_duration.schedule).condition_timeout,'1 millisecond'::text,'1 day'::text)) bound(field, value, shortest, longest) WHERE ((bound.value < (bound.shortest)::interval) OR (bound.value > (bound.longest)::interval)) LIMIT 1);

CREATE FUNCTION mainspring.wrong_function(spec jsonb) RETURNS text[]
    LANGUAGE plpgsql
    AS $$
declare
    target record;
begin
    if coalesce(spec ->> 'function', '') = '' then
        return array['function', 'is missing; give the name of a function, such as civic.cleanup'];
    end if;
    select * into target from mainspring.find_function(spec ->> 'function');
    if target.name is null then
        return array['function', mainspring.why_no_function(spec ->> 'function')];
    end if;
    return mainspring.wrong_role(spec, target.guardian);
end
$$;

CREATE FUNCTION mainspring.wrong_instant(schedule mainspring.schedules) RETURNS text[]
    LANGUAGE plpgsql IMMUTABLE
    AS $$
declare
    first timestamptz := '0001-01-02T00:00:00Z';
    last timestamptz := '9999-12-30T00:00:00Z';
    field text := case
        when schedule.at not between first and last then 'at'
        when schedule.starts_at not between first and last then 'starts_at'
        when schedule.ends_at not between first and last then 'ends_at'
        when schedule.paused_until not between first and last then 'paused_until'
        when schedule.anchor_at not between first and last then 'anchor_at'
    end;
begin
    return case
        when field = 'paused_until'
        then '{paused_until,"must be in the years 1 to 9999; to stop it for good, disable it"}'
        when field is not null then array[field, 'must be in the years 1 to 9999']
        when schedule.ends_at <= schedule.starts_at then '{ends_at,must be after starts_at}'
    end;
end
$$;

CREATE FUNCTION mainspring.wrong_members(arg_schema jsonb, given jsonb, place text) RETURNS text
    LANGUAGE sql STABLE
    AS $$
select coalesce(
    (select format('%s: %s is missing', place, to_json(name))
       from jsonb_array_elements_text(
                case jsonb_typeof(arg_schema -> 'required') when 'array'
                     then arg_schema -> 'required' end) as name
      where not given ? name limit 1),
    (select wrong.problem
       from jsonb_each(given) as member,
            lateral (select case
                when arg_schema -> 'properties' ? member.key then mainspring.wrong_value(
                    arg_schema -> 'properties' -> member.key, member.value,
                    place || '/' || member.key)
                when arg_schema ? 'patternProperties' then null
                when arg_schema -> 'additionalProperties' = 'false'
                then format('%s: %s is not expected', place, to_json(member.key))
                else mainspring.wrong_value(arg_schema -> 'additionalProperties', member.value,
                                            place || '/' || member.key) end) as wrong (problem)
      where wrong.problem is not null limit 1))
$$;

CREATE FUNCTION mainspring.wrong_number(schedule mainspring.schedules) RETURNS text[]
    LANGUAGE sql IMMUTABLE
    RETURN (SELECT ARRAY[bound.field, format('must be from %s to %s'::text, bound."least", bound."greatest")] AS "array" FROM (VALUES ('max_retries'::text,(wrong_number.schedule).max_retries,1,1000), ('max_running'::text,(wrong_number.schedule).max_running,1,1000), ('max_attempts'::text,(wrong_number.schedule).max_attempts,1,1000), ('catch_up_limit'::text,(wrong_number.schedule).catch_up_limit,1,10000), ('priority'::text,(wrong_number.schedule).priority,0,1000)) bound(field, value, "least", "greatest") WHERE ((bound.value < bound."least") OR (bound.value > bound."greatest")) LIMIT 1);

CREATE FUNCTION mainspring.wrong_role(spec jsonb, guardian text) RETURNS text[]
    LANGUAGE plpgsql STABLE
    AS $$
declare
    owner text := mainspring.owner_name();
    role text := spec ->> 'role';
begin
    if not exists (select from pg_catalog.pg_roles where rolname = role) then
        return array['role', format('%s does not exist; create it, or name another role',
                                    coalesce(role, 'null'))];
    elsif spec ? 'trusted' and jsonb_typeof(spec -> 'trusted') <> 'boolean' then
        return array['trusted', 'must be true or false'];
    elsif coalesce((spec -> 'trusted')::boolean, false) then
        if mainspring.may_set_role(owner, role) then
            return null;
        end if;
        return array['role', format('%s may not become %s; ask an administrator to run: %s', owner,
                                    role, mainspring.grant_of(role, owner))];
    -- Every member: one without the right to become the owner may be able to grant it.
    elsif pg_has_role(role, owner, 'MEMBER') and guardian is distinct from role
          and not exists (select from pg_catalog.pg_roles where rolname = guardian and rolsuper)
    then
        return array['role', format(
            '%s has the rights of the owner of Mainspring, and %s can be changed by others; '
            || 'name a role with fewer rights, or accept it with trusted', role,
            spec ->> 'function')];
    end if;
    return null;
end
$$;

CREATE FUNCTION mainspring.wrong_schedule_size(schedule mainspring.schedules) RETURNS text[]
    LANGUAGE sql STABLE
    RETURN (SELECT ARRAY[bound.field, format('must be at most %s %s, not %s'::text, bound.most, bound.unit, bound.size)] AS "array" FROM (VALUES ('definition'::text,length((wrong_schedule_size.schedule).definition),200,'characters'::text), ('description'::text,length((wrong_schedule_size.schedule).description),10000,'characters'::text), ('launcher'::text,length((wrong_schedule_size.schedule).launcher),500,'characters'::text), ('condition_role'::text,length((wrong_schedule_size.schedule).condition_role),500,'characters'::text), ('condition_sql'::text,length((wrong_schedule_size.schedule).condition_sql),10000,'characters'::text), ('gauge_sql'::text,length((wrong_schedule_size.schedule).gauge_sql),10000,'characters'::text), ('calendar'::text,octet_length(((wrong_schedule_size.schedule).calendar)::text),262144,'bytes'::text), ('payload'::text,octet_length(((wrong_schedule_size.schedule).payload)::text),mainspring.max_payload_bytes(),'bytes'::text)) bound(field, size, most, unit) WHERE (bound.size > bound.most) LIMIT 1);

CREATE FUNCTION mainspring.wrong_trigger(trigger mainspring.triggers) RETURNS text[]
    LANGUAGE plpgsql IMMUTABLE
    AS $_$
begin
    return case
        when coalesce(trigger.name, '') !~ '\S' or length(trigger.name) > 200
        then '{name,must have 1 to 200 characters}'
        when trigger.event is distinct from '*'
             and mainspring.is_event_name(regexp_replace(trigger.event, '\.\*$', '')) is not true
        then array['event', coalesce(quote_literal(left(trigger.event, 200)), 'null')
                            || ' must be an event name, a prefix followed by .* such as '
                            || 'provider.*, or * for all events']
        when coalesce(trigger.definition, '') !~ '\S' or length(trigger.definition) > 200
        then '{definition,must name the definition to run}'
        when mainspring.is_closed(trigger.definition)
        then array['definition', mainspring.why_closed(trigger.definition)]
        when jsonb_typeof(trigger.payload) is distinct from 'object'
        then '{payload,must be a JSON object}'
        when mainspring.has_mark(trigger.payload)
        then array['payload', mainspring.uses_mark()]
        when trigger.unknown_paths is null or trigger.unknown_paths not in ('refuse', 'null')
        then '{unknown_paths,must be refuse or null}'
        when trigger.dedupe_window <= '0' or trigger.dedupe_window > mainspring.longest_delay()
        then '{dedupe_window,must be more than 0 and at most 36500 days}'
        when mainspring.wrong_queue(trigger.queue) is not null
        then array['queue', mainspring.wrong_queue(trigger.queue)]
        when trigger.priority not between 0 and 1000
        then '{priority,must be from 0 to 1000}'
    end;
end
$_$;

CREATE FUNCTION mainspring.wrong_value(arg_schema jsonb, given jsonb, place text) RETURNS text
    LANGUAGE plpgsql STABLE
    AS $$
declare
    types jsonb := case jsonb_typeof(arg_schema -> 'type')
        when 'string' then jsonb_build_array(arg_schema -> 'type')
        when 'array' then arg_schema -> 'type' end;
begin
    if jsonb_typeof(arg_schema) is distinct from 'object' or mainspring.is_open_value(given) then
        return null;
    elsif not mainspring.has_json_type(given, types) then
        return format('%s: must be of the type %s, not %s', place,
            (select string_agg(name, ' or ') from jsonb_array_elements_text(types) as name),
            jsonb_typeof(given));
    elsif jsonb_typeof(arg_schema -> 'enum') = 'array' and not exists (
        select from jsonb_array_elements(arg_schema -> 'enum') as known
         where known = given) then
        return format('%s: must be one of %s', place, arg_schema ->> 'enum');
    elsif arg_schema -> 'const' <> given then
        return format('%s: must be %s', place, arg_schema ->> 'const');
    elsif jsonb_typeof(arg_schema -> 'anyOf') = 'array' and not exists (
        select from jsonb_array_elements(arg_schema -> 'anyOf') as allowed
         where mainspring.wrong_value(allowed, given, place) is null) then
        return format('%s: is none of what is allowed there', place);
    elsif jsonb_typeof(given) = 'object' then
        return mainspring.wrong_members(arg_schema, given, place);
    elsif jsonb_typeof(given) = 'array' and arg_schema ? 'items'
          and not arg_schema ? 'prefixItems' then
        return (select problem
                  from jsonb_array_elements(given) with ordinality as item (value, number),
                       lateral mainspring.wrong_value(arg_schema -> 'items', item.value,
                                                      place || '/' || item.number - 1) as problem
                 where problem is not null order by item.number limit 1);
    end if;
    return null;
end
$$;

CREATE FUNCTION mainspring.wrong_word(schedule mainspring.schedules) RETURNS text[]
    LANGUAGE plpgsql IMMUTABLE
    AS $$
begin
    return case
        when coalesce(schedule.name, '') !~ '\S' or length(schedule.name) > 200
        then '{name,must have 1 to 200 characters}'
        when schedule.definition !~ '\S' then '{definition,must name the definition to run}'
        when mainspring.wrong_queue(schedule.queue) is not null
        then array['queue', mainspring.wrong_queue(schedule.queue)]
        when schedule.dst_gap not in ('run_after', 'skip')
        then '{dst_gap,must be run_after or skip}'
        when schedule.dst_fold not in ('once', 'both')
        then '{dst_fold,must be once or both}'
        when schedule.overlap not in ('skip', 'queue', 'replace')
        then '{overlap,"must be skip, queue or replace"}'
        when schedule.catch_up not in ('none', 'latest', 'all')
        then '{catch_up,"must be none, latest or all"}'
        when schedule.delivery not in ('at_least_once', 'at_most_once')
        then '{delivery,must be at_least_once or at_most_once}'
        when schedule.delivery = 'at_most_once' and schedule.max_attempts > 1
        then '{max_attempts,must be 1 with delivery at_most_once}'
        when jsonb_typeof(schedule.payload) <> 'object'
        then '{payload,must be a JSON object}'
        when mainspring.has_foreign_mark(schedule.payload)
        then array['payload', mainspring.uses_mark()]
        when jsonb_typeof(schedule.calendar) <> 'object'
        then '{calendar,must be a JSON object}'
    end;
end
$$;

CREATE FUNCTION mainspring.zero_changes(depths_now mainspring.depths[]) RETURNS mainspring.changes[]
    LANGUAGE sql STABLE
    AS $$
    select coalesce(array_agg(jsonb_populate_record(null::mainspring.changes, jsonb_build_object(
               'tenant_id', tenant_id, 'queue', queue, 'definition', definition,
               'moved', 'went_on', 'count', 0))), '{}')
      from (select tenant_id, queue, definition from unnest(depths_now)
            union
            select tenant_id, queue, definition from mainspring.depths where live > 0) as key
$$;

CREATE FUNCTION mainspring.zones_of_abbreviation(name text) RETURNS text[]
    LANGUAGE sql IMMUTABLE
    RETURN (SELECT string_to_array(known.zones, ' '::text) AS string_to_array FROM (VALUES ('ACST'::text,'Australia/Adelaide'::text), ('AEDT'::text,'Australia/Sydney'::text), ('AEST'::text,'Australia/Sydney Australia/Brisbane'::text), ('AST'::text,'America/Halifax Asia/Riyadh'::text), ('AWST'::text,'Australia/Perth'::text), ('BRT'::text,'America/Sao_Paulo'::text), ('BST'::text,'Europe/London Asia/Dhaka'::text), ('CDT'::text,'America/Chicago'::text), ('CEST'::text,'Europe/Berlin Europe/Paris'::text), ('CST'::text,'America/Chicago Asia/Shanghai'::text), ('EDT'::text,'America/New_York'::text), ('EEST'::text,'Europe/Helsinki Europe/Athens'::text), ('EST'::text,'America/New_York'::text), ('IST'::text,'Asia/Kolkata Europe/Dublin Asia/Jerusalem'::text), ('JST'::text,'Asia/Tokyo'::text), ('KST'::text,'Asia/Seoul'::text), ('MDT'::text,'America/Denver'::text), ('MSK'::text,'Europe/Moscow'::text), ('MST'::text,'America/Denver'::text), ('NZDT'::text,'Pacific/Auckland'::text), ('NZST'::text,'Pacific/Auckland'::text), ('PDT'::text,'America/Los_Angeles'::text), ('PST'::text,'America/Los_Angeles Asia/Manila'::text), ('SAST'::text,'Africa/Johannesburg'::text), ('SGT'::text,'Asia/Singapore'::text), ('WEST'::text,'Europe/Lisbon'::text)) known(name, zones) WHERE (known.name = upper(zones_of_abbreviation.name)));

CREATE TABLE mainspring.attempts (
    job_id bigint NOT NULL,
    fence bigint NOT NULL,
    worker_id bigint NOT NULL,
    started_at timestamp with time zone NOT NULL,
    finished_at timestamp with time zone DEFAULT now() NOT NULL,
    late_report_at timestamp with time zone,
    number integer NOT NULL,
    status mainspring.attempt_outcome NOT NULL,
    late_report mainspring.attempt_outcome,
    error text,
    error_key text COLLATE pg_catalog."C",
    CONSTRAINT attempts_status_check CHECK ((status <> 'running'::mainspring.attempt_outcome))
)
PARTITION BY RANGE (finished_at);

CREATE TABLE mainspring.flow_jobs (
    flow_id bigint NOT NULL,
    job_id bigint NOT NULL,
    step text DEFAULT ''::text NOT NULL
);

CREATE VIEW mainspring.all_jobs AS
 SELECT job_id,
    tenant_id,
    definition,
    queue,
    state,
    waits_for,
    priority,
        CASE
            WHEN (definition IN ( SELECT definition_versions.key
               FROM mainspring.definition_versions
              WHERE (definition_versions.secret_paths IS NOT NULL))) THEN mainspring.redacted(payload, ( SELECT jsonb_agg(DISTINCT path.value) AS jsonb_agg
               FROM (mainspring.definition_versions kept
                 LEFT JOIN mainspring.definitions defined USING (key)),
                LATERAL jsonb_array_elements(kept.secret_paths) path(value)
              WHERE ((kept.key = job.definition) AND ((kept.version = job.definition_version) OR (kept.version = defined.version)))))
            ELSE payload
        END AS payload,
    created_at,
    scheduled_for,
    started_at,
    finished_at,
    deadline_at,
    cancel_requested_at,
    attempt,
    failures,
    losses,
    max_attempts,
        CASE
            WHEN (dedupe_key ~ '^(content|trigger:[0-9]+):[0-9a-f]{32}$'::text) THEN regexp_replace(dedupe_key, '[^:]+$'::text, '[redacted]'::text)
            ELSE dedupe_key
        END AS dedupe_key,
    correlation_id,
    tags,
    progress,
        CASE
            WHEN ((checkpoint IS NOT NULL) AND (definition IN ( SELECT definition_versions.key
               FROM mainspring.definition_versions
              WHERE (definition_versions.secret_paths IS NOT NULL)))) THEN '"[redacted]"'::jsonb
            ELSE checkpoint
        END AS checkpoint,
    result,
    last_error,
    worker_id,
    schedule_id,
    slot_at,
    origin,
    definition_version,
    mainspring.creator_of(created_by, schedule_id, origin) AS created_by,
    COALESCE(source, mainspring.source_of(schedule_id, created_by)) AS source,
    COALESCE(delivery, 'at_least_once'::text) AS delivery,
    created_by AS creator,
        CASE
            WHEN (schedule_id IS NOT NULL) THEN COALESCE(( SELECT schedule.name
               FROM mainspring.schedules schedule
              WHERE (schedule.schedule_id = job.schedule_id)), (origin ->> 'schedule'::text))
            ELSE NULL::text
        END AS schedule,
    mainspring.trigger_of(created_by) AS trigger,
        CASE
            WHEN (created_by ~~ 'trigger:%'::text) THEN ( SELECT dispatch.event_id
               FROM mainspring.dispatches dispatch
              WHERE ((dispatch.job_id = job.job_id) AND (dispatch.outcome = 'enqueued'::text))
              ORDER BY dispatch.dispatched_at
             LIMIT 1)
            ELSE NULL::bigint
        END AS event_id,
    ( SELECT member.flow_id
           FROM mainspring.flow_jobs member
          WHERE (member.job_id = job.job_id)
         LIMIT 1) AS flow_id,
    ARRAY( SELECT dependency.parent_id
           FROM mainspring.dependencies dependency
          WHERE (dependency.job_id = job.job_id)
        UNION
         SELECT (substr(job.created_by, 5))::bigint AS substr
          WHERE (job.created_by ~ '^job:[0-9]{1,18}$'::text)
  ORDER BY 1) AS parent_ids,
        CASE
            WHEN ((state <> 'canceled'::mainspring.job_state) AND (attempt > 0)) THEN ( SELECT past.error_key
               FROM mainspring.attempts past
              WHERE ((past.job_id = job.job_id) AND (past.error_key IS NOT NULL) AND (past.finished_at >= (job.created_at - '00:01:00'::interval)) AND (past.finished_at <= (COALESCE(job.finished_at, now()) + '00:01:00'::interval)))
              ORDER BY past.number DESC, past.finished_at DESC
             LIMIT 1)
            ELSE NULL::text
        END AS error_key
   FROM ( SELECT jobs.job_id,
            jobs.tenant_id,
            jobs.definition,
            jobs.queue,
            jobs.state,
            jobs.waits_for,
            jobs.priority,
            jobs.payload,
            jobs.created_at,
            jobs.scheduled_for,
            jobs.started_at,
            jobs.finished_at,
            jobs.deadline_at,
            jobs.cancel_requested_at,
            jobs.attempt,
            jobs.failures,
            jobs.losses,
            jobs.max_attempts,
            jobs.dedupe_key,
            jobs.correlation_id,
            jobs.tags,
            jobs.progress,
            jobs.checkpoint,
            jobs.result,
            jobs.last_error,
            jobs.worker_id,
            jobs.schedule_id,
            jobs.slot_at,
            jobs.origin,
            jobs.definition_version,
            jobs.created_by,
            jobs.source,
            jobs.delivery
           FROM mainspring.jobs
        UNION ALL
         SELECT jobs_history.job_id,
            jobs_history.tenant_id,
            jobs_history.definition,
            jobs_history.queue,
            jobs_history.state,
            jobs_history.waits_for,
            jobs_history.priority,
            jobs_history.payload,
            jobs_history.created_at,
            jobs_history.scheduled_for,
            jobs_history.started_at,
            jobs_history.finished_at,
            jobs_history.deadline_at,
            jobs_history.cancel_requested_at,
            jobs_history.attempt,
            jobs_history.failures,
            jobs_history.losses,
            jobs_history.max_attempts,
            jobs_history.dedupe_key,
            jobs_history.correlation_id,
            jobs_history.tags,
            jobs_history.progress,
            jobs_history.checkpoint,
            jobs_history.result,
            jobs_history.last_error,
            jobs_history.worker_id,
            jobs_history.schedule_id,
            jobs_history.slot_at,
            jobs_history.origin,
            jobs_history.definition_version,
            jobs_history.created_by,
            jobs_history.source,
            jobs_history.delivery
           FROM mainspring.jobs_history) job;

CREATE TABLE mainspring.votes (
    job_id bigint NOT NULL,
    actor text NOT NULL,
    is_approval boolean NOT NULL,
    reason text DEFAULT ''::text NOT NULL,
    voted_at timestamp with time zone DEFAULT now() NOT NULL,
    name text,
    CONSTRAINT votes_actor_check CHECK ((actor <> ''::text))
);

CREATE VIEW mainspring.approval_status AS
 SELECT approval.job_id,
    approval.tenant_id,
    job.definition,
    job.payload,
    job.state,
    approval.needed,
    approval.approvers,
    approval.requested_at,
    approval.expires_at,
    approval.decision,
    approval.decided_at,
    ( SELECT count(*) AS count
           FROM mainspring.votes vote
          WHERE ((vote.job_id = approval.job_id) AND vote.is_approval)) AS approvals,
    ( SELECT COALESCE(jsonb_agg(jsonb_build_object('actor', COALESCE(vote.name, vote.actor), 'is_approval', vote.is_approval, 'reason', vote.reason, 'voted_at', vote.voted_at) ORDER BY vote.voted_at), '[]'::jsonb) AS "coalesce"
           FROM mainspring.votes vote
          WHERE (vote.job_id = approval.job_id)) AS votes
   FROM (mainspring.approvals approval
     JOIN mainspring.all_jobs job USING (job_id))
  WHERE (mainspring.is_visible(approval.tenant_id) AND (mainspring.is_own(job.created_by) OR (approval.approvers && (NULLIF(current_setting('mainspring.approver'::text, true), ''::text))::text[])));

CREATE VIEW mainspring.job_status AS
 SELECT job_id,
    tenant_id,
    definition,
    queue,
    state,
    waits_for,
    priority,
    payload,
    created_at,
    scheduled_for,
    started_at,
    finished_at,
    deadline_at,
    cancel_requested_at,
    attempt,
    failures,
    losses,
    max_attempts,
    dedupe_key,
    correlation_id,
    tags,
    progress,
    checkpoint,
    result,
    last_error,
    worker_id,
    schedule_id,
    slot_at,
    origin,
    definition_version,
    created_by,
    source,
    delivery,
    creator,
    schedule,
    trigger,
    event_id,
    flow_id,
    parent_ids,
    error_key
   FROM mainspring.all_jobs
  WHERE (mainspring.is_visible(tenant_id) AND mainspring.is_own(creator));

CREATE TABLE mainspring.outputs (
    job_id bigint NOT NULL,
    fence bigint NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    pid integer,
    exit_code integer,
    stdout_tail text,
    stderr_tail text
)
WITH (fillfactor='50');

CREATE VIEW mainspring.attempt_status AS
 SELECT attempt.job_id,
    attempt.number,
    attempt.status,
    attempt.worker_id,
    COALESCE(output.pid, worker.pid) AS pid,
    attempt.started_at,
    attempt.finished_at,
    output.exit_code,
    attempt.error,
    output.stdout_tail,
    output.stderr_tail,
    attempt.late_report,
    attempt.late_report_at,
    attempt.error_key
   FROM ((mainspring.attempts attempt
     LEFT JOIN mainspring.workers worker USING (worker_id))
     LEFT JOIN mainspring.outputs output USING (job_id, fence))
  WHERE (( SELECT (NOT mainspring.is_isolated())) OR (EXISTS ( SELECT
           FROM mainspring.job_status seen
          WHERE (seen.job_id = attempt.job_id))))
UNION ALL
 SELECT job.job_id,
    job.attempt AS number,
    'running'::mainspring.attempt_outcome AS status,
    job.worker_id,
    COALESCE(output.pid, worker.pid) AS pid,
    job.started_at,
    NULL::timestamp with time zone AS finished_at,
    output.exit_code,
    NULL::text AS error,
    output.stdout_tail,
    output.stderr_tail,
    NULL::mainspring.attempt_outcome AS late_report,
    NULL::timestamp with time zone AS late_report_at,
    NULL::text AS error_key
   FROM ((mainspring.jobs job
     LEFT JOIN mainspring.workers worker USING (worker_id))
     LEFT JOIN mainspring.outputs output USING (job_id, fence))
  WHERE ((job.state = 'running'::mainspring.job_state) AND mainspring.is_visible(job.tenant_id) AND mainspring.is_own(job.created_by));

CREATE TABLE mainspring.attempts_default (
    job_id bigint CONSTRAINT attempts_job_id_not_null NOT NULL,
    fence bigint CONSTRAINT attempts_fence_not_null NOT NULL,
    worker_id bigint CONSTRAINT attempts_worker_id_not_null NOT NULL,
    started_at timestamp with time zone CONSTRAINT attempts_started_at_not_null NOT NULL,
    finished_at timestamp with time zone DEFAULT now() CONSTRAINT attempts_finished_at_not_null NOT NULL,
    late_report_at timestamp with time zone,
    number integer CONSTRAINT attempts_number_not_null NOT NULL,
    status mainspring.attempt_outcome CONSTRAINT attempts_status_not_null NOT NULL,
    late_report mainspring.attempt_outcome,
    error text,
    error_key text COLLATE pg_catalog."C",
    CONSTRAINT attempts_status_check CHECK ((status <> 'running'::mainspring.attempt_outcome))
);

CREATE TABLE mainspring.audit (
    audit_id bigint NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL,
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    actor text NOT NULL,
    action text NOT NULL,
    noun text NOT NULL,
    subject text NOT NULL,
    reason text,
    before jsonb,
    after jsonb,
    actor_id text
);

ALTER TABLE mainspring.audit ALTER COLUMN audit_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME mainspring.audit_audit_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE VIEW mainspring.audit_status AS
 SELECT audit_id,
    at,
    tenant_id,
    actor,
    action,
    noun,
    subject,
    reason,
    before,
    after,
    actor_id
   FROM mainspring.audit
  WHERE mainspring.is_visible(tenant_id);

CREATE VIEW mainspring.bearers AS
 SELECT token.token_id,
    token.digest,
    token.kind,
    held.role,
    token.tenant_id,
    token.scopes,
    (held.actor COLLATE "C") AS actor,
    (held.approver COLLATE "C") AS approver
   FROM (mainspring.tokens token
     CROSS JOIN LATERAL mainspring.bearer(token.digest) held(token_id, kind, role, tenant_id, scopes, actor, approver, actor_id, voter, person_id, person, ends_by));

CREATE TABLE mainspring.buckets (
    limit_name text NOT NULL COLLATE pg_catalog."C",
    limit_key text NOT NULL COLLATE pg_catalog."C",
    full_at timestamp with time zone NOT NULL
)
WITH (fillfactor='50');

CREATE VIEW mainspring.dependency_status AS
 SELECT dependency.job_id,
    dependency.parent_id,
    dependency.on_failure,
    dependency.outcome,
    parent.tenant_id,
    parent.definition,
    parent.state,
    parent.result,
    parent.last_error,
    member.step
   FROM ((mainspring.dependencies dependency
     LEFT JOIN mainspring.job_status parent ON ((parent.job_id = dependency.parent_id)))
     LEFT JOIN mainspring.flow_jobs member ON ((member.job_id = dependency.parent_id)))
  WHERE (( SELECT (NOT mainspring.is_isolated())) OR (EXISTS ( SELECT
           FROM mainspring.job_status seen
          WHERE (seen.job_id = dependency.job_id))));

CREATE VIEW mainspring.depth_status AS
 SELECT tenant_id,
    queue,
    definition,
    live,
    ready,
    running,
    waiting_time,
    waiting_limit,
    waiting_turn,
    waiting_handler,
    awaiting_approval,
    blocked,
    oldest_ready_at,
    seen_at
   FROM mainspring.depths
  WHERE mainspring.is_visible(tenant_id);

CREATE VIEW mainspring.dispatch_status AS
 SELECT dispatch.event_id,
    event.tenant_id,
    event.name AS event,
    dispatch.trigger_id,
    dispatch.trigger_name,
    dispatch.replay,
    dispatch.outcome,
    dispatch.job_id,
    dispatch.error,
    dispatch.dispatched_at
   FROM (mainspring.dispatches dispatch
     JOIN mainspring.events event USING (event_id))
  WHERE mainspring.is_visible(event.tenant_id);

CREATE TABLE mainspring.error_days (
    day date NOT NULL,
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    definition text NOT NULL COLLATE pg_catalog."C",
    error_key text NOT NULL COLLATE pg_catalog."C",
    count bigint NOT NULL,
    first_at timestamp with time zone NOT NULL,
    last_at timestamp with time zone NOT NULL,
    sample text NOT NULL,
    job_ids bigint[] NOT NULL,
    CONSTRAINT error_days_count_check CHECK ((count > 0))
)
WITH (fillfactor='70');

CREATE VIEW mainspring.error_status AS
 SELECT day,
    tenant_id,
    definition,
    error_key,
    count,
    first_at,
    last_at,
    sample,
    job_ids,
    ((error_key <> '~other'::text) AND (NOT (EXISTS ( SELECT
           FROM mainspring.error_days earlier
          WHERE ((earlier.tenant_id = found.tenant_id) AND (earlier.error_key = found.error_key) AND ((earlier.day >= (found.day - 30)) AND (earlier.day <= (found.day - 1)))))))) AS is_new
   FROM mainspring.error_days found
  WHERE (mainspring.is_visible(tenant_id) AND mainspring.is_own(NULL::text));

CREATE VIEW mainspring.event_status AS
 SELECT event.event_id,
    event.tenant_id,
    event.name,
    mainspring.shown_value(event.context) AS context,
    event.correlation_id,
    event.emitted_at,
    event.handled_at,
    event.replays,
    came.jobs,
    came.duplicates,
    came.failures,
    came.last_error
   FROM mainspring.events event,
    LATERAL ( SELECT count(*) FILTER (WHERE (newest.outcome = 'enqueued'::text)) AS jobs,
            count(*) FILTER (WHERE (newest.outcome = 'duplicate'::text)) AS duplicates,
            count(*) FILTER (WHERE (newest.outcome = 'failed'::text)) AS failures,
            (array_agg(newest.error ORDER BY newest.dispatched_at DESC, newest.trigger_id) FILTER (WHERE (newest.outcome = 'failed'::text)))[1] AS last_error
           FROM ( SELECT DISTINCT ON (dispatch.trigger_id) dispatch.event_id,
                    dispatch.trigger_id,
                    dispatch.job_id,
                    dispatch.dispatched_at,
                    dispatch.replay,
                    dispatch.outcome,
                    dispatch.trigger_name,
                    dispatch.error
                   FROM mainspring.dispatches dispatch
                  WHERE (dispatch.event_id = event.event_id)
                  ORDER BY dispatch.trigger_id, dispatch.replay DESC) newest) came
  WHERE mainspring.is_visible(event.tenant_id);

CREATE TABLE mainspring.failures (
    at timestamp with time zone DEFAULT now() NOT NULL,
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    queue text NOT NULL COLLATE pg_catalog."C",
    definition text NOT NULL COLLATE pg_catalog."C",
    error_key text NOT NULL COLLATE pg_catalog."C",
    sample text NOT NULL,
    count integer NOT NULL,
    job_ids bigint[] NOT NULL,
    tags text[],
    CONSTRAINT failures_count_check CHECK ((count > 0))
)
WITH (autovacuum_vacuum_scale_factor='0.02', autovacuum_vacuum_threshold='1000', autovacuum_vacuum_cost_delay='0');

CREATE SEQUENCE mainspring.fences
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

CREATE VIEW mainspring.figure_status AS
 SELECT step,
    at,
    tenant_id,
    queue,
    definition,
    enqueued,
    started,
    succeeded,
    failed,
    dead_letter,
    canceled,
    deleted,
    revived,
    attempts_succeeded,
    attempts_failed,
    attempts_timeout,
    attempts_canceled,
    attempts_snoozed,
    attempts_lost,
    ready,
    running,
    oldest_ready_seconds,
    wait_sum,
    wait_worst,
    run_sum,
    run_worst,
    wait_buckets,
    run_buckets
   FROM mainspring.figures
  WHERE mainspring.is_visible(tenant_id);

CREATE TABLE mainspring.figures_day (
    step text CONSTRAINT figures_step_not_null NOT NULL COLLATE pg_catalog."C",
    at timestamp with time zone CONSTRAINT figures_at_not_null NOT NULL,
    tenant_id text CONSTRAINT figures_tenant_id_not_null NOT NULL COLLATE pg_catalog."C",
    queue text CONSTRAINT figures_queue_not_null NOT NULL COLLATE pg_catalog."C",
    definition text CONSTRAINT figures_definition_not_null NOT NULL COLLATE pg_catalog."C",
    enqueued bigint CONSTRAINT figures_enqueued_not_null NOT NULL,
    started bigint CONSTRAINT figures_started_not_null NOT NULL,
    succeeded bigint CONSTRAINT figures_succeeded_not_null NOT NULL,
    failed bigint CONSTRAINT figures_failed_not_null NOT NULL,
    dead_letter bigint CONSTRAINT figures_dead_letter_not_null NOT NULL,
    canceled bigint CONSTRAINT figures_canceled_not_null NOT NULL,
    deleted bigint CONSTRAINT figures_deleted_not_null NOT NULL,
    revived bigint CONSTRAINT figures_revived_not_null NOT NULL,
    attempts_succeeded bigint CONSTRAINT figures_attempts_succeeded_not_null NOT NULL,
    attempts_failed bigint CONSTRAINT figures_attempts_failed_not_null NOT NULL,
    attempts_timeout bigint CONSTRAINT figures_attempts_timeout_not_null NOT NULL,
    attempts_canceled bigint CONSTRAINT figures_attempts_canceled_not_null NOT NULL,
    attempts_snoozed bigint CONSTRAINT figures_attempts_snoozed_not_null NOT NULL,
    attempts_lost bigint CONSTRAINT figures_attempts_lost_not_null NOT NULL,
    ready bigint CONSTRAINT figures_ready_not_null NOT NULL,
    running bigint CONSTRAINT figures_running_not_null NOT NULL,
    oldest_ready_seconds double precision CONSTRAINT figures_oldest_ready_seconds_not_null NOT NULL,
    wait_sum double precision CONSTRAINT figures_wait_sum_not_null NOT NULL,
    wait_worst double precision CONSTRAINT figures_wait_worst_not_null NOT NULL,
    run_sum double precision CONSTRAINT figures_run_sum_not_null NOT NULL,
    run_worst double precision CONSTRAINT figures_run_worst_not_null NOT NULL,
    wait_buckets bigint[] CONSTRAINT figures_wait_buckets_not_null NOT NULL,
    run_buckets bigint[] CONSTRAINT figures_run_buckets_not_null NOT NULL,
    CONSTRAINT figures_step_check CHECK ((step = ANY (ARRAY['minute'::text, 'hour'::text, 'day'::text, 'ever'::text])))
);

CREATE TABLE mainspring.figures_ever (
    step text CONSTRAINT figures_step_not_null NOT NULL COLLATE pg_catalog."C",
    at timestamp with time zone CONSTRAINT figures_at_not_null NOT NULL,
    tenant_id text CONSTRAINT figures_tenant_id_not_null NOT NULL COLLATE pg_catalog."C",
    queue text CONSTRAINT figures_queue_not_null NOT NULL COLLATE pg_catalog."C",
    definition text CONSTRAINT figures_definition_not_null NOT NULL COLLATE pg_catalog."C",
    enqueued bigint CONSTRAINT figures_enqueued_not_null NOT NULL,
    started bigint CONSTRAINT figures_started_not_null NOT NULL,
    succeeded bigint CONSTRAINT figures_succeeded_not_null NOT NULL,
    failed bigint CONSTRAINT figures_failed_not_null NOT NULL,
    dead_letter bigint CONSTRAINT figures_dead_letter_not_null NOT NULL,
    canceled bigint CONSTRAINT figures_canceled_not_null NOT NULL,
    deleted bigint CONSTRAINT figures_deleted_not_null NOT NULL,
    revived bigint CONSTRAINT figures_revived_not_null NOT NULL,
    attempts_succeeded bigint CONSTRAINT figures_attempts_succeeded_not_null NOT NULL,
    attempts_failed bigint CONSTRAINT figures_attempts_failed_not_null NOT NULL,
    attempts_timeout bigint CONSTRAINT figures_attempts_timeout_not_null NOT NULL,
    attempts_canceled bigint CONSTRAINT figures_attempts_canceled_not_null NOT NULL,
    attempts_snoozed bigint CONSTRAINT figures_attempts_snoozed_not_null NOT NULL,
    attempts_lost bigint CONSTRAINT figures_attempts_lost_not_null NOT NULL,
    ready bigint CONSTRAINT figures_ready_not_null NOT NULL,
    running bigint CONSTRAINT figures_running_not_null NOT NULL,
    oldest_ready_seconds double precision CONSTRAINT figures_oldest_ready_seconds_not_null NOT NULL,
    wait_sum double precision CONSTRAINT figures_wait_sum_not_null NOT NULL,
    wait_worst double precision CONSTRAINT figures_wait_worst_not_null NOT NULL,
    run_sum double precision CONSTRAINT figures_run_sum_not_null NOT NULL,
    run_worst double precision CONSTRAINT figures_run_worst_not_null NOT NULL,
    wait_buckets bigint[] CONSTRAINT figures_wait_buckets_not_null NOT NULL,
    run_buckets bigint[] CONSTRAINT figures_run_buckets_not_null NOT NULL,
    CONSTRAINT figures_step_check CHECK ((step = ANY (ARRAY['minute'::text, 'hour'::text, 'day'::text, 'ever'::text])))
)
WITH (fillfactor='70');

CREATE TABLE mainspring.figures_hour (
    step text CONSTRAINT figures_step_not_null NOT NULL COLLATE pg_catalog."C",
    at timestamp with time zone CONSTRAINT figures_at_not_null NOT NULL,
    tenant_id text CONSTRAINT figures_tenant_id_not_null NOT NULL COLLATE pg_catalog."C",
    queue text CONSTRAINT figures_queue_not_null NOT NULL COLLATE pg_catalog."C",
    definition text CONSTRAINT figures_definition_not_null NOT NULL COLLATE pg_catalog."C",
    enqueued bigint CONSTRAINT figures_enqueued_not_null NOT NULL,
    started bigint CONSTRAINT figures_started_not_null NOT NULL,
    succeeded bigint CONSTRAINT figures_succeeded_not_null NOT NULL,
    failed bigint CONSTRAINT figures_failed_not_null NOT NULL,
    dead_letter bigint CONSTRAINT figures_dead_letter_not_null NOT NULL,
    canceled bigint CONSTRAINT figures_canceled_not_null NOT NULL,
    deleted bigint CONSTRAINT figures_deleted_not_null NOT NULL,
    revived bigint CONSTRAINT figures_revived_not_null NOT NULL,
    attempts_succeeded bigint CONSTRAINT figures_attempts_succeeded_not_null NOT NULL,
    attempts_failed bigint CONSTRAINT figures_attempts_failed_not_null NOT NULL,
    attempts_timeout bigint CONSTRAINT figures_attempts_timeout_not_null NOT NULL,
    attempts_canceled bigint CONSTRAINT figures_attempts_canceled_not_null NOT NULL,
    attempts_snoozed bigint CONSTRAINT figures_attempts_snoozed_not_null NOT NULL,
    attempts_lost bigint CONSTRAINT figures_attempts_lost_not_null NOT NULL,
    ready bigint CONSTRAINT figures_ready_not_null NOT NULL,
    running bigint CONSTRAINT figures_running_not_null NOT NULL,
    oldest_ready_seconds double precision CONSTRAINT figures_oldest_ready_seconds_not_null NOT NULL,
    wait_sum double precision CONSTRAINT figures_wait_sum_not_null NOT NULL,
    wait_worst double precision CONSTRAINT figures_wait_worst_not_null NOT NULL,
    run_sum double precision CONSTRAINT figures_run_sum_not_null NOT NULL,
    run_worst double precision CONSTRAINT figures_run_worst_not_null NOT NULL,
    wait_buckets bigint[] CONSTRAINT figures_wait_buckets_not_null NOT NULL,
    run_buckets bigint[] CONSTRAINT figures_run_buckets_not_null NOT NULL,
    CONSTRAINT figures_step_check CHECK ((step = ANY (ARRAY['minute'::text, 'hour'::text, 'day'::text, 'ever'::text])))
);

CREATE TABLE mainspring.figures_minute (
    step text CONSTRAINT figures_step_not_null NOT NULL COLLATE pg_catalog."C",
    at timestamp with time zone CONSTRAINT figures_at_not_null NOT NULL,
    tenant_id text CONSTRAINT figures_tenant_id_not_null NOT NULL COLLATE pg_catalog."C",
    queue text CONSTRAINT figures_queue_not_null NOT NULL COLLATE pg_catalog."C",
    definition text CONSTRAINT figures_definition_not_null NOT NULL COLLATE pg_catalog."C",
    enqueued bigint CONSTRAINT figures_enqueued_not_null NOT NULL,
    started bigint CONSTRAINT figures_started_not_null NOT NULL,
    succeeded bigint CONSTRAINT figures_succeeded_not_null NOT NULL,
    failed bigint CONSTRAINT figures_failed_not_null NOT NULL,
    dead_letter bigint CONSTRAINT figures_dead_letter_not_null NOT NULL,
    canceled bigint CONSTRAINT figures_canceled_not_null NOT NULL,
    deleted bigint CONSTRAINT figures_deleted_not_null NOT NULL,
    revived bigint CONSTRAINT figures_revived_not_null NOT NULL,
    attempts_succeeded bigint CONSTRAINT figures_attempts_succeeded_not_null NOT NULL,
    attempts_failed bigint CONSTRAINT figures_attempts_failed_not_null NOT NULL,
    attempts_timeout bigint CONSTRAINT figures_attempts_timeout_not_null NOT NULL,
    attempts_canceled bigint CONSTRAINT figures_attempts_canceled_not_null NOT NULL,
    attempts_snoozed bigint CONSTRAINT figures_attempts_snoozed_not_null NOT NULL,
    attempts_lost bigint CONSTRAINT figures_attempts_lost_not_null NOT NULL,
    ready bigint CONSTRAINT figures_ready_not_null NOT NULL,
    running bigint CONSTRAINT figures_running_not_null NOT NULL,
    oldest_ready_seconds double precision CONSTRAINT figures_oldest_ready_seconds_not_null NOT NULL,
    wait_sum double precision CONSTRAINT figures_wait_sum_not_null NOT NULL,
    wait_worst double precision CONSTRAINT figures_wait_worst_not_null NOT NULL,
    run_sum double precision CONSTRAINT figures_run_sum_not_null NOT NULL,
    run_worst double precision CONSTRAINT figures_run_worst_not_null NOT NULL,
    wait_buckets bigint[] CONSTRAINT figures_wait_buckets_not_null NOT NULL,
    run_buckets bigint[] CONSTRAINT figures_run_buckets_not_null NOT NULL,
    CONSTRAINT figures_step_check CHECK ((step = ANY (ARRAY['minute'::text, 'hour'::text, 'day'::text, 'ever'::text])))
);

CREATE VIEW mainspring.flow_job_status AS
 SELECT member.flow_id,
    member.step,
    job.job_id,
    job.tenant_id,
    job.definition,
    job.state,
    job.waits_for,
    job.started_at,
    job.finished_at,
    job.last_error,
    ARRAY( SELECT dependency.parent_id
           FROM mainspring.dependencies dependency
          WHERE (dependency.job_id = job.job_id)
          ORDER BY dependency.parent_id) AS parent_ids
   FROM (mainspring.flow_jobs member
     JOIN mainspring.job_status job USING (job_id));

CREATE VIEW mainspring.flow_status AS
 SELECT flow.flow_id,
    flow.tenant_id,
    flow.name,
    flow.created_at,
    counted.jobs,
    counted.live,
    counted.blocked,
    counted.running,
    counted.succeeded,
    counted.failed,
    counted.dead_letter,
    counted.canceled,
    counted.finished_at,
        CASE
            WHEN (counted.live > 0) THEN 'running'::text
            WHEN ((counted.failed + counted.dead_letter) > 0) THEN 'failed'::text
            WHEN (counted.canceled > 0) THEN 'canceled'::text
            ELSE 'succeeded'::text
        END AS state
   FROM mainspring.flows flow,
    LATERAL ( SELECT count(*) AS jobs,
            count(*) FILTER (WHERE (job.finished_at IS NULL)) AS live,
            count(*) FILTER (WHERE (job.state = 'blocked'::mainspring.job_state)) AS blocked,
            count(*) FILTER (WHERE (job.state = 'running'::mainspring.job_state)) AS running,
            count(*) FILTER (WHERE (job.state = 'succeeded'::mainspring.job_state)) AS succeeded,
            count(*) FILTER (WHERE (job.state = 'failed'::mainspring.job_state)) AS failed,
            count(*) FILTER (WHERE (job.state = 'dead_letter'::mainspring.job_state)) AS dead_letter,
            count(*) FILTER (WHERE (job.state = 'canceled'::mainspring.job_state)) AS canceled,
                CASE
                    WHEN bool_and((job.finished_at IS NOT NULL)) THEN max(job.finished_at)
                    ELSE NULL::timestamp with time zone
                END AS finished_at
           FROM (mainspring.flow_jobs member
             JOIN mainspring.job_status job USING (job_id))
          WHERE (member.flow_id = flow.flow_id)) counted
  WHERE (mainspring.is_visible(flow.tenant_id) AND mainspring.is_own(flow.created_by));

CREATE VIEW mainspring.gauge_status AS
 SELECT schedule.schedule_id,
    schedule.tenant_id,
    schedule.name,
    clock.gauge_value AS value,
        CASE
            WHEN clock.gauge_is_high THEN 'high'::text
            ELSE 'low'::text
        END AS side,
    schedule.gauge_lower AS lower,
    schedule.gauge_upper AS upper,
    COALESCE(schedule.gauge_bounds, 'inclusive'::text) AS bounds,
    clock.gauge_read_at AS read_at
   FROM (mainspring.schedules schedule
     JOIN mainspring.clocks clock USING (schedule_id))
  WHERE ((schedule.gauge_sql IS NOT NULL) AND mainspring.is_visible(schedule.tenant_id));

CREATE TABLE mainspring.grants_to_restore (
    kind text NOT NULL,
    name text NOT NULL,
    privilege text NOT NULL,
    grantee text NOT NULL,
    CONSTRAINT grants_to_restore_kind_check CHECK ((kind = ANY (ARRAY['function'::text, 'view'::text])))
);

CREATE TABLE mainspring.installed (
    name text NOT NULL,
    installed_at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE mainspring.installed_functions (
    is_only_row boolean DEFAULT true NOT NULL,
    version integer NOT NULL,
    digest text NOT NULL,
    objects jsonb NOT NULL,
    installed_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT installed_functions_is_only_row_check CHECK (is_only_row)
);

CREATE VIEW mainspring.job_relations AS
 SELECT relation,
    id,
    job_id
   FROM ( SELECT 'flow_id'::text AS relation,
            flow_jobs.flow_id AS id,
            flow_jobs.job_id
           FROM mainspring.flow_jobs
        UNION ALL
         SELECT 'event_id'::text,
            dispatches.event_id,
            dispatches.job_id
           FROM mainspring.dispatches
          WHERE (dispatches.outcome = 'enqueued'::text)
        UNION ALL
         SELECT 'parent_id'::text,
            dependencies.parent_id,
            dependencies.job_id
           FROM mainspring.dependencies
          WHERE (dependencies.outcome IS NULL)
        UNION ALL
         SELECT 'parent_id'::text,
            dependencies.parent_id,
            dependencies.job_id
           FROM mainspring.dependencies
          WHERE (dependencies.outcome IS NOT NULL)
        UNION ALL
         SELECT 'worker_id'::text,
            jobs.worker_id,
            jobs.job_id
           FROM mainspring.jobs
          WHERE (jobs.state = 'running'::mainspring.job_state)) known
  WHERE (( SELECT (NOT mainspring.is_isolated())) OR (EXISTS ( SELECT
           FROM mainspring.job_status seen
          WHERE (seen.job_id = known.job_id))));

CREATE VIEW mainspring.job_summaries AS
 SELECT job_id,
    tenant_id,
    definition,
    queue,
    state,
    waits_for,
    priority,
    source,
    created_by,
    created_at,
    scheduled_for,
    started_at,
    finished_at,
    deadline_at,
    cancel_requested_at,
    attempt,
    failures,
    losses,
    max_attempts,
    dedupe_key,
    correlation_id,
    tags,
        CASE
            WHEN (progress IS NOT NULL) THEN jsonb_build_object('current', (progress -> 'current'::text), 'total', (progress -> 'total'::text), 'message', "left"((progress ->> 'message'::text), 200))
            ELSE NULL::jsonb
        END AS progress,
    mainspring.error_line(last_error) AS error_line,
    last_error,
    delivery,
    creator,
    schedule_id,
    schedule,
    slot_at,
    trigger,
    worker_id,
    definition_version
   FROM mainspring.job_status;

CREATE TABLE mainspring.jobs_history_default (
    job_id bigint DEFAULT nextval('mainspring.job_ids'::regclass) CONSTRAINT jobs_job_id_not_null NOT NULL,
    fence bigint,
    worker_id bigint,
    created_at timestamp with time zone DEFAULT now() CONSTRAINT jobs_created_at_not_null NOT NULL,
    scheduled_for timestamp with time zone DEFAULT now() CONSTRAINT jobs_scheduled_for_not_null NOT NULL,
    started_at timestamp with time zone,
    finished_at timestamp with time zone,
    deadline_at timestamp with time zone,
    cancel_requested_at timestamp with time zone,
    probed_at timestamp with time zone,
    attempt integer DEFAULT 0 CONSTRAINT jobs_attempt_not_null NOT NULL,
    failures integer DEFAULT 0 CONSTRAINT jobs_failures_not_null NOT NULL,
    losses integer DEFAULT 0 CONSTRAINT jobs_losses_not_null NOT NULL,
    max_attempts integer DEFAULT 3 CONSTRAINT jobs_max_attempts_not_null NOT NULL,
    state mainspring.job_state DEFAULT 'queued'::mainspring.job_state CONSTRAINT jobs_state_not_null NOT NULL,
    waits_for mainspring.waits_for,
    priority smallint DEFAULT 100 CONSTRAINT jobs_priority_not_null NOT NULL,
    tenant_id text DEFAULT 'default'::text CONSTRAINT jobs_tenant_id_not_null NOT NULL COLLATE pg_catalog."C",
    queue text DEFAULT 'default'::text CONSTRAINT jobs_queue_not_null NOT NULL COLLATE pg_catalog."C",
    definition text CONSTRAINT jobs_definition_not_null NOT NULL COLLATE pg_catalog."C",
    payload jsonb DEFAULT '{}'::jsonb CONSTRAINT jobs_payload_not_null NOT NULL,
    dedupe_key text COLLATE pg_catalog."C",
    correlation_id text,
    tags text[],
    progress jsonb,
    checkpoint jsonb,
    result jsonb,
    last_error text,
    schedule_id bigint,
    slot_at timestamp with time zone,
    origin jsonb,
    definition_version integer DEFAULT 1 CONSTRAINT jobs_definition_version_not_null NOT NULL,
    created_by text COLLATE pg_catalog."C",
    delivery text,
    source text,
    ready_at timestamp with time zone,
    CONSTRAINT jobs_history_are_final CHECK (((state = ANY (ARRAY['succeeded'::mainspring.job_state, 'failed'::mainspring.job_state, 'dead_letter'::mainspring.job_state, 'canceled'::mainspring.job_state])) AND (finished_at IS NOT NULL) AND (fence IS NULL) AND (worker_id IS NULL) AND (waits_for IS NULL)))
);

CREATE VIEW mainspring.known_people AS
 SELECT person_id,
    name,
    role,
    tenant_id,
    (disabled_at IS NOT NULL) AS is_disabled,
    created_at,
    created_by,
    last_seen_at
   FROM mainspring.people
  WHERE mainspring.is_visible(tenant_id);

CREATE TABLE mainspring.lane_floors (
    queue text NOT NULL COLLATE pg_catalog."C",
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    floor bigint NOT NULL,
    noted_at timestamp with time zone DEFAULT now() NOT NULL,
    sweep_seconds double precision NOT NULL,
    priority smallint NOT NULL
)
WITH (fillfactor='50');

CREATE VIEW mainspring.limit_status AS
 SELECT name,
    concurrency,
    key_concurrency,
    rate_count,
    (EXTRACT(epoch FROM rate_period))::double precision AS rate_seconds,
    burst,
    ( SELECT count(*) AS count
           FROM mainspring.jobs job
          WHERE ((job.limit_name = known.name) AND (job.waits_for IS NULL) AND (job.state = 'running'::mainspring.job_state))) AS running,
    ( SELECT count(*) AS count
           FROM mainspring.jobs job
          WHERE ((job.limit_name = known.name) AND (job.waits_for = 'limit'::mainspring.waits_for))) AS waiting,
    created_at,
    updated_at
   FROM mainspring.limits known;

CREATE TABLE mainspring.login_keys (
    digest bytea NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    CONSTRAINT login_keys_digest_check CHECK ((octet_length(digest) = 32))
);

CREATE TABLE mainspring.migrations (
    number integer NOT NULL,
    name text NOT NULL,
    checksum text NOT NULL,
    applied_at timestamp with time zone DEFAULT now() NOT NULL,
    works_with integer NOT NULL
);

CREATE VIEW mainspring.paused_queues AS
 SELECT name,
    paused_at,
    paused_until,
    paused_by,
    reason
   FROM mainspring.queues
  WHERE ((paused_until IS NULL) OR (paused_until > statement_timestamp()));

ALTER TABLE mainspring.people ALTER COLUMN person_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME mainspring.people_person_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE VIEW mainspring.person_status AS
 SELECT name,
    role,
    tenant_id,
    (disabled_at IS NOT NULL) AS is_disabled,
    created_at,
    created_by,
    last_seen_at
   FROM mainspring.people
  WHERE mainspring.is_visible(tenant_id);

CREATE TABLE mainspring.processes (
    process_id bigint DEFAULT nextval('mainspring.worker_ids'::regclass) NOT NULL,
    started_at timestamp with time zone DEFAULT now() NOT NULL,
    seen_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    clock_offset_ms bigint,
    round_trip_ms real,
    pid integer NOT NULL,
    schema_number integer NOT NULL,
    kind text NOT NULL,
    name text NOT NULL,
    host text NOT NULL,
    identity text NOT NULL,
    version text NOT NULL,
    facts jsonb DEFAULT '{}'::jsonb NOT NULL,
    CONSTRAINT processes_kind CHECK ((kind = ANY (ARRAY['scheduler'::text, 'server'::text])))
)
WITH (fillfactor='50', autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='200');

CREATE VIEW mainspring.process_status AS
 SELECT process.process_id,
    process.kind,
        CASE
            WHEN isolation.is_isolated THEN ((process.kind || ' '::text) || process.process_id)
            ELSE process.name
        END AS name,
        CASE
            WHEN (NOT isolation.is_isolated) THEN process.host
            ELSE NULL::text
        END AS host,
        CASE
            WHEN (NOT isolation.is_isolated) THEN process.pid
            ELSE NULL::integer
        END AS pid,
    process.version,
    process.schema_number,
    process.started_at,
    process.seen_at,
    process.expires_at,
    (process.expires_at > statement_timestamp()) AS is_alive,
    process.clock_offset_ms,
    process.round_trip_ms,
        CASE
            WHEN (NOT isolation.is_isolated) THEN process.facts
            ELSE COALESCE(( SELECT jsonb_object_agg(fact.key, fact.value) AS jsonb_object_agg
               FROM jsonb_each(process.facts) fact(key, value)
              WHERE (fact.key = ANY (ARRAY['leads'::text, 'checked_at'::text, 'is_stopping'::text]))), '{}'::jsonb)
        END AS facts
   FROM (mainspring.processes process
     CROSS JOIN ( SELECT mainspring.is_isolated() AS is_isolated) isolation);

CREATE TABLE mainspring.prune_marks (
    keep interval NOT NULL,
    pruned_until timestamp with time zone NOT NULL,
    swept_at timestamp with time zone NOT NULL,
    policies text NOT NULL
);

CREATE VIEW mainspring.queue_status AS
 SELECT tenant_id,
    queue,
    count(*) FILTER (WHERE ((state = 'queued'::mainspring.job_state) AND (waits_for IS NULL))) AS ready,
    count(*) FILTER (WHERE ((state = 'queued'::mainspring.job_state) AND (waits_for IS NOT NULL))) AS waiting,
    count(*) FILTER (WHERE (state = 'running'::mainspring.job_state)) AS running,
    count(*) FILTER (WHERE (state = ANY (ARRAY['blocked'::mainspring.job_state, 'awaiting_approval'::mainspring.job_state]))) AS held,
    min(COALESCE(ready_at, scheduled_for)) FILTER (WHERE ((state = 'queued'::mainspring.job_state) AND (waits_for IS NULL))) AS oldest_ready_at
   FROM mainspring.jobs
  WHERE (mainspring.is_visible(tenant_id) AND mainspring.is_own(created_by))
  GROUP BY tenant_id, queue;

CREATE TABLE mainspring.record_retention (
    kind text NOT NULL COLLATE pg_catalog."C",
    tenant_id text COLLATE pg_catalog."C",
    keep interval NOT NULL,
    CONSTRAINT record_retention_is_bounded CHECK (((keep >= '1 day'::interval) AND (keep <= '36500 days'::interval))),
    CONSTRAINT record_retention_kind_check CHECK ((kind = ANY (ARRAY['audit'::text, 'slots'::text, 'events'::text])))
);

CREATE TABLE mainspring.replies (
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    actor text NOT NULL COLLATE pg_catalog."C",
    key text NOT NULL COLLATE pg_catalog."C",
    digest bytea NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    status integer NOT NULL,
    body bytea NOT NULL
);

CREATE TABLE mainspring.retention (
    tenant_id text COLLATE pg_catalog."C",
    state mainspring.job_state,
    keep interval NOT NULL,
    CONSTRAINT retention_keep_check CHECK ((keep >= '00:00:00'::interval)),
    CONSTRAINT retention_state_check CHECK ((state = ANY (ARRAY['succeeded'::mainspring.job_state, 'failed'::mainspring.job_state, 'dead_letter'::mainspring.job_state, 'canceled'::mainspring.job_state])))
);

CREATE TABLE mainspring.schedule_figures (
    schedule_id bigint NOT NULL,
    succeeded bigint DEFAULT 0 NOT NULL,
    unsuccessful bigint DEFAULT 0 NOT NULL,
    seconds_total double precision DEFAULT 0 NOT NULL,
    seconds_worst double precision DEFAULT 0 NOT NULL,
    last_finished_at timestamp with time zone,
    last_run_state text
)
WITH (fillfactor='70');

CREATE TABLE mainspring.slots (
    schedule_id bigint NOT NULL,
    scheduled_for timestamp with time zone NOT NULL,
    fired_at timestamp with time zone DEFAULT now() NOT NULL,
    checking_until timestamp with time zone,
    started_at timestamp with time zone,
    finished_at timestamp with time zone,
    job_id bigint,
    missed integer DEFAULT 0 NOT NULL,
    outcome mainspring.slot_outcome NOT NULL,
    trigger mainspring.slot_trigger DEFAULT 'scheduler'::mainspring.slot_trigger NOT NULL,
    is_forced boolean DEFAULT false NOT NULL,
    reason text,
    checking_by text,
    payload jsonb,
    run_state text,
    counted_as text,
    gauge_value double precision,
    message text,
    details jsonb,
    is_details_omitted boolean DEFAULT false NOT NULL,
    CONSTRAINT slots_enqueued_have_a_job CHECK (((outcome = 'enqueued'::mainspring.slot_outcome) = (job_id IS NOT NULL))),
    CONSTRAINT slots_only_jobs_run CHECK (((run_state IS NULL) OR (outcome = 'enqueued'::mainspring.slot_outcome)))
)
WITH (fillfactor='85', autovacuum_vacuum_scale_factor='0.02', autovacuum_vacuum_threshold='5000', autovacuum_vacuum_insert_scale_factor='0.05', autovacuum_vacuum_cost_delay='0');

CREATE VIEW mainspring.schedule_status AS
 SELECT schedule.schedule_id,
    schedule.tenant_id,
    schedule.name,
    schedule.description,
    schedule.enabled,
    schedule.disabled_reason,
    schedule.paused_until,
    schedule.definition,
    schedule.cron,
    schedule.every,
    schedule.at,
    schedule.zone,
    schedule.launcher,
    schedule.overlap,
    schedule.catch_up,
        CASE
            WHEN (clock.next_run_at > '1970-01-01 00:00:00+00'::timestamp with time zone) THEN clock.next_run_at
            ELSE NULL::timestamp with time zone
        END AS next_run_at,
    clock.last_enqueued_at AS last_run_at,
    (COALESCE(fresh.last_run_state, figures.last_run_state) = 'succeeded'::text) AS last_run_success,
    (runs.succeeded + runs.unsuccessful) AS total_runs,
    runs.succeeded AS successful_runs,
    runs.unsuccessful AS failed_runs,
    clock.skipped_count AS skipped_slots,
    clock.missed_count AS missed_slots,
    clock.failed_count AS failed_launches,
    round(((100.0 * (runs.succeeded)::numeric) / (NULLIF((runs.succeeded + runs.unsuccessful), 0))::numeric), 1) AS success_rate_percent,
    (runs.seconds / (NULLIF((runs.succeeded + runs.unsuccessful), 0))::double precision) AS average_seconds,
    GREATEST(figures.seconds_worst, fresh.seconds_worst) AS worst_seconds,
    ((EXTRACT(epoch FROM clock.lateness_total))::double precision / (NULLIF((clock.enqueued_count + clock.skipped_count), 0))::double precision) AS average_lateness_seconds,
    (EXTRACT(epoch FROM clock.lateness_worst))::double precision AS worst_lateness_seconds,
    clock.retry_count,
    schedule.max_retries,
    clock.last_error,
    clock.last_failed_at,
    schedule.created_at,
    schedule.updated_at,
    schedule.delivery,
        CASE
            WHEN (NOT (EXISTS ( SELECT
               FROM mainspring.definitions defined
              WHERE ((defined.key = schedule.definition) AND defined.is_active)))) THEN mainspring.why_unknown(schedule.definition)
            ELSE NULL::text
        END AS problem
   FROM ((mainspring.schedules schedule
     JOIN mainspring.clocks clock USING (schedule_id))
     LEFT JOIN mainspring.schedule_figures figures USING (schedule_id)),
    LATERAL ( SELECT (count(*) FILTER (WHERE (slot.run_state = 'succeeded'::text)) - count(*) FILTER (WHERE (slot.counted_as = 'succeeded'::text))) AS succeeded,
            (count(*) FILTER (WHERE (slot.run_state <> 'succeeded'::text)) - count(*) FILTER (WHERE (slot.counted_as <> 'succeeded'::text))) AS unsuccessful,
            sum(EXTRACT(epoch FROM (slot.finished_at - slot.started_at))) AS seconds,
            (max(EXTRACT(epoch FROM (slot.finished_at - slot.started_at))))::double precision AS seconds_worst,
            (array_agg(slot.run_state ORDER BY slot.finished_at DESC) FILTER (WHERE (slot.run_state IS NOT NULL)))[1] AS last_run_state
           FROM mainspring.slots slot
          WHERE ((slot.schedule_id = schedule.schedule_id) AND (slot.run_state IS DISTINCT FROM slot.counted_as))) fresh,
    LATERAL ( SELECT (COALESCE(figures.succeeded, (0)::bigint) + fresh.succeeded) AS succeeded,
            (COALESCE(figures.unsuccessful, (0)::bigint) + fresh.unsuccessful) AS unsuccessful,
            (COALESCE(figures.seconds_total, (0)::double precision) + (COALESCE(fresh.seconds, (0)::numeric))::double precision) AS seconds) runs
  WHERE mainspring.is_visible(schedule.tenant_id);

ALTER TABLE mainspring.schedules ALTER COLUMN schedule_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME mainspring.schedules_schedule_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE VIEW mainspring.session_status AS
 SELECT session.token_id AS session_id,
    session.person_id,
    person.name AS person,
    session.tenant_id,
    session.created_at,
    session.created_by,
    session.expires_at,
    session.last_used_at
   FROM (mainspring.tokens session
     JOIN mainspring.people person ON ((person.person_id = session.person_id)))
  WHERE ((session.kind = 'session'::text) AND (session.expires_at > statement_timestamp()) AND mainspring.is_visible(session.tenant_id));

CREATE TABLE mainspring.set_aside (
    duty text NOT NULL,
    key bigint NOT NULL,
    tries integer DEFAULT 1 NOT NULL,
    again_at timestamp with time zone NOT NULL,
    failed_at timestamp with time zone DEFAULT now() NOT NULL,
    reason text NOT NULL
);

CREATE VIEW mainspring.slot_status AS
 SELECT slot.schedule_id,
    schedule.tenant_id,
    schedule.name,
    slot.scheduled_for,
    slot.outcome,
    slot.trigger,
    slot.reason,
    slot.missed,
    slot.job_id,
    slot.fired_at,
    slot.run_state,
    slot.started_at,
    slot.finished_at,
    (EXTRACT(epoch FROM (slot.fired_at - slot.scheduled_for)))::double precision AS lateness_seconds,
    (EXTRACT(epoch FROM (slot.finished_at - slot.started_at)))::double precision AS seconds,
    slot.gauge_value,
    COALESCE(slot.message,
        CASE
            WHEN (slot.run_state <> 'succeeded'::text) THEN split_part(slot.reason, '
'::text, 1)
            ELSE NULL::text
        END) AS message,
    slot.details,
    slot.is_details_omitted
   FROM (mainspring.slots slot
     JOIN mainspring.schedules schedule USING (schedule_id))
  WHERE mainspring.is_visible(schedule.tenant_id);

CREATE TABLE mainspring.suspicions (
    worker_id bigint NOT NULL,
    job_id bigint NOT NULL
);

CREATE TABLE mainspring.tallies (
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    day date NOT NULL,
    state mainspring.job_state NOT NULL,
    count bigint NOT NULL
)
WITH (fillfactor='70');

CREATE TABLE mainspring.tally_changes (
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    day date DEFAULT ((now() AT TIME ZONE 'UTC'::text))::date NOT NULL,
    count bigint NOT NULL,
    state mainspring.job_state NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0.02', autovacuum_vacuum_threshold='1000', autovacuum_vacuum_cost_delay='0');

CREATE VIEW mainspring.tally_status AS
 SELECT tallies.tenant_id,
    tallies.day,
    tallies.state,
    tallies.count
   FROM mainspring.tallies
  WHERE mainspring.is_visible(tallies.tenant_id)
UNION ALL
 SELECT changes.tenant_id,
    changes.day,
    changes.state,
        CASE
            WHEN (changes.moved = 'ended'::text) THEN changes.count
            ELSE (- changes.count)
        END AS count
   FROM mainspring.changes
  WHERE ((changes.state IS NOT NULL) AND mainspring.is_visible(changes.tenant_id))
UNION ALL
 SELECT tally_changes.tenant_id,
    tally_changes.day,
    tally_changes.state,
    tally_changes.count
   FROM mainspring.tally_changes
  WHERE mainspring.is_visible(tally_changes.tenant_id);

CREATE VIEW mainspring.tenant_status AS
 SELECT tenant.tenant_id,
    tenant.weight,
        CASE
            WHEN (tenant.disabled_at IS NULL) THEN tenant.max_running
            ELSE tenant.enabled_max_running
        END AS max_running,
    (COALESCE(live.ready, (0)::numeric))::bigint AS ready,
    (COALESCE(live.waiting, (0)::numeric))::bigint AS waiting,
    (COALESCE(live.running, (0)::numeric))::bigint AS running,
    (COALESCE(live.held, (0)::numeric))::bigint AS held,
    tenant.created_at,
    tenant.zone,
    (tenant.disabled_at IS NULL) AS is_enabled
   FROM (mainspring.tenants tenant
     LEFT JOIN ( SELECT queue_status.tenant_id,
            sum(queue_status.ready) AS ready,
            sum(queue_status.waiting) AS waiting,
            sum(queue_status.running) AS running,
            sum(queue_status.held) AS held
           FROM mainspring.queue_status
          GROUP BY queue_status.tenant_id) live USING (tenant_id))
  WHERE mainspring.is_visible(tenant.tenant_id);

CREATE VIEW mainspring.token_status AS
 SELECT token.token_id,
    token.name,
    token.prefix,
    token.role,
    token.tenant_id,
    token.scopes,
    token.person,
        CASE
            WHEN ((token.revoked_at IS NOT NULL) OR (person.disabled_at IS NOT NULL)) THEN 'revoked'::text
            WHEN (token.expires_at <= statement_timestamp()) THEN 'expired'::text
            ELSE 'active'::text
        END AS state,
    token.created_at,
    token.created_by,
    token.expires_at,
    token.last_used_at,
    token.revoked_at,
    token.tenants
   FROM (mainspring.tokens token
     LEFT JOIN mainspring.people person ON ((person.person_id = token.person_id)))
  WHERE (((token.kind = 'token'::text) OR ((token.kind = 'console'::text) AND (token.name <> token.created_by))) AND mainspring.is_visible(token.tenant_id));

ALTER TABLE mainspring.tokens ALTER COLUMN token_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME mainspring.tokens_token_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE VIEW mainspring.trigger_status AS
 SELECT trigger.trigger_id,
    trigger.tenant_id,
    trigger.name,
    trigger.event,
    trigger.definition,
        CASE
            WHEN (trigger.definition IN ( SELECT definitions.key
               FROM mainspring.definitions
              WHERE (definitions.secret_paths IS NOT NULL))) THEN mainspring.redacted(trigger.payload, ( SELECT defined.secret_paths
               FROM mainspring.definitions defined
              WHERE (defined.key = trigger.definition)))
            ELSE trigger.payload
        END AS payload,
    trigger.unknown_paths,
    trigger.dedupe_window,
    trigger.queue,
    trigger.priority,
    trigger.is_enabled,
    trigger.created_at,
    trigger.updated_at,
    newest.dispatched_at AS last_dispatched_at,
    newest.outcome AS last_outcome,
    newest.event_id AS last_event_id,
    newest.job_id AS last_job_id,
    newest.error AS last_error
   FROM (mainspring.triggers trigger
     LEFT JOIN LATERAL ( SELECT dispatch.dispatched_at,
            dispatch.outcome,
            dispatch.event_id,
            dispatch.job_id,
            dispatch.error
           FROM mainspring.dispatches dispatch
          WHERE (dispatch.trigger_id = trigger.trigger_id)
          ORDER BY dispatch.dispatched_at DESC, dispatch.event_id DESC
         LIMIT 1) newest ON (true))
  WHERE mainspring.is_visible(trigger.tenant_id);

ALTER TABLE mainspring.triggers ALTER COLUMN trigger_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME mainspring.triggers_trigger_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE mainspring.watches (
    name text NOT NULL COLLATE pg_catalog."C",
    last_at timestamp with time zone NOT NULL,
    took interval DEFAULT '00:00:00'::interval NOT NULL
);

CREATE VIEW mainspring.watch_status AS
 SELECT name,
    last_at,
    took
   FROM mainspring.watches;

CREATE TABLE mainspring.worker_schemas (
    worker_id bigint NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    arg_schema jsonb
);

CREATE VIEW mainspring.worker_status AS
 SELECT worker.worker_id,
        CASE
            WHEN seen.is_whole THEN worker.name
            ELSE ('worker '::text || worker.worker_id)
        END AS name,
        CASE
            WHEN seen.is_whole THEN worker.host
            ELSE NULL::text
        END AS host,
        CASE
            WHEN seen.is_whole THEN worker.pid
            ELSE NULL::integer
        END AS pid,
    seen.queues,
    worker.concurrency,
    worker.version,
    worker.started_at,
    worker.renewed_at,
    worker.expires_at,
    worker.is_stopping,
    (worker.expires_at > statement_timestamp()) AS is_alive,
    worker.schema_number,
    worker.clock_offset_ms,
    worker.round_trip_ms,
    ((worker.expires_at <= statement_timestamp()) AND (worker.process_identity <> ''::text) AND (EXISTS ( SELECT
           FROM mainspring.workers newer
          WHERE ((newer.process_identity = worker.process_identity) AND (newer.worker_id > worker.worker_id))))) AS is_replaced
   FROM ((mainspring.workers worker
     CROSS JOIN LATERAL ( SELECT NULLIF("substring"(worker.process_identity, '^api:(.*):[^:]*$'::text), '*'::text) AS tenant_id) owner)
     CROSS JOIN LATERAL ( SELECT whole.is_whole,
                CASE
                    WHEN whole.is_whole THEN worker.queues
                    ELSE ARRAY( SELECT served.queue
                       FROM unnest(worker.queues) served(queue)
                      WHERE ((EXISTS ( SELECT
                               FROM mainspring.definitions defined
                              WHERE (defined.queue = served.queue))) OR (EXISTS ( SELECT
                               FROM mainspring.schedules schedule
                              WHERE ((schedule.queue = served.queue) AND mainspring.is_visible(schedule.tenant_id))))))
                END AS queues
           FROM ( SELECT ((NOT mainspring.is_isolated()) OR COALESCE(mainspring.is_visible(owner.tenant_id), false)) AS is_whole) whole) seen)
  WHERE (seen.is_whole OR ((owner.tenant_id IS NULL) AND (cardinality(seen.queues) > 0)));

ALTER TABLE ONLY mainspring.attempts ATTACH PARTITION mainspring.attempts_default DEFAULT;

ALTER TABLE ONLY mainspring.figures ATTACH PARTITION mainspring.figures_day FOR VALUES IN ('day');

ALTER TABLE ONLY mainspring.figures ATTACH PARTITION mainspring.figures_ever FOR VALUES IN ('ever');

ALTER TABLE ONLY mainspring.figures ATTACH PARTITION mainspring.figures_hour FOR VALUES IN ('hour');

ALTER TABLE ONLY mainspring.figures ATTACH PARTITION mainspring.figures_minute FOR VALUES IN ('minute');

ALTER TABLE ONLY mainspring.jobs_history ATTACH PARTITION mainspring.jobs_history_default DEFAULT;

ALTER TABLE ONLY mainspring.approvals
    ADD CONSTRAINT approvals_pkey PRIMARY KEY (job_id);

ALTER TABLE ONLY mainspring.audit
    ADD CONSTRAINT audit_pkey PRIMARY KEY (audit_id);

ALTER TABLE ONLY mainspring.buckets
    ADD CONSTRAINT buckets_pkey PRIMARY KEY (limit_name, limit_key);

ALTER TABLE ONLY mainspring.clocks
    ADD CONSTRAINT clocks_pkey PRIMARY KEY (schedule_id);

ALTER TABLE ONLY mainspring.definition_versions
    ADD CONSTRAINT definition_versions_pkey PRIMARY KEY (key, version);

ALTER TABLE mainspring.definitions
    ADD CONSTRAINT definitions_names_fit CHECK (((octet_length(key) <= 200) AND (octet_length(queue) <= 2000) AND (octet_length(limit_name) <= 200))) NOT VALID;

ALTER TABLE ONLY mainspring.definitions
    ADD CONSTRAINT definitions_pkey PRIMARY KEY (key);

ALTER TABLE ONLY mainspring.dependencies
    ADD CONSTRAINT dependencies_pkey PRIMARY KEY (job_id, parent_id);

ALTER TABLE ONLY mainspring.depths
    ADD CONSTRAINT depths_pkey PRIMARY KEY (tenant_id, queue, definition);

ALTER TABLE ONLY mainspring.dispatches
    ADD CONSTRAINT dispatches_pkey PRIMARY KEY (event_id, trigger_id, replay);

ALTER TABLE mainspring.enqueue_keys
    ADD CONSTRAINT enqueue_keys_names_fit CHECK (((octet_length(tenant_id) <= 200) AND (octet_length(key) <= 2000))) NOT VALID;

ALTER TABLE ONLY mainspring.enqueue_keys
    ADD CONSTRAINT enqueue_keys_pkey PRIMARY KEY (tenant_id, kind, key);

ALTER TABLE ONLY mainspring.error_days
    ADD CONSTRAINT error_days_pkey PRIMARY KEY (day, tenant_id, definition, error_key);

ALTER TABLE ONLY mainspring.events
    ADD CONSTRAINT events_pkey PRIMARY KEY (event_id);

ALTER TABLE ONLY mainspring.figures
    ADD CONSTRAINT figures_pkey PRIMARY KEY (step, at, tenant_id, queue, definition);

ALTER TABLE ONLY mainspring.figures_day
    ADD CONSTRAINT figures_day_pkey PRIMARY KEY (step, at, tenant_id, queue, definition);

ALTER TABLE ONLY mainspring.figures_ever
    ADD CONSTRAINT figures_ever_pkey PRIMARY KEY (step, at, tenant_id, queue, definition);

ALTER TABLE ONLY mainspring.figures_hour
    ADD CONSTRAINT figures_hour_pkey PRIMARY KEY (step, at, tenant_id, queue, definition);

ALTER TABLE ONLY mainspring.figures_minute
    ADD CONSTRAINT figures_minute_pkey PRIMARY KEY (step, at, tenant_id, queue, definition);

ALTER TABLE ONLY mainspring.flow_jobs
    ADD CONSTRAINT flow_jobs_pkey PRIMARY KEY (flow_id, job_id);

ALTER TABLE ONLY mainspring.flows
    ADD CONSTRAINT flows_pkey PRIMARY KEY (flow_id);

ALTER TABLE ONLY mainspring.grants_to_restore
    ADD CONSTRAINT grants_to_restore_pkey PRIMARY KEY (kind, name, privilege, grantee);

ALTER TABLE ONLY mainspring.installation_keys
    ADD CONSTRAINT installation_keys_pkey PRIMARY KEY (name);

ALTER TABLE ONLY mainspring.installed_functions
    ADD CONSTRAINT installed_functions_pkey PRIMARY KEY (is_only_row);

ALTER TABLE ONLY mainspring.installed
    ADD CONSTRAINT installed_pkey PRIMARY KEY (name);

ALTER TABLE mainspring.jobs
    ADD CONSTRAINT jobs_delivery CHECK ((delivery = 'at_most_once'::text)) NOT VALID;

ALTER TABLE mainspring.jobs
    ADD CONSTRAINT jobs_names_fit CHECK (((octet_length(tenant_id) <= 200) AND (octet_length(queue) <= 2000) AND (octet_length(definition) <= 200) AND (octet_length(dedupe_key) <= 2000) AND (octet_length(limit_name) <= 200) AND (octet_length(limit_key) <= 2000) AND (octet_length(created_by) <= 2000))) NOT VALID;

ALTER TABLE ONLY mainspring.jobs
    ADD CONSTRAINT jobs_pkey PRIMARY KEY (job_id);

ALTER TABLE mainspring.jobs
    ADD CONSTRAINT jobs_source_fits CHECK ((octet_length(source) <= 200)) NOT VALID;

ALTER TABLE ONLY mainspring.lane_floors
    ADD CONSTRAINT lane_floors_pkey PRIMARY KEY (queue, priority, tenant_id);

ALTER TABLE mainspring.limits
    ADD CONSTRAINT limits_name_fits CHECK ((octet_length(name) <= 200)) NOT VALID;

ALTER TABLE ONLY mainspring.limits
    ADD CONSTRAINT limits_pkey PRIMARY KEY (name);

ALTER TABLE ONLY mainspring.login_keys
    ADD CONSTRAINT login_keys_pkey PRIMARY KEY (digest);

ALTER TABLE ONLY mainspring.migrations
    ADD CONSTRAINT migrations_pkey PRIMARY KEY (number);

ALTER TABLE ONLY mainspring.outputs
    ADD CONSTRAINT outputs_pkey PRIMARY KEY (job_id, fence);

ALTER TABLE ONLY mainspring.people
    ADD CONSTRAINT people_pkey PRIMARY KEY (person_id);

ALTER TABLE ONLY mainspring.processes
    ADD CONSTRAINT processes_pkey PRIMARY KEY (process_id);

ALTER TABLE ONLY mainspring.prune_marks
    ADD CONSTRAINT prune_marks_pkey PRIMARY KEY (keep);

ALTER TABLE ONLY mainspring.queues
    ADD CONSTRAINT queues_pkey PRIMARY KEY (name);

ALTER TABLE ONLY mainspring.receipts
    ADD CONSTRAINT receipts_pkey PRIMARY KEY (job_id);

ALTER TABLE ONLY mainspring.record_retention
    ADD CONSTRAINT record_retention_kind_tenant_id_key UNIQUE NULLS NOT DISTINCT (kind, tenant_id);

ALTER TABLE ONLY mainspring.replies
    ADD CONSTRAINT replies_pkey PRIMARY KEY (tenant_id, actor, key);

ALTER TABLE ONLY mainspring.retention
    ADD CONSTRAINT retention_tenant_id_state_key UNIQUE NULLS NOT DISTINCT (tenant_id, state);

ALTER TABLE ONLY mainspring.schedule_figures
    ADD CONSTRAINT schedule_figures_pkey PRIMARY KEY (schedule_id);

ALTER TABLE ONLY mainspring.schedules
    ADD CONSTRAINT schedules_name_is_unique UNIQUE (name, tenant_id);

ALTER TABLE mainspring.schedules
    ADD CONSTRAINT schedules_names_fit CHECK (((octet_length(name) <= 800) AND (octet_length(queue) <= 2000) AND (octet_length(definition) <= 800))) NOT VALID;

ALTER TABLE ONLY mainspring.schedules
    ADD CONSTRAINT schedules_pkey PRIMARY KEY (schedule_id);

ALTER TABLE ONLY mainspring.set_aside
    ADD CONSTRAINT set_aside_pkey PRIMARY KEY (duty, key);

ALTER TABLE ONLY mainspring.slots
    ADD CONSTRAINT slots_pkey PRIMARY KEY (schedule_id, scheduled_for);

ALTER TABLE mainspring.slots
    ADD CONSTRAINT slots_run_state CHECK ((run_state = ANY (ARRAY['succeeded'::text, 'failed'::text, 'dead_letter'::text, 'canceled'::text, 'timed_out'::text, 'lost'::text]))) NOT VALID;

ALTER TABLE ONLY mainspring.suspicions
    ADD CONSTRAINT suspicions_pkey PRIMARY KEY (worker_id, job_id);

ALTER TABLE ONLY mainspring.tallies
    ADD CONSTRAINT tallies_pkey PRIMARY KEY (tenant_id, day, state);

ALTER TABLE mainspring.tenants
    ADD CONSTRAINT tenants_name_fits CHECK ((octet_length(tenant_id) <= 200)) NOT VALID;

ALTER TABLE ONLY mainspring.tenants
    ADD CONSTRAINT tenants_pkey PRIMARY KEY (tenant_id);

ALTER TABLE ONLY mainspring.tokens
    ADD CONSTRAINT tokens_digest_is_unique UNIQUE (digest);

ALTER TABLE ONLY mainspring.tokens
    ADD CONSTRAINT tokens_pkey PRIMARY KEY (token_id);

ALTER TABLE ONLY mainspring.triggers
    ADD CONSTRAINT triggers_name_is_unique UNIQUE (name, tenant_id);

ALTER TABLE mainspring.triggers
    ADD CONSTRAINT triggers_names_fit CHECK (((octet_length(name) <= 800) AND (octet_length(queue) <= 2000) AND (octet_length(event) <= 202) AND (octet_length(definition) <= 800))) NOT VALID;

ALTER TABLE ONLY mainspring.triggers
    ADD CONSTRAINT triggers_pkey PRIMARY KEY (trigger_id);

ALTER TABLE ONLY mainspring.votes
    ADD CONSTRAINT votes_pkey PRIMARY KEY (job_id, actor);

ALTER TABLE ONLY mainspring.watches
    ADD CONSTRAINT watches_pkey PRIMARY KEY (name);

ALTER TABLE ONLY mainspring.worker_schemas
    ADD CONSTRAINT worker_schemas_pkey PRIMARY KEY (worker_id, key);

ALTER TABLE ONLY mainspring.workers
    ADD CONSTRAINT workers_pkey PRIMARY KEY (worker_id);

CREATE INDEX approvals_expiry ON mainspring.approvals USING btree (expires_at) WHERE (decided_at IS NULL);

CREATE INDEX approvals_open ON mainspring.approvals USING btree (tenant_id, job_id) WHERE (decided_at IS NULL);

CREATE INDEX approvals_open_everywhere ON mainspring.approvals USING btree (job_id) WHERE (decided_at IS NULL);

CREATE INDEX attempts_job ON ONLY mainspring.attempts USING btree (job_id);

CREATE INDEX attempts_default_job_id_idx ON mainspring.attempts_default USING btree (job_id);

CREATE INDEX audit_age ON mainspring.audit USING btree (at);

CREATE INDEX audit_subject ON mainspring.audit USING btree (noun, subject, audit_id);

CREATE INDEX audit_tenant ON mainspring.audit USING btree (tenant_id, audit_id);

CREATE INDEX buckets_full ON mainspring.buckets USING btree (full_at);

CREATE INDEX clocks_checking ON mainspring.clocks USING btree (schedule_id) WHERE (checking_until IS NOT NULL);

CREATE INDEX clocks_due ON mainspring.clocks USING btree (next_run_at) WHERE (next_run_at IS NOT NULL);

CREATE INDEX definition_versions_secret ON mainspring.definition_versions USING btree (key) WHERE (secret_paths IS NOT NULL);

CREATE INDEX dependencies_known ON mainspring.dependencies USING btree (parent_id) WHERE (outcome IS NOT NULL);

CREATE INDEX dependencies_open ON mainspring.dependencies USING btree (parent_id) WHERE (outcome IS NULL);

CREATE INDEX dispatches_job ON mainspring.dispatches USING btree (job_id) WHERE (job_id IS NOT NULL);

CREATE INDEX dispatches_trigger ON mainspring.dispatches USING btree (trigger_id, dispatched_at, event_id);

CREATE INDEX enqueue_keys_expiry ON mainspring.enqueue_keys USING btree (expires_at);

CREATE INDEX error_days_key ON mainspring.error_days USING btree (tenant_id, error_key, day);

CREATE INDEX events_handled ON mainspring.events USING btree (handled_at) WHERE (handled_at IS NOT NULL);

CREATE INDEX events_tenant ON mainspring.events USING btree (tenant_id, event_id);

CREATE INDEX events_unhandled ON mainspring.events USING btree (tenant_id, event_id) WHERE (handled_at IS NULL);

CREATE INDEX flow_jobs_job ON mainspring.flow_jobs USING btree (job_id);

CREATE INDEX flows_tenant ON mainspring.flows USING btree (tenant_id, flow_id);

CREATE INDEX jobs_blocked ON mainspring.jobs USING btree (job_id) WHERE (state = ANY (ARRAY['blocked'::mainspring.job_state, 'awaiting_approval'::mainspring.job_state]));

CREATE INDEX jobs_cancel_requested ON mainspring.jobs USING btree (worker_id) WHERE (cancel_requested_at IS NOT NULL);

CREATE INDEX jobs_creator ON mainspring.jobs USING btree (created_by, job_id) WHERE (created_by IS NOT NULL);

CREATE INDEX jobs_deadline ON mainspring.jobs USING btree (deadline_at) WHERE (deadline_at IS NOT NULL);

CREATE UNIQUE INDEX jobs_dedupe ON mainspring.jobs USING btree (tenant_id, dedupe_key) WHERE (dedupe_key IS NOT NULL);

CREATE INDEX jobs_due ON mainspring.jobs USING btree (scheduled_for) WHERE (waits_for = 'time'::mainspring.waits_for);

CREATE INDEX jobs_granted ON mainspring.jobs USING btree (limit_name, limit_key) WHERE ((limit_name IS NOT NULL) AND (waits_for IS NULL));

CREATE INDEX jobs_history_creator ON ONLY mainspring.jobs_history USING btree (created_by, job_id) WHERE (created_by IS NOT NULL);

CREATE INDEX jobs_history_default_created_by_job_id_idx ON mainspring.jobs_history_default USING btree (created_by, job_id) WHERE (created_by IS NOT NULL);

CREATE INDEX jobs_history_finished ON ONLY mainspring.jobs_history USING brin (finished_at) WITH (pages_per_range='32', autosummarize='on');

CREATE INDEX jobs_history_default_finished_at_idx ON mainspring.jobs_history_default USING brin (finished_at) WITH (pages_per_range='32', autosummarize='on');

CREATE INDEX jobs_history_job ON ONLY mainspring.jobs_history USING btree (job_id);

CREATE INDEX jobs_history_default_job_id_idx ON mainspring.jobs_history_default USING btree (job_id);

CREATE INDEX jobs_history_schedule ON ONLY mainspring.jobs_history USING btree (schedule_id, job_id) WHERE (schedule_id IS NOT NULL);

CREATE INDEX jobs_history_default_schedule_id_job_id_idx ON mainspring.jobs_history_default USING btree (schedule_id, job_id) WHERE (schedule_id IS NOT NULL);

CREATE INDEX jobs_history_unsuccessful_everywhere ON ONLY mainspring.jobs_history USING btree (state, job_id) WHERE (state <> 'succeeded'::mainspring.job_state);

CREATE INDEX jobs_history_default_state_job_id_idx ON mainspring.jobs_history_default USING btree (state, job_id) WHERE (state <> 'succeeded'::mainspring.job_state);

CREATE INDEX jobs_history_tenant ON ONLY mainspring.jobs_history USING btree (tenant_id, job_id);

CREATE INDEX jobs_history_default_tenant_id_job_id_idx ON mainspring.jobs_history_default USING btree (tenant_id, job_id);

CREATE INDEX jobs_history_unsuccessful ON ONLY mainspring.jobs_history USING btree (tenant_id, state, job_id) WHERE (state <> 'succeeded'::mainspring.job_state);

CREATE INDEX jobs_history_default_tenant_id_state_job_id_idx ON mainspring.jobs_history_default USING btree (tenant_id, state, job_id) WHERE (state <> 'succeeded'::mainspring.job_state);

CREATE INDEX jobs_limited ON mainspring.jobs USING btree (limit_name, limit_key, tenant_id, hashtextextended(queue, (0)::bigint), priority, job_id) WHERE (waits_for = 'limit'::mainspring.waits_for);

CREATE INDEX jobs_ready ON mainspring.jobs USING btree (queue, priority, tenant_id, job_id) WHERE ((state = 'queued'::mainspring.job_state) AND (waits_for IS NULL));

CREATE INDEX jobs_running ON mainspring.jobs USING btree (worker_id) WHERE (state = 'running'::mainspring.job_state);

CREATE INDEX jobs_schedule ON mainspring.jobs USING btree (schedule_id, slot_at) WHERE (schedule_id IS NOT NULL);

CREATE INDEX jobs_turn ON mainspring.jobs USING btree (schedule_id) WHERE (waits_for = 'turn'::mainspring.waits_for);

CREATE INDEX jobs_unhandled ON mainspring.jobs USING btree (definition) WHERE (waits_for = 'handler'::mainspring.waits_for);

CREATE INDEX limits_rated ON mainspring.limits USING btree (name) WHERE (rate_count IS NOT NULL);

CREATE INDEX login_keys_expiry ON mainspring.login_keys USING btree (expires_at);

CREATE INDEX outputs_age ON mainspring.outputs USING btree (updated_at);

CREATE UNIQUE INDEX people_name ON mainspring.people USING btree (tenant_id, name) NULLS NOT DISTINCT;

CREATE INDEX people_names ON mainspring.people USING btree (name, person_id);

CREATE INDEX replies_expiry ON mainspring.replies USING btree (expires_at);

CREATE INDEX schedules_watched ON mainspring.schedules USING btree (schedule_id) WHERE (run_timeout IS NOT NULL);

CREATE INDEX slots_age ON mainspring.slots USING brin (scheduled_for) WITH (pages_per_range='16', autosummarize='on');

CREATE INDEX slots_pending ON mainspring.slots USING btree (scheduled_for) WHERE (outcome = 'pending'::mainspring.slot_outcome);

CREATE INDEX slots_uncounted ON mainspring.slots USING btree (schedule_id) WHERE (run_state IS DISTINCT FROM counted_as);

CREATE INDEX tokens_expiry ON mainspring.tokens USING btree (expires_at) WHERE (kind <> 'token'::text);

CREATE UNIQUE INDEX tokens_name ON mainspring.tokens USING btree (tenant_id, name) NULLS NOT DISTINCT WHERE ((revoked_at IS NULL) AND (kind = 'token'::text));

CREATE INDEX tokens_names ON mainspring.tokens USING btree (name, token_id) WHERE (kind = ANY (ARRAY['token'::text, 'console'::text]));

CREATE INDEX tokens_person ON mainspring.tokens USING btree (person_id) WHERE (person_id IS NOT NULL);

CREATE INDEX tokens_sessions ON mainspring.tokens USING btree (token_id) WHERE (kind = 'session'::text);

CREATE INDEX triggers_event ON mainspring.triggers USING btree (tenant_id, event) WHERE is_enabled;

CREATE INDEX worker_schemas_key ON mainspring.worker_schemas USING btree (key);

ALTER INDEX mainspring.attempts_job ATTACH PARTITION mainspring.attempts_default_job_id_idx;

ALTER INDEX mainspring.figures_pkey ATTACH PARTITION mainspring.figures_day_pkey;

ALTER INDEX mainspring.figures_pkey ATTACH PARTITION mainspring.figures_ever_pkey;

ALTER INDEX mainspring.figures_pkey ATTACH PARTITION mainspring.figures_hour_pkey;

ALTER INDEX mainspring.figures_pkey ATTACH PARTITION mainspring.figures_minute_pkey;

ALTER INDEX mainspring.jobs_history_creator ATTACH PARTITION mainspring.jobs_history_default_created_by_job_id_idx;

ALTER INDEX mainspring.jobs_history_finished ATTACH PARTITION mainspring.jobs_history_default_finished_at_idx;

ALTER INDEX mainspring.jobs_history_job ATTACH PARTITION mainspring.jobs_history_default_job_id_idx;

ALTER INDEX mainspring.jobs_history_schedule ATTACH PARTITION mainspring.jobs_history_default_schedule_id_job_id_idx;

ALTER INDEX mainspring.jobs_history_unsuccessful_everywhere ATTACH PARTITION mainspring.jobs_history_default_state_job_id_idx;

ALTER INDEX mainspring.jobs_history_tenant ATTACH PARTITION mainspring.jobs_history_default_tenant_id_job_id_idx;

ALTER INDEX mainspring.jobs_history_unsuccessful ATTACH PARTITION mainspring.jobs_history_default_tenant_id_state_job_id_idx;

CREATE TRIGGER definitions_audit AFTER INSERT OR DELETE OR UPDATE ON mainspring.definitions FOR EACH ROW EXECUTE FUNCTION mainspring.audit_change('{
        "noun": "definition", "subject": "key", "nulls": false,
        "without": ["key", "version", "is_plain", "created_at", "updated_at", "secret_paths",
                    "schema_key"],
        "switch": {"column": "is_active", "on": "activate", "off": "deactivate"}}');

CREATE TRIGGER definitions_check_owner BEFORE INSERT OR DELETE OR UPDATE ON mainspring.definitions FOR EACH ROW EXECUTE FUNCTION mainspring.check_definition_owner();

CREATE TRIGGER definitions_check_role BEFORE INSERT OR UPDATE OF kind, spec ON mainspring.definitions FOR EACH ROW EXECUTE FUNCTION mainspring.check_definition_role();

CREATE TRIGGER definitions_keep_limit AFTER INSERT OR DELETE OR UPDATE ON mainspring.definitions FOR EACH ROW EXECUTE FUNCTION mainspring.keep_limit();

CREATE TRIGGER definitions_keep_used BEFORE DELETE ON mainspring.definitions FOR EACH ROW EXECUTE FUNCTION mainspring.keep_used_definition();

CREATE TRIGGER definitions_keep_version AFTER INSERT OR UPDATE ON mainspring.definitions FOR EACH ROW EXECUTE FUNCTION mainspring.keep_version();

CREATE TRIGGER definitions_move_jobs AFTER UPDATE ON mainspring.definitions FOR EACH ROW WHEN (((new.limit_name IS DISTINCT FROM old.limit_name) OR (new.limit_by IS DISTINCT FROM old.limit_by))) EXECUTE FUNCTION mainspring.move_jobs_of_definition();

CREATE TRIGGER definitions_prepare BEFORE INSERT OR UPDATE ON mainspring.definitions FOR EACH ROW EXECUTE FUNCTION mainspring.prepare_definition();

CREATE TRIGGER jobs_history_settle_slot AFTER INSERT ON mainspring.jobs_history FOR EACH ROW WHEN ((new.schedule_id IS NOT NULL)) EXECUTE FUNCTION mainspring.settle_slot();

CREATE TRIGGER limits_announce AFTER INSERT OR DELETE OR UPDATE ON mainspring.limits FOR EACH ROW EXECUTE FUNCTION mainspring.announce_limit();

CREATE TRIGGER limits_audit AFTER INSERT OR DELETE OR UPDATE ON mainspring.limits FOR EACH ROW EXECUTE FUNCTION mainspring.audit_change('{
        "noun": "limit", "subject": "name", "nulls": true,
        "without": ["created_at", "updated_at"]}');

CREATE TRIGGER limits_touch BEFORE UPDATE ON mainspring.limits FOR EACH ROW EXECUTE FUNCTION mainspring.touch();

CREATE TRIGGER people_audit AFTER INSERT OR DELETE OR UPDATE ON mainspring.people FOR EACH ROW EXECUTE FUNCTION mainspring.audit_change('{
        "noun": "person", "subject": "name", "nulls": true,
        "without": ["created_at", "last_seen_at", "created_by", "person_id"]}');

CREATE TRIGGER record_retention_audit AFTER INSERT OR DELETE OR UPDATE ON mainspring.record_retention FOR EACH ROW EXECUTE FUNCTION mainspring.audit_retention();

CREATE TRIGGER retention_audit AFTER INSERT OR DELETE OR UPDATE ON mainspring.retention FOR EACH ROW EXECUTE FUNCTION mainspring.audit_retention();

CREATE TRIGGER schedules_add_clock AFTER INSERT ON mainspring.schedules FOR EACH ROW EXECUTE FUNCTION mainspring.add_clock();

CREATE TRIGGER schedules_audit AFTER INSERT OR DELETE OR UPDATE OF name, cron, every, at, zone, dst_gap, dst_fold, starts_at, ends_at, calendar, enabled, paused_until, jitter, overlap, catch_up, launcher, condition_sql, gauge_sql, gauge_lower, gauge_upper, gauge_bounds, condition_role, payload, definition, misfire_grace, max_running, catch_up_limit, catch_up_max_age, run_timeout, max_retries, description, queue, priority, max_attempts, condition_timeout, delivery ON mainspring.schedules FOR EACH ROW EXECUTE FUNCTION mainspring.audit_change('{
        "noun": "schedule", "subject": "name", "nulls": false,
        "without": ["schedule_id", "run_at", "created_at", "updated_at", "anchor_at",
                    "disabled_reason", "declared", "origin", "is_templated"],
        "switch": {"column": "enabled", "on": "enable", "off": "disable"}}');

CREATE TRIGGER schedules_check_role BEFORE INSERT OR UPDATE OF condition_role, condition_sql, gauge_sql ON mainspring.schedules FOR EACH ROW EXECUTE FUNCTION mainspring.check_condition_role();

CREATE TRIGGER schedules_forget AFTER DELETE ON mainspring.schedules FOR EACH ROW EXECUTE FUNCTION mainspring.forget_schedule();

CREATE TRIGGER schedules_keep_built_in BEFORE DELETE OR UPDATE ON mainspring.schedules FOR EACH ROW WHEN ((old.definition ~~ 'mainspring.%'::text)) EXECUTE FUNCTION mainspring.keep_built_in_schedule();

CREATE TRIGGER schedules_prepare BEFORE INSERT OR UPDATE OF name, cron, every, at, zone, dst_gap, dst_fold, starts_at, ends_at, calendar, enabled, paused_until, jitter, anchor_at, overlap, catch_up, launcher, condition_sql, gauge_sql, gauge_lower, gauge_upper, gauge_bounds, condition_role, payload, definition, misfire_grace, max_running, catch_up_limit, catch_up_max_age, run_timeout, max_retries, description, queue, priority, max_attempts, condition_timeout, delivery ON mainspring.schedules FOR EACH ROW EXECUTE FUNCTION mainspring.prepare_schedule();

CREATE TRIGGER schedules_set_clock BEFORE UPDATE OF name, cron, every, at, zone, dst_gap, dst_fold, starts_at, ends_at, calendar, enabled, paused_until, jitter, anchor_at, run_at, catch_up, catch_up_limit, catch_up_max_age, misfire_grace, launcher, condition_sql, gauge_sql, payload, definition, delivery ON mainspring.schedules FOR EACH ROW EXECUTE FUNCTION mainspring.set_clock();

CREATE TRIGGER tenants_audit AFTER INSERT OR DELETE OR UPDATE ON mainspring.tenants FOR EACH ROW EXECUTE FUNCTION mainspring.audit_change('{
        "noun": "tenant", "subject": "tenant_id", "nulls": true,
        "without": ["created_at", "updated_at", "enabled_max_running"],
        "kept": {"max_running": "enabled_max_running"},
        "switch": {"column": "disabled_at", "on": "disable", "off": "enable"}}');

CREATE TRIGGER tenants_move_jobs AFTER UPDATE OF max_running ON mainspring.tenants FOR EACH ROW WHEN ((new.max_running IS DISTINCT FROM old.max_running)) EXECUTE FUNCTION mainspring.move_jobs_of_tenant();

CREATE TRIGGER tenants_switch_clocks AFTER UPDATE OF disabled_at ON mainspring.tenants FOR EACH ROW WHEN (((new.disabled_at IS NULL) <> (old.disabled_at IS NULL))) EXECUTE FUNCTION mainspring.switch_clocks();

CREATE TRIGGER tenants_touch BEFORE UPDATE ON mainspring.tenants FOR EACH ROW EXECUTE FUNCTION mainspring.touch();

CREATE TRIGGER tokens_audit AFTER INSERT OR DELETE OR UPDATE ON mainspring.tokens FOR EACH ROW EXECUTE FUNCTION mainspring.audit_change('{
        "noun": "token", "subject": "name", "nulls": true, "only": {"kind": "token"},
        "without": ["created_at", "last_used_at", "digest", "created_by", "created_by_id",
                    "person_id", "voter", "ends_by"],
        "switch": {"column": "revoked_at", "on": "revoke"}}');

CREATE TRIGGER tokens_person BEFORE INSERT ON mainspring.tokens FOR EACH ROW WHEN (((new.person IS NOT NULL) AND (new.person_id IS NULL))) EXECUTE FUNCTION mainspring.find_person();

CREATE TRIGGER triggers_audit AFTER INSERT OR DELETE OR UPDATE ON mainspring.triggers FOR EACH ROW EXECUTE FUNCTION mainspring.audit_change('{
        "noun": "trigger", "subject": "name", "nulls": false,
        "without": ["trigger_id", "created_at", "updated_at"],
        "switch": {"column": "is_enabled", "on": "enable", "off": "disable"}}');

CREATE TRIGGER triggers_prepare BEFORE INSERT OR UPDATE ON mainspring.triggers FOR EACH ROW EXECUTE FUNCTION mainspring.prepare_trigger();

ALTER TABLE ONLY mainspring.dispatches
    ADD CONSTRAINT dispatches_event_id_fkey FOREIGN KEY (event_id) REFERENCES mainspring.events(event_id) ON DELETE CASCADE;

ALTER TABLE ONLY mainspring.flow_jobs
    ADD CONSTRAINT flow_jobs_flow_id_fkey FOREIGN KEY (flow_id) REFERENCES mainspring.flows(flow_id) ON DELETE CASCADE;

ALTER TABLE ONLY mainspring.people
    ADD CONSTRAINT people_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES mainspring.tenants(tenant_id);

ALTER TABLE ONLY mainspring.schedules
    ADD CONSTRAINT schedules_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES mainspring.tenants(tenant_id);

ALTER TABLE ONLY mainspring.suspicions
    ADD CONSTRAINT suspicions_worker_id_fkey FOREIGN KEY (worker_id) REFERENCES mainspring.workers(worker_id) ON DELETE CASCADE;

ALTER TABLE ONLY mainspring.tokens
    ADD CONSTRAINT tokens_person_id_fkey FOREIGN KEY (person_id) REFERENCES mainspring.people(person_id) ON DELETE CASCADE;

ALTER TABLE ONLY mainspring.tokens
    ADD CONSTRAINT tokens_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES mainspring.tenants(tenant_id);

ALTER TABLE ONLY mainspring.triggers
    ADD CONSTRAINT triggers_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES mainspring.tenants(tenant_id);

ALTER TABLE ONLY mainspring.votes
    ADD CONSTRAINT votes_job_id_fkey FOREIGN KEY (job_id) REFERENCES mainspring.approvals(job_id) ON DELETE CASCADE;

ALTER TABLE ONLY mainspring.worker_schemas
    ADD CONSTRAINT worker_schemas_worker_id_fkey FOREIGN KEY (worker_id) REFERENCES mainspring.workers(worker_id) ON DELETE CASCADE;

ALTER TABLE mainspring.approvals ENABLE ROW LEVEL SECURITY;

ALTER TABLE mainspring.audit ENABLE ROW LEVEL SECURITY;

ALTER TABLE mainspring.changes ENABLE ROW LEVEL SECURITY;

ALTER TABLE mainspring.depths ENABLE ROW LEVEL SECURITY;

ALTER TABLE mainspring.enqueue_keys ENABLE ROW LEVEL SECURITY;

ALTER TABLE mainspring.error_days ENABLE ROW LEVEL SECURITY;

ALTER TABLE mainspring.events ENABLE ROW LEVEL SECURITY;

ALTER TABLE mainspring.failures ENABLE ROW LEVEL SECURITY;

ALTER TABLE mainspring.figures ENABLE ROW LEVEL SECURITY;

ALTER TABLE mainspring.figures_day ENABLE ROW LEVEL SECURITY;

ALTER TABLE mainspring.figures_ever ENABLE ROW LEVEL SECURITY;

ALTER TABLE mainspring.figures_hour ENABLE ROW LEVEL SECURITY;

ALTER TABLE mainspring.figures_minute ENABLE ROW LEVEL SECURITY;

ALTER TABLE mainspring.flows ENABLE ROW LEVEL SECURITY;

ALTER TABLE mainspring.jobs ENABLE ROW LEVEL SECURITY;

ALTER TABLE mainspring.jobs_history ENABLE ROW LEVEL SECURITY;

ALTER TABLE mainspring.lane_floors ENABLE ROW LEVEL SECURITY;

CREATE POLICY of_tenant ON mainspring.approvals USING (mainspring.is_visible(tenant_id));

CREATE POLICY of_tenant ON mainspring.audit USING (mainspring.is_visible(tenant_id));

CREATE POLICY of_tenant ON mainspring.changes USING (mainspring.is_visible(tenant_id));

CREATE POLICY of_tenant ON mainspring.depths USING (mainspring.is_visible(tenant_id));

CREATE POLICY of_tenant ON mainspring.enqueue_keys USING (mainspring.is_visible(tenant_id));

CREATE POLICY of_tenant ON mainspring.error_days USING ((mainspring.is_visible(tenant_id) AND mainspring.is_own(NULL::text)));

CREATE POLICY of_tenant ON mainspring.events USING (mainspring.is_visible(tenant_id));

CREATE POLICY of_tenant ON mainspring.failures USING ((mainspring.is_visible(tenant_id) AND mainspring.is_own(NULL::text)));

CREATE POLICY of_tenant ON mainspring.figures USING (mainspring.is_visible(tenant_id));

CREATE POLICY of_tenant ON mainspring.people USING (mainspring.is_visible(tenant_id));

CREATE POLICY of_tenant ON mainspring.record_retention USING (mainspring.is_visible(tenant_id));

CREATE POLICY of_tenant ON mainspring.replies USING (mainspring.is_visible(tenant_id));

CREATE POLICY of_tenant ON mainspring.retention USING (mainspring.is_visible(tenant_id));

CREATE POLICY of_tenant ON mainspring.schedules USING (mainspring.is_visible(tenant_id));

CREATE POLICY of_tenant ON mainspring.tallies USING (mainspring.is_visible(tenant_id));

CREATE POLICY of_tenant ON mainspring.tally_changes USING (mainspring.is_visible(tenant_id));

CREATE POLICY of_tenant ON mainspring.tenants USING (mainspring.is_visible(tenant_id));

CREATE POLICY of_tenant ON mainspring.tokens USING (mainspring.is_visible(tenant_id));

CREATE POLICY of_tenant ON mainspring.triggers USING (mainspring.is_visible(tenant_id));

CREATE POLICY of_tenant_and_creator ON mainspring.flows USING ((mainspring.is_visible(tenant_id) AND mainspring.is_own(created_by)));

CREATE POLICY of_tenant_and_creator ON mainspring.jobs USING ((mainspring.is_visible(tenant_id) AND mainspring.is_own(created_by)));

CREATE POLICY of_tenant_and_creator ON mainspring.jobs_history USING ((mainspring.is_visible(tenant_id) AND mainspring.is_own(created_by)));

ALTER TABLE mainspring.people ENABLE ROW LEVEL SECURITY;

ALTER TABLE mainspring.processes ENABLE ROW LEVEL SECURITY;

ALTER TABLE mainspring.queues ENABLE ROW LEVEL SECURITY;

ALTER TABLE mainspring.record_retention ENABLE ROW LEVEL SECURITY;

ALTER TABLE mainspring.replies ENABLE ROW LEVEL SECURITY;

ALTER TABLE mainspring.retention ENABLE ROW LEVEL SECURITY;

ALTER TABLE mainspring.schedules ENABLE ROW LEVEL SECURITY;

ALTER TABLE mainspring.suspicions ENABLE ROW LEVEL SECURITY;

ALTER TABLE mainspring.tallies ENABLE ROW LEVEL SECURITY;

ALTER TABLE mainspring.tally_changes ENABLE ROW LEVEL SECURITY;

ALTER TABLE mainspring.tenants ENABLE ROW LEVEL SECURITY;

ALTER TABLE mainspring.tokens ENABLE ROW LEVEL SECURITY;

ALTER TABLE mainspring.triggers ENABLE ROW LEVEL SECURITY;

ALTER TABLE mainspring.watches ENABLE ROW LEVEL SECURITY;

ALTER TABLE mainspring.worker_schemas ENABLE ROW LEVEL SECURITY;

REVOKE ALL ON FUNCTION mainspring.active_definition(key text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.actor() FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.add_clock() FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.add_figures(added mainspring.figures[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.add_job(job mainspring.jobs, defined mainspring.definitions) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.add_jobs(model mainspring.jobs, defined mainspring.definitions, payloads jsonb[], dedupe_keys text[], limit_key text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.add_parents(job_id bigint, parents bigint[], tenant text, on_failure text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.add_steps(flow_id bigint, job_ids bigint[], steps jsonb, tenant text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.add_to_tallies(changed mainspring.changes[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.announce_limit() FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.app_role() FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.apply_plan(plan jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.apply_trigger(plan jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.approve(job_id bigint, reason text, tenant text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.approver_names(tenant text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.wrong_queue(queue text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.are_plain_words(queue text, correlation_id text, tags text[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.ask_approval(job_id bigint, tenant text, defined mainspring.definitions) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.ask_as_reader(condition text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.asked_job(definition text, payload jsonb, tenant text, queue text, priority integer, max_attempts integer, scheduled_for timestamp with time zone, deadline timestamp with time zone, dedupe_key text, correlation_id text, tags text[], limit_key text, job_id bigint, created_by text, source text, delivery text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.asked_now(asked mainspring.jobs, delay interval) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.audit_change() FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.audit_retention() FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.audited_action(was jsonb, is_now jsonb, switch jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.kept_columns(stored jsonb, options jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.audited_columns(stored jsonb, options jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.awaited_parents(behind bigint, most integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.backfill(schedule_id bigint, slots timestamp with time zone[], payloads jsonb[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.backoff_of(version mainspring.definition_versions) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.balance(depths_now mainspring.depths[], changed mainspring.changes[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.bearer(digest bytea, OUT token_id bigint, OUT kind text, OUT role text, OUT tenant_id text, OUT scopes text[], OUT actor text, OUT approver text[], OUT actor_id text, OUT voter text, OUT person_id bigint, OUT person text, OUT ends_by timestamp with time zone) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.bearer_of(digest bytea, OUT token_id bigint, OUT kind text, OUT role text, OUT tenant_id text, OUT scopes text[], OUT actor text, OUT approver text[], OUT actor_id text, OUT voter text, OUT person_id bigint, OUT person text, OUT ends_by timestamp with time zone, OUT tenants text[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.bucket_number(seconds double precision) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.bucket_of(limit_name text, limit_key text, burst integer, seconds double precision, OUT tokens integer, OUT next_in double precision) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.buckets_of(changed mainspring.changes[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.call_function(full_name text, role text, payload jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.call_text(namespace text, name text, argument text, most_bytes integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.caller_of(role text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.cancel(job_id bigint, reason text, tenant text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.cancel_flow(flow_id bigint, reason text, tenant text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.cap_keys(INOUT depths_now mainspring.depths[], INOUT changed mainspring.changes[], most integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.change_jobs(action text, job_ids bigint[], states mainspring.job_state[], tenant text, reason text, actor text, is_patient boolean) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.changes_of(tenants text[], queues text[], definitions text[], states mainspring.job_state[], attempts mainspring.attempt_outcome[], waits double precision[], runs double precision[], days date[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.check_bulk(payloads jsonb[], dedupe_keys text[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.check_condition_role() FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.check_cron(expression text, spread_key text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.check_definition_key(definition mainspring.definitions) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.check_definition_owner() FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.check_definition_role() FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.check_definition_spec(definition mainspring.definitions) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.check_delivery(delivery text, max_attempts integer, defined mainspring.definitions) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.check_event(name text, context jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.check_numbers(priority integer, max_attempts integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.check_origin(created_by text, source text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.check_pause(name text, reason text, until timestamp with time zone, duration interval) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.check_payload(payload jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.check_queue(queue text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.check_reason(reason text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.check_saved_payload(definition text, payload jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.check_schedule(schedule mainspring.schedules) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.check_step(number bigint, defined mainspring.definitions, step jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.check_step_count(steps jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.check_step_jobs(steps jsonb, tenant text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.check_step_order(steps jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.check_step_shapes(steps jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.check_steps(steps jsonb, tenant text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.check_text(option text, value text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.check_times(delay interval, scheduled_for timestamp with time zone, deadline timestamp with time zone) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.check_words(queue text, correlation_id text, tags text[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.check_zone(zone text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.checkpoints(OUT timed bigint, OUT requested bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.claim_limited(worker_id bigint, queues text[], names text[], keys text[], tenants text[], shares integer[], most integer, lowest integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.close_overdue_run(job_id bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.letter_pairs(name text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.closest(name text, known text[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.compact(into_step text, from_step text, start timestamp with time zone) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.has_mark(value jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.compared_by(payload jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.content_digest(tenant text, definition text, payload jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.content_of(job mainspring.jobs) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.contents_of_tenant(tenant text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.counted_from(schedule mainspring.schedules) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.create_schedule(spec jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.cron_check_count(words text[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.cron_check_every(words text[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.cron_check_name(words text[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.cron_check_text(expression text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.cron_field(place integer, field text, key text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.cron_has_date(days integer[], months integer[], weekdays integer[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.cron_item(place integer, item text, key text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.cron_place(place integer, OUT name text, OUT low integer, OUT high integer, OUT spread_high integer, OUT size integer, OUT unit text, OUT names text[], OUT forms text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.cron_range(place integer, item text, range text, OUT first integer, OUT last integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.cron_refuse(place integer, problem text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.cron_span(place integer, item text, base text, step integer, key text, OUT first integer, OUT last integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.cron_spread(place integer, key text, size integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.cron_step(place integer, item text, step text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.cron_value(place integer, item text, value text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.cron_weekday(item text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.day_of(instant timestamp with time zone) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.decide_outcomes(parents bigint[], most integer, OUT children bigint[], OUT decided integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.declare_schedule(spec jsonb, overwrite boolean) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.part_of(field text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.declared_changes(wanted jsonb, known jsonb, current jsonb, overwrite boolean) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.dedupe_key_of(asked mainspring.jobs, dedupe_by text, dedupe_window interval, on_duplicate text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.definition_text(definition mainspring.definitions) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.delete_from_tenant(tenant text, most integer, OUT what text, OUT deleted bigint, OUT running bigint, OUT is_done boolean) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.delete_job(job_id bigint, tenant text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.delete_rest_of_tenant(tenant text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.did_you_mean(name text, known text[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.differing(facts jsonb, others jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.dispatch(event_ids bigint[], plans jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.drop_partition(name text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.drop_partitions() FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.earlier_contents(tenant text, definition text, payload jsonb, was_compared_by jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.emit(name text, context jsonb, tenant text, correlation_id text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.end_sessions(person bigint, session bigint, tenant text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.end_spent_jobs(job_ids bigint[], is_worker_dead boolean) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.enqueue(definition text, payload jsonb, tenant text, queue text, priority integer, max_attempts integer, scheduled_for timestamp with time zone, delay interval, deadline timestamp with time zone, dedupe_key text, dedupe_by text, dedupe_window interval, idempotency_key text, on_duplicate text, correlation_id text, tags text[], limit_key text, approvals_needed integer, after bigint[], on_parent_failure text, created_by text, source text, delivery text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.enqueue_asked(asked mainspring.jobs, delay interval, dedupe_by text, dedupe_window interval, idempotency_key text, on_duplicate text, approvals_needed integer, after bigint[], on_parent_failure text, OUT job_id bigint, OUT is_new boolean) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.enqueue_flow(name text, steps jsonb, tenant text, OUT flow_id bigint, OUT job_ids bigint[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.enqueue_job(definition text, payload jsonb, tenant text, queue text, priority integer, max_attempts integer, scheduled_for timestamp with time zone, delay interval, deadline timestamp with time zone, dedupe_key text, dedupe_by text, dedupe_window interval, idempotency_key text, on_duplicate text, correlation_id text, tags text[], limit_key text, approvals_needed integer, after bigint[], on_parent_failure text, created_by text, source text, delivery text, OUT job_id bigint, OUT is_new boolean) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.enqueue_many(definition text, payloads jsonb[], tenant text, queue text, priority integer, max_attempts integer, scheduled_for timestamp with time zone, delay interval, deadline timestamp with time zone, dedupe_keys text[], correlation_id text, tags text[], limit_key text, approvals_needed integer, created_by text, source text, delivery text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.enqueued_text(job_id bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.ensure_app_role() FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.ensure_caller(role text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.ensure_flow(flow_id bigint, tenant text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.ensure_known_tenant(tenant text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.ensure_open(definition text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.ensure_partitions(days_ahead integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.ensure_retention_visible(tenant text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.ensure_safe_delete(pruned regclass) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.ensure_tenant(tenant text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.ensure_visible(tenant text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.enter(digest bytea) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.has_error_key(filter jsonb, job_id bigint, state mainspring.job_state, attempt integer, created_at timestamp with time zone, finished_at timestamp with time zone) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.error_matches(filter jsonb, job_id bigint, state mainspring.job_state, attempt integer, created_at timestamp with time zone, finished_at timestamp with time zone) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.event_matches(pattern text, name text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.expire_approvals(most integer, chosen bigint[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.extras_of(job mainspring.jobs, rated text[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.failure_of_slots(schedule_id bigint, slots timestamp with time zone[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.figures_by(steps text[], starts timestamp with time zone[], ends timestamp with time zone[], span interval, keys text[], tenant text, queues text[], definitions text[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.figures_of(changed mainspring.changes[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.find_function(full_name text, OUT namespace text, OUT name text, OUT argument text, OUT guardian text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.find_person() FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.find_schedule(tenant text, name text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.fired_slots(schedule_id bigint, slots timestamp with time zone[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.first_wait(needs_approval boolean, has_parents boolean, is_behind_others boolean, due_at timestamp with time zone, limit_name text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.fitting_schema(schedule mainspring.schedules) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.fold_failures(most integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.forget_schedule() FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.free_of_keys(names text[], keys text[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.free_of_limits(names text[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.free_of_tenants(tenants text[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.free_places(names text[], keys text[], tenants text[], most integer, OUT limits_free integer[], OUT keys_free integer[], OUT tenants_free integer[], OUT shared text[], OUT shared_free integer[], OUT is_shared boolean, OUT next_in double precision, OUT keyed_names text[], OUT keyed_places integer[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.free_slot(schedule mainspring.schedules, asked timestamp with time zone) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.full_limits(shared text[], free integer[], given text[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.functions_of_table(id regclass) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.given_instant(schedule mainspring.schedules) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.given_source(source text, created_by text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.grant_places(names text[], keys text[], tenants text[], most integer, OUT is_ours boolean, OUT granted integer, OUT queues text[], OUT unfinished integer[], OUT shared text[], OUT full_ones text[], OUT next_in double precision, OUT keyed_names text[], OUT keyed_places integer[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.has_foreign_mark(value jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.has_json_type(value jsonb, types jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.hint_of_offset(name text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.history_begins_at() FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.history_of(job mainspring.jobs, state mainspring.job_state, started_at timestamp with time zone, result jsonb, failed integer, losses integer, error text, finished_at timestamp with time zone, progress jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.hold_jobs(INOUT job_ids bigint[], INOUT states mainspring.job_state[], tenant text, is_patient boolean) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.identity() FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.install_schedule(spec jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.is_approver(approvers text[], tenant text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.is_closed(definition text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.is_deactivated(key text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.is_event_name(name text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.is_known_schema(arg_schema jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.is_marked(schema jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.is_open_value(value jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.is_plain(schedule mainspring.schedules) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.is_plain_definition(definition mainspring.definitions) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.is_source(source text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.may_create_as(created_by text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.is_plain_origin(created_by text, source text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.is_plain_request(payload jsonb, queue text, priority integer, max_attempts integer, delay interval, scheduled_for timestamp with time zone, on_duplicate text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.is_quickly_checked(arg_schema jsonb, payload jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.is_related(filter jsonb, job_id bigint, creator text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.is_spent(job mainspring.jobs, is_worker_dead boolean) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.is_zone(name text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.parts_sought(asked jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.job_matches(filter jsonb, state mainspring.job_state, queue text, definition text, source text, tags text[], created_at timestamp with time zone, last_error text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.keep_built_in_schedule() FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.keep_depth(depth mainspring.depths) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.keep_limit() FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.keep_used_definition() FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.keep_version() FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.keyed_digest(purpose text, content text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.keys_with_figures(depths_now mainspring.depths[], changed mainspring.changes[], most integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.largest_count() FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.legacy_content(definition text, payload jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.limit_key_of(payload jsonb, path text[], given text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.limit_name_of(definition mainspring.definitions, is_new boolean) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.limit_of(defined mainspring.definitions, tenant text, payload jsonb, given text, OUT limit_name text, OUT limit_key text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.live_again(ended mainspring.jobs_history, payload jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.live_depths() FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.live_runs(schedule_id bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.lock_approval(job_id bigint, tenant text, target text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.lock_for_plan(plan jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.lock_settling() FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.lock_windows(keys text[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.log_out(digest bytea) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.longest_delay() FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.longest_text() FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.look(most_keys integer, most_changes integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.lost_worker_key() FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.max_payload_bytes() FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.may_fire(schedule mainspring.schedules) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.meant_definition(key text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.meant_function(full_name text, name text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.merged_depths(depths_now mainspring.depths[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.missing_app_grants(app name) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.most_dependencies() FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.most_error_groups() FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.most_flow_bytes() FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.most_jobs() FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.most_parents() FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.most_steps() FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.move_jobs_of_definition() FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.move_jobs_of_tenant() FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.move_on(job_id bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.needs_look(schedule mainspring.schedules, force boolean) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.new_job(asked mainspring.jobs, defined mainspring.definitions, has_parents boolean, is_behind_others boolean) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.newest_jobs(job_ids bigint[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.newest_of(lists text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.note_action(tenant text, action text, noun text, subject text, reason text, before jsonb, after jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.note_duplicate(asked mainspring.jobs, holder bigint, idempotency_key text, on_duplicate text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.note_failure(schedule mainspring.schedules, failures integer, problem text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.note_session(person mainspring.people, action text, after jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.note_vote(asked mainspring.approvals, action text, reason text, became mainspring.job_state) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.notify_cancel(worker_id bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.notify_due_soon() FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.notify_enqueued(queue text, priority integer, tenant text, first_id bigint, due_at timestamp with time zone) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.notify_event() FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.notify_job_ready(queue text, due_at timestamp with time zone) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.notify_jobs(queue text, priority integer, tenant text, job_ids bigint[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.notify_lane(queue text, priority integer, tenant text, first_id bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.notify_limit(limit_name text, limit_key text, tenant text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.notify_limits_changed() FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.notify_parents() FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.notify_queue(queue text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.notify_released(job mainspring.jobs) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.notify_schedule() FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.of_each_step(figure mainspring.figures) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.open_login(person bigint, prefix text, digest bytea, life interval, ends_by timestamp with time zone, is_link boolean, tenant text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.open_to_app() FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.origin_matches(filter jsonb, created_by text, schedule text, slot_at timestamp with time zone, trigger text, worker_id bigint, definition_version integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.other_schemas(definition mainspring.definitions) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.own_name(name text, tenant text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.owner_name() FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.parents_in(partition_name text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.past_jobs_by_day(tenant text, state text, keep interval) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.past_partitions() FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.past_records_by_day(kind text, tenant text, fallback interval, keep interval) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.paths_of(definition text, version integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.pause_queue(name text, reason text, until timestamp with time zone, duration interval) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.pick_limited(queues text[], names text[], keys text[], tenants text[], shares integer[], limits_free integer[], keys_free integer[], tenants_free integer[], most integer, lowest integer, is_shared boolean, OUT places tid[], OUT limits text[], OUT unfinished integer[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.plan_key(schedule mainspring.schedules) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.prepare_bulk(definition text, count integer, tenant text, queue text, priority integer, max_attempts integer, scheduled_for timestamp with time zone, delay interval, deadline timestamp with time zone, OUT job_version integer, OUT job_queue text, OUT job_priority integer, OUT job_max_attempts integer, OUT due_at timestamp with time zone, OUT is_plain boolean, OUT first_id bigint, OUT last_id bigint, OUT job_ids bigint[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.prepare_definition() FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.prepare_schedule() FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.prepare_trigger() FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.prunable_table(full_name text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.prune_receipts(most integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.prune_table(full_name text, column_name text, age interval, batch integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.put_aside(duty text, key bigint, reason text, pauses interval[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.put_back(job_id bigint, payload jsonb, tenant text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.read_steps(steps jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.ready_message(queue text, due_at timestamp with time zone) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.receipt_token(job_id bigint, fence bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.record_policies(kind text, fallback interval, tenant text, asked interval) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.refuse(code text, message text, detail jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.refuse_definition(key text, field text, problem text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.refuse_duplicate(key text, holder bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.refuse_event(field text, problem text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.refuse_job(job_id bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.refuse_move(job_id bigint, state mainspring.job_state, target text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.refuse_option(option text, problem text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.refuse_schedule(field text, problem text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.refuse_trigger(field text, problem text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.reject(job_id bigint, reason text, tenant text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.release_turn(schedule_id bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.remove_jobs(job_ids bigint[], tenant text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.remove_limit(name text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.renewed_key(key text, earlier text[], content text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.renewed_request(kept mainspring.enqueue_keys, earlier text[], content text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.replay_event(event_id bigint, trigger text, tenant text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.request_digest(key text, content text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.requeue_jobs(job_ids bigint[], waits mainspring.waits_for[], have_begun boolean, due_ats timestamp with time zone[], failures integer[], losses integer[], errors text[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.reserve_idempotency(asked mainspring.jobs, key text, content text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.reserve_key(tenant text, kind text, key text, job_id bigint, lifetime interval, fingerprint text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.restored(edited jsonb, stored jsonb, paths jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.restored_at(edited jsonb, stored jsonb, path text[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.resume_queue(name text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.retention_of(tenant text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.retention_policies() FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.retry(job_id bigint, payload jsonb, tenant text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.retry_flow(flow_id bigint, tenant text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.risks_of_delete(pruned regclass) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.run_answer(result jsonb, OUT message text, OUT details jsonb, OUT is_details_omitted boolean) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.run_instant(schedule_id bigint, slot timestamp with time zone, jitter interval) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.schedule_facts(schedule mainspring.schedules) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.schedule_function(name text, function text, cron text, zone text, payload jsonb, description text, role text, tenant text, enabled boolean, on_conflict text, max_attempts integer, timeout interval) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.schedule_of(schedule_id bigint, origin jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.schema_at(document jsonb, pointer text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.schema_key_of(arg_schema jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.schemas_in(document jsonb, schema jsonb, path text[], refs text[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.secret_paths(schema jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.seek_jobs(section text, states mainspring.job_state[], asked jsonb, tenant text, behind bigint, up_to bigint, ended_before timestamp with time zone, most_seen integer, most_found integer, OUT job_ids bigint[], OUT seen bigint, OUT edge bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.send_message(message text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.set_clock() FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.set_limit(name text, concurrency integer, key_concurrency integer, rate_count integer, rate_period interval, burst integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.set_retention(kind text, tenant text, state text, keep interval) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.setting_of_database(name text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.settle_cancel(job_id bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.settle_cancels(job_ids bigint[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.settle_children(children bigint[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.settle_page(behind_parent bigint, behind_child bigint, most integer, OUT is_ours boolean, OUT settled integer, OUT next_parent bigint, OUT next_child bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.settle_parents(parents bigint[], most integer, OUT is_ours boolean, OUT settled integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.settle_slot() FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.shown_payload(definition text, payload jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.shown_value(value jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.spread_by(schedule mainspring.schedules) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.start_bulk(action text, asked jsonb, reason text, tenant text, total bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.start_slot(schedule mainspring.schedules, slot timestamp with time zone, source mainspring.slot_trigger, missed integer, payload jsonb, definition text, in_line boolean, reserved bigint, OUT outcome mainspring.slot_outcome, OUT job_id bigint, OUT reason text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.start_tenant_deletion(tenant text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.state_of(waits mainspring.waits_for) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.stop_job(job_id bigint, reason text, tenant text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.stop_jobs(job_ids bigint[], reason text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.stop_runs(schedule_id bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.store_schedule(schedule mainspring.schedules) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.stride_of(count bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.summed_buckets(buckets bigint[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.switch_clocks() FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.tables_of_delete(pruned regclass) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.tags_of(lists jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.take_back_places() FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.take_from_history(job_id bigint, tenant text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.take_token(job_id bigint, fence bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.texts_of(texts jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.token_seconds(rate_count integer, rate_period interval) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.topmost_paths(paths jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.touch() FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.trigger_scheduled_job(name text, tenant text, force boolean, slot timestamp with time zone) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.try_put_back(job_id bigint, tenant text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.unknown_facts(key text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.unpaused(queues text[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.unset_retention(kind text, tenant text, state text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.unsettled_among(children bigint[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.update_schedule(tenant text, name text, changes jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.use_login(login bytea, prefix text, digest bytea, life interval) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.uses_mark() FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.validate_constraint(table_name text, constraint_name text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.version_of(definition mainspring.definitions) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.visible_state(job_id bigint, tenant text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.voter(tenant text, OUT id text, OUT name text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.wait_of(limit_name text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.waiting_children(behind bigint, most integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.walk_ended(tenant text, of_state mainspring.job_state, creator text, behind bigint, up_to bigint, most integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.walk_live(creator text, behind bigint, up_to bigint, most integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.warn_of_definition(definition text, noun text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.was_lost(delivery text, state mainspring.job_state, failures integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.why(job_id bigint, tenant text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.why_approval(job mainspring.jobs) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.why_begun(job mainspring.jobs, worker mainspring.workers) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.why_behind(job mainspring.jobs) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.why_closed(definition text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.why_word(word text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.why_command(command text, tenant text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.why_most() FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.why_count(number bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.why_ended(past mainspring.jobs_history) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.why_error(error text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.why_estimate(job mainspring.jobs, first jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.why_full(job mainspring.jobs) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.why_handler(job mainspring.jobs) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.why_has_begun(job mainspring.jobs, worker mainspring.workers) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.why_span(span interval) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.why_instant(at timestamp with time zone) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.why_is_seen(tenant text, creator text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.why_later(job mainspring.jobs) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.why_limit(job mainspring.jobs) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.why_live(job mainspring.jobs) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.why_locked(job mainspring.jobs) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.why_lost(worker_id bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.why_missing(job_id bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.why_no_bearer(digest bytea) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.why_no_function(full_name text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.why_not_held(job_ids bigint[], states mainspring.job_state[], tenant text, is_patient boolean) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.why_of_others(job mainspring.jobs) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.why_parent(parent_id bigint, levels integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.why_parents(job mainspring.jobs, levels integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.why_places(job mainspring.jobs, known mainspring.limits, is_of_key boolean, most integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.why_rate(job mainspring.jobs, known mainspring.limits) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.why_reason(code text, sentence text, since timestamp with time zone, until timestamp with time zone, facts jsonb, fix text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.why_reasons(job mainspring.jobs, levels integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.why_running(job mainspring.jobs) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.why_set_limit(known mainspring.limits, concurrency integer, key_concurrency integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.why_soon(job mainspring.jobs) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.why_stopped(job mainspring.jobs) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.why_tenant_cap(job mainspring.jobs) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.why_time(job mainspring.jobs) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.why_turn(job mainspring.jobs) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.why_unclaimed(job mainspring.jobs, is_claimable boolean) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.why_unknown(key text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.why_unknown_function(full_name text, parts text[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.why_unserved(job mainspring.jobs) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.why_usual(job mainspring.jobs) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.why_worker(worker_id bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.why_workers(job mainspring.jobs, OUT worker_id bigint, OUT concurrency integer, OUT queues text[], OUT is_stopping boolean, OUT is_served boolean) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.window_key(trigger_id bigint, tenant text, definition text, payload text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.with_approvals(defined mainspring.definitions, asked integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.with_circles(marked jsonb, reaching text[], circles jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.without_fingerprints(payload jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.write_limit(name text, concurrency integer, key_concurrency integer, rate_count integer, rate_period interval, burst integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.write_slots(schedule mainspring.schedules, plan jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.wrong_condition(schedule mainspring.schedules) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.wrong_default(definition mainspring.definitions) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.wrong_definition_size(definition mainspring.definitions) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.wrong_duration(schedule mainspring.schedules) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.wrong_function(spec jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.wrong_instant(schedule mainspring.schedules) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.wrong_members(arg_schema jsonb, given jsonb, place text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.wrong_number(schedule mainspring.schedules) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.wrong_role(spec jsonb, guardian text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.wrong_schedule_size(schedule mainspring.schedules) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.wrong_trigger(trigger mainspring.triggers) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.wrong_value(arg_schema jsonb, given jsonb, place text) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.wrong_word(schedule mainspring.schedules) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.zero_changes(depths_now mainspring.depths[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION mainspring.zones_of_abbreviation(name text) FROM PUBLIC;
