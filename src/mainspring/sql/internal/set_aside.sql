-- Rows that are set aside: a statement over many rows fails because of one of them, which is left
-- out for a growing time, so that the others go on.

-- Sets a row aside, for longer each time; `pauses` has how long by the number of tries, the last
-- for all that follow. The job says why, if that can be written. Returns how many tries there were.
create or replace function mainspring.put_aside(
    duty text, key bigint, reason text, pauses interval[]
)
returns integer
language plpgsql
as $$
#variable_conflict use_column
declare
    tries integer;
begin
    insert into mainspring.set_aside as aside (duty, key, reason, again_at)
    values (put_aside.duty, put_aside.key, put_aside.reason, now() + pauses[1])
    on conflict (duty, key) do update
       set tries = aside.tries + 1, reason = excluded.reason, failed_at = now(),
           again_at = now() + pauses[least(aside.tries + 1, cardinality(pauses))]
    returning aside.tries into tries;
    begin
        update mainspring.jobs as job
           set last_error = 'set aside by ' || put_aside.duty || ': ' || put_aside.reason
         where job.job_id = put_aside.key;
    exception when others then
        -- What keeps the row from being processed may keep it from being written at all.
        null;
    end;
    return tries;
end
$$;
