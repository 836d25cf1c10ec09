-- Waits: what keeps a live job from being ready, and what follows when that ends.

-- What a job waits for when nothing but its limit is left.
create or replace function mainspring.wait_of(limit_name text)
returns mainspring.waits_for
language sql immutable
return case when limit_name is not null then 'limit'::mainspring.waits_for end;

-- What a job that is not ready yet waits for first.
create or replace function mainspring.first_wait(
    needs_approval boolean, has_parents boolean, is_behind_others boolean, due_at timestamptz,
    limit_name text
)
returns mainspring.waits_for
language sql
return case when needs_approval then 'approval'::mainspring.waits_for
            when has_parents then 'parents'
            when is_behind_others then 'turn'
            when due_at > clock_timestamp() then 'time'
            when limit_name is not null then 'limit' end;

-- The state that goes with a wait.
create or replace function mainspring.state_of(waits mainspring.waits_for)
returns mainspring.job_state
language sql immutable
return case waits when 'approval' then 'awaiting_approval'::mainspring.job_state
                  when 'parents' then 'blocked'
                  else 'queued' end;

-- Moves a job that an approval or its parents no longer hold to what it waits for next.
create or replace function mainspring.move_on(job_id bigint)
returns mainspring.job_state
language plpgsql
as $$
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
