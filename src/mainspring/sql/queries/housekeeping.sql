-- name: install_schedules
-- scope: system
-- Adds the schedules that were never installed; gives their names.
select spec ->> 'name' from jsonb_array_elements(%(specs)s::jsonb) as spec
 where mainspring.install_schedule(spec);

-- name: prune_table
-- scope: system
-- Removes a batch of rows by the age of a column, of a table that is not ours.
select mainspring.prune_table(
    %(table)s, %(column)s, %(age)s::interval, %(batch)s::integer);

-- name: table_health
-- scope: system
-- Our tables with the most dead rows, and how long ago each was vacuumed.
select relname::text, n_live_tup, n_dead_tup,
       extract(epoch from now() - greatest(last_vacuum, last_autovacuum))::float,
       pg_total_relation_size(relid)
  from pg_catalog.pg_stat_user_tables where schemaname = 'mainspring'
 order by n_dead_tup desc, n_live_tup desc, relname limit %(limit)s;

-- name: server_health
-- scope: system
-- What keeps dead rows from being removed: the oldest transaction of this database, how far its
-- transaction ids are from wrapping around, and whether autovacuum is on at all.
select extract(epoch from now() - oldest.xact_start)::float, oldest.pid,
       oldest.application_name, age(own.datfrozenxid)::bigint,
       current_setting('autovacuum') = 'on'
  from pg_catalog.pg_database as own
  left join lateral (
      select activity.xact_start, activity.pid, activity.application_name
        from pg_catalog.pg_stat_activity as activity
       where activity.datid = own.oid and activity.pid <> pg_backend_pid()
         and activity.backend_type = 'client backend' and activity.xact_start is not null
       order by activity.xact_start limit 1) as oldest on true
 where own.datname = current_database();

-- name: begin_cleanup
-- scope: system
-- Bounds what follows in the transaction, and says whether nobody else cleans up: how long a
-- statement may take, and how long it may wait for a lock.
select set_config('statement_timeout', %(statement_ms)s::text, true),
       set_config('lock_timeout', %(lock_ms)s::text, true),
       pg_try_advisory_xact_lock(hashtext('mainspring.cleanup'));
