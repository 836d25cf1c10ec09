"""The handler of bulk operations: batch after batch, each a short transaction with its checkpoint.

A worker that is killed in a batch leaves no trace of it, and one that has lost its lease cannot
commit any: so each job is changed once, and counted once, however many attempts it takes.

A batch that the database refuses because of one of its jobs is changed by halves, down to the one
job, which is skipped with the reason.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import psycopg
from psycopg import AsyncConnection

from mainspring.domain.batches import halves
from mainspring.domain.jobs.outcomes import Fail
from mainspring.domain.operations import BULK, Change, Operation, Sweep, refused
from mainspring.domain.sqlstates import is_of_a_row
from mainspring.runtime.worker.context import Context
from mainspring.runtime.worker.transactions import AsyncSource
from mainspring.store import operations as store
from mainspring.store.operations import Place

_BATCH = 500
_COUNTED_AT_ONCE = 20_000


class Operator:
    """Carries out operations on connections of a worker."""

    def __init__(self, source: AsyncSource) -> None:
        self._source = source

    async def run(self, ctx: Context, **_: Any) -> dict[str, Any] | Fail:
        async with self._source.connection() as connection:
            operation = await store.get_operation(connection, ctx.job_id)
        if operation is None:
            return Fail(f"{BULK.key} can be started only by POST /api/v1/jobs/bulk")
        sweep = Sweep.read(ctx.saved) if ctx.saved else Sweep(total=operation.total)
        if sweep.total is None:
            sweep = replace(sweep, total=await self._count(ctx, operation))
        while sweep.busy or sweep.stage < len(operation.stages):
            _report_progress(ctx, sweep)
            sweep = await self._advance(ctx, operation, sweep)
        sweep = sweep.ended()
        _report_progress(ctx, sweep)
        return sweep.result(operation.action)

    async def _count(self, ctx: Context, operation: Operation) -> int:
        total = 0
        for stage in operation.stages:
            after: int | None = 0
            while after is not None:
                place = Place(stage, after, ctx.job_id - 1, _COUNTED_AT_ONCE)
                async with self._source.connection() as connection:
                    found = await store.count_jobs(connection, operation, place)
                total, after = total + found.jobs, found.edge
                ctx.progress(0, message=f"counting: {total:,} so far")
        return total

    async def _advance(self, ctx: Context, operation: Operation, sweep: Sweep) -> Sweep:
        async with self._source.connection() as connection, connection.transaction():
            step = _wait if sweep.busy else _batch
            after = await step(connection, operation, sweep, up_to=ctx.job_id - 1)
            # Last, since it locks the row of the operation, which others have to reach.
            await ctx.acheckpoint(after.saved(), connection=connection)
        return after


async def _batch(
    connection: AsyncConnection[Any], operation: Operation, sweep: Sweep, *, up_to: int
) -> Sweep:
    """The next jobs, but for those that someone else holds."""
    place = Place(operation.stages[sweep.stage], sweep.after, up_to)
    found = await store.seek_jobs(connection, operation, place, most_found=_BATCH)
    sweep = sweep.moved(found.edge)
    for change in await _change(connection, operation, found.jobs, is_patient=False):
        sweep = sweep.noted(change)
    return sweep


async def _wait(
    connection: AsyncConnection[Any], operation: Operation, sweep: Sweep, *, up_to: int
) -> Sweep:
    """The first of those that someone else had locked. Who has locked nothing else can wait."""
    job_ids = [job_id for job_id in sweep.busy[:1] if job_id <= up_to]
    sweep = sweep.without_first()
    for change in await _change(connection, operation, job_ids, is_patient=True):
        sweep = sweep.noted(change)
    return sweep


async def _change(
    connection: AsyncConnection[Any],
    operation: Operation,
    job_ids: Sequence[int],
    *,
    is_patient: bool,
) -> list[Change]:
    """What came of the jobs: together, or by halves where the database refuses them together."""
    if not job_ids:
        return []
    try:
        async with connection.transaction():
            return [await store.change_jobs(connection, operation, job_ids, is_patient=is_patient)]
    except psycopg.Error as error:
        if not is_of_a_row(error.sqlstate):
            raise
        if len(job_ids) == 1:
            return [refused(job_ids[0], error.diag.message_primary or str(error))]
    changes = []
    for half in halves(job_ids):
        changes += await _change(connection, operation, half, is_patient=is_patient)
    return changes


def _report_progress(ctx: Context, sweep: Sweep) -> None:
    skipped = sum(sweep.skipped.values())
    ctx.progress(
        sweep.done,
        max(sweep.total or 0, sweep.done),
        f"{sweep.changed:,} changed, {skipped:,} skipped",
        data={"changed": sweep.changed, "skipped": dict(sweep.skipped)},
    )
