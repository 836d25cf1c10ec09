"""Functions in processes of their own: CPU-bound ones, and those of suspects.

Each place in the pool is a child process driven by one thread; they talk over a pipe. A child
runs one job at a time, so killing it ends exactly that job, and the place gets a new child.

    worker  ── call ──▶  child (`children.py`)
            ◀─ ("begun",) | ("unreachable", text)
            ◀─ ("progress", bytes) ...
            ◀─ ("done", result, is_committed) | ("failed", text) | ("stopped",)
"""

import asyncio
import multiprocessing
import os
import queue
import sys
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.process import BaseProcess
from typing import Any

from mainspring.runtime.executors import children
from mainspring.runtime.executors.children import ChildCall
from mainspring.runtime.executors.exits import describe_exit
from mainspring.runtime.worker.claimed_job import ClaimedJob
from mainspring.runtime.worker.results import UnstorableResult
from mainspring.settings import Settings

_SPAWN = multiprocessing.get_context("spawn")
# A process that was killed by a signal may have to write a core dump first.
_LAST_WORDS_SECONDS = 5.0
_LONGEST_START_SECONDS = 60.0


class ChildFailed(Exception):
    """The handler raised in its process; the text is its traceback."""


class ChildUnreachable(ChildFailed):
    """The process could not import the handler, so it has not begun."""


class ChildDied(Exception):
    """The process ended without an answer; `how` it did, and whether the handler had begun."""

    def __init__(self, how: str, *, has_begun: bool) -> None:
        super().__init__(f"the job's process {how}")
        self.how, self.has_begun = how, has_begun


class ChildStopped(Exception):
    """The process was asked to stop, by us or by others, and the handler has."""


class Committed:
    """The answer of a handler whose success was committed by `ctx.transaction()`."""

    __slots__ = ("result",)

    def __init__(self, result: Any) -> None:
        self.result = result


class ProcessExecutor:
    """So many children at most, started when needed; without `keeps_idle` they end when no job
    waits for one."""

    def __init__(self, size: int, url: str, settings: Settings, *, keeps_idle: bool = True) -> None:
        self._settings = settings.replaced(database_url=url)
        self._keeps_idle = keeps_idle
        self._places = asyncio.Semaphore(size)
        # Of its own: the event loop's has a few threads for everyone.
        self._threads = ThreadPoolExecutor(size, thread_name_prefix="mainspring-child")
        self._waiting = 0
        self._idle: queue.SimpleQueue[_Child] = queue.SimpleQueue()
        self._children: set[_Child] = set()

    async def run(
        self,
        job: ClaimedJob,
        function: Callable[..., Any],
        *,
        wants_context: bool,
        on_place: Callable[[ClaimedJob], Awaitable[None]],
        on_progress: Callable[[ClaimedJob, bytes], None],
        on_begin: Callable[[ClaimedJob], None],
        needs_new: bool = False,
        patience: float | None = None,
    ) -> Any:
        """Run the function in a child, one that has run nothing else if `needs_new`; cancelling
        this kills the child. TimeoutError if there was no free place for so many seconds."""
        await self._take_place(patience)
        try:
            await on_place(job)
            child = self._take(needs_new=needs_new)
            job.interrupt = child.terminate
            call = ChildCall.of(job, function, wants_context=wants_context)
            loop = asyncio.get_running_loop()

            def begun() -> None:
                loop.call_soon_threadsafe(on_begin, job)

            def progressed(progress: bytes) -> None:
                loop.call_soon_threadsafe(on_progress, job, progress)

            try:
                answer = await loop.run_in_executor(
                    self._threads, child.run, call, begun, progressed
                )
            except BaseException:
                self._discard(child)
                raise
            self._give_back(child)
            return _unwrap(answer)
        finally:
            self._places.release()

    def close(self) -> None:
        for child in list(self._children):
            self._discard(child)
        self._threads.shutdown(wait=False)

    async def _take_place(self, patience: float | None) -> None:
        self._waiting += 1
        try:
            async with asyncio.timeout(patience):
                await self._places.acquire()
        finally:
            self._waiting -= 1

    def _take(self, *, needs_new: bool) -> "_Child":
        while not needs_new:
            try:
                child = self._idle.get_nowait()
            except queue.Empty:
                break
            if child.is_alive:
                return child
            self._discard(child)
        child = _Child(self._settings)
        self._children.add(child)
        return child

    def _give_back(self, child: "_Child") -> None:
        if self._keeps_idle or self._waiting:
            self._idle.put(child)
            return
        self._discard(child)
        while not self._idle.empty():
            self._discard(self._idle.get_nowait())

    def _discard(self, child: "_Child") -> None:
        child.kill()
        self._children.discard(child)


class _Child:
    """The worker's end of one child process."""

    def __init__(self, settings: Settings) -> None:
        self._pipe, theirs = _SPAWN.Pipe()
        self._process: BaseProcess = _SPAWN.Process(
            target=children.serve,
            args=(theirs, settings, os.getpid()),
            daemon=True,
            name="mainspring-child",
        )
        self._lock = threading.Lock()
        self._process.start()
        theirs.close()

    @property
    def is_alive(self) -> bool:
        return self._process.is_alive()

    def run(
        self,
        call: ChildCall,
        on_begin: Callable[[], None],
        on_progress: Callable[[bytes], None],
    ) -> tuple[Any, ...]:
        has_begun = False
        try:
            self._pipe.send(call)
            if not self._pipe.poll(_LONGEST_START_SECONDS):
                raise ChildDied("did not start", has_begun=False)
            while True:
                message: tuple[Any, ...] = self._pipe.recv()
                match message:
                    case ("begun",):
                        has_begun = True
                        on_begin()
                    case ("progress", progress):
                        on_progress(progress)
                    case _:
                        return message
        except (EOFError, OSError) as error:
            self._process.join(_LAST_WORDS_SECONDS)
            how = describe_exit(self._process.exitcode)
            raise ChildDied(how, has_begun=has_begun) from error

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
        case ("unreachable", text):
            raise ChildUnreachable(text)
        case ("unstorable", text):
            raise UnstorableResult(text)
        case ("stopped",):
            raise ChildStopped("the job's process was asked to stop")
        case _:
            raise ChildDied(f"answered {message[0]!r}", has_begun=True)


def is_importable(function: Callable[..., Any]) -> bool:
    """Whether a child would find this very function by its name, as a job function of an app."""
    if function.__module__ == "__main__" or "<locals>" in function.__qualname__:
        return False
    target: Any = sys.modules.get(function.__module__)
    for part in function.__qualname__.split("."):
        target = getattr(target, part, None)
    return getattr(target, "function", None) is function and hasattr(target, "app")


def default_size() -> int:
    return os.cpu_count() or 1
