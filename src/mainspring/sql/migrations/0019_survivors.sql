-- Survivors: a worker that has lost its lease and lives, as after an outage of the database, says
-- so, and then no job that it held is a suspect because of that.
--
-- works with: 0001

set local lock_timeout = '2s';

alter table mainspring.workers
    -- It lost its lease and goes on under another id, so nothing that it ran has killed it.
    add column survived boolean not null default false;

-- The jobs that were taken back from a worker as suspects; they go with its row.
create table mainspring.suspicions (
    worker_id bigint not null references mainspring.workers on delete cascade,
    job_id bigint not null,
    primary key (worker_id, job_id)
);
alter table mainspring.suspicions enable row level security;
