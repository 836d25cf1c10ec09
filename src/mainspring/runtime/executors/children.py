"""What runs in a child process: handlers, one after another, as the worker asks for them.

A handler has the context that it has in the worker: checkpoints, progress, `ctx.transaction()` and
follow-ups, over connections of the child's own. The child ends with its worker.
"""

import asyncio
import importlib
import inspect
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection as Pipe
from typing import Any

from psycopg import Connection

from mainspring import telemetry
from mainspring.db import connect
from mainspring.db.pool import AsyncPool
from mainspring.domain.errors import InputError
from mainspring.domain.jobs.outcomes import Succeed, of_answer
from mainspring.domain.secrets.redaction import Redactor
from mainspring.domain.types import ExecutionMode, WorkerId
from mainspring.runtime import logs
from mainspring.runtime.executors import protection
from mainspring.runtime.worker.claimed_job import ClaimedJob
from mainspring.runtime.worker.context import Context, JobCanceled
from mainspring.runtime.worker.results import EncodedResult, UnstorableResult, encode_result
from mainspring.runtime.worker.transactions import AsyncSource
from mainspring.settings import Settings

_POOL_SIZE = 4


@dataclass(frozen=True, slots=True)
class ChildCall:
    """Everything a child needs to run a job; it is pickled."""

    module: str
    name: str
    row: tuple[Any, ...]
    worker_id: WorkerId
    claimed_at: float
    wants_context: bool
    redactor: Redactor

    @classmethod
    def of(
        cls, job: ClaimedJob, function: Callable[..., Any], *, wants_context: bool
    ) -> "ChildCall":
        return cls(
            function.__module__,
            function.__qualname__,
            job.row(),
            job.worker_id,
            job.claimed_at,
            wants_context,
            job.redactor,
        )

    def job(self) -> ClaimedJob:
        job = ClaimedJob(self.row, self.worker_id, self.claimed_at)
        job.redactor = self.redactor
        return job

    def target(self) -> Any:
        """The job function, or the function itself, by its name."""
        target: Any = importlib.import_module(self.module)
        for part in self.name.split("."):
            target = getattr(target, part)
        return target


class _StopRequest:
    """Whether the handler was asked to stop; an async one is canceled."""

    def __init__(self) -> None:
        self._is_requested = threading.Event()
        self._cancel: Callable[[], object] | None = None

    def __call__(self, *_: object) -> None:
        self._is_requested.set()
        if self._cancel is not None:
            self._cancel()

    def is_requested(self) -> bool:
        return self._is_requested.is_set()

    def clear(self) -> None:
        self._cancel = None
        self._is_requested.clear()

    @contextmanager
    def canceling(self, task: "asyncio.Task[Any] | None") -> Iterator[None]:
        """Cancel the task when asked to stop, as long as this lasts."""
        loop = asyncio.get_running_loop()
        if task is not None:
            self._cancel = lambda: loop.call_soon_threadsafe(task.cancel)
        try:
            yield
        finally:
            self._cancel = None


_stop = _StopRequest()
_are_logs_configured = threading.Event()


def serve(pipe: Pipe, settings: Settings, worker_pid: int) -> None:
    """Run what the worker asks for until it closes the pipe or dies."""
    protection.end_with(worker_pid)
    if settings.command_paths:
        protection.hide_environment()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the worker's to handle.
    signal.signal(signal.SIGTERM, _stop)
    telemetry.guard_streams()
    while True:
        try:
            call: ChildCall = pipe.recv()
        except EOFError:
            return
        _stop.clear()
        with telemetry.hiding(call.redactor):
            pipe.send(_answer(call, pipe, settings))


def _configure_logs(settings: Settings) -> None:
    """Once the app is imported, which may set up logging itself."""
    if not _are_logs_configured.is_set():
        logs.configure(settings, role="worker")
        _are_logs_configured.set()


def _answer(call: ChildCall, pipe: Pipe, settings: Settings) -> tuple[Any, ...]:
    try:
        target = call.target()
        _configure_logs(settings)
        function = getattr(target, "function", target)
        app = getattr(target, "app", None)
        if app is not None and app.settings != settings:
            # What it read here is not what the worker was given as options.
            app.use(settings)
    except Exception as error:  # noqa: BLE001 - an import may raise anything
        return ("unreachable", _text(error))
    environment = _ChildEnvironment(settings, pipe, app)
    if inspect.iscoroutinefunction(function):
        return asyncio.run(_arun(call, function, environment))
    return _run(call, function, environment)


def _run(
    call: ChildCall, function: Callable[..., Any], environment: "_ChildEnvironment"
) -> tuple[Any, ...]:
    job = environment.begin(call)
    try:
        result = function(**environment.arguments(call, job, ExecutionMode.PROCESS))
        answer = _plain(result, job.redactor)
        if job.transaction is not None and job.transaction.is_open:
            if isinstance(of_answer(result), Succeed):
                stored = encode_result(answer, job.redactor)
                job.transaction.commit(job.timings(), stored, job.progress)
                return ("done", answer, True)
            job.transaction.roll_back(JobCanceled("the handler did not succeed"))
    except BaseException as error:  # noqa: BLE001 - a handler may raise anything
        if job.transaction is not None:
            job.transaction.roll_back(error)
        return _problem(error, job.redactor)
    return ("done", answer, False)


async def _arun(
    call: ChildCall, function: Callable[..., Any], environment: "_ChildEnvironment"
) -> tuple[Any, ...]:
    job = environment.begin(call)
    try:
        with _stop.canceling(asyncio.current_task()):
            result = await function(**environment.arguments(call, job, ExecutionMode.ASYNC))
        answer = _plain(result, job.redactor)
        if job.transaction is not None and job.transaction.is_open:
            if isinstance(of_answer(result), Succeed):
                stored = encode_result(answer, job.redactor)
                await job.transaction.acommit(job.timings(), stored, job.progress)
                return ("done", answer, True)
            await job.transaction.aroll_back(JobCanceled("the handler did not succeed"))
    except BaseException as error:  # noqa: BLE001 - a handler may raise anything
        if job.transaction is not None:
            await job.transaction.aroll_back(error)
        return _problem(error, job.redactor)
    finally:
        await environment.close()
    return ("done", answer, False)


def _plain(result: Any, redactor: Redactor) -> Any:
    """The answer as the worker can read it whatever it has imported, and no larger than can be
    stored."""
    if not isinstance(of_answer(result), Succeed):
        return result
    return EncodedResult(encode_result(result, redactor))


def _problem(error: BaseException, redactor: Redactor) -> tuple[Any, ...]:
    if isinstance(error, UnstorableResult):
        return ("unstorable", str(error))
    if isinstance(error, asyncio.CancelledError) and _stop.is_requested():
        return ("stopped",)
    from mainspring.runtime.worker.failures import describe  # noqa: PLC0415 - imports this

    return ("failed", describe(error, redactor))


def _text(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


class _ChildEnvironment:
    """What a context can do in a child."""

    def __init__(self, settings: Settings, pipe: Pipe, app: Any) -> None:
        self._settings, self._pipe, self._app = settings, pipe, app
        self._pool: AsyncPool | None = None

    def begin(self, call: ChildCall) -> ClaimedJob:
        """The job, whose handler is about to be called."""
        job = call.job()
        self._pipe.send(("begun",))
        job.began_at = time.monotonic()
        return job

    def arguments(self, call: ChildCall, job: ClaimedJob, mode: ExecutionMode) -> dict[str, Any]:
        arguments = job.payload()
        if call.wants_context:
            arguments["ctx"] = Context(job, self, mode, is_stopped=_stop.is_requested)
        return arguments

    @property
    def async_source(self) -> AsyncSource:
        if self._pool is None:
            self._pool = AsyncPool(self._url, size=_POOL_SIZE, use_pooler=self._settings.use_pooler)
        return self._pool

    @property
    def sync_source(self) -> "_ChildEnvironment":
        return self

    # A connection of its own each time, or one of several, so that nobody waits.
    async_calls, sync_calls = async_source, sync_source

    @property
    def enqueuer(self) -> Any:
        if self._app is None:
            raise InputError(
                "ctx.enqueue is not available here; only job functions at module level have it in "
                "a process of their own"
            )
        return self._app

    @property
    def _url(self) -> str:
        return self._settings.database_url or ""

    def connection(self) -> AbstractContextManager[Connection[Any]]:
        return connect.connect_sync(self._url, use_pooler=self._settings.use_pooler)

    def note_progress(self, job: ClaimedJob, progress: bytes) -> None:
        job.progress = progress
        self._pipe.send(("progress", progress))

    async def close(self) -> None:
        if self._pool is not None:
            await self._pool.close()
        if self._app is not None:
            await self._app.database.close_loop()
