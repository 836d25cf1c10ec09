"""Commands: a program, its arguments, a session of its own. Never a shell.

spawn ─▶ read its output ─▶ it ends ─▶ whoever is left of it is killed ─▶ its exit code
   └ asked to stop: SIGTERM to all of it ─ grace ─▶ SIGKILL to all of it
"""

import asyncio
import codecs
import os
import signal
import subprocess
import time
import uuid
from collections.abc import Callable, Collection, Coroutine
from pathlib import Path
from typing import Any

from mainspring.domain.commands import Command, read_command
from mainspring.domain.definitions import Definition
from mainspring.domain.errors import InvalidDefinition, InvalidPayload
from mainspring.domain.jobs.outcomes import AttemptFailed, Fail
from mainspring.runtime.executors import orphans, protection
from mainspring.runtime.executors.exits import signal_name
from mainspring.runtime.worker.claimed_job import ClaimedJob
from mainspring.runtime.worker.lease import is_gone, process_identity
from mainspring.runtime.worker.output import AttemptOutput
from mainspring.runtime.worker.reporter import Reporter

_CHUNK = 64 * 1024
_MOST_CHUNKS = 64
_LAST_WORDS_SECONDS = 1.0


class CommandExecutor:
    """Runs the jobs of definitions of the kind `command`."""

    def __init__(
        self,
        reporter: Reporter,
        *,
        directories: Collection[Path],
        variables: Collection[str],
        grace_seconds: float,
    ) -> None:
        self._reporter = reporter
        self._directories = [directory.resolve() for directory in directories]
        self._variables = frozenset(variables)
        self._grace = grace_seconds
        self._pids: set[int] = set()
        self._known: dict[str, tuple[Definition, Command]] = {}
        self._identity = process_identity()
        # Numbers of jobs are those of a database, and a host may serve several.
        self._token = uuid.uuid4().hex
        protection.hide_environment()
        protection.start_helper()
        self._helpers = orphans.children()
        orphans.adopt_orphans()
        orphans.end_left_over(
            {worker for worker in orphans.workers_of_commands() if is_gone(worker)}
        )

    async def run(self, job: ClaimedJob, definition: Definition) -> Any:
        try:
            command = self._command(definition)
            arguments = command.template.arguments(job.payload(), job)
        except (InvalidDefinition, InvalidPayload) as error:
            return Fail(str(error))
        output = job.output = AttemptOutput(job.redactor)
        process = self._spawn(job, command, arguments)
        self._pids.add(process.pid)
        output.started(process.pid)
        try:
            code = await self._attend(process, output)
        finally:
            self._pids.discard(process.pid)
            self._end_rest(job, process)
            output.close()
            self._reporter.add_output(job)
        return _answer(command, code)

    def _command(self, definition: Definition) -> Command:
        """Read once for each version of a definition."""
        known = self._known.get(definition.key)
        if known is None or known[0] is not definition:
            known = (definition, read_command(definition.key, definition.spec))
            self._known[definition.key] = known
        return known[1]

    def _spawn(
        self, job: ClaimedJob, command: Command, arguments: list[str]
    ) -> "subprocess.Popen[bytes]":
        self._ensure_allowed(command.executable)
        try:
            return subprocess.Popen(
                [command.executable, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=command.working_directory,
                env=self._environment(job, command),
                start_new_session=True,
                bufsize=0,
            )
        except (OSError, ValueError) as error:
            raise AttemptFailed(f"{command.executable} could not be started: {error}") from None

    def _ensure_allowed(self, executable: str) -> None:
        """The definition pinned the program; a link that leads elsewhere since is refused."""
        path = Path(executable)
        if not path.is_absolute() or os.path.realpath(executable) != executable:
            raise AttemptFailed(f"{executable} is not the path of a program; update the definition")
        if not any(path.is_relative_to(directory) for directory in self._directories):
            raise AttemptFailed(f"{executable} is not in any of this worker's command directories")

    def _environment(self, job: ClaimedJob, command: Command) -> dict[str, str]:
        if refused := set(command.environment) - self._variables:
            raise AttemptFailed(
                f"the variable {min(refused)} is not allowed for commands (setting "
                "command_environment)"
            )
        given = {name: os.environ[name] for name in command.environment if name in os.environ}
        return {
            **given,
            "MAINSPRING_JOB_ID": str(job.id),
            "MAINSPRING_TENANT_ID": job.tenant_id,
            "MAINSPRING_ATTEMPT": str(job.attempt),
            orphans.ATTEMPT: self._attempt_id(job),
            orphans.WORKER: self._identity,
        }

    async def _attend(self, process: "subprocess.Popen[bytes]", output: AttemptOutput) -> int:
        """Read until it ends; asked to stop, see to it that it does."""
        readers = [
            _Reader(process.stdout, output.add_stdout),
            _Reader(process.stderr, output.add_stderr),
        ]
        try:
            code = await _ended(process)
        except asyncio.CancelledError:
            code = await self._stop(process)
            raise
        finally:
            orphans.end_group(process.pid, signal.SIGKILL)
            output.exited(process.wait())
            if not all(reader.finish() for reader in readers):
                # Who left the session may hold the pipes open for ever.
                await _at_any_rate(_all_ended(readers))
            for reader in readers:
                reader.close()
        return code

    async def _stop(self, process: "subprocess.Popen[bytes]") -> int:
        orphans.end_group(process.pid, signal.SIGTERM)
        try:
            async with asyncio.timeout(self._grace):
                return await _ended(process)
        except (TimeoutError, asyncio.CancelledError):
            orphans.end_group(process.pid, signal.SIGKILL)
            return process.wait()  # It cannot refuse, so this is over at once.

    def _attempt_id(self, job: ClaimedJob) -> str:
        return f"{self._token}-{job.id}-{job.fence}"

    def _end_rest(self, job: ClaimedJob, process: "subprocess.Popen[bytes]") -> None:
        """Kill what has left the session; it may still be making more. To look at all processes
        takes longer than a small command, so only where there is someone we did not start."""
        if job.stop is not None or orphans.children() - self._pids - self._helpers:
            deadline = time.monotonic() + _LAST_WORDS_SECONDS
            attempt_id = self._attempt_id(job)
            while orphans.end_strays(attempt_id) and time.monotonic() < deadline:
                pass
            orphans.reap()
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()


async def _at_any_rate(duty: Coroutine[Any, Any, Any]) -> None:
    """Do it even while being asked to stop, but not for ever."""
    task = asyncio.ensure_future(asyncio.wait_for(duty, 2 * _LAST_WORDS_SECONDS))
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            continue
        except TimeoutError:
            return


async def _ended(process: "subprocess.Popen[bytes]") -> int:
    """The exit code, without a thread where the system signals the end by a descriptor."""
    if not hasattr(os, "pidfd_open"):
        return await asyncio.to_thread(process.wait)
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    descriptor = os.pidfd_open(process.pid)
    try:
        loop.add_reader(descriptor, ended.set)
        await ended.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)
    return process.wait()


class _Reader:
    """Hands on what comes through a pipe until its end, as text whatever it is. No task: a small
    command is over sooner than one is made."""

    def __init__(self, pipe: Any, on_text: Callable[[str], None]) -> None:
        self.ended = asyncio.Event()
        self._on_text = on_text
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._descriptor = pipe.fileno()
        self._loop = asyncio.get_running_loop()
        os.set_blocking(self._descriptor, False)
        self._loop.add_reader(self._descriptor, self._take)

    def finish(self) -> bool:
        """Take what is there, now that the command has ended; whether that was all."""
        for _ in range(_MOST_CHUNKS):
            if self.ended.is_set() or not self._take():
                break
        return self.ended.is_set()

    def close(self) -> None:
        if not self.ended.is_set():
            self._loop.remove_reader(self._descriptor)
            self.ended.set()

    def _take(self) -> bool:
        """Whether there was something, if only the end."""
        try:
            data = os.read(self._descriptor, _CHUNK)
        except BlockingIOError:
            return False
        if text := self._decoder.decode(data, final=not data):
            self._on_text(text)
        if not data:
            self.close()
        return True


async def _all_ended(readers: Collection[_Reader]) -> None:
    async with asyncio.timeout(_LAST_WORDS_SECONDS):
        for reader in readers:
            await reader.ended.wait()


def _answer(command: Command, code: int) -> Any:
    if code in command.success_codes:
        return {"exit_code": code}
    if code < 0:
        raise AttemptFailed(f"the command was terminated by {signal_name(-code)}")
    if code in command.fail_codes:
        return Fail(f"the command exited with code {code}")
    raise AttemptFailed(f"the command exited with code {code}")
