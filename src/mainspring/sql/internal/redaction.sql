-- Secrets in payloads: where they are by a schema, and how they are kept from readers.

-- Whether a schema says that what it describes is a secret.
create or replace function mainspring.is_marked(schema jsonb)
returns boolean
language sql immutable
return coalesce(schema -> 'writeOnly' = 'true' or schema ->> 'format' = 'password', false);

-- What a pointer such as #/$defs/login points to; null for what is not understood.
create or replace function mainspring.schema_at(document jsonb, pointer text)
returns jsonb
language sql immutable
return case when pointer like '#/%' and pointer not like '%\%%'
            then document #> (
                select array_agg(replace(replace(part, '~1', '/'), '~0', '~') order by position)
                  from unnest(string_to_array(substr(pointer, 3), '/'))
                       with ordinality as step (part, position)) end;

-- The schemas inside a schema, each with what it is about. A reference that leads back to where
-- the walk has been is given as a circle, without a schema.
create or replace function mainspring.schemas_in(
    document jsonb, schema jsonb, path text[], refs text[]
)
returns table (part jsonb, part_path text[], part_refs text[], circle text, is_lost boolean)
language sql immutable
as $$
    with part as (
        select member.value as part,
               case keyword.step when 'name' then path || member.key
                                 when 'any' then path || '*'::text else path end as part_path
          from (values ('properties', 'name'), ('patternProperties', 'any'),
                       ('dependentSchemas', 'here'), ('dependencies', 'here'))
               as keyword (name, step),
               lateral jsonb_each(case when jsonb_typeof(schema -> keyword.name) = 'object'
                                       then schema -> keyword.name else '{}' end) as member
        union all
        select member.value,
               case keyword.step when 'any' then path || '*'::text else path end
          from (values ('additionalProperties', 'any'), ('unevaluatedProperties', 'any'),
                       ('items', 'any'), ('prefixItems', 'any'), ('additionalItems', 'any'),
                       ('unevaluatedItems', 'any'), ('contains', 'any'), ('allOf', 'here'),
                       ('anyOf', 'here'), ('oneOf', 'here'), ('if', 'here'), ('then', 'here'),
                       ('else', 'here')) as keyword (name, step),
               lateral jsonb_array_elements(
                   case jsonb_typeof(schema -> keyword.name)
                        when 'array' then schema -> keyword.name
                        when 'object' then jsonb_build_array(schema -> keyword.name)
                        else '[]' end) as member
    ), referred as (
        select schema ->> keyword as target
          from unnest('{$ref,$dynamicRef,$recursiveRef}'::text[]) as keyword
         where jsonb_typeof(schema -> keyword) = 'string'
    )
    select part, part_path, refs, null, false from part where jsonb_typeof(part) = 'object'
    union all
    select null, path, refs, target, false from referred where target = any (refs)
    union all
    select found, path, refs || target, null, found is null
      from referred, lateral mainspring.schema_at(document, target) as found
     where target <> all (refs) and (found is null or jsonb_typeof(found) = 'object')
$$;

-- Adds the circles that lead to a secret: where the walk came back to a schema from which one is
-- reached. Each may reach others, so until none is left.
create or replace function mainspring.with_circles(marked jsonb, reaching text[], circles jsonb)
returns jsonb
language plpgsql immutable
as $$
declare
    closing jsonb;
begin
    loop
        select jsonb_agg(circle) into closing from jsonb_array_elements(circles) as circle
         where circle ->> 'to' = any (reaching);
        exit when closing is null;
        select coalesce(jsonb_agg(circle), '[]') into circles
          from jsonb_array_elements(circles) as circle
         where circle ->> 'to' <> all (reaching);
        select marked || jsonb_agg(circle -> 'path') into marked
          from jsonb_array_elements(closing) as circle;
        reaching := reaching || array(
            select jsonb_array_elements_text(circle -> 'refs')
              from jsonb_array_elements(closing) as circle);
    end loop;
    return marked;
end
$$;

-- The paths of which none is below another; all of the payload if one is empty; null for none.
create or replace function mainspring.topmost_paths(paths jsonb)
returns jsonb
language sql immutable
return case
    when exists (select from jsonb_array_elements(paths) as path where path = '[]')
    then '[["*"]]'
    else (
        select jsonb_agg(path order by path)
          from (select distinct path from jsonb_array_elements(paths) as path) as each
         where not exists (
            select from jsonb_array_elements(paths) as above
             where jsonb_array_length(above) < jsonb_array_length(path)
               and not exists (
                   select from generate_series(0, jsonb_array_length(above) - 1) as step
                    where above -> step <> path -> step)))
    end;

-- The paths of all fields that a schema marks as secret, none below another; null if none. The
-- program finds the same by domain/secrets/paths, which explains the rules.
create or replace function mainspring.secret_paths(schema jsonb)
returns jsonb
language plpgsql immutable
as $$
declare
    node record;
    walked integer := 0;
    marked jsonb := '[]';
    reaching text[] := '{}';
    circles jsonb := '[]';
begin
    if schema is null or not jsonb_path_exists(
        schema, '$.** ? (@.writeOnly == true || @.format == "password")') then
        return null;
    end if;
    for node in
        with recursive walk as (
            select schema as part, '{}'::text[] as part_path, '{#}'::text[] as part_refs,
                   null::text as circle, false as is_lost
            union all
            select inside.*
              from walk,
                   lateral mainspring.schemas_in(
                       schema, walk.part, walk.part_path, walk.part_refs) as inside
             where walk.part is not null and not mainspring.is_marked(walk.part)
               and cardinality(walk.part_path) < 50
        )
        select * from walk
    loop
        if node.circle is not null then
            circles := circles || jsonb_build_object(
                'path', node.part_path, 'refs', node.part_refs, 'to', node.circle);
            continue;
        end if;
        walked := walked + (not node.is_lost)::integer;
        if walked > 10000 then
            return '[["*"]]';
        end if;
        if node.is_lost or mainspring.is_marked(node.part)
           or cardinality(node.part_path) = 50 then
            marked := marked || jsonb_build_array(to_jsonb(node.part_path));
            reaching := reaching || node.part_refs;
        end if;
    end loop;
    return mainspring.topmost_paths(mainspring.with_circles(marked, reaching, circles));
end
$$;

-- A value without what is at a path, in which * stands for any member or element.
create or replace function mainspring.redacted_at(value jsonb, path text[])
returns jsonb
language plpgsql immutable
as $$
begin
    if value is null or value = 'null' then
        return value;
    elsif cardinality(path) = 0 then
        return '"[redacted]"';
    elsif jsonb_typeof(value) = 'object' then
        return (select coalesce(jsonb_object_agg(key, case when path[1] in ('*', key)
                                    then mainspring.redacted_at(member, path[2:])
                                    else member end), '{}')
                  from jsonb_each(value) as part (key, member));
    elsif jsonb_typeof(value) = 'array' and path[1] = '*' then
        return (select coalesce(jsonb_agg(mainspring.redacted_at(member, path[2:])
                                          order by position), '[]')
                  from jsonb_array_elements(value) with ordinality as part (member, position));
    end if;
    return value;
end
$$;

-- A payload as people may see it.
create or replace function mainspring.redacted(payload jsonb, paths jsonb)
returns jsonb
language plpgsql immutable
as $$
declare
    path jsonb;
begin
    for path in select jsonb_array_elements(paths) loop
        payload := mainspring.redacted_at(payload, array(select jsonb_array_elements_text(path)));
    end loop;
    return payload;
end
$$;

-- A value that no schema describes, as people may see it: without what stands under the name of a
-- secret, and without the password of a URL. The names are those of domain/secrets/patterns.
create or replace function mainspring.shown_value(value jsonb)
returns jsonb
language plpgsql immutable
as $$
begin
    case jsonb_typeof(value)
        when 'object' then
            return (select coalesce(jsonb_object_agg(key, case
                        when member <> 'null' and key ~* ('(password|passwd|passphrase|secret|token'
                             || '|pwd|authorization|(api|access|private)[_-]?key)$')
                        then '"[redacted]"' else mainspring.shown_value(member) end), '{}')
                      from jsonb_each(value) as part (key, member));
        when 'array' then
            return (select coalesce(jsonb_agg(mainspring.shown_value(member) order by position),
                                    '[]')
                      from jsonb_array_elements(value) with ordinality as part (member, position));
        when 'string' then
            return to_jsonb(regexp_replace(
                value #>> '{}', '(://[^\s/:@]*:)[^\s/]+@', '\1[redacted]@', 'g'));
        else
            return value;
    end case;
end
$$;

-- The value that a person who edited a redacted one means: what is stored in its place. Elements
-- of an array are known by their place alone, so their number must be the same.
create or replace function mainspring.restored_at(edited jsonb, stored jsonb, path text[])
returns jsonb
language plpgsql immutable
as $$
begin
    if cardinality(path) = 0 then
        if edited = '"[redacted]"' and stored is null then
            perform mainspring.refuse('MS001', 'the payload contains [redacted] where nothing is '
                || 'stored or where an array has a different length; pass the real value');
        end if;
        return case when edited = '"[redacted]"' then stored else edited end;
    elsif jsonb_typeof(edited) = 'object' then
        return (select coalesce(jsonb_object_agg(key, case when path[1] in ('*', key)
                                    then mainspring.restored_at(member,
                                        case when jsonb_typeof(stored) = 'object'
                                             then stored -> key end, path[2:])
                                    else member end), '{}')
                  from jsonb_each(edited) as part (key, member));
    elsif jsonb_typeof(edited) = 'array' and path[1] = '*' then
        return (select coalesce(jsonb_agg(mainspring.restored_at(member,
                                    case when jsonb_typeof(stored) = 'array'
                                              and jsonb_array_length(stored)
                                                  = jsonb_array_length(edited)
                                         then stored -> (position - 1)::integer end, path[2:])
                                          order by position), '[]')
                  from jsonb_array_elements(edited) with ordinality as part (member, position));
    end if;
    return edited;
end
$$;

-- The same for all paths of a payload.
create or replace function mainspring.restored(edited jsonb, stored jsonb, paths jsonb)
returns jsonb
language plpgsql immutable
as $$
declare
    path jsonb;
begin
    for path in select jsonb_array_elements(paths) loop
        edited := mainspring.restored_at(
            edited, stored, array(select jsonb_array_elements_text(path)));
    end loop;
    return edited;
end
$$;

-- Encrypted values
--
--   {"key": "1f0c9a2e", "nonce": "...", "value": "...", "$mainspring": "encrypted"}
--
-- Programs encrypt before they send; the database has no key. What it can tell is whether a value
-- could be one of theirs, by its text: names in jsonb have one order, and the quotes of a text have
-- backslashes before them, so nothing but an object matches.

-- Whether a name of the value is the one that marks what is encrypted. So is one that ends in a
-- quote and that name.
create or replace function mainspring.has_mark(value jsonb)
returns boolean
language sql immutable
return strpos(value::text, '"$mainspring": ') > 0;

-- The problem with it.
create or replace function mainspring.uses_mark()
returns text
language sql immutable
return 'uses the name "$mainspring", which is reserved for encrypted values; rename the field';

-- Whether a value is marked as encrypted and no program of ours could have made it.
create or replace function mainspring.has_foreign_mark(value jsonb)
returns boolean
language sql immutable
return mainspring.has_mark(value) and strpos(regexp_replace(value::text,
    '\{"key": "[0-9a-f]{8}", ("nonce": "[A-Za-z0-9+/=]+", )?"value": "[A-Za-z0-9+/=]+", '
    || '"\$mainspring": "encrypted"(, "fingerprint": "[0-9a-f]{64}")?\}', '', 'g'),
    '"$mainspring": ') > 0;

-- What payloads are compared by: an encrypted value, which is never the same twice, counts as the
-- fingerprint that it was sent with.
create or replace function mainspring.compared_by(payload jsonb)
returns text
language sql immutable
return case when mainspring.has_mark(payload) then regexp_replace(payload::text,
    '\{"key": "[^"]*", "nonce": "[^"]*", "value": "[^"]*", "\$mainspring": "encrypted", '
    || '"fingerprint": "([0-9a-f]{64})"\}', '"\1"', 'g')
    else payload::text end;

-- A payload as it is stored, with no fingerprint beside what is encrypted: equal secrets would have
-- equal ones.
create or replace function mainspring.without_fingerprints(payload jsonb)
returns jsonb
language sql immutable
return case when mainspring.has_mark(payload) then regexp_replace(payload::text,
    '("\$mainspring": "encrypted"), "fingerprint": "[0-9a-f]{64}"\}', '\1}', 'g')::jsonb
    else payload end;

-- What is secret in the payloads of a version: what it marked itself, and what is marked now.
create or replace function mainspring.paths_of(definition text, version integer)
returns jsonb
language sql stable
return (
    select jsonb_agg(distinct path)
      from mainspring.definition_versions as kept,
           lateral jsonb_array_elements(kept.secret_paths) as path
     where kept.key = paths_of.definition and kept.secret_paths is not null
       and kept.version in (paths_of.version, (select now.version from mainspring.definitions as now
                                                where now.key = paths_of.definition)));

-- What a definition is enqueued with, as people may see it.
create or replace function mainspring.shown_payload(definition text, payload jsonb)
returns jsonb
language sql stable
return coalesce(
    (select mainspring.redacted(shown_payload.payload, defined.secret_paths)
       from mainspring.definitions as defined
      where defined.key = shown_payload.definition and defined.secret_paths is not null),
    shown_payload.payload);
