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

-- name: begin_cleanup
-- scope: system
-- Bounds what follows in the transaction, and says whether nobody else cleans up the same: how long
-- a statement may take, and how long it may wait for a lock.
select set_config('statement_timeout', %(statement_ms)s::text, true),
       set_config('lock_timeout', %(lock_ms)s::text, true),
       pg_try_advisory_xact_lock(hashtext(%(lock)s));

-- name: unvalidated_constraints
-- scope: system
-- The constraints of our tables that hold for new rows and were not checked for the old ones.
select owner.relname::text, rule.conname::text
  from pg_catalog.pg_constraint as rule
  join pg_catalog.pg_class as owner on owner.oid = rule.conrelid
 where rule.connamespace = 'mainspring'::regnamespace and not rule.convalidated
   and rule.contype = 'c'
 order by owner.relname, rule.conname;

-- name: validate_constraint
-- scope: system
-- Checks one of them for the old rows.
select mainspring.validate_constraint(%(table)s, %(name)s);

-- name: large_indexes
-- scope: system
-- The indexes of ours that have at least so many bytes, with an upper bound of their entries; those
-- that a rebuild has left unfinished whatever their size.
select index.relname::text, pg_relation_size(index.oid),
       greatest(index.reltuples::bigint, coalesce(seen.n_live_tup, 0), 0),
       known.indisvalid
  from pg_catalog.pg_index as known
  join pg_catalog.pg_class as index on index.oid = known.indexrelid
  join pg_catalog.pg_am as method on method.oid = index.relam
  left join pg_catalog.pg_stat_all_tables as seen on seen.relid = known.indrelid
 where index.relnamespace = 'mainspring'::regnamespace and index.relkind = 'i'
   and method.amname = 'btree'
   and case when known.indisvalid then pg_relation_size(index.oid) >= %(min_bytes)s
            else index.relname ~ '_cc(new|old)\d*$' end
 order by known.indisvalid, pg_relation_size(index.oid) desc;

-- name: lock_cleanup
-- scope: system
-- Whether nobody else cleans up; until unlock_cleanup, or the end of the session.
select pg_try_advisory_lock(hashtext('mainspring.cleanup'));

-- name: unlock_cleanup
-- scope: system
-- Lets others clean up.
select pg_advisory_unlock(hashtext('mainspring.cleanup'));

-- name: wait_briefly
-- scope: system
-- How long statements of this session wait for a lock, in milliseconds.
select set_config('lock_timeout', %(lock_ms)s::text, false);
