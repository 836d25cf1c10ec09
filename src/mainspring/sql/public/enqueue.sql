-- Enqueue: one job, or many of one definition. The rules are in internal/enqueue.sql.

-- Enqueues one job. The common case is a fast path of one statement, since plpgsql pays for every
-- expression anew in each transaction. It inserts nothing if anything is wrong or needs a closer
-- look; then enqueue_asked decides, and says what is wrong. A priority out of range is made to fit
-- its column, since the planner would fail on it before the condition that refuses it.
create or replace function mainspring.enqueue_job(
    definition text, payload jsonb default '{}', tenant text default 'default',
    queue text default null, priority integer default null, max_attempts integer default null,
    scheduled_for timestamptz default null, delay interval default null,
    deadline timestamptz default null, dedupe_key text default null, dedupe_by text default null,
    dedupe_window interval default null, idempotency_key text default null,
    on_duplicate text default 'raise', correlation_id text default null, tags text[] default null,
    limit_key text default null, approvals_needed integer default null, after bigint[] default null,
    on_parent_failure text default 'cancel', created_by text default null,
    source text default null, delivery text default null, out job_id bigint, out is_new boolean
)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
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
comment on function mainspring.enqueue_job is
    'Enqueues one job in the caller''s transaction; returns whether it is new or already existed.';

-- Enqueues one job, for callers who need nothing but its id.
create or replace function mainspring.enqueue(
    definition text, payload jsonb default '{}', tenant text default 'default',
    queue text default null, priority integer default null, max_attempts integer default null,
    scheduled_for timestamptz default null, delay interval default null,
    deadline timestamptz default null, dedupe_key text default null, dedupe_by text default null,
    dedupe_window interval default null, idempotency_key text default null,
    on_duplicate text default 'raise', correlation_id text default null,
    tags text[] default null, limit_key text default null, approvals_needed integer default null,
    after bigint[] default null, on_parent_failure text default 'cancel',
    created_by text default null, source text default null, delivery text default null
)
returns bigint
language sql
security definer
set search_path = pg_catalog, pg_temp
as $$
    select job_id from mainspring.enqueue_job(
        definition, payload, tenant, queue, priority, max_attempts, scheduled_for, delay, deadline,
        dedupe_key, dedupe_by, dedupe_window, idempotency_key, on_duplicate, correlation_id, tags,
        limit_key, approvals_needed, after, on_parent_failure, created_by, source, delivery)
$$;
comment on function mainspring.enqueue is
    'Enqueues one job in the caller''s transaction and returns its id.';

-- Enqueues one job a payload. What the jobs have in common is checked and decided once.
create or replace function mainspring.enqueue_many(
    definition text, payloads jsonb[], tenant text default 'default', queue text default null,
    priority integer default null, max_attempts integer default null,
    scheduled_for timestamptz default null, delay interval default null,
    deadline timestamptz default null, dedupe_keys text[] default null,
    correlation_id text default null, tags text[] default null, limit_key text default null,
    approvals_needed integer default null, created_by text default null,
    source text default null, delivery text default null
)
returns setof bigint
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
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
comment on function mainspring.enqueue_many is
    'Enqueues one job per payload; skips payloads whose dedupe key is taken.';
