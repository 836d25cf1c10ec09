"""The long-running roles in this process, from signal to exit code."""

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


async def run(worker: Worker | None, *others: Role | None) -> None:
    """Until SIGTERM or SIGINT, until the supervisor is gone, or until one of them ends; the same
    signal again does not wait for the drain."""
    roles = [role for role in (worker, *others) if role is not None]
    seen: set[signal.Signals] = set()

    def on_signal(number: signal.Signals) -> None:
        # Ctrl-C comes from the terminal as SIGINT and from a supervisor as SIGTERM: one request.
        if number in seen and worker is not None:
            worker.hurry()
        seen.add(number)
        _stop(roles)

    def orphaned() -> None:
        telemetry.event("supervisor_gone")
        _stop(roles)

    with _signals_to(on_signal), parent_watched(orphaned):
        await _all_ended(roles)


async def _all_ended(roles: Sequence[Role]) -> None:
    """The first to end takes the others with it; raises what it failed with."""
    tasks = [asyncio.create_task(role.run()) for role in roles]
    for task in tasks:
        task.add_done_callback(lambda _: _stop(roles))
    for failure in await asyncio.gather(*tasks, return_exceptions=True):
        if failure is not None:
            raise failure


def _stop(roles: Sequence[Role]) -> None:
    for role in roles:
        role.stop()


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
        telemetry.event("handler_abandoned", note="exiting with threads still running")
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)
