create or replace view mainspring.worker_status as
select worker_id, name, host, pid, queues, concurrency, version, started_at, renewed_at, expires_at,
       is_stopping, expires_at > now() as is_alive
  from mainspring.workers;
