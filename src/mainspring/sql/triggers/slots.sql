-- Triggers that keep mainspring.slots up to date.

-- When a run ends, its slot says how, and the next in line may start.
create or replace function mainspring.settle_slot()
returns trigger
language plpgsql
as $$
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

create or replace trigger jobs_history_settle_slot after insert on mainspring.jobs_history
    for each row when (new.schedule_id is not null) execute function mainspring.settle_slot();
