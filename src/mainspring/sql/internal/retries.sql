-- Retries: how an ended job becomes live again.

-- Puts an ended job back, whoever asks; nothing is written down.
create or replace function mainspring.put_back(job_id bigint, payload jsonb, tenant text)
returns bigint
language plpgsql
as $$
#variable_conflict use_column
declare
    ended mainspring.jobs_history;
    live_state mainspring.job_state;
    holder bigint;
    defined mainspring.definitions;
    room record;
    waits mainspring.waits_for;
    needed integer;
begin
    if put_back.payload is not null then
        perform mainspring.check_enqueue(put_back.payload, null, null, null, null, null, null);
    end if;
    delete from mainspring.jobs_history as job
     where job.job_id = put_back.job_id and job.tenant_id = put_back.tenant
       and job.state in ('failed', 'dead_letter', 'canceled')
    returning * into ended;
    if not found then
        select state into live_state from mainspring.job_status as job
         where job.job_id = put_back.job_id and job.tenant_id = put_back.tenant;
        if not found then
            perform mainspring.refuse('MS030',
                'there is no job ' || coalesce(put_back.job_id::text, 'null'),
                jsonb_build_object('job_id', put_back.job_id));
        end if;
        perform mainspring.refuse('MS031', 'job ' || put_back.job_id || ' is ' || live_state
            || '; it cannot become queued', jsonb_build_object(
            'job_id', put_back.job_id, 'state', live_state, 'target', 'queued'));
    end if;
    if put_back.payload is not null then
        perform mainspring.ensure_open(ended.definition);
    end if;
    perform mainspring.untally(ended.tenant_id, ended.state, ended.finished_at);
    -- Who edits a payload has seen a redacted one.
    payload := mainspring.restored(put_back.payload, ended.payload, mainspring.paths_of(
        ended.definition, ended.definition_version));
    -- A key of the content goes with the content.
    if ended.dedupe_key = 'content:' || md5(ended.definition || e'\n' || ended.payload::text) then
        ended.dedupe_key := 'content:' || md5(ended.definition || e'\n'
            || coalesce(put_back.payload, ended.payload)::text);
    end if;
    select * into defined from mainspring.definitions as d where d.key = ended.definition;
    select * into room from mainspring.room_of(
        defined, ended.tenant_id, coalesce(put_back.payload, ended.payload), null);
    -- What was not approved, or not like this, has to be approved first.
    select asked.needed into needed from mainspring.approvals as asked
     where asked.job_id = ended.job_id
       and (asked.decision is distinct from 'approved' or put_back.payload <> ended.payload);
    waits := case when needed > 0 then 'approval'
                  when exists (select from mainspring.dependencies as d
                                where d.job_id = ended.job_id and d.outcome is null)
                  then 'parents'
                  when ended.slot_at is not null then 'turn'
                  else mainspring.wait_of(room.limit_name) end;
    loop
        insert into mainspring.jobs (
            job_id, created_at, scheduled_for, attempt, max_attempts, priority, tenant_id, queue,
            definition, definition_version, payload, dedupe_key, correlation_id, tags, checkpoint,
            last_error, schedule_id, slot_at, origin, created_by, state, waits_for, limit_name, limit_key)
        values (
            ended.job_id, ended.created_at, now(), ended.attempt, ended.max_attempts,
            ended.priority, ended.tenant_id, ended.queue, ended.definition,
            ended.definition_version, coalesce(put_back.payload, ended.payload), ended.dedupe_key,
            ended.correlation_id, ended.tags, ended.checkpoint, ended.last_error,
            ended.schedule_id, ended.slot_at, ended.origin, ended.created_by,
            mainspring.state_of(waits), waits,
            room.limit_name, room.limit_key)
        on conflict (tenant_id, dedupe_key) where dedupe_key is not null do nothing;
        exit when found;
        select job.job_id into holder from mainspring.jobs as job
         where job.tenant_id = ended.tenant_id and job.dedupe_key = ended.dedupe_key;
        if found then
            perform mainspring.refuse('MS020', 'job ' || holder || ' already holds the dedupe key '
                || quote_literal(ended.dedupe_key),
                jsonb_build_object('key', ended.dedupe_key, 'job_id', holder));
        end if;
    end loop;
    update mainspring.slots as slot set run_state = null, started_at = null, finished_at = null
     where slot.schedule_id = ended.schedule_id and slot.scheduled_for = ended.slot_at
       and slot.job_id = ended.job_id;
    if waits = 'approval' then
        perform mainspring.ask_approval(ended.job_id, ended.tenant_id, defined, needed);
    elsif waits = 'turn' then
        perform mainspring.release_turn(ended.schedule_id);
    elsif waits = 'parents' then
        perform pg_notify('mainspring', 'p:');
    elsif waits = 'limit' then
        perform mainspring.wake_limits(room.limit_name, room.limit_key, ended.tenant_id);
    else
        perform mainspring.wake(ended.queue);
    end if;
    return ended.job_id;
end
$$;
