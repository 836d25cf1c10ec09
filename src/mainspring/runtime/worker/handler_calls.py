"""Calls of handlers: what has to be waited for, checked or decrypted first, and where each runs.

A job that lost its worker before is called only after its attempt has been noted, so that it is the
one to blame if this worker goes, too; and where it did so more than once, one such job at a time.
"""

import asyncio
import math
import time
from collections.abc import Callable
from typing import Any, Final, assert_never

from mainspring.domain.definitions import Handler
from mainspring.domain.errors import InvalidPayload, LeaseLost
from mainspring.domain.jobs.outcomes import Fail, Succeed, of_answer
from mainspring.domain.secrets.paths import ENCRYPTION_MARK
from mainspring.domain.types import ExecutionMode
from mainspring.runtime.executors.processes import Committed, ProcessExecutor
from mainspring.runtime.executors.threads import ThreadExecutor
from mainspring.runtime.secrets import decrypted
from mainspring.runtime.worker.claimed_job import ClaimedJob
from mainspring.runtime.worker.context import Context, Facilities
from mainspring.runtime.worker.queue_argument import QueueArgument
from mainspring.runtime.worker.results import encode_result
from mainspring.runtime.worker.speculation import SpeculativeStarts
from mainspring.services.secrets import KeyRing
from mainspring.store import attempts

PUT_BACK: Final = object()
"""The answer for a job that has to wait for its rate, and is not held any more."""

_MANY_LOSSES = 2


class Calls:
    """Calls the handlers of one worker, each job as its own needs are."""

    def __init__(
        self,
        facilities: Facilities,
        *,
        threads: ThreadExecutor,
        processes: ProcessExecutor,
        keys: KeyRing,
        take_token: Callable[[ClaimedJob], Any],
        early: SpeculativeStarts,
    ) -> None:
        self._facilities = facilities
        self._threads, self._processes = threads, processes
        self._keys = keys
        self._take_token = take_token
        self._early = early
        self._one_suspect = asyncio.Lock()

    async def call(self, job: ClaimedJob, handler: Handler) -> Any:
        """What the handler answers, or PUT_BACK; raises what it raises."""
        if job.is_early and (handler.sees_its_job or job.losses or job.rare("is_rated")):
            await self._early.settled()
        if job.rare("is_rated") and not await self._take_token(job):
            return PUT_BACK
        if not handler.secret_paths and ENCRYPTION_MARK not in job.payload_text:
            return await self._call_known(job, handler)
        with decrypted(job, handler, self._keys):
            return await self._call_known(job, handler)

    async def _call_known(self, job: ClaimedJob, handler: Handler) -> Any:
        if not job.losses:
            return await self._execute(job, handler)
        if job.losses < _MANY_LOSSES:
            return await self._probe_and_execute(job, handler)
        job.expires_at = math.inf  # Waiting for the suspect before it is not running.
        async with self._one_suspect:
            self._restart_clock(job)
            return await self._probe_and_execute(job, handler)

    async def _probe_and_execute(self, job: ClaimedJob, handler: Handler) -> Any:
        # Only now, so that a suspect that still waits is not blamed for the one that runs.
        async with self._facilities.async_source.connection() as connection:
            if not await attempts.probe(connection, job.report):
                raise LeaseLost(job.id)
        return await self._execute(job, handler)

    async def _execute(self, job: ClaimedJob, handler: Handler) -> Any:
        if handler.schema is not None:
            try:
                handler.schema.ensure(job.payload())
            except InvalidPayload as error:
                return Fail(str(error))
        match handler.mode:
            case ExecutionMode.ASYNC:
                return await handler.function(**self._arguments(job, handler))
            case ExecutionMode.THREAD:
                return await self._threads.run(job, lambda: self._call_plain(job, handler))
            case ExecutionMode.PROCESS:
                job.expires_at = math.inf  # Waiting for a free process is not running.
                return await self._processes.run(
                    job,
                    handler.function,
                    wants_context=handler.wants_context,
                    on_progress=self._facilities.note_progress,
                    on_begin=self._restart_clock,
                )
            case ExecutionMode.STORED:
                return await handler.function(job)
            case _:
                assert_never(handler.mode)

    def _arguments(self, job: ClaimedJob, handler: Handler) -> dict[str, Any]:
        arguments = job.payload()
        if handler.wants_context:
            arguments["ctx"] = Context(job, self._facilities, handler.mode)
        return arguments

    def _call_plain(self, job: ClaimedJob, handler: Handler) -> Any:
        if handler.is_plain_worker:
            context = Context(job, self._facilities, handler.mode)
            answer = handler.function(job.payload(), str(job.id), QueueArgument(context))
        else:
            answer = handler.function(**self._arguments(job, handler))
        if job.transaction is not None and job.transaction.is_open and _is_success(answer):
            job.transaction.commit(job.timings(), encode_result(answer, job.redactor))
            return Committed(answer)
        return answer

    def _restart_clock(self, job: ClaimedJob) -> None:
        timeout = job.handler.definition.timeout
        job.began_at = time.monotonic()
        job.expires_at = job.began_at + timeout.total_seconds()


def _is_success(answer: object) -> bool:
    return isinstance(of_answer(answer), Succeed)
