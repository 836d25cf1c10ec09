-- The JSON Schemas of payloads: those that live workers have beside that of the definition, and the
-- one that the payload of a schedule was checked against.
--
-- works with: 0001

set local lock_timeout = '300ms';
lock table mainspring.definitions, mainspring.clocks in access exclusive mode;
set local lock_timeout = '2s';

-- What the handlers of a worker take. During a deployment they differ from worker to worker.
create table mainspring.worker_schemas (
    worker_id bigint not null references mainspring.workers on delete cascade,
    key text collate "C" not null,
    -- Null if any payload will do.
    arg_schema jsonb,
    primary key (worker_id, key)
);
-- Serves other_schemas.
create index worker_schemas_key on mainspring.worker_schemas (key);
alter table mainspring.worker_schemas enable row level security;

-- Stands for the schema; all definitions without one have the same.
alter table mainspring.definitions
    add column schema_key uuid not null default 'd41d8cd9-8f00-b204-e980-0998ecf8427e';
-- The schema that the payload is known to fit. Where the definition has another, a scheduler checks
-- the payload before it fires.
alter table mainspring.clocks
    add column schema_key uuid not null default 'd41d8cd9-8f00-b204-e980-0998ecf8427e';
