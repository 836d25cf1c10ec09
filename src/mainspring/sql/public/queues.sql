-- Queues: pause and resume.

-- Pauses a queue, or changes its pause, and writes it to the audit.
create or replace function mainspring.pause_queue(
    name text, reason text default '', until timestamptz default null,
    duration interval default null
)
returns mainspring.queues
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
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
comment on function mainspring.pause_queue is
    'Pauses a queue: nothing of it is claimed until it is resumed, or until an instant, or for a '
    'while. Returns the pause.';

-- Ends the pause of a queue, wakes its workers and writes it to the audit.
create or replace function mainspring.resume_queue(name text)
returns boolean
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
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
comment on function mainspring.resume_queue is
    'Ends the pause of a queue; returns whether it was paused.';
