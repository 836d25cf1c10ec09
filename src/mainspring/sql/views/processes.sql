-- Schedulers and servers. Every tenant shares them, so a caller of the API who is no operator sees
-- neither what they are called (host and pid) nor what they do, but which scheduler leads.
create or replace view mainspring.process_status as
select process.process_id, process.kind,
       case when isolation.is_isolated then process.kind || ' ' || process.process_id
            else process.name end as name,
       case when not isolation.is_isolated then process.host end as host,
       case when not isolation.is_isolated then process.pid end as pid,
       process.version, process.schema_number, process.started_at, process.seen_at,
       process.expires_at, process.expires_at > statement_timestamp() as is_alive,
       process.clock_offset_ms, process.round_trip_ms,
       case when not isolation.is_isolated then process.facts
            else coalesce((select jsonb_object_agg(fact.key, fact.value)
                             from jsonb_each(process.facts) as fact
                            where fact.key in ('leads', 'checked_at', 'is_stopping')), '{}')
            end as facts
  from mainspring.processes as process
 cross join (select mainspring.is_isolated() as is_isolated) as isolation;
