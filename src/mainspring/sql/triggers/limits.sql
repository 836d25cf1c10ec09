-- Triggers on mainspring.limits.

-- Notifies the workers that a limit has changed.
create or replace function mainspring.announce_limit()
returns trigger
language plpgsql
as $$
begin
    perform mainspring.notify_limits_changed();
    return null;
end
$$;

create or replace trigger limits_announce after insert or update or delete on mainspring.limits
    for each row execute function mainspring.announce_limit();
