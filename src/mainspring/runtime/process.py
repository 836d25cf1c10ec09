"""One worker in this process, from signal to exit code."""

import asyncio
import os
import signal
import sys

from mainspring import telemetry
from mainspring.db import migrate, pool
from mainspring.runtime.worker import Worker


async def check_database(url: str, *, use_pooler: bool = False) -> None:
    """Refuse to start against a database that this program does not fit."""
    connection = await pool.connect(url, name="mainspring check", use_pooler=use_pooler)
    async with connection:
        await migrate.check(connection)


async def run_worker(worker: Worker) -> None:
    """Until SIGTERM or SIGINT; the same one again does not wait for the drain."""
    loop = asyncio.get_running_loop()
    seen: set[signal.Signals] = set()

    def stop(number: signal.Signals) -> None:
        # Ctrl-C comes from the terminal as SIGINT and from a supervisor as SIGTERM: one request.
        if number in seen:
            worker.hurry()
        seen.add(number)
        worker.stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop, number)
    try:
        await worker.run()
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)


def leave(worker: Worker) -> None:
    """End the process even if a handler's thread will not."""
    if worker.has_stuck_threads:
        telemetry.event("handler_abandoned", note="leaving with threads still running")
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)
