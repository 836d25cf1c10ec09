-- name: sync
-- scope: system
-- Stores the definitions a program declares in code; writes nothing where nothing changed.
insert into mainspring.definitions as d (
    key, kind, description, queue, priority, max_attempts, timeout, backoff_base, backoff_factor,
    backoff_cap, backoff_jitter)
select key, 'python', description, queue, priority, max_attempts, timeout, backoff_base,
       backoff_factor, backoff_cap, backoff_jitter
  from unnest(%(keys)s::text[], %(descriptions)s::text[], %(queues)s::text[],
              %(priorities)s::smallint[], %(max_attempts)s::integer[], %(timeouts)s::interval[],
              %(bases)s::interval[], %(factors)s::float[], %(caps)s::interval[],
              %(jitters)s::interval[])
       as declared (key, description, queue, priority, max_attempts, timeout, backoff_base,
                    backoff_factor, backoff_cap, backoff_jitter)
on conflict (key) do update
   set description = excluded.description, queue = excluded.queue, priority = excluded.priority,
       max_attempts = excluded.max_attempts, timeout = excluded.timeout,
       backoff_base = excluded.backoff_base, backoff_factor = excluded.backoff_factor,
       backoff_cap = excluded.backoff_cap, backoff_jitter = excluded.backoff_jitter,
       updated_at = now()
 where d.kind = 'python'
   and (d.description, d.queue, d.priority, d.max_attempts, d.timeout, d.backoff_base,
        d.backoff_factor, d.backoff_cap, d.backoff_jitter)
       is distinct from
       (excluded.description, excluded.queue, excluded.priority, excluded.max_attempts,
        excluded.timeout, excluded.backoff_base, excluded.backoff_factor, excluded.backoff_cap,
        excluded.backoff_jitter);

-- name: keys
-- scope: system
-- The keys of all active definitions.
select key from mainspring.definitions where is_active order by key;
