"""Live views: a job, a list of jobs, and waiting for a result."""

import gc
import os
import queue
import select
import signal
import stat
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from mainspring.api.models.jobs import WatchedJobModel
from mainspring.api.models.streams import WatchedModel
from mainspring.cli import output
from mainspring.cli.delays import why_not_started
from mainspring.cli.job_output import JOBS, job_view, progress_bar
from mainspring.client import Client
from mainspring.domain.errors import JobUnsuccessful, ResultTimeout
from mainspring.domain.types import JobId, JobState

_FRAMES_PER_SECOND = 8
_STDOUT = 1


def watch_jobs(client: Client, *, limit: int, **filters: Any) -> None:
    """The list as it changes, until Ctrl-C."""

    def look(show: Callable[[RenderableType], None]) -> None:
        for page in client.jobs.watch(limit=min(limit, 100), **filters):
            show(JOBS(page.items) if page.items else Text("No jobs."))

    _live(look)


def watch_job(client: Client, job_id: JobId) -> None:
    """A job as it changes, until it has ended or Ctrl-C; raises if it ended without success."""
    last: WatchedJobModel | None = None

    def look(show: Callable[[RenderableType], None]) -> None:
        nonlocal last
        for watched in client.jobs.follow(job_id):
            last = watched.job
            show(_view(watched))

    _live(look)
    if last is not None and last.finished_at is not None:
        output.console.print(job_view(client.jobs.get(job_id), client.jobs.attempts(job_id)))
        _ensure_succeeded(last)


def wait_for(client: Client, job_id: JobId, seconds: float) -> Any:
    """The result of a job; raises where it has none, or not in time."""
    ended: queue.Queue[WatchedJobModel | Exception] = queue.Queue()

    def follow() -> None:
        try:
            *_, last = client.jobs.follow(job_id)
            ended.put(last.job)
        except Exception as error:  # noqa: BLE001 - told to whoever waits
            ended.put(error)

    threading.Thread(target=follow, daemon=True).start()
    try:
        last = ended.get(timeout=seconds)
    except queue.Empty:
        job = client.jobs.get(job_id)
        raise ResultTimeout(job_id, job.state, why_not_started(client, job_id)) from None
    if isinstance(last, Exception):
        raise last
    _ensure_succeeded(last)
    return client.jobs.get(job_id).result if last.is_result_omitted else last.result


def _ensure_succeeded(job: WatchedJobModel) -> None:
    if job.state is not JobState.SUCCEEDED:
        raise JobUnsuccessful(JobId(job.id), job.state, job.last_error)


def _view(watched: WatchedModel) -> RenderableType:
    parts: list[RenderableType] = [job_view(watched.job, [])]
    if watched.job.progress is not None and watched.job.state is JobState.RUNNING:
        parts.append(progress_bar(watched.job))
    for text in watched.output.model_dump().values() if watched.output else ():
        if text:
            parts.append(Text(text.rstrip("\n")))
    return Group(*parts)


def _live(look: Callable[[Callable[[RenderableType], None]], None]) -> None:
    """On a terminal the view is drawn anew; elsewhere every change is printed. Ctrl-C ends it, and
    so does the end of the program that reads the pipe."""
    gc.enable()
    with suppress(KeyboardInterrupt):
        if not output.console.is_terminal:
            _end_with_reader()
            look(output.console.print)
            return
        from rich.live import Live

        rate = _FRAMES_PER_SECOND
        with Live(console=output.console, refresh_per_second=rate, transient=True) as live:
            look(live.update)


def _end_with_reader() -> None:
    """Interrupt the watch once nobody reads its output: without a change to print it would not
    notice, and after `| head` keep its session, and an embedded server, for good."""
    if sys.platform == "win32" or not stat.S_ISFIFO(os.fstat(_STDOUT).st_mode):
        return
    # Not SIGINT, which is ignored in the background of a script.
    signal.signal(signal.SIGUSR1, signal.default_int_handler)
    main = threading.main_thread().ident or 0

    def wait() -> None:
        output_pipe = select.poll()
        output_pipe.register(_STDOUT, 0)  # Errors are reported unasked.
        output_pipe.poll()
        signal.pthread_kill(main, signal.SIGUSR1)

    threading.Thread(target=wait, daemon=True).start()
