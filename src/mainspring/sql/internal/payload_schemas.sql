-- Payloads of schedules and triggers, held to the JSON Schema of their definition when a row is
-- written. SQL knows the keywords that describe the arguments of most handlers; what it finds wrong
-- is wrong whatever else a schema says. Programs know all keywords, and check before they write.

-- Whether a value is of one of the types; a whole number is an integer however it is written.
create or replace function mainspring.has_json_type(value jsonb, types jsonb)
returns boolean
language sql immutable
return types ? jsonb_typeof(value)
       or (jsonb_typeof(value) = 'number' and types ? 'integer'
           and (value #>> '{}')::numeric = trunc((value #>> '{}')::numeric));

-- Whether nothing is known of a value until a job is made of it: a template, or encrypted.
create or replace function mainspring.is_open_value(value jsonb)
returns boolean
language sql immutable
return case jsonb_typeof(value) when 'string' then value #>> '{}' like '%{{%'
                                when 'object' then value ? '$mainspring' else false end;

-- What is wrong with a value by its JSON Schema, by the keywords that are known here; null if
-- nothing is. Values are not repeated, since they may be secret.
create or replace function mainspring.wrong_value(arg_schema jsonb, given jsonb, place text)
returns text
language plpgsql stable
as $$
declare
    types jsonb := case jsonb_typeof(arg_schema -> 'type')
        when 'string' then jsonb_build_array(arg_schema -> 'type')
        when 'array' then arg_schema -> 'type' end;
begin
    if jsonb_typeof(arg_schema) is distinct from 'object' or mainspring.is_open_value(given) then
        return null;
    elsif not mainspring.has_json_type(given, types) then
        return format('%s: must be of the type %s, not %s', place,
            (select string_agg(name, ' or ') from jsonb_array_elements_text(types) as name),
            jsonb_typeof(given));
    elsif jsonb_typeof(arg_schema -> 'enum') = 'array' and not exists (
        select from jsonb_array_elements(arg_schema -> 'enum') as known
         where known = given) then
        return format('%s: must be one of %s', place, arg_schema ->> 'enum');
    elsif arg_schema -> 'const' <> given then
        return format('%s: must be %s', place, arg_schema ->> 'const');
    elsif jsonb_typeof(arg_schema -> 'anyOf') = 'array' and not exists (
        select from jsonb_array_elements(arg_schema -> 'anyOf') as allowed
         where mainspring.wrong_value(allowed, given, place) is null) then
        return format('%s: is none of what is allowed there', place);
    elsif jsonb_typeof(given) = 'object' then
        return mainspring.wrong_members(arg_schema, given, place);
    elsif jsonb_typeof(given) = 'array' and arg_schema ? 'items'
          and not arg_schema ? 'prefixItems' then
        return (select problem
                  from jsonb_array_elements(given) with ordinality as item (value, number),
                       lateral mainspring.wrong_value(arg_schema -> 'items', item.value,
                                                      place || '/' || item.number - 1) as problem
                 where problem is not null order by item.number limit 1);
    end if;
    return null;
end
$$;

-- What is wrong with an object by the names that a schema asks for, allows, and describes.
create or replace function mainspring.wrong_members(arg_schema jsonb, given jsonb, place text)
returns text
language sql stable
as $$
select coalesce(
    (select format('%s: %s is missing', place, to_json(name))
       from jsonb_array_elements_text(
                case jsonb_typeof(arg_schema -> 'required') when 'array'
                     then arg_schema -> 'required' end) as name
      where not given ? name limit 1),
    (select wrong.problem
       from jsonb_each(given) as member,
            lateral (select case
                when arg_schema -> 'properties' ? member.key then mainspring.wrong_value(
                    arg_schema -> 'properties' -> member.key, member.value,
                    place || '/' || member.key)
                when arg_schema ? 'patternProperties' then null
                when arg_schema -> 'additionalProperties' = 'false'
                then format('%s: %s is not expected', place, to_json(member.key))
                else mainspring.wrong_value(arg_schema -> 'additionalProperties', member.value,
                                            place || '/' || member.key) end) as wrong (problem)
      where wrong.problem is not null limit 1))
$$;

-- Whether a schema has no keywords but those that wrong_value knows: then what it finds nothing
-- wrong with fits.
create or replace function mainspring.is_known_schema(arg_schema jsonb)
returns boolean
-- An immutable one the planner would call, with parts of a schema that it has not.
language plpgsql stable
as $$
begin
    return jsonb_typeof(arg_schema) = 'boolean' and arg_schema = 'true'
        or jsonb_typeof(arg_schema) = 'object'
           and arg_schema - array['type', 'enum', 'const', 'anyOf', 'required', 'properties',
                                  'items', 'additionalProperties', 'default', 'title',
                                  'description', 'writeOnly'] = '{}'
           and not exists (
               select from (select value from jsonb_each(
                                case jsonb_typeof(arg_schema -> 'properties') when 'object'
                                     then arg_schema -> 'properties' end)
                            union all
                            select value from jsonb_array_elements(
                                case jsonb_typeof(arg_schema -> 'anyOf') when 'array'
                                     then arg_schema -> 'anyOf' end) as value
                            union all
                            select arg_schema -> 'items' where arg_schema ? 'items'
                            union all
                            select arg_schema -> 'additionalProperties'
                             where jsonb_typeof(arg_schema -> 'additionalProperties') = 'object'
                           ) as part
                where mainspring.is_known_schema(part.value) is not true);
end
$$;

-- Whether SQL checks such a payload against such a schema at all: the time that it takes grows with
-- both, and a scheduler has more.
create or replace function mainspring.is_quickly_checked(arg_schema jsonb, payload jsonb)
returns boolean
language sql immutable
return octet_length(arg_schema::text)::bigint * octet_length(payload::text) <= 2097152;

-- Refuses a payload that neither its definition nor a live worker would take. One of a definition
-- that is not there yet is not checked.
create or replace function mainspring.check_saved_payload(definition text, payload jsonb)
returns void
language plpgsql
as $$
declare
    defined mainspring.definitions;
    problem text;
begin
    select * into defined from mainspring.definitions as d
     where d.key = check_saved_payload.definition
       and mainspring.is_quickly_checked(d.arg_schema, payload);
    problem := mainspring.wrong_value(defined.arg_schema, payload, 'payload');
    if problem is not null and not exists (
        select from jsonb_array_elements(mainspring.other_schemas(defined)) as other
         where mainspring.wrong_value(other, payload, 'payload') is null) then
        perform mainspring.refuse('MS001', format('%s; it must fit the JSON Schema of the '
            'definition %s', problem, to_json(defined.key)), '{}');
    end if;
end
$$;

-- Stands for the schema that the payload of a schedule fits for certain, or for none; the nil UUID
-- if that is left to a scheduler to find out.
create or replace function mainspring.fitting_schema(schedule mainspring.schedules)
returns uuid
language plpgsql stable
as $$
declare
    defined mainspring.definitions;
begin
    select * into defined from mainspring.definitions as d where d.key = schedule.definition;
    if defined.arg_schema is null then
        return mainspring.schema_key_of(null);
    elsif schedule.is_templated
          or position('"$mainspring"' in schedule.payload::text) > 0
          or not mainspring.is_quickly_checked(defined.arg_schema, schedule.payload) then
        return '00000000-0000-0000-0000-000000000000';
    elsif mainspring.is_known_schema(defined.arg_schema)
          and mainspring.wrong_value(defined.arg_schema, schedule.payload, '') is null then
        return defined.schema_key;
    end if;
    return '00000000-0000-0000-0000-000000000000';
end
$$;

-- Whether a scheduler has to look before a schedule that is fired by hand gets its job.
create or replace function mainspring.needs_look(schedule mainspring.schedules, force boolean)
returns boolean
language sql stable
return schedule.launcher is not null or schedule.is_templated
       or (num_nonnulls(schedule.condition_sql, schedule.gauge_sql) > 0 and not force)
       or exists (select from mainspring.definitions as d
                   join mainspring.clocks as c on c.schedule_id = schedule.schedule_id
                  where d.key = schedule.definition and d.schema_key <> c.schema_key);
