"""Calls of handlers: what has to be waited for, checked or decrypted first, and where each runs.

The claim policy (`services/claiming.py`) says what a claimed job needs to begin: a token of its
rate, and probation (`suspects.py`) if it lost its worker before.
"""

import math
import time
from typing import Any, assert_never

from mainspring.domain.definitions import Handler
from mainspring.domain.jobs.outcomes import Succeed, of_answer
from mainspring.domain.secrets.paths import ENCRYPTION_MARK
from mainspring.domain.types import ExecutionMode
from mainspring.runtime.executors.processes import Committed, ProcessExecutor
from mainspring.runtime.executors.threads import ThreadExecutor
from mainspring.runtime.secrets import decrypted
from mainspring.runtime.worker.claimed_job import ClaimedJob
from mainspring.runtime.worker.context import Context
from mainspring.runtime.worker.environment import ExecutionEnvironment
from mainspring.runtime.worker.events import WorkerEvents
from mainspring.runtime.worker.payload_checks import PayloadChecks
from mainspring.runtime.worker.queue_argument import QueueArgument
from mainspring.runtime.worker.results import encode_result
from mainspring.runtime.worker.speculation import SpeculativeStarts
from mainspring.runtime.worker.suspects import PUT_BACK, Suspects
from mainspring.services import claiming
from mainspring.services.secrets import KeyRing


class Calls:
    """Calls the handlers of one worker, each job as its own needs are."""

    def __init__(
        self,
        environment: ExecutionEnvironment,
        *,
        threads: ThreadExecutor,
        processes: ProcessExecutor,
        suspects: Suspects,
        keys: KeyRing,
        speculation: SpeculativeStarts,
        events: WorkerEvents,
    ) -> None:
        self._environment = environment
        self._threads, self._processes = threads, processes
        self._suspects = suspects
        self._keys = keys
        self._speculation = speculation
        self._events = events
        self._payloads = PayloadChecks(environment.async_calls)

    async def call(self, job: ClaimedJob, handler: Handler) -> Any:
        """What the handler answers, or PUT_BACK; raises what it raises."""
        is_rated = job.rare("is_rated")
        if job.is_speculative and (
            handler.sees_its_job or job.is_suspect or is_rated or job.runs_once
        ):
            await self._speculation.resolved()
        if is_rated and not await self._take_token(job):
            return PUT_BACK
        if not handler.secret_paths and ENCRYPTION_MARK not in job.payload_text:
            return await self._checked(job, handler)
        with decrypted(job, handler, self._keys):
            return await self._checked(job, handler)

    async def _take_token(self, job: ClaimedJob) -> bool:
        async with self._environment.async_calls.connection() as connection:
            is_taken = await claiming.take_token(connection, job.report)
        if (place := job.limit_place()) is not None:
            # Of what a rate lets go only jobs that have not begun have a place.
            self._events.places_freed([place])
        return is_taken

    async def _checked(self, job: ClaimedJob, handler: Handler) -> Any:
        if (refused := await self._payloads.check(job, handler)) is not None:
            return refused
        if job.is_suspect and handler.mode in (ExecutionMode.ASYNC, ExecutionMode.THREAD):
            # The others run elsewhere already: in a process of their own, or in the database.
            return await self._suspects.call(job, handler, self)
        return await self.execute(job, handler)

    async def execute(self, job: ClaimedJob, handler: Handler) -> Any:
        """Call the handler as it was declared."""
        if handler.mode is not ExecutionMode.PROCESS:
            await self._record_begin(job)
        match handler.mode:
            case ExecutionMode.ASYNC:
                return await handler.function(**self._arguments(job, handler))
            case ExecutionMode.THREAD:
                return await self._threads.run(job, lambda: self._call_sync(job, handler))
            case ExecutionMode.PROCESS:
                return await self.run_in(self._processes, job, handler)
            case ExecutionMode.STORED:
                return await handler.function(job)
            case _:
                assert_never(handler.mode)

    async def run_in(
        self, processes: ProcessExecutor, job: ClaimedJob, handler: Handler, **how: Any
    ) -> Any:
        """Call the handler in one of these processes."""
        job.expires_at = math.inf  # Waiting for a process is not running.
        return await processes.run(
            job,
            handler.function,
            wants_context=handler.wants_context,
            on_place=self._record_begin,
            on_progress=self._environment.note_progress,
            on_begin=self.restart_clock,
            **how,
        )

    async def _record_begin(self, job: ClaimedJob) -> None:
        if job.runs_once:
            async with self._environment.async_calls.connection() as connection:
                await claiming.record_begin(connection, [job.report])

    def _arguments(self, job: ClaimedJob, handler: Handler) -> dict[str, Any]:
        arguments = job.payload()
        if handler.wants_context:
            arguments["ctx"] = Context(job, self._environment, handler.mode)
        return arguments

    def _call_sync(self, job: ClaimedJob, handler: Handler) -> Any:
        if handler.is_plain_worker:
            context = Context(job, self._environment, handler.mode)
            queue = QueueArgument(job, context, self._environment)
            answer = handler.function(job.payload(), str(job.id), queue)
        else:
            answer = handler.function(**self._arguments(job, handler))
        if job.transaction is not None and job.transaction.is_open and _is_success(answer):
            result = encode_result(answer, job.redactor)
            job.transaction.commit(job.timings(), result, job.unstored_progress)
            return Committed(answer)
        return answer

    def restart_clock(self, job: ClaimedJob) -> None:
        """It begins now."""
        timeout = job.handler.definition.timeout
        job.began_at = time.monotonic()
        job.expires_at = job.began_at + timeout.total_seconds()


def _is_success(answer: object) -> bool:
    return isinstance(of_answer(answer), Succeed)
