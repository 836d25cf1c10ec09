"""`ctx.transaction()`: a handler's own writes and its job's success in one commit.

The block gives a connection with an open transaction. Leaving the block commits nothing yet:
the worker adds the report of success to the same transaction when the handler returns, and
commits both. A handler that raises, is canceled or has lost its lease leaves no trace. Whatever
it has set for the session, such as a role, is undone before another borrows the connection.

A handler may keep its transaction for as long as it likes. From the report on, its job's row is
locked, and nobody can recover the job: if this host is gone before the commit, the server ends the
session when the lease runs out, not when TCP gives up.
"""

from contextlib import AbstractAsyncContextManager, AbstractContextManager
from types import TracebackType
from typing import Any, Protocol

from psycopg import AsyncConnection, Connection

from mainspring.db.blocking_sessions import ConnectionSession, at_once
from mainspring.db.pool import areset, reset
from mainspring.domain.errors import InputError
from mainspring.domain.errors.leases import LeaseLost
from mainspring.domain.types import WorkerId
from mainspring.store import attempts
from mainspring.store.attempts import Finished, Report, Successes


class AsyncSource(Protocol):
    """Lends connections to async handlers."""

    def connection(self) -> AbstractAsyncContextManager[AsyncConnection[Any]]: ...


class SyncSource(Protocol):
    """Lends connections to handlers in threads and processes."""

    def connection(self) -> AbstractContextManager[Connection[Any]]: ...


class JobTransaction:
    """Works in `async with` for async handlers and in `with` for blocking ones."""

    def __init__(
        self,
        report: Report,
        worker_id: WorkerId,
        *,
        async_source: AsyncSource | None = None,
        sync_source: SyncSource | None = None,
    ) -> None:
        self._report, self._worker_id = report, worker_id
        self._async_source, self._sync_source = async_source, sync_source
        self._lent: Any = None
        self._transaction: Any = None
        self.connection: Any = None
        self.is_parent = False

    @property
    def is_open(self) -> bool:
        return self._transaction is not None

    @property
    def is_async(self) -> bool:
        return self._async_source is not None

    async def __aenter__(self) -> AsyncConnection[Any]:
        if self._async_source is None:
            raise InputError("in a blocking function write `with ctx.transaction()`, without async")
        if not self.is_open:
            self._lent = self._async_source.connection()
            self.connection = await self._lent.__aenter__()
            self._transaction = self.connection.transaction()
            await self._transaction.__aenter__()
        connection: AsyncConnection[Any] = self.connection
        return connection

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is not None:
            await self.aroll_back(error)

    def __enter__(self) -> Connection[Any]:
        if self._sync_source is None:
            raise InputError("in an async handler write `async with ctx.transaction()`")
        if not self.is_open:
            self._lent = self._sync_source.connection()
            self.connection = self._lent.__enter__()
            self._transaction = self.connection.transaction()
            self._transaction.__enter__()
        connection: Connection[Any] = self.connection
        return connection

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is not None:
            self.roll_back(error)

    async def acommit(
        self, timings: tuple[int, int], result: bytes | None, progress: bytes | None
    ) -> None:
        """Report success, and progress that is not stored yet, inside the transaction and commit;
        LeaseLost rolls it back."""
        success = _success(self._report, timings, result, progress=progress)
        try:
            await attempts.end_with_lease(self.connection, self._worker_id)
            done = await attempts.finish_succeeded(self.connection, self._worker_id, success)
            self._accept(done)
        except BaseException as error:
            await self.aroll_back(error)
            raise
        await self._aleave(None)

    async def akeep(self) -> None:
        """Commit what was written without a report of success; LeaseLost rolls it back."""
        try:
            await attempts.end_with_lease(self.connection, self._worker_id)
            if not await attempts.lock_lease(self.connection, self._report):
                raise LeaseLost(self._report.job_id)
        except BaseException as error:
            await self.aroll_back(error)
            raise
        await self._aleave(None)

    def commit(
        self, timings: tuple[int, int], result: bytes | None, progress: bytes | None
    ) -> None:
        """The same as `acommit` on a blocking connection."""
        success = _success(self._report, timings, result, progress=progress)
        try:
            session = ConnectionSession(self.connection)
            at_once(attempts.end_with_lease(session, self._worker_id))
            self._accept(at_once(attempts.finish_succeeded(session, self._worker_id, success)))
        except BaseException as error:
            self.roll_back(error)
            raise
        self._leave(None)

    def _accept(self, done: Finished) -> None:
        if done.refused:
            raise LeaseLost(self._report.job_id)
        self.is_parent = bool(done.parents)

    async def aroll_back(self, error: BaseException) -> None:
        if self.is_open:
            await self._aleave(error)

    def roll_back(self, error: BaseException) -> None:
        if self.is_open:
            self._leave(error)

    async def _aleave(self, error: BaseException | None) -> None:
        transaction, self._transaction = self._transaction, None
        kind = type(error) if error else None
        try:
            await transaction.__aexit__(kind, error, None)
        finally:
            lent, connection, self._lent, self.connection = self._lent, self.connection, None, None
            try:
                await areset(connection)
            finally:
                await lent.__aexit__(None, None, None)

    def _leave(self, error: BaseException | None) -> None:
        transaction, self._transaction = self._transaction, None
        kind = type(error) if error else None
        try:
            transaction.__exit__(kind, error, None)
        finally:
            lent, connection, self._lent, self.connection = self._lent, self.connection, None, None
            try:
                reset(connection)
            finally:
                lent.__exit__(None, None, None)


def _success(
    report: Report, timings: tuple[int, int], result: bytes | None, *, progress: bytes | None
) -> Successes:
    waited, ran = timings
    success = Successes([report.job_id], [report.fence], [waited], [ran], [result])
    if progress is not None:
        success.progress[report.job_id] = progress
    return success
