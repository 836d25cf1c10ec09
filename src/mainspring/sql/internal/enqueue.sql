-- Enqueue: the one way in for a job.
--
--   enqueue, enqueue_job, dispatch ─▶ enqueue_asked ─┐
--   start_slot, put_back, start_bulk ────────────────┴─▶ new_job ─▶ add_job
--                                                        decides    inserts, informs
--
-- new_job decides limit, wait and state of a job; add_job inserts it, asks for approval and sends
-- the notification that follows from the wait.
--
-- Fast paths
-- Six statements insert jobs themselves, because that pays. The first three and the last take only
-- jobs that wait for nothing but time, and leave the others to new_job; the two in between insert
-- what new_job decides, but as a set. tests/store/test_ways_in.py sends the same cases through
-- every way in and compares the rows and the notifications.
--
--   enqueue_job      public/enqueue.sql          one plain job: a single statement
--   enqueue_plainly  queries/jobs.sql            the same without a function call
--   copy_jobs        queries/jobs.sql            plain jobs of one definition, by COPY
--   add_jobs         internal/enqueue.sql        for enqueue_many: decided once for all
--   add_steps        internal/flows.sql          for enqueue_flow: decided one by one
--   fire             queries/due_schedules.sql   the slots of plain schedules

-- What ALTER DATABASE ... SET says, whatever the session has set; null if nothing.
create or replace function mainspring.setting_of_database(name text)
returns text
language sql stable
as $$
    select substr(entry, length(name) + 2)
      from pg_catalog.pg_db_role_setting as kept, unnest(kept.setconfig) as entry
     where kept.setrole = 0 and starts_with(entry, name || '=')
       and kept.setdatabase in (0, (select oid from pg_catalog.pg_database
                                     where datname = current_database()))
     order by kept.setdatabase desc limit 1
$$;

-- The largest payload that is accepted. Mainspring's own programs say it by a setting of their
-- connections. Any other session could give itself a limit like that, so for it only what the owner
-- of the database has set for the database counts.
create or replace function mainspring.max_payload_bytes()
returns integer
language sql stable
as $$
    select least(coalesce(nullif(case
               when mainspring.is_program()
               then current_setting('mainspring.max_payload_bytes', true)
               else mainspring.setting_of_database('mainspring.max_payload_bytes') end,
               '')::bigint, 1048576), 67108864)::integer
$$;

-- What is known of a job before its definition is looked at. Nulls stand for the defaults.
create or replace function mainspring.asked_job(
    definition text, payload jsonb, tenant text, queue text default null,
    priority integer default null, max_attempts integer default null,
    scheduled_for timestamptz default null, deadline timestamptz default null,
    dedupe_key text default null, correlation_id text default null, tags text[] default null,
    limit_key text default null, job_id bigint default null, created_by text default null,
    source text default null, delivery text default null
)
returns mainspring.jobs
language plpgsql
as $$
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

-- A job that is created at this moment, by whoever asks, and due after the delay. One of a schedule
-- is created by that, whoever fires it.
create or replace function mainspring.asked_now(asked mainspring.jobs, delay interval)
returns mainspring.jobs
language plpgsql
as $$
begin
    asked.created_at := clock_timestamp();
    if asked.schedule_id is null then
        asked.created_by := coalesce(asked.created_by, mainspring.creator());
    end if;
    asked.scheduled_for := coalesce(asked.scheduled_for, asked.created_at + delay);
    return asked;
end
$$;

-- Decides what a job becomes: the defaults of its definition, its limit, what it waits for and
-- its state. A job that has been live before keeps when and by whom it was created.
create or replace function mainspring.new_job(
    asked mainspring.jobs, defined mainspring.definitions, has_parents boolean default false,
    is_behind_others boolean default false
)
returns mainspring.jobs
language plpgsql
as $$
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

-- Inserts a job that new_job has decided on, and informs whoever is to act on it next. Returns the
-- id of the live job that has its dedupe key: its own, or another's if the key is taken.
create or replace function mainspring.add_job(
    job mainspring.jobs, defined mainspring.definitions
)
returns bigint
language plpgsql
as $$
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

-- Adds one job a payload, all like the one that new_job has decided on but for their limit keys.
-- A payload whose dedupe key is taken is left out.
create or replace function mainspring.add_jobs(
    model mainspring.jobs, defined mainspring.definitions, payloads jsonb[], dedupe_keys text[],
    limit_key text
)
returns setof bigint
language plpgsql
as $$
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

-- Enqueues a job with everything an enqueue may say: checks it, reserves its keys and adds it.
create or replace function mainspring.enqueue_asked(
    asked mainspring.jobs, delay interval, dedupe_by text, dedupe_window interval,
    idempotency_key text, on_duplicate text, approvals_needed integer, after bigint[],
    on_parent_failure text, out job_id bigint, out is_new boolean
)
language plpgsql
as $$
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

-- What a bulk enqueue is to write, decided before its first row: checks what is common to all
-- jobs, fills in the definition's defaults, and takes an id for each.
create or replace function mainspring.prepare_bulk(
    definition text, count integer, tenant text, queue text, priority integer,
    max_attempts integer, scheduled_for timestamptz, delay interval, deadline timestamptz,
    out job_version integer, out job_queue text, out job_priority integer,
    out job_max_attempts integer, out due_at timestamptz, out is_plain boolean,
    out first_id bigint, out last_id bigint, out job_ids bigint[]
)
language plpgsql
as $$
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
