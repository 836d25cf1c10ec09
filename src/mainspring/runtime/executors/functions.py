"""SQL functions: called under the role their definition names, committed with the job's success.

begin ─▶ call as the role ─▶ success: true   the report of success joins, one commit
                          ├▶ success: false  what the function wrote is kept; a failed attempt
                          └▶ an error        nothing is kept; a failed attempt
"""

from datetime import timedelta
from typing import Any

import psycopg

from mainspring.domain.definitions import Definition
from mainspring.domain.jobs.outcomes import AttemptFailed
from mainspring.domain.sql_functions import read_answer
from mainspring.runtime.worker.claimed_job import ClaimedJob
from mainspring.runtime.worker.output import AttemptOutput, store_output
from mainspring.runtime.worker.transactions import AsyncSource, JobTransaction
from mainspring.store import sql_functions

# The worker cancels at the timeout; this is for a worker that cannot.
_SERVER_GRACE = timedelta(seconds=5)


class FunctionExecutor:
    """Runs the jobs of definitions of the kind `sql`; `calls` lends connections for what is stored
    while a transaction is open."""

    def __init__(self, source: AsyncSource, calls: AsyncSource) -> None:
        self._source, self._calls = source, calls

    async def run(self, job: ClaimedJob, definition: Definition) -> dict[str, Any]:
        output = job.output = AttemptOutput(job.redactor)
        job.transaction = transaction = JobTransaction(
            job.report, job.worker_id, async_source=self._source
        )
        try:
            answer = await self._call(job, definition, transaction)
        except psycopg.Error as error:
            raise AttemptFailed(_sentence(error)) from None
        finally:
            output.close()
            await store_output(job, self._calls)
        try:
            # An error shows the answer, and may show a part of it only.
            return read_answer(job.redactor.value(answer) if job.redactor else answer)
        except AttemptFailed as error:
            output.add_stderr(f"{error}\n")
            await transaction.akeep()
            raise

    async def _call(
        self, job: ClaimedJob, definition: Definition, transaction: JobTransaction
    ) -> object:
        output = job.output

        def note(notice: psycopg.errors.Diagnostic) -> None:
            output.add_stdout(f"{notice.severity}: {notice.message_primary}\n")

        async with transaction as connection:
            connection.add_notice_handler(note)
            try:
                return await sql_functions.call(
                    connection,
                    definition.spec["function"],
                    role=definition.spec["role"],
                    payload=job.payload_text,
                    limit=definition.timeout + _SERVER_GRACE,
                )
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
