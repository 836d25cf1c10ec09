"""Several worker processes under one: started again when they die, stopped together, and stopping
by themselves when it is gone.

With `--reload` it is one process that is replaced whenever a Python file below the current
directory changes.
"""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from mainspring import telemetry
from mainspring.runtime.executors import protection
from mainspring.runtime.parent_watch import ParentWatch

_LONGEST_PAUSE = 10.0
_LOOK_EVERY = 0.5
_REFUSED = 2


class Supervisor:
    """Keeps `count` processes of the same command running."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        count: int,
        variables: Sequence[Mapping[str, str]] | None = None,
    ) -> None:
        """`variables` are of the environment of each process."""
        self._command, self._count = list(command), count
        self._variables = variables or [{}] * count
        self._processes: set[Process] = set()
        self._stopping = asyncio.Event()
        self._lifeline = ParentWatch()
        self._exit_code = 0

    async def run(self) -> int:
        """Until stopped; the exit code is 0, or what a child refused to start with."""
        protection.hide_environment()  # It is that of the workers, whose commands could read it.
        _on_signals(self.stop)
        try:
            await asyncio.gather(*(self._keep_one(number) for number in range(self._count)))
        finally:
            self._lifeline.close()
        return self._exit_code

    def stop(self) -> None:
        self._stopping.set()
        self._signal_all(signal.SIGTERM)

    def restart(self) -> None:
        self._signal_all(signal.SIGTERM)

    async def watch(self, folder: Path) -> None:
        """Restart the processes whenever a Python file changes."""
        known = _stamps(folder)
        while not self._stopping.is_set():
            await asyncio.sleep(_LOOK_EVERY)
            current = await asyncio.to_thread(_stamps, folder)
            if current != known:
                known = current
                telemetry.event("reloading")
                self.restart()

    async def _keep_one(self, number: int) -> None:
        pause = 0.1
        while not self._stopping.is_set():
            process = await asyncio.create_subprocess_exec(
                *self._command,
                pass_fds=self._lifeline.fds,
                env={**self._lifeline.environment, **self._variables[number]},
            )
            self._processes.add(process)
            if self._stopping.is_set():  # Asked to while it was being started.
                process.send_signal(signal.SIGTERM)
            code = await process.wait()
            self._processes.discard(process)
            if code == _REFUSED:
                # A wrong setting or database; starting again would say the same for ever.
                self._exit_code = code
                self.stop()
            if self._stopping.is_set() or code == 0:
                pause = 0.1
                continue
            telemetry.event("process_died", pid=process.pid, exit_code=code)
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    def _signal_all(self, number: signal.Signals) -> None:
        for process in self._processes:
            if process.returncode is None:
                process.send_signal(number)


async def reload_on_change(command: Sequence[str], folder: Path) -> int:
    """Run the command, anew after every change below the folder."""
    supervisor = Supervisor(command, count=1)
    watcher = asyncio.create_task(supervisor.watch(folder))
    try:
        return await supervisor.run()
    finally:
        watcher.cancel()


def this_command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "mainspring", *arguments]


def _on_signals(stop: Callable[[], None]) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)


def _stamps(folder: Path) -> dict[str, float]:
    stamps = {}
    for parent, folders, files in os.walk(folder):
        folders[:] = [f for f in folders if not f.startswith(".") and f != "node_modules"]
        for name in files:
            if name.endswith(".py"):
                path = Path(parent, name)
                try:
                    stamps[str(path)] = path.stat().st_mtime
                except FileNotFoundError:
                    continue
    return stamps
