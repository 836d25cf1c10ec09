-- Definitions: how a wrong one is refused, and what the audit keeps of one.

create or replace function mainspring.refuse_definition(key text, field text, problem text)
returns void
language plpgsql
as $$
begin
    perform mainspring.refuse('MS050', key || ': ' || field || ' ' || problem,
        jsonb_build_object('key', key, 'field', field, 'problem', problem));
end
$$;
