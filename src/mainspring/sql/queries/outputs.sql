-- name: store_outputs
-- scope: system
-- Keeps what running attempts have printed so far; those of older leases are left out.
insert into mainspring.outputs as output (job_id, fence, pid, exit_code, stdout_tail, stderr_tail)
select report.job_id, report.fence, report.pid, report.exit_code, report.stdout, report.stderr
  from unnest(%(job_ids)s::bigint[], %(fences)s::bigint[], %(pids)s::integer[],
              %(exit_codes)s::integer[], %(stdouts)s::text[], %(stderrs)s::text[])
       as report (job_id, fence, pid, exit_code, stdout, stderr)
  join mainspring.jobs as job on job.job_id = report.job_id and job.fence = report.fence
on conflict (job_id, fence) do update
   set updated_at = now(), pid = excluded.pid, exit_code = excluded.exit_code,
       stdout_tail = excluded.stdout_tail, stderr_tail = excluded.stderr_tail
 -- What was taken while it ran may arrive after what was taken at its end.
 where output.exit_code is null or excluded.exit_code is not null;
