-- Bulk operations: cancel, retry and delete by filter, each as a job that only start_bulk can make.
comment on column mainspring.jobs.origin is
    'What made the job, if not an enqueue: the slot of a schedule, or the start of a bulk operation.';
