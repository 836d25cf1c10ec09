"""One function per named SQL statement: rows in, domain values out.

A function has one of two shapes:

    async def get(session: Session, ...) -> Job | None     runs the statement
    def cancel(tenant_id, job_id, reason) -> Call          only says it, for someone else to run

A `Call` is for statements that also run on a caller's own connection of any driver or as a step of
a plan (db/plans.py), where blocking and async callers share the work around them: enqueue, emit,
cancel, retry, delete, and the lookups that these need. Everything else has the first shape.
"""
