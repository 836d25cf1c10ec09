-- Columns of definitions that functions and triggers derive, brought up to date in rows that an
-- older release wrote.

-- Those that were stored before it mattered.
update mainspring.definitions set is_plain = false where key like 'mainspring.%' and is_plain;

-- Definitions that were written before their secrets were looked for.
update mainspring.definition_versions set secret_paths = mainspring.secret_paths(arg_schema)
 where arg_schema is not null
   and secret_paths is distinct from mainspring.secret_paths(arg_schema);
update mainspring.definitions set secret_paths = mainspring.secret_paths(arg_schema)
 where arg_schema is not null
   and secret_paths is distinct from mainspring.secret_paths(arg_schema);
