"""Blocking functions in threads, with a way to interrupt one."""

import asyncio
import contextvars
import ctypes
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from mainspring.runtime.worker.claimed_job import ClaimedJob
from mainspring.runtime.worker.context import JobCanceled


class ThreadExecutor:
    """Runs blocking functions; as many threads as jobs run at a time, made when needed."""

    def __init__(self, concurrency: int) -> None:
        self._pool = ThreadPoolExecutor(concurrency, thread_name_prefix="mainspring-job")
        self.abandoned = 0

    async def run(self, job: ClaimedJob, call: Callable[[], Any]) -> Any:
        """Run the call in a thread. Cancelling this does not stop the thread; interrupt does."""
        flight = _Flight(contextvars.copy_context(), call)
        job.interrupt = flight.interrupt
        future = asyncio.get_running_loop().run_in_executor(self._pool, flight.run)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            if not future.done():
                self.abandoned += 1
                future.add_done_callback(self._came_back)
            raise

    def _came_back(self, future: "asyncio.Future[Any]") -> None:
        self.abandoned -= 1
        if not future.cancelled():
            future.exception()  # Retrieved, so that asyncio does not report it as forgotten.

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)


class _Flight:
    """One call in one thread.

    The interrupt raises JobCanceled in the thread at its next bytecode. The lock makes sure
    that it can only hit the call it is meant for, never the thread's next one.
    """

    __slots__ = ("_call", "_context", "_lock", "_thread_id")

    def __init__(self, context: contextvars.Context, call: Callable[[], Any]) -> None:
        self._context, self._call = context, call
        self._lock = threading.Lock()
        self._thread_id: int | None = None

    def run(self) -> Any:
        with self._lock:
            self._thread_id = threading.get_ident()
        try:
            return self._context.run(self._call)
        finally:
            self._land()

    def interrupt(self) -> None:
        with self._lock:
            if self._thread_id is not None:
                _raise_in_thread(self._thread_id, JobCanceled)

    def _land(self) -> None:
        # An interrupt may strike while we wait for the lock; it must still be released.
        while True:
            try:
                with self._lock:
                    self._thread_id = None
                return
            except JobCanceled:
                continue


def _raise_in_thread(thread_id: int, kind: type[BaseException]) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread_id), ctypes.py_object(kind))
