-- Retries: how a job that has ended becomes live again.

-- Takes a job that ended without success out of history; refuses any other.
create or replace function mainspring.take_from_history(job_id bigint, tenant text)
returns mainspring.jobs_history
language plpgsql
as $$
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

-- What stays of a job that has ended when it becomes live again, with another payload if given.
create or replace function mainspring.live_again(ended mainspring.jobs_history, payload jsonb)
returns mainspring.jobs
language plpgsql
as $$
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

-- Puts an ended job back, whoever asks; nothing is written to the audit.
create or replace function mainspring.put_back(job_id bigint, payload jsonb, tenant text)
returns bigint
language plpgsql
as $$
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
