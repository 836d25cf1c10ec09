"""The handlers that every worker carries: what keeps a database tidy, as jobs."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Any, TypeVar

from psycopg import AsyncConnection

from mainspring.domain.checks.model import Severity, as_facts, problems
from mainspring.domain.definitions import Definition, Handler
from mainspring.domain.housekeeping import (
    DOCTOR,
    PRUNE_HISTORY,
    PRUNE_KEYS,
    PRUNE_TABLE,
    VACUUM_CHECK,
)
from mainspring.domain.jobs.outcomes import Fail
from mainspring.domain.operations import BULK
from mainspring.domain.tenants import DELETE_TENANT
from mainspring.domain.types import ExecutionMode
from mainspring.runtime.maintenance.operations import Operator
from mainspring.runtime.maintenance.pruning import (
    CleanupTaken,
    HistoryPruner,
    drop_partitions,
    remove_in_batches,
)
from mainspring.runtime.maintenance.tenant_deletion import TenantDeleter
from mainspring.runtime.worker.context import Context
from mainspring.runtime.worker.transactions import AsyncSource
from mainspring.settings import Settings
from mainspring.store import history
from mainspring.store import housekeeping as store

T = TypeVar("T")

_BATCH = 1000
_PATIENCE = 0.1


def handlers(source: AsyncSource, settings: Settings) -> dict[str, Handler]:
    """By key."""
    housekeeper = Housekeeper(source, settings)
    functions: tuple[tuple[Definition, Callable[..., Awaitable[Any]]], ...] = (
        (PRUNE_HISTORY, housekeeper.prune_history),
        (PRUNE_KEYS, housekeeper.prune_keys),
        (PRUNE_TABLE, housekeeper.prune_table),
        (DOCTOR, housekeeper.examine),
        (VACUUM_CHECK, housekeeper.examine),
        (BULK, Operator(source).run),
        (DELETE_TENANT, TenantDeleter(source).run),
    )
    return {
        definition.key: Handler(definition, function, ExecutionMode.ASYNC, wants_context=True)
        for definition, function in functions
    }


class Housekeeper:
    """Each method is the handler of a definition."""

    def __init__(self, source: AsyncSource, settings: Settings) -> None:
        self._source, self._settings = source, settings

    async def prune_history(self, ctx: Context) -> dict[str, int]:
        partitions = await _patiently(lambda: drop_partitions(self._do))
        removed = await _patiently(lambda: HistoryPruner(self._do).prune(ctx.progress))
        return {"removed": removed, "partitions": partitions}

    async def prune_keys(self, ctx: Context) -> dict[str, int]:
        removed = await remove_in_batches(lambda: self._do(history.prune_keys), ctx.progress)
        return {"removed": removed}

    async def prune_table(
        self,
        ctx: Context,
        table: str,
        column: str,
        *,
        older_than_days: float | None = None,
        older_than_seconds: float | None = None,
        batch_size: int = _BATCH,
        max_rows: int | None = None,
    ) -> dict[str, int] | Fail:
        if f"{table}.{column}" not in self._settings.prunable_columns:
            return Fail(
                f"{table}.{column} is not a column that this worker may prune by; add it to "
                "MAINSPRING_PRUNE_TABLES on all workers"
            )
        age = timedelta(days=older_than_days or 0, seconds=older_than_seconds or 0)
        left = float("inf") if max_rows is None else max_rows

        async def remove() -> int:
            nonlocal left
            batch = int(min(batch_size, left))
            if not batch:
                return 0
            removed = await self._do(
                lambda c: store.prune_table(c, table, column, age=age, batch=batch)
            )
            left -= removed
            return removed

        return {"removed": await remove_in_batches(remove, ctx.progress)}

    async def examine(
        self,
        ctx: Context,
        *,
        only: Sequence[str] = (),
        ignore: Sequence[str] = (),
        fail_on: str = Severity.WARNING,
    ) -> dict[str, Any] | Fail:
        # Slow to import, and needed once a day.
        from mainspring.services import doctor  # noqa: PLC0415

        found = await doctor.examine(self._source, self._settings, only=only)
        report = as_facts(found)
        if sentences := problems(found.findings, ignore=ignore, fail_on=Severity(fail_on)):
            ctx.progress(len(sentences), data=report)
            return Fail("; ".join(sentences))
        return report

    async def _do(self, action: Callable[[AsyncConnection[Any]], Awaitable[T]]) -> T:
        async with self._source.connection() as connection:
            return await action(connection)


async def _patiently(prune: Callable[[], Awaitable[T]]) -> T:
    """Wait for a worker that does the same at the moment."""
    while True:
        try:
            return await prune()
        except CleanupTaken:
            await asyncio.sleep(_PATIENCE)
