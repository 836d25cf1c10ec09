-- Which limits have a rate is asked by every claim of jobs that have a limit.

create index limits_rated on mainspring.limits (name) where rate_count is not null;
