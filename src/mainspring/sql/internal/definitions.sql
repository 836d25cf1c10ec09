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

-- What a person decides about a definition.
create or replace function mainspring.definition_facts(definition mainspring.definitions)
returns jsonb
language sql stable
set timezone = 'UTC'
set intervalstyle = 'postgres'
return (select jsonb_object_agg(key, value)
          from jsonb_each(to_jsonb(definition) - array['key', 'version', 'is_plain', 'created_at',
                                                       'updated_at', 'secret_paths'])
         where value <> 'null');
