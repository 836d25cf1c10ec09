-- The doctor: what PostgreSQL shows in another place in each version.

-- Checkpoints since the statistics were reset: those that were due, and those that were requested.
create or replace function mainspring.checkpoints(out timed bigint, out requested bigint)
returns record
language plpgsql stable
as $$
begin
    if current_setting('server_version_num')::integer >= 170000 then
        select known.num_timed, known.num_requested into timed, requested
          from pg_catalog.pg_stat_checkpointer as known;
    else
        select known.checkpoints_timed, known.checkpoints_req into timed, requested
          from pg_catalog.pg_stat_bgwriter as known;
    end if;
end
$$;
