-- What the doctor looks at. Everything is read; where a login may not see something, it is null or
-- counted as hidden, and no error.

-- name: begin_check
-- scope: system
-- Bounds what follows in the transaction, which only reads; the server process that runs it.
select set_config('statement_timeout', %(statement_ms)s::text, true),
       set_config('lock_timeout', %(lock_ms)s::text, true),
       set_config('transaction_read_only', %(read_only)s::text, true),
       pg_catalog.pg_backend_pid();

-- name: doctor_version
-- scope: system
-- The version of the server, and what day it is.
select pg_catalog.current_setting('server_version_num')::integer,
       (coalesce(%(now)s::timestamptz, now()) at time zone 'utc')::date;

-- name: doctor_settings
-- scope: system
-- Settings as a new session of this login has them.
select name, reset_val from pg_catalog.pg_settings where name = any (%(names)s::text[]);

-- name: id_ages
-- scope: system
-- How far the oldest transaction id and multixact id of this database are behind.
select pg_catalog.age(datfrozenxid)::bigint, pg_catalog.mxid_age(datminmxid)::bigint
  from pg_catalog.pg_database where datname = pg_catalog.current_database();

-- name: notification_queue
-- scope: system
-- The share of the server's queue of notifications that is used.
select pg_catalog.pg_notification_queue_usage();

-- name: checkpoints
-- scope: system
-- Checkpoints since the statistics were reset: those that were due, and those that were requested.
select timed, requested from mainspring.checkpoints();

-- name: block_reads
-- scope: system
-- How many blocks of our tables and indexes were found in memory, and how many were read.
select coalesce(sum(heap_blks_hit + coalesce(idx_blks_hit, 0)), 0)::bigint,
       coalesce(sum(heap_blks_read + coalesce(idx_blks_read, 0)), 0)::bigint
  from pg_catalog.pg_statio_user_tables where schemaname = 'mainspring';

-- name: open_transactions
-- scope: system
-- The oldest transactions of other sessions in this database that the login may look at.
select pid, coalesce(usename::text, ''), coalesce(application_name, ''),
       extract(epoch from coalesce(%(now)s::timestamptz, now()) - xact_start)::float,
       state in ('idle in transaction', 'idle in transaction (aborted)'),
       extract(epoch from coalesce(%(now)s::timestamptz, now()) - state_change)::float
  from pg_catalog.pg_stat_activity
 where datname = pg_catalog.current_database() and pid <> pg_catalog.pg_backend_pid()
   and backend_type = 'client backend' and xact_start is not null
 order by xact_start limit 5;

-- name: hidden_sessions
-- scope: system
-- How many sessions of this database the login may not look at, and its name.
select count(*), pg_catalog.quote_ident(session_user) from pg_catalog.pg_stat_activity
 where datname = pg_catalog.current_database() and query = '<insufficient privilege>';

-- name: prepared_transactions
-- scope: system
-- Transactions of this database that are prepared and have not ended.
select gid, owner::text,
       extract(epoch from coalesce(%(now)s::timestamptz, now()) - prepared)::float
  from pg_catalog.pg_prepared_xacts where database = pg_catalog.current_database()
 order by prepared limit 5;

-- name: replication_slots
-- scope: system
-- The replication slots of the server, whether each keeps rows, and how much WAL.
select slot_name::text, active, (xmin is not null or catalog_xmin is not null),
       coalesce(case when not pg_catalog.pg_is_in_recovery() then
           pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_current_wal_lsn(), restart_lsn) end,
           0)::bigint
  from pg_catalog.pg_replication_slots order by slot_name;

-- name: standbys
-- scope: system
-- The standbys that keep rows for their queries, as far as the login may see them.
select coalesce(application_name, ''), pg_catalog.age(backend_xmin)::bigint
  from pg_catalog.pg_stat_replication where backend_xmin is not null
 order by 2 desc limit 5;

-- name: used_connections
-- scope: system
-- The sessions of the server, those of ours in this database, and how many an ordinary login may
-- have.
select (select sum(numbackends) from pg_catalog.pg_stat_database)::integer,
       (select count(*) from pg_catalog.pg_stat_activity
         where datname = pg_catalog.current_database()
           and application_name like 'mainspring%%')::integer,
       pg_catalog.current_setting('max_connections')::integer
       - pg_catalog.current_setting('superuser_reserved_connections')::integer
       - coalesce(pg_catalog.current_setting('reserved_connections', true)::integer, 0);

-- name: lock_waits
-- scope: system
-- Sessions that wait for a lock and have one on a table of ours, or wait for that, the longest
-- first, with the first session that holds each up.
select waiting.pid, held.relname::text,
       extract(epoch from coalesce(%(now)s::timestamptz, now()) - waiting.waitstart)::float,
       blocker.pid, blocker.application_name, left(blocker.query, 100)
  from pg_catalog.pg_locks as waiting
 cross join lateral (
    select own.relname from pg_catalog.pg_locks as other
      join pg_catalog.pg_class as own on own.oid = other.relation
     where other.pid = waiting.pid and own.relkind in ('r', 'p')
       and own.relnamespace = 'mainspring'::regnamespace
       and other.database = (select known.oid from pg_catalog.pg_database as known
                              where known.datname = pg_catalog.current_database())
     order by other.granted limit 1) as held
  left join pg_catalog.pg_stat_activity as blocker
    on blocker.pid = (pg_catalog.pg_blocking_pids(waiting.pid))[1]
 where not waiting.granted and waiting.waitstart is not null
 order by waiting.waitstart limit 5;

-- name: table_activity
-- scope: system
-- What the statistics say of our tables: rows, dead rows, the last vacuum, whether they were ever
-- analyzed, and changes since.
select relname::text, n_live_tup, n_dead_tup,
       extract(epoch from coalesce(%(now)s::timestamptz, now())
                          - greatest(last_vacuum, last_autovacuum))::float,
       coalesce(last_analyze, last_autoanalyze) is not null, n_mod_since_analyze
  from pg_catalog.pg_stat_user_tables where schemaname = 'mainspring' order by relname;

-- name: queue_relations
-- scope: system
-- The sizes of the live table and of the index that claims use.
select own.relname::text, pg_catalog.pg_relation_size(own.oid),
       greatest(own.reltuples::bigint, seen.n_live_tup, 0)
  from pg_catalog.pg_class as own
  left join pg_catalog.pg_stat_user_tables as seen
    on seen.relid = 'mainspring.jobs'::regclass
 where own.relnamespace = 'mainspring'::regnamespace and own.relname in ('jobs', 'jobs_ready');

-- name: invalid_indexes
-- scope: system
-- Indexes on our tables that are not valid, except those that someone makes right now.
select index.relname::text, owner.relname::text
  from pg_catalog.pg_index as known
  join pg_catalog.pg_class as index on index.oid = known.indexrelid
  join pg_catalog.pg_class as owner on owner.oid = known.indrelid
 where owner.relnamespace = 'mainspring'::regnamespace and index.relkind = 'i'
   and not known.indisvalid
   and not exists (select from pg_catalog.pg_stat_progress_create_index as making
                    where making.relid = known.indrelid)
 order by index.relname;

-- name: added_objects
-- scope: system
-- Indexes, triggers and rules on our tables that are not among the names given, nor parts of
-- partitioned ones.
select 'index', index.relname::text, owner.relname::text
  from pg_catalog.pg_index as known
  join pg_catalog.pg_class as index on index.oid = known.indexrelid
  join pg_catalog.pg_class as owner on owner.oid = known.indrelid
 where owner.relnamespace = 'mainspring'::regnamespace and owner.relkind in ('r', 'p')
   and owner.relname = any (%(tables)s::text[])
   and known.indisvalid and not index.relispartition
   and index.relname <> all (%(indexes)s::text[])
union all
select 'trigger', added.tgname::text, owner.relname::text
  from pg_catalog.pg_trigger as added
  join pg_catalog.pg_class as owner on owner.oid = added.tgrelid
 where owner.relnamespace = 'mainspring'::regnamespace
   and owner.relname = any (%(tables)s::text[])
   and not added.tgisinternal and added.tgparentid = 0
   and format('%%s on %%s', added.tgname, owner.relname) <> all (%(triggers)s::text[])
union all
select 'rule', added.rulename::text, owner.relname::text
  from pg_catalog.pg_rewrite as added
  join pg_catalog.pg_class as owner on owner.oid = added.ev_class
 where owner.relnamespace = 'mainspring'::regnamespace and owner.relkind in ('r', 'p')
   and owner.relname = any (%(tables)s::text[])
 order by 1, 2;

-- name: storage_options
-- scope: system
-- The storage parameters of our tables, those of day partitions too.
select relname::text, coalesce(reloptions, '{}') from pg_catalog.pg_class
 where relnamespace = 'mainspring'::regnamespace and relkind = 'r' order by relname;

-- name: partition_gaps
-- scope: system
-- The tables partitioned by day that have no partition for tomorrow.
select parent.relname::text from pg_catalog.pg_class as parent
 where parent.relnamespace = 'mainspring'::regnamespace and parent.relkind = 'p'
   and (select shape.partstrat from pg_catalog.pg_partitioned_table as shape
         where shape.partrelid = parent.oid) = 'r'
   and not exists (
       select from pg_catalog.pg_inherits as link
         join pg_catalog.pg_class as child on child.oid = link.inhrelid
        where link.inhparent = parent.oid
          and child.relname = parent.relname || to_char(
              (coalesce(%(now)s::timestamptz, now()) at time zone 'utc')::date + 1, '"_"YYYYMMDD'))
 order by 1;

-- name: stray_rows
-- scope: system
-- The partitioned tables whose default partition has rows of today or later.
select 'jobs_history' where exists (
    select from mainspring.jobs_history_default
     where finished_at >= date_trunc('day', coalesce(%(now)s::timestamptz, now()), 'UTC'))
union all
select 'attempts' where exists (
    select from mainspring.attempts_default
     where finished_at >= date_trunc('day', coalesce(%(now)s::timestamptz, now()), 'UTC'));

-- name: overdue_partitions
-- scope: system
-- The day partitions that are past every retention for more than a day.
select past from mainspring.past_partitions() as past
 where substring(past from '_(\d{8})$')::date < (
     (now() at time zone 'utc')
     - greatest((select max(keep) from mainspring.retention),
                (select max(retention) from mainspring.definitions)))::date - 1;

-- name: expired_keys
-- scope: system
-- How many keys have expired more than a day ago, up to a number.
select count(*)::integer from (
    select from mainspring.enqueue_keys
     where expires_at < coalesce(%(now)s::timestamptz, now()) - interval '1 day'
     limit 10000) as expired;

-- name: unused_limits
-- scope: system
-- Limits that no definition and no live job has.
select name from mainspring.limits as known
 where not exists (select from mainspring.definitions as defined
                    where defined.limit_name = known.name or defined.key = known.name)
   and not exists (select from mainspring.jobs as job
                    where job.limit_name = known.name and job.waits_for = 'limit')
   and not exists (select from mainspring.jobs as job
                    where job.limit_name = known.name and job.waits_for is null)
 order by name limit 100;

-- name: key_relations
-- scope: system
-- The tables with a row for every key, with about how many they have.
select own.relname::text, 0::bigint, greatest(own.reltuples::bigint, seen.n_live_tup, 0)
  from pg_catalog.pg_class as own
  join pg_catalog.pg_stat_user_tables as seen on seen.relid = own.oid
 where own.relnamespace = 'mainspring'::regnamespace
   and own.relname in ('buckets', 'enqueue_keys') order by 1;

-- name: largest_relations
-- scope: system
-- Our tables with their indexes, partitions together, the largest first.
select family.relname::text, sum(pg_catalog.pg_total_relation_size(own.oid))::bigint, 0::bigint
  from pg_catalog.pg_class as own
  join pg_catalog.pg_class as family
    on family.oid = coalesce(pg_catalog.pg_partition_root(own.oid)::oid, own.oid)
 where own.relnamespace = 'mainspring'::regnamespace and own.relkind = 'r'
 group by family.relname order by 2 desc, 1;

-- name: default_retention
-- scope: system
-- How long jobs are kept where nothing else is said; no row is for ever.
select keep::text from mainspring.retention where tenant_id is null and state is null;

-- name: orphaned_jobs
-- scope: system
-- Running jobs whose worker has no row, or is done with.
select count(*), min(job.job_id) from mainspring.jobs as job
 where job.state = 'running'
   and not exists (select from mainspring.workers as worker
                    where worker.worker_id = job.worker_id and worker.recovered_at is null);

-- name: stuck_times
-- scope: system
-- Jobs whose time has come, the earliest first and a number at most.
select 'time', count(*), min(job_id),
       extract(epoch from coalesce(%(now)s::timestamptz, now()) - min(scheduled_for))::float
  from (select job.job_id, job.scheduled_for from mainspring.jobs as job
         where job.waits_for = 'time'
           and job.scheduled_for < coalesce(%(now)s::timestamptz, now())
           and not exists (select from mainspring.set_aside as aside
                            where aside.duty = 'promote' and aside.key = job.job_id offset 0)
         order by job.scheduled_for limit 10000) as due
having count(*) > 0;

-- name: stuck_turns
-- scope: system
-- The first waiting job of schedules that have no other live job.
select 'turn', count(*), min(waiting.job_id),
       extract(epoch from coalesce(%(now)s::timestamptz, now()) - min(greatest(
           waiting.created_at, figures.last_finished_at)))::float
  from (select schedule_id, min(job_id) as job_id, min(created_at) as created_at
          from mainspring.jobs where waits_for = 'turn' group by schedule_id offset 0) as waiting
  left join mainspring.schedule_figures as figures on figures.schedule_id = waiting.schedule_id
 where not exists (select from mainspring.jobs as other
                    where other.schedule_id = waiting.schedule_id
                      and other.waits_for is distinct from 'turn')
having count(*) > 0;

-- name: stuck_parents
-- scope: system
-- Jobs that wait for parents of which none is live any more, of the first ten thousand that wait.
select 'parents', count(*), min(waiting.job_id),
       extract(epoch from coalesce(%(now)s::timestamptz, now())
                          - min(greatest(waiting.created_at, ended.at)))::float
  from (select job_id, created_at from mainspring.jobs
         where state = 'blocked' and waits_for = 'parents' order by job_id limit 10000) as waiting
 cross join lateral (
    select max(past.finished_at) as at from mainspring.dependencies as parent
      left join mainspring.jobs_history as past on past.job_id = parent.parent_id
     where parent.job_id = waiting.job_id) as ended
 where not exists (select from mainspring.dependencies as parent
                     join mainspring.jobs as live on live.job_id = parent.parent_id
                    where parent.job_id = waiting.job_id)
having count(*) > 0;

-- name: stuck_handlers
-- scope: system
-- Jobs that wait for a handler although every live worker of their queue has it, with their
-- definitions.
select 'handler', count(*), min(job.job_id),
       extract(epoch from coalesce(%(now)s::timestamptz, now())
                          - min(greatest(job.created_at, serving.since)))::float,
       array_agg(distinct job.definition)
  from mainspring.jobs as job
 cross join lateral (
    select max(worker.started_at) as since,
           bool_and(exists (select from mainspring.worker_schemas as known
                             where known.worker_id = worker.worker_id
                               and known.key = job.definition)) as is_known
      from mainspring.workers as worker
     where worker.expires_at > now() and job.queue = any (worker.queues)
       and worker.process_identity not like 'api:%%') as serving
 where job.waits_for = 'handler' and serving.is_known
having count(*) > 0;

-- name: unserved_queues
-- scope: system
-- Queues with ready jobs that no live worker serves, with a job and its tenant. A loose scan over
-- the index of what is ready: one probe a queue.
with recursive ready as (
    (select queue, tenant_id, job_id from mainspring.jobs
      where state = 'queued' and waits_for is null
      order by queue, priority, tenant_id, job_id limit 1)
    union all
    select next.* from ready, lateral (
        select job.queue, job.tenant_id, job.job_id from mainspring.jobs as job
         where job.state = 'queued' and job.waits_for is null and job.queue > ready.queue
         order by job.queue, job.priority, job.tenant_id, job.job_id limit 1) as next
)
select queue, tenant_id, job_id from ready
 where not exists (select from mainspring.workers as worker
                    where worker.expires_at > now() and not worker.is_stopping
                      and ready.queue = any (worker.queues))
 order by queue limit 20;

-- name: unhandled_jobs
-- scope: system
-- Jobs that wait for a worker which knows their definition, by definition.
select definition, count(*),
       extract(epoch from coalesce(%(now)s::timestamptz, now()) - min(created_at))::float
  from mainspring.jobs where waits_for = 'handler'
 group by definition order by 2 desc, 1 limit 20;

-- name: live_workers
-- scope: system
-- The workers with a lease, without those over HTTP.
select name, host, version,
       extract(epoch from coalesce(%(now)s::timestamptz, now()) - started_at)::float
  from mainspring.workers
 where expires_at > now() and process_identity not like 'api:%%' order by worker_id;

-- name: lost_attempts
-- scope: system
-- Attempts of the last 24 hours that lost their worker, and that were reported too late.
select count(*) filter (where status = 'lost'), count(late_report_at)
  from mainspring.attempts
 where finished_at > coalesce(%(now)s::timestamptz, now()) - interval '24 hours'
   and (status = 'lost' or late_report_at is not null);

-- name: overdue_schedules
-- scope: system
-- Schedules whose next run is past and that are not being checked, the latest named. A new or
-- changed one is due at once, until a scheduler has seen it.
select count(*), (array_agg(schedule.name order by late.since))[1],
       (array_agg(schedule.tenant_id order by late.since))[1],
       extract(epoch from coalesce(%(now)s::timestamptz, now()) - min(late.since))::float
  from (select schedule_id, greatest(next_run_at, changed_at) as since from mainspring.clocks
         where next_run_at < coalesce(%(now)s::timestamptz, now()) - interval '60 seconds'
           and changed_at < coalesce(%(now)s::timestamptz, now()) - interval '60 seconds'
           and (checking_until is null
                or checking_until < coalesce(%(now)s::timestamptz, now()))
         order by next_run_at limit 10000) as late
  join mainspring.schedules as schedule using (schedule_id)
 where schedule.enabled
having count(*) > 0;

-- name: broken_schedules
-- scope: system
-- Schedules that were disabled by failures, whose definition is gone or inactive, or that have
-- never succeeded.
select schedule.name, schedule.tenant_id,
       case when not schedule.enabled then 'disabled'
            when defined.is_active is not true then 'definition' else 'unsuccessful' end,
       case when not schedule.enabled then schedule.disabled_reason
            when defined.key is null then format('%%s does not exist', schedule.definition)
            when not defined.is_active then format('%%s is inactive', schedule.definition)
            else figures.unsuccessful::text end
  from mainspring.schedules as schedule
  left join mainspring.definitions as defined on defined.key = schedule.definition
  left join mainspring.schedule_figures as figures on figures.schedule_id = schedule.schedule_id
 where case when schedule.enabled then
           defined.is_active is not true
           or (figures.succeeded = 0 and figures.unsuccessful >= %(few)s)
       else schedule.disabled_reason is not null end
 order by schedule.schedule_id limit 20;

-- name: schedule_herds
-- scope: system
-- The seconds of the next 24 hours in which most schedules have their next run, and how many jobs
-- the live workers can run at once.
select date_trunc('second', next_run_at), count(*),
       (select coalesce(sum(worker.concurrency), 0) from mainspring.workers as worker
         where worker.expires_at > now())
  from mainspring.clocks
 where next_run_at between coalesce(%(now)s::timestamptz, now())
                       and coalesce(%(now)s::timestamptz, now()) + interval '24 hours'
 group by 1 having count(*) > %(least)s order by 2 desc, 1 limit 3;

-- name: long_runs
-- scope: system
-- Enabled schedules whose runs take longer on average than the time from their last slot to the
-- next.
select schedule.name, schedule.tenant_id, usual.seconds, usual.gap, usual.runs
  from mainspring.schedule_figures as figures
  join mainspring.clocks as clock on clock.schedule_id = figures.schedule_id
  join mainspring.schedules as schedule on schedule.schedule_id = figures.schedule_id
 cross join lateral (
    select figures.succeeded + figures.unsuccessful as runs,
           figures.seconds_total / nullif(figures.succeeded + figures.unsuccessful, 0) as seconds,
           extract(epoch from clock.next_slot_at - clock.last_slot_at)::float as gap) as usual
 where schedule.enabled and usual.gap > 0 and usual.seconds > usual.gap
 order by usual.seconds / usual.gap desc, schedule.schedule_id limit 20;

-- name: waiting_events
-- scope: system
-- Events that no trigger has been asked about yet, a number at most, and since when.
select count(*), coalesce(extract(epoch from coalesce(%(now)s::timestamptz, now())
                                             - min(emitted_at)), 0)::float
  from (select emitted_at from mainspring.events where handled_at is null limit 10000) as waiting;

-- name: failing_triggers
-- scope: system
-- Enabled triggers whose newest dispatches have all failed, with how many and the last error.
select known.name, known.tenant_id, newest.failed, newest.error
  from mainspring.triggers as known
 cross join lateral (
    select count(*) as failed, bool_and(last.outcome = 'failed') as is_failing,
           coalesce((array_agg(last.error order by last.dispatched_at desc))[1], '') as error
      from (select outcome, error, dispatched_at from mainspring.dispatches
             where trigger_id = known.trigger_id
             order by dispatched_at desc, event_id desc limit 20) as last) as newest
 where known.is_enabled and newest.is_failing
 order by known.trigger_id limit 20;

-- name: own_link
-- scope: system
-- Whether this connection is encrypted, and whether it comes from the server's own machine.
select coalesce((select ssl from pg_catalog.pg_stat_ssl
                  where pid = pg_catalog.pg_backend_pid()), false),
       coalesce(pg_catalog.inet_client_addr() = pg_catalog.inet_server_addr()
                or pg_catalog.inet_client_addr() << '127.0.0.0/8'
                or pg_catalog.host(pg_catalog.inet_client_addr()) = '::1', true),
       coalesce(pg_catalog.host(pg_catalog.inet_client_addr()), 'this machine');

-- name: request_roles
-- scope: system
-- The roles that requests of the API may run as, and what they are allowed beyond that.
select pg_catalog.quote_ident(rolname), rolsuper, rolbypassrls from pg_catalog.pg_roles
 where rolname in ('pg_database_owner', 'mainspring_app') order by 1;

-- name: table_security
-- scope: system
-- Our tables with their owners and whether row-level security is on, and the owner of the schema.
select own.relname::text, pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(own.relowner)),
       own.relrowsecurity, pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(home.nspowner))
  from pg_catalog.pg_class as own
  join pg_catalog.pg_namespace as home on home.oid = own.relnamespace
 where home.nspname = 'mainspring' and own.relkind in ('r', 'p') order by 1;

-- name: function_texts
-- scope: system
-- The digests of the texts of our functions; those in standard SQL have none.
select proname::text, pg_catalog.md5(prosrc) from pg_catalog.pg_proc
 where pronamespace = 'mainspring'::regnamespace and prosqlbody is null and prokind = 'f';

-- name: active_triggers
-- scope: system
-- The triggers on our tables that fire.
select format('%%s on %%s', tgname, relname)
  from pg_catalog.pg_trigger join pg_catalog.pg_class as own on own.oid = tgrelid
 where own.relnamespace = 'mainspring'::regnamespace and not tgisinternal and tgenabled = 'O';

-- name: token_ages
-- scope: system
-- Tokens in use that end soon, that nobody uses, or that are an operator's without an end.
select name, role, tenant_id,
       extract(epoch from expires_at - coalesce(%(now)s::timestamptz, now()))::float / 86400,
       extract(epoch from coalesce(%(now)s::timestamptz, now())
                          - coalesce(last_used_at, created_at))::float / 86400
  from mainspring.tokens
 where kind = 'token' and revoked_at is null
   and (expires_at is null or expires_at > coalesce(%(now)s::timestamptz, now()))
   and (expires_at < coalesce(%(now)s::timestamptz, now()) + interval '14 days'
        or coalesce(last_used_at, created_at)
           < coalesce(%(now)s::timestamptz, now()) - interval '90 days'
        or (expires_at is null and role = 'operator'))
 order by expires_at, token_id limit 50;

-- name: note_fix
-- scope: system
-- Records in the audit what was fixed.
select mainspring.note_action('', 'fix', 'doctor', %(check)s, %(action)s, null, null);
