"""The long-running roles in this process, from signal to exit code.

Roles stop in this order, so that whoever watches the last jobs can do so to the end:

    signal ─▶ scheduler: fires no more
           ─▶ worker: claims no more, drains, hands back the rest
           ─▶ server: streams get the last state, HTTP closes
"""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from mainspring import telemetry
from mainspring.runtime.parent_watch import parent_watched
from mainspring.runtime.worker.worker import Worker


class Role(Protocol):
    """What runs until it is asked to stop."""

    async def run(self) -> None: ...

    def stop(self) -> None: ...

    def hurry(self) -> None:
        """Wait for nothing when stopping."""


Stage = Sequence[Role]


async def run(
    *stages: Stage,
    on_stop: Callable[[], None] | None = None,
    on_hurry: Callable[[], None] | None = None,
) -> None:
    """Until SIGTERM or SIGINT, until the supervisor is gone, or until one of the roles ends. The
    roles of a stage stop when those of the stage before have ended; the same signal again does not
    wait for the drain. `on_stop` and `on_hurry` are called when that is asked for."""
    stopping = asyncio.Event()
    seen: set[signal.Signals] = set()

    def on_signal(number: signal.Signals) -> None:
        # Ctrl-C comes from the terminal as SIGINT and from a supervisor as SIGTERM: one request.
        is_first, is_repeated = not seen, number in seen
        seen.add(number)
        stopping.set()
        if is_repeated:
            _hurry(stages)
            _call(on_hurry)
        elif is_first:
            _call(on_stop)

    def orphaned() -> None:
        telemetry.event("supervisor_gone")
        stopping.set()

    with _signals_to(on_signal), parent_watched(orphaned):
        await _run_stages(stages, stopping)


async def _run_stages(stages: Sequence[Stage], stopping: asyncio.Event) -> None:
    """The first role to end takes the others with it; raises what it failed with."""
    tasks = [[asyncio.create_task(role.run()) for role in stage] for stage in stages]
    for task in (task for stage in tasks for task in stage):
        task.add_done_callback(lambda _: stopping.set())
    await stopping.wait()
    failures: list[BaseException | None] = []
    for stage, running in zip(stages, tasks, strict=True):
        for role in stage:
            role.stop()
        failures += await asyncio.gather(*running, return_exceptions=True)
    for failure in failures:
        if failure is not None:
            raise failure


def _hurry(stages: Sequence[Stage]) -> None:
    for stage in stages:
        for role in stage:
            role.hurry()


def _call(action: Callable[[], None] | None) -> None:
    if action is not None:
        action()


@contextmanager
def _signals_to(handle: Callable[[signal.Signals], None]) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, handle, number)
    try:
        yield
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)


def leave(worker: Worker) -> None:
    """End the process even if a handler's thread will not."""
    if worker.has_stuck_threads:
        note = "exiting with threads still running"
        telemetry.event("handler_abandoned", worker=worker.worker_id, note=note)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)
