"""CPU-bound functions in processes of their own.

Each place in the pool is a child process driven by one thread; they talk over a pipe. A child
runs one job at a time, so killing it ends exactly that job, and the place gets a new child.

    worker  ── ("run", call) ──▶  child
            ◀─ ("progress", bytes) ...
            ◀─ ("done", result, is_committed) | ("failed", text)
"""

import asyncio
import importlib
import multiprocessing
import os
import queue
import signal
import threading
import traceback
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from multiprocessing.connection import Connection as Pipe
from multiprocessing.process import BaseProcess
from typing import Any

from psycopg import Connection

from mainspring import telemetry
from mainspring.db import connect
from mainspring.domain.errors import InputError
from mainspring.domain.jobs.outcomes import Succeed, of_answer
from mainspring.domain.secrets.redaction import Redactor
from mainspring.domain.types import ExecutionMode
from mainspring.runtime.worker.claimed_job import ClaimedJob
from mainspring.runtime.worker.context import Context, JobCanceled
from mainspring.runtime.worker.results import EncodedResult, UnstorableResult, encode_result
from mainspring.runtime.worker.transactions import AsyncSource

_SPAWN = multiprocessing.get_context("spawn")


class ChildFailed(Exception):
    """The handler raised in its process; the text is its traceback."""


class ChildDied(Exception):
    """The process ended without an answer."""


@dataclass(frozen=True, slots=True)
class ChildCall:
    """Everything a child needs to run a job; it is pickled."""

    module: str
    name: str
    row: tuple[Any, ...]
    worker_id: int
    wants_context: bool
    url: str
    use_pooler: bool
    redactor: Redactor


@dataclass(frozen=True, slots=True)
class Committed:
    """The answer of a handler whose success was committed by `ctx.transaction()`."""

    result: Any


class ProcessExecutor:
    """A fixed number of children, started when first needed."""

    def __init__(self, size: int, url: str, *, use_pooler: bool = False) -> None:
        self._url, self._use_pooler = url, use_pooler
        self._places = asyncio.Semaphore(size)
        self._idle: queue.SimpleQueue[_Child] = queue.SimpleQueue()
        self._children: set[_Child] = set()

    async def run(
        self,
        job: ClaimedJob,
        function: Callable[..., Any],
        *,
        wants_context: bool,
        on_progress: Callable[[ClaimedJob, bytes], None],
        on_begin: Callable[[ClaimedJob], None],
    ) -> Any:
        """Run the function in a child; cancelling this kills the child."""
        async with self._places:
            on_begin(job)
            child = self._take()
            job.interrupt = child.terminate
            call = ChildCall(
                function.__module__,
                function.__qualname__,
                _row_of(job),
                job.worker_id,
                wants_context,
                self._url,
                self._use_pooler,
                job.redactor,
            )
            loop = asyncio.get_running_loop()

            def progressed(progress: bytes) -> None:
                loop.call_soon_threadsafe(on_progress, job, progress)

            try:
                answer = await asyncio.to_thread(child.run, call, progressed)
            except BaseException:
                self._discard(child)
                raise
            self._idle.put(child)
            return _unwrap(answer)

    def close(self) -> None:
        for child in list(self._children):
            self._discard(child)

    def _take(self) -> "_Child":
        while True:
            try:
                child = self._idle.get_nowait()
            except queue.Empty:
                child = _Child()
                self._children.add(child)
                return child
            if child.is_alive:
                return child
            self._discard(child)

    def _discard(self, child: "_Child") -> None:
        child.kill()
        self._children.discard(child)


class _Child:
    """The worker's end of one child process."""

    def __init__(self) -> None:
        self._pipe, theirs = _SPAWN.Pipe()
        self._process: BaseProcess = _SPAWN.Process(
            target=_serve, args=(theirs,), daemon=True, name="mainspring-child"
        )
        self._lock = threading.Lock()
        self._process.start()
        theirs.close()

    @property
    def is_alive(self) -> bool:
        return self._process.is_alive()

    def run(self, call: ChildCall, on_progress: Callable[[bytes], None]) -> tuple[Any, ...]:
        try:
            self._pipe.send(("run", call))
            while True:
                message: tuple[Any, ...] = self._pipe.recv()
                if message[0] != "progress":
                    return message
                on_progress(message[1])
        except (EOFError, OSError) as error:
            self._process.join(1)
            raise ChildDied(
                f"the job's process exited with code {self._process.exitcode}"
            ) from error

    def terminate(self) -> None:
        self._process.terminate()

    def kill(self) -> None:
        with self._lock:
            if self._process.is_alive():
                self._process.kill()
                self._process.join(5)
            self._pipe.close()


def _unwrap(message: tuple[Any, ...]) -> Any:
    match message:
        case ("done", result, False):
            return result
        case ("done", result, True):
            return Committed(result)
        case ("failed", text):
            raise ChildFailed(text)
        case ("unstorable", text):
            raise UnstorableResult(text)
        case _:
            raise ChildDied(f"the process of the job answered {message[0]!r}")


def _row_of(job: ClaimedJob) -> tuple[Any, ...]:
    return (
        job.id,
        job.fence,
        job.definition,
        job.payload_text,
        job.attempt,
        job.failures,
        job.losses,
        job.max_attempts,
        job.queue,
        job.priority,
        job.tenant_id,
        job.extras,
        job.limit_name,
        job.limit_key,
        job.version,
    )


# Below here runs in the child.


_stop_requested = threading.Event()


def _serve(pipe: Pipe) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the worker's to handle.
    signal.signal(signal.SIGTERM, lambda *_: _stop_requested.set())
    telemetry.configure()
    while True:
        try:
            _, call = pipe.recv()
        except EOFError:
            return
        _stop_requested.clear()
        with telemetry.hiding(call.redactor):
            pipe.send(_answer(call, pipe))


def _answer(call: ChildCall, pipe: Pipe) -> tuple[Any, ...]:
    job = ClaimedJob(call.row, call.worker_id, 0.0)  # type: ignore[arg-type]
    job.redactor = call.redactor
    try:
        answer = _call_handler(call, job, pipe)
        is_success = isinstance(of_answer(answer), Succeed)
        # Here, so that no more than can be stored goes through the pipe.
        result = EncodedResult(encode_result(answer, job.redactor)) if is_success else answer
        if job.transaction is not None and job.transaction.is_open:
            if is_success:
                job.transaction.commit((0, 0), result.text)
                return ("done", result, True)
            job.transaction.roll_back(JobCanceled("the handler did not succeed"))
    except UnstorableResult as error:
        if job.transaction is not None:
            job.transaction.roll_back(error)
        return ("unstorable", str(error))
    except Exception as error:  # noqa: BLE001 - a handler may raise anything
        if job.transaction is not None:
            job.transaction.roll_back(error)
        return ("failed", "".join(traceback.format_exception(error)))
    return ("done", result, False)


def _call_handler(call: ChildCall, job: ClaimedJob, pipe: Pipe) -> Any:
    target: Any = importlib.import_module(call.module)
    for part in call.name.split("."):
        target = getattr(target, part)
    function = getattr(target, "function", target)
    if not call.wants_context:
        return function(**job.payload())
    environment = _ChildEnvironment(call.url, pipe, use_pooler=call.use_pooler)
    context = Context(job, environment, ExecutionMode.PROCESS, is_stopped=_stop_requested.is_set)
    return function(**job.payload(), ctx=context)


class _ChildEnvironment:
    """What a context can do in a child."""

    def __init__(self, url: str, pipe: Pipe, *, use_pooler: bool) -> None:
        self._url, self._pipe, self._use_pooler = url, pipe, use_pooler

    @property
    def async_source(self) -> AsyncSource:
        raise InputError(
            "a handler in a process is not an async function; use the blocking methods"
        )

    @property
    def sync_source(self) -> "_ChildEnvironment":
        return self

    # A connection of its own each time, so that nobody waits.
    async_calls, sync_calls = async_source, sync_source

    @property
    def enqueuer(self) -> Any:
        raise InputError(
            "ctx.enqueue is not available in a process; return and enqueue from a job in a thread"
        )

    def connection(self) -> AbstractContextManager[Connection[Any]]:
        return connect.connect_sync(self._url, use_pooler=self._use_pooler)

    def note_progress(self, job: ClaimedJob, progress: bytes) -> None:
        self._pipe.send(("progress", progress))


def default_size() -> int:
    return os.cpu_count() or 1
