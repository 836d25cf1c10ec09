"""Suspects: jobs whose worker died are run where their death says that it was their fault.

handler can be imported ─▶ in a process of its own, several at a time ─▶ SuspectDied
      └ no, or the process finds it not ─▶ alone in the worker

Why is in `domain/claiming/probation.py`.
"""

import math
from typing import Any, Final, Protocol

from mainspring.domain.claiming import probation
from mainspring.domain.definitions import Handler
from mainspring.domain.types import ExecutionMode
from mainspring.runtime.executors.processes import (
    ChildDied,
    ChildUnreachable,
    ProcessExecutor,
    default_size,
    is_importable,
)
from mainspring.runtime.worker.capacity import Capacity
from mainspring.runtime.worker.claimed_job import ClaimedJob
from mainspring.runtime.worker.transactions import AsyncSource
from mainspring.services import claiming
from mainspring.store import attempts, workers

PUT_BACK: Final = object()
"""The answer for a job that is not to begin yet; the worker has no lease on it any more."""

# Other workers may have processes to spare; and the jobs are nearly all harmless.
_PATIENCE_SECONDS = 10.0
_PROCESSES_PER_CPU = 4
_FEWEST_PROCESSES = 8


class SuspectDied(Exception):
    """The process that ran nothing but this suspect died; `how` it did."""

    def __init__(self, how: str) -> None:
        super().__init__(f"the job's process {how}")
        self.how = how


class Calls(Protocol):
    """How handlers are called."""

    async def execute(self, job: ClaimedJob, handler: Handler) -> Any: ...

    async def run_in(
        self, processes: ProcessExecutor, job: ClaimedJob, handler: Handler, **how: Any
    ) -> Any: ...

    def restart_clock(self, job: ClaimedJob) -> None: ...


def most_processes(concurrency: int) -> int:
    """How many suspects a worker runs at a time. Most jobs wait more than they compute, and a
    process costs about 50 MB."""
    return min(concurrency, max(_FEWEST_PROCESSES, _PROCESSES_PER_CPU * default_size()))


class Suspects:
    """Calls the handlers of a worker's suspects."""

    def __init__(
        self,
        processes: ProcessExecutor,
        capacity: Capacity,
        *,
        source: AsyncSource,
        max_losses: int,
    ) -> None:
        self._processes, self._capacity = processes, capacity
        self._source = source
        self._max_losses = max_losses

    async def call(self, job: ClaimedJob, handler: Handler, calls: Calls) -> Any:
        """What the handler answers, or PUT_BACK; raises SuspectDied, or what the handler raises."""
        job.expires_at = math.inf  # Waiting for a process, or for the others, is not running.
        with self._capacity.beside():
            if is_importable(handler.function):
                try:
                    return await self._call_in_process(job, handler, calls)
                except ChildUnreachable as error:
                    job.log_event("suspect_unreachable", error=str(error))
            return await self._call_alone(job, handler, calls)

    async def _call_in_process(self, job: ClaimedJob, handler: Handler, calls: Calls) -> Any:
        # From here on it is stopped like any other job in a process.
        job.handler = handler.in_mode(ExecutionMode.PROCESS)
        try:
            return await calls.run_in(
                self._processes,
                job,
                handler,
                needs_new=probation.needs_new_process(job.losses, self._max_losses),
                patience=_PATIENCE_SECONDS,
            )
        except TimeoutError:
            return await self._hand_back(job)
        except ChildDied as died:
            if died.has_begun:
                raise SuspectDied(died.how) from died
            raise ChildUnreachable(str(died)) from died

    async def _call_alone(self, job: ClaimedJob, handler: Handler, calls: Calls) -> Any:
        job.handler, job.interrupt = handler, None
        async with self._capacity.alone():
            async with self._source.connection() as connection:
                await claiming.record_start(connection, job.report)
            calls.restart_clock(job)
            return await calls.execute(job, handler)

    async def _hand_back(self, job: ClaimedJob) -> Any:
        async with self._source.connection() as connection:
            queues = await attempts.hand_back(connection, [job.report])
            await workers.wake(connection, queues)
        return PUT_BACK
