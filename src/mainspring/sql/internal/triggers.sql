-- Triggers (rules that turn events into jobs): what is checked when one is written.

-- Raises the error for a trigger with a field that is wrong.
create or replace function mainspring.refuse_trigger(field text, problem text)
returns void
language plpgsql
as $$
begin
    perform mainspring.refuse('MS061', field || ': ' || problem,
        jsonb_build_object('field', field, 'problem', problem));
end
$$;

-- A field and what is wrong with it, or null.
create or replace function mainspring.wrong_trigger(trigger mainspring.triggers)
returns text[]
language plpgsql immutable
as $$
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
$$;
