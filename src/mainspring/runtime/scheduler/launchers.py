"""The condition side of a schedule, written in Python.

    class RefreshCategories(Launcher):
        job_type = "vocab_refresh"

        def check_conditions(self) -> bool:
            return has_new_categories()

        def prepare_job_data(self) -> dict[str, Any]:
            return {"operation": "refresh"}

A new launcher is created for every slot. Its methods may be blocking, in which case they run in a
thread of their own, or async. True enqueues, False skips, an exception is a failure.

`launch()` does all of it and returns the job's id or None. Schedulers call it only where a class
has its own, since a job that they make from the parts is stored together with its slot.
"""

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from queue import SimpleQueue
from typing import Any, ClassVar

from mainspring.domain.errors import InputError, InvalidPayload
from mainspring.domain.schedules.conditions import Failed, Run, Skip, Verdict
from mainspring.domain.schedules.model import ScheduleSpec
from mainspring.domain.types import SlotTrigger
from mainspring.runtime.scheduler.launcher_queue import LauncherQueue
from mainspring.runtime.worker.failures import describe

_MOST_THREADS = 200

# Not a future's own exception, which must not be a StopIteration.
_Answer = asyncio.Future[tuple[Any, BaseException | None]]


@dataclass(frozen=True, slots=True)
class Launch:
    """The slot a launcher decides about."""

    schedule: ScheduleSpec
    at: datetime
    trigger: SlotTrigger
    missed: int
    is_forced: bool = False


class Launcher:
    """Decides whether a slot of a schedule becomes a job, and with which payload. `job_type` is the
    key of the definition, by default the schedule's own; `reason` says why a slot is skipped."""

    job_type: ClassVar[str | None] = None
    slot: Launch
    reason: str | None = None

    def __init__(self, job_queue: Any = None, max_retries: int = 5) -> None:
        self.job_queue, self.max_retries = job_queue, max_retries

    @property
    def job_queue(self) -> Any:
        """The `Mainspring` of the scheduler, with `enqueue(job_type, job_data)`."""
        return self._job_queue

    @job_queue.setter
    def job_queue(self, given: Any) -> None:
        is_app = given is not None and not isinstance(given, LauncherQueue)
        self._job_queue = LauncherQueue(given) if is_app else given

    @property
    def schedule(self) -> ScheduleSpec:
        """The schedule of the slot; raises InputError outside a scheduler."""
        if not hasattr(self, "slot"):
            raise InputError(
                f"{type(self).__name__} has no schedule outside a scheduler; set job_type and "
                "override prepare_job_data"
            )
        return self.slot.schedule

    def check_conditions(self) -> Any:
        """Whether to run; set `self.reason` to say why not. May be async."""
        return True

    def prepare_job_data(self) -> Any:
        """The payload; the schedule's own by default. May be async."""
        return dict(self.schedule.payload)

    def get_job_type(self) -> str:
        """The definition's key: `job_type`, or the schedule's own."""
        return self.job_type or self.schedule.definition

    def launch(self) -> Any:
        """Check, prepare and enqueue; returns the id of the job as a string, None to skip. May be
        async where it is overridden."""
        is_forced = hasattr(self, "slot") and self.slot.is_forced
        if not is_forced and not _awaited(self.check_conditions()):
            return None
        payload = _awaited(self.prepare_job_data())
        return self.job_queue.enqueue(job_type=self.get_job_type(), job_data=payload)


def has_own_launch(kind: type[Launcher]) -> bool:
    """Whether it is to be asked as a whole."""
    return kind.launch is not Launcher.launch


def _awaited(answer: Any) -> Any:
    """The answer of a method that may be async, from blocking code."""
    if not inspect.isawaitable(answer):
        return answer

    async def wait(answer: Awaitable[Any]) -> Any:
        return await answer

    return asyncio.run(wait(answer))


class Launchers:
    """Asks launchers, and leaves a thread behind whose launcher never answers."""

    def __init__(self) -> None:
        self.threads: set[_Thread] = set()

    async def ask(self, kind: type[Launcher], launch: Launch, queue: LauncherQueue) -> Verdict:
        """Within the schedule's condition timeout; raises nothing."""
        limit = launch.schedule.condition_timeout.total_seconds()
        name = launch.schedule.launcher
        if len(self.threads) >= _MOST_THREADS:
            return Failed("too many launchers are hanging; restart the scheduler")
        thread = _Thread(on_end=self.threads.discard)
        self.threads.add(thread)
        try:
            async with asyncio.timeout(limit) as scope:
                return await _ask(thread, kind, launch, queue=queue)
        except (Exception, SystemExit, asyncio.CancelledError) as error:
            if _is_canceled(error):
                raise
            if scope.expired():
                return Failed(f"{name} did not answer within {limit:g} s")
            traceback = describe(error).partition("\n\n")[2]
            return Failed(f"{name}: {type(error).__name__}: {error}", traceback)
        finally:
            thread.end()


async def _ask(
    thread: "_Thread", kind: type[Launcher], launch: Launch, *, queue: LauncherQueue
) -> Verdict:
    launcher = await thread.call(partial(kind, queue, launch.schedule.max_retries))
    launcher.slot = launch
    if has_own_launch(kind):
        return _launched(await _answer(thread, launcher.launch), launcher, queue)
    if not launch.is_forced and not await _answer(thread, launcher.check_conditions):
        return _skip(launcher)
    payload = await _answer(thread, launcher.prepare_job_data)
    if not isinstance(payload, dict):
        raise InvalidPayload(f"prepare_job_data returned {type(payload).__name__}, not a dict")
    return Run(payload, launcher.get_job_type())


def _launched(answer: object, launcher: Launcher, queue: LauncherQueue) -> Verdict:
    """What an overriding `launch()` decided: a job id, or None to skip."""
    asked = queue.asked
    if asked is None and not answer:
        return _skip(launcher)
    if asked is not None and not answer:
        raise InputError(
            f"launch() enqueued job {asked.job_id} but returned {answer!r}; return the id that "
            "self.job_queue.enqueue returned"
        )
    if asked is None or str(answer) != str(asked.job_id):
        return _enqueued_elsewhere(answer, launcher)
    return Run(asked.payload, asked.definition, job_id=asked.job_id)


def _enqueued_elsewhere(answer: object, launcher: Launcher) -> Failed:
    """Another try would enqueue another job that is not the slot's."""
    job_id = getattr(answer, "id", answer)
    reason = (
        f"{launcher.schedule.launcher}: job {job_id}, which was enqueued elsewhere, is not part of "
        "this slot and may run; let launch() return self.job_queue.enqueue(job_type, job_data), "
        "which stores the job with its slot"
    )
    return Failed(reason, is_permanent=True)


def _skip(launcher: Launcher) -> Skip:
    return Skip(str(launcher.reason or "the condition is not met"))


async def _answer(thread: "_Thread", method: Callable[[], Any]) -> Any:
    answer = method() if inspect.iscoroutinefunction(method) else await thread.call(method)
    return await answer if inspect.isawaitable(answer) else answer


def _is_canceled(error: BaseException) -> bool:
    """Whether the check itself is to stop, and not something that the launcher waited for."""
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0


class _Thread:
    """Runs the plain methods of one launcher one after the other.

    It is no part of a pool, which would fill up with launchers that hang.
    """

    def __init__(self, on_end: Callable[["_Thread"], None]) -> None:
        self._on_end = on_end
        self._loop = asyncio.get_running_loop()
        self._calls: SimpleQueue[tuple[Callable[[], Any], _Answer] | None] = SimpleQueue()
        threading.Thread(target=self._work, name="mainspring-launcher", daemon=True).start()

    async def call(self, method: Callable[[], Any]) -> Any:
        answer: _Answer = self._loop.create_future()
        self._calls.put((method, answer))
        result, error = await answer
        if error is not None:
            raise error
        return result

    def end(self) -> None:
        """Once the call that it is busy with has returned."""
        self._calls.put(None)

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            method, answer = call
            try:
                self._report(_settle, answer, (method(), None))
            except BaseException as error:  # noqa: BLE001 - raised again where it is awaited
                self._report(_settle, answer, (None, error))
        self._report(self._on_end, self)

    def _report(self, callback: Callable[..., None], *facts: object) -> None:
        try:
            self._loop.call_soon_threadsafe(callback, *facts)
        except RuntimeError:
            return  # The loop has ended; nobody waits.


def _settle(answer: _Answer, result: tuple[Any, BaseException | None]) -> None:
    if not answer.done():
        answer.set_result(result)
