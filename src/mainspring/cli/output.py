"""How things look on a terminal, and as JSON for programs."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
from rich.console import Console
from rich.table import Table
from rich.text import Text

from mainspring.domain.jobs import Attempt, Job
from mainspring.domain.types import JobState

STATE_STYLES = {
    JobState.AWAITING_APPROVAL: "yellow",
    JobState.BLOCKED: "yellow",
    JobState.QUEUED: "cyan",
    JobState.RUNNING: "blue",
    JobState.SUCCEEDED: "green",
    JobState.FAILED: "red",
    JobState.DEAD_LETTER: "bold red",
    JobState.CANCELED: "dim",
}

console = Console()
errors = Console(stderr=True)


def print_json(value: Any) -> None:
    text = orjson.dumps(value, default=_as_text, option=orjson.OPT_INDENT_2).decode()
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def job_facts(job: Job) -> dict[str, Any]:
    # 64-bit ids as text: JavaScript cannot hold them as numbers.
    return {**asdict(job), "id": str(job.id)}


def attempt_facts(attempt: Attempt) -> dict[str, Any]:
    return {**asdict(attempt), "job_id": str(attempt.job_id)}


def print_jobs(jobs: Sequence[Job]) -> None:
    if not jobs:
        console.print("No jobs.")
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("ID", "STATE", "DEFINITION", "QUEUE", "TRY", "CREATED", "TOOK", "NOTE"):
        table.add_column(name, overflow="ellipsis", no_wrap=name != "NOTE")
    for job in jobs:
        table.add_row(
            str(job.id),
            state_text(job),
            job.definition,
            job.queue,
            f"{job.attempt}",
            ago(job.created_at),
            took(job.started_at, job.finished_at),
            Text(note(job), overflow="ellipsis", no_wrap=True),
        )
    console.print(table)


def print_job(job: Job, attempts: Sequence[Attempt]) -> None:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    for name, value in _facts_of(job):
        table.add_row(name, value)
    console.print(table)
    for attempt in attempts:
        line = f"attempt {attempt.number}: {attempt.status}, worker {attempt.worker}, "
        line += f"{ago(attempt.started_at)}, {took(attempt.started_at, attempt.finished_at) or '-'}"
        console.print(Text(line, style="dim"))
        if attempt.late_report:
            console.print(Text(f"  reported {attempt.late_report} too late; refused"))
        for text in (attempt.stdout_tail, attempt.stderr_tail, attempt.error):
            if text:
                console.print(Text("  " + text.rstrip("\n").replace("\n", "\n  ")))


def _facts_of(job: Job) -> list[tuple[str, Text | str]]:
    facts: list[tuple[str, Text | str]] = [
        ("job", str(job.id)),
        ("state", state_text(job)),
        ("definition", job.definition),
        ("queue", f"{job.queue} (priority {job.priority})"),
        ("payload", Text(orjson.dumps(job.payload).decode())),
        ("created", f"{job.created_at:%Y-%m-%d %H:%M:%S %Z} ({ago(job.created_at)})"),
    ]
    if job.waits_for:
        facts.append(("due", f"{job.scheduled_for:%Y-%m-%d %H:%M:%S %Z}"))
    if job.progress:
        facts.append(("progress", Text(str(job.progress))))
    if job.result is not None:
        facts.append(("result", Text(orjson.dumps(job.result).decode())))
    if job.last_error and job.state is not JobState.SUCCEEDED:
        facts.append(("error", Text(job.last_error.partition("\n")[0])))
    return facts


def state_text(job: Job) -> Text:
    text = Text(str(job.state), style=STATE_STYLES[job.state])
    if job.waits_for:
        text.append(f" (waits for {job.waits_for})", style="dim")
    elif job.cancel_requested_at and not job.is_final:
        text.append(" (asked to stop)", style="dim")
    return text


def note(job: Job) -> str:
    if job.progress is not None and job.state is JobState.RUNNING:
        total = f"/{job.progress.total:g}" if job.progress.total else ""
        return f"{job.progress.current:g}{total} {job.progress.message or ''}".strip()
    if job.last_error and job.state is not JobState.SUCCEEDED:
        return job.last_error.partition("\n")[0]
    return ""


def ago(instant: datetime) -> str:
    elapsed = datetime.now(UTC) - instant
    if elapsed < timedelta(seconds=1):
        return "now"
    return f"{span(elapsed)} ago"


def took(started_at: datetime | None, finished_at: datetime | None) -> str:
    if started_at is None:
        return ""
    return span((finished_at or datetime.now(UTC)) - started_at)


def span(elapsed: timedelta) -> str:
    seconds = max(elapsed.total_seconds(), 0.0)
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 100:
        return f"{seconds:.3g} s"
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size or unit == "min":
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def _as_text(value: object) -> str:
    return str(value)
