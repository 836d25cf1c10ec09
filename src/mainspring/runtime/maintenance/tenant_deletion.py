"""The handler that deletes a tenant: part after part, each in a short transaction of its own.

A worker that is killed loses nothing but a part; the next attempt goes on with what is left.
"""

import asyncio
from typing import Any

from mainspring.domain.jobs.outcomes import Fail
from mainspring.domain.tenants import DELETE_TENANT
from mainspring.runtime.worker.context import Context
from mainspring.runtime.worker.transactions import AsyncSource
from mainspring.store import tenants as store

_BATCH = 1000
_PAUSE_SECONDS = 0.2


class TenantDeleter:
    """Deletes tenants on connections of a worker."""

    def __init__(self, source: AsyncSource) -> None:
        self._source = source

    async def run(self, ctx: Context, **_: Any) -> dict[str, Any] | Fail:
        async with self._source.connection() as connection:
            asked = await store.get_deletion(connection, ctx.job_id)
        if asked is None:
            return Fail(f"{DELETE_TENANT.key} is started only by DELETE /api/v1/tenants/{{name}}")
        counts: dict[str, int] = {"jobs": 0, "events": 0, **(ctx.saved or {})}
        while True:
            async with self._source.connection() as connection, connection.transaction():
                done = await store.delete_some(connection, asked, most=_BATCH)
                if done.what is not None:
                    counts[done.what] += done.number
                # In the same transaction, so that each is counted once.
                await ctx.acheckpoint(counts, connection=connection)
            if done.is_done:
                return {"tenant": asked.tenant_id, "deleted": counts}
            ctx.progress(sum(counts.values()), message=_message(counts, done.running))
            if done.running:
                await asyncio.sleep(_PAUSE_SECONDS)


def _message(counts: dict[str, int], running: int) -> str:
    waiting = f"; waiting for {running:,} running jobs to stop" if running else ""
    return f"{counts['jobs']:,} jobs and {counts['events']:,} events deleted{waiting}"
