-- Which fields of a payload are secret, by the schema of its definition.

alter table mainspring.definitions
    -- Kept by a trigger: an array of paths, each an array of names; null if there are none.
    add column secret_paths jsonb;
alter table mainspring.definition_versions add column secret_paths jsonb;

-- Serves job_status: the definitions whose payloads are redacted.
create index definition_versions_secret on mainspring.definition_versions (key)
    where secret_paths is not null;
