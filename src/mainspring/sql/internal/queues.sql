-- Queues: which are paused, and what may be said of a pause.

-- Those of the queues that are not paused.
create or replace function mainspring.unpaused(queues text[])
returns text[]
language plpgsql stable
as $$
begin
    return array(
        select asked.queue from unnest(queues) as asked (queue)
         where asked.queue <> all (array(
             select paused.name from mainspring.paused_queues as paused)));
end
$$;

-- Refuses a pause of no queue, with too long a reason, or whose end has passed or is too far away.
create or replace function mainspring.check_pause(
    name text, reason text, until timestamptz, duration interval
)
returns void
language plpgsql
as $$
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
