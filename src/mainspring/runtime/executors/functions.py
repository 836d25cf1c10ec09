"""SQL functions: called on a connection of their role, their writes committed exactly once.

                   our connection                 the role's own, closed afterwards
                   find ── receipt? succeeded
                     └──────────────────────────▶ begin ─▶ call
        success: true    write the receipt, commit ◀──────┤
                     ┌──────────────────────────────┘     │
        report success                                    │
        success: false   commit, no receipt; a failed attempt
        an error         nothing is kept; a failed attempt

The receipt is in the function's transaction. So if a worker dies after the commit and before its
report, the next attempt of the job finds it and reports the same result, and calls nothing.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import orjson
import psycopg
from psycopg import AsyncConnection, IsolationLevel

from mainspring.db.role_logins import RoleLogins
from mainspring.domain.definitions import Definition
from mainspring.domain.errors.database import DatabaseError, RoleLoginFailed
from mainspring.domain.errors.leases import LeaseLost
from mainspring.domain.jobs.outcomes import AttemptFailed
from mainspring.domain.sql_functions import (
    OR_TRUSTED,
    AnswerTooLarge,
    parse_answer,
    read_answer,
)
from mainspring.runtime.worker.claimed_job import ClaimedJob
from mainspring.runtime.worker.output import AttemptOutput, store_output
from mainspring.runtime.worker.results import UnstorableResult
from mainspring.runtime.worker.transactions import AsyncSource
from mainspring.store import sql_functions
from mainspring.store.sql_functions import FunctionCall

# The worker cancels at the timeout; this is for a worker that cannot.
_SERVER_GRACE = timedelta(seconds=5)
# For a commit that is under way when the job is canceled.
_COMMIT_GRACE = 5.0
_PRUNE_EVERY = 60.0
# A server has few connections, and a worker may run many jobs at a time.
_MOST_CONNECTIONS = 20


class FunctionExecutor:
    """Runs the jobs of definitions of the kind `sql`. `source` lends our own connections."""

    def __init__(self, source: AsyncSource, logins: RoleLogins) -> None:
        self._source, self._logins = source, logins
        self._places = asyncio.Semaphore(_MOST_CONNECTIONS)
        self._prunes_at = 0.0

    async def run(self, job: ClaimedJob, definition: Definition) -> dict[str, Any]:
        output = job.output = AttemptOutput(job.redactor)
        call = await self._find(job, definition)
        if call.receipt is not None:
            return call.receipt
        try:
            return await self._run(job, definition, call)
        finally:
            output.close()
            await store_output(job, self._source)

    async def _find(self, job: ClaimedJob, definition: Definition) -> FunctionCall:
        async with self._source.connection() as connection:
            if time.monotonic() >= self._prunes_at:
                self._prunes_at = time.monotonic() + _PRUNE_EVERY
                await sql_functions.prune_receipts(connection)
            return await sql_functions.find(connection, job.report, definition.spec)

    async def _run(
        self, job: ClaimedJob, definition: Definition, call: FunctionCall
    ) -> dict[str, Any]:
        if call.problem is not None:
            raise AttemptFailed(call.problem)
        try:
            async with self._connected(definition) as connection, _noted(connection, job):
                return await self._call(connection, job, definition=definition, call=call)
        except RoleLoginFailed as error:
            raise AttemptFailed(f"{error}, {OR_TRUSTED}") from None
        except DatabaseError as error:
            raise AttemptFailed(str(error)) from None
        except psycopg.OperationalError as error:
            # The connection may have been lost after the commit.
            found = await self._find(job, definition)
            if found.receipt is None:
                raise AttemptFailed(_sentence(error)) from None
            return found.receipt
        except psycopg.Error as error:
            raise AttemptFailed(_sentence(error)) from None

    @asynccontextmanager
    async def _connected(self, definition: Definition) -> AsyncIterator[AsyncConnection[Any]]:
        """A connection for this attempt alone. Whatever is not committed is rolled back when it is
        closed."""
        spec, logins = definition.spec, self._logins
        login = logins.as_owner() if spec.get("trusted") else logins.as_role(spec["role"])
        async with self._places, login as connection:
            await connection.set_autocommit(False)
            # Whatever is the default of the role: its receipt has to be written.
            await connection.set_isolation_level(IsolationLevel.READ_COMMITTED)
            await connection.set_read_only(False)
            yield connection

    async def _call(
        self,
        connection: AsyncConnection[Any],
        job: ClaimedJob,
        *,
        definition: Definition,
        call: FunctionCall,
    ) -> dict[str, Any]:
        role, limit = definition.spec["role"], definition.timeout + _SERVER_GRACE
        is_apart = await sql_functions.begin(connection, call, role=role, limit=limit)
        if not is_apart and not definition.spec.get("trusted"):
            raise AttemptFailed(
                f"the URL of role_urls for {role} logs in with the rights of Mainspring's owner; "
                f"give one that has no rights but those of {role}"
            )
        found = await sql_functions.call(connection, call, payload=job.payload_text)
        try:
            answer, declined = _read(job, parse_answer(*found))
        except AnswerTooLarge as error:
            raise UnstorableResult(str(error)) from None
        result = None if answer is None else orjson.dumps(answer).decode()
        await _undisturbed(self._commit(connection, job, call=call, result=result))
        if answer is None:
            raise declined or _Declined("the function returned nothing")
        return answer

    async def _commit(
        self,
        connection: AsyncConnection[Any],
        job: ClaimedJob,
        *,
        call: FunctionCall,
        result: str | None,
    ) -> None:
        if not await sql_functions.confirm(connection, job.report, call.token, result=result):
            raise LeaseLost(job.id)
        await connection.commit()


class _Declined(AttemptFailed):
    """The function said that it did not do its work; what it wrote is kept."""


def _read(job: ClaimedJob, answer: object) -> tuple[dict[str, Any], None] | tuple[None, _Declined]:
    """The answer of a function that did its work, or the failure of one that did not."""
    try:
        # An error shows the answer, and may show a part of it only.
        return read_answer(job.redactor.value(answer) if job.redactor else answer), None
    except AttemptFailed as error:
        return None, _Declined(str(error), error.answer)


async def _undisturbed(work: Coroutine[Any, Any, None]) -> None:
    """Let a commit end that a cancel comes too late for: then the job has succeeded."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task}, timeout=_COMMIT_GRACE)
        if not task.done() or task.exception() is not None:
            task.cancel()
            raise
        if (current := asyncio.current_task()) is not None:
            current.uncancel()


@asynccontextmanager
async def _noted(connection: AsyncConnection[Any], job: ClaimedJob) -> AsyncIterator[None]:
    """Notices of the session are the output of the job."""

    def note(notice: psycopg.errors.Diagnostic) -> None:
        job.output.add_stdout(f"{notice.severity}: {notice.message_primary}\n")

    connection.add_notice_handler(note)
    try:
        yield
    finally:
        connection.remove_notice_handler(note)


def _sentence(error: psycopg.Error) -> str:
    """What the server said, with the lines that help to find the place."""
    diagnostic = error.diag
    if diagnostic.message_primary is None:
        return f"the function could not be called: {error}"
    lines = [f"{diagnostic.message_primary} ({diagnostic.sqlstate})"]
    for name, text in (
        ("detail", diagnostic.message_detail),
        ("hint", diagnostic.message_hint),
        ("where", diagnostic.context),
    ):
        if text:
            lines.append(f"{name}: {text}")
    return "\n".join(lines)
