create or replace view mainspring.limit_status as
select known.name, known.concurrency, known.key_concurrency, known.rate_count,
       extract(epoch from known.rate_period)::float as rate_seconds, known.burst,
       (select count(*) from mainspring.jobs as job
         where job.limit_name = known.name and job.waits_for is null
           and job.state = 'running') as running,
       (select count(*) from mainspring.jobs as job
         where job.limit_name = known.name and job.waits_for = 'limit') as waiting,
       known.created_at, known.updated_at
  from mainspring.limits as known;
