"""How jobs and their attempts look on a terminal."""

from collections.abc import Iterator, Sequence

import orjson
from rich.console import Group
from rich.progress_bar import ProgressBar
from rich.text import Text

from mainspring.api.models.jobs import AttemptModel, JobFacts, JobModel, WatchedJobModel
from mainspring.cli.columns import Columns
from mainspring.cli.listings import Cell, Listing
from mainspring.cli.output import STATE_STYLES, Facts
from mainspring.cli.times import ago, instant, span, took
from mainspring.domain.types import Delivery, JobSource, JobState

_BAR_WIDTH = 20


def job_view(job: JobModel | WatchedJobModel, attempts: Sequence[AttemptModel]) -> Group:
    parts: list[Facts | Text] = [Facts(_facts(job))]
    for attempt in attempts:
        parts += _attempt_lines(attempt)
    return Group(*parts)


def state_text(job: JobFacts) -> Text:
    text = Text(str(job.state), style=STATE_STYLES[job.state])
    if job.waits_for:
        text.append(f" (waits for {job.waits_for})", style="dim")
    elif job.cancel_requested_at and job.finished_at is None:
        text.append(" (asked to stop)", style="dim")
    return text


def progress_bar(job: JobFacts) -> ProgressBar | Text:
    """How far a running job says it is."""
    progress = job.progress
    if progress is None or not progress.total:
        return Text(progress_text(job))
    return ProgressBar(total=progress.total, completed=progress.current, width=_BAR_WIDTH)


def progress_text(job: JobFacts) -> str:
    if job.progress is None:
        return ""
    total = f"/{job.progress.total:g}" if job.progress.total else ""
    return f"{job.progress.current:g}{total} {job.progress.message or ''}".strip()


def _note(job: JobFacts) -> str:
    """What the state alone does not say: the wait, the progress, the error."""
    is_held = job.waits_for and job.state is JobState.QUEUED
    said = [f"waits for {job.waits_for}"] if is_held else []
    if job.state is JobState.RUNNING:
        said += ["asked to stop"] if job.cancel_requested_at else []
        said.append(progress_text(job))
    elif job.last_error and job.state is not JobState.SUCCEEDED:
        said.append(job.last_error)
    return "; ".join(each for each in said if each)


def _facts(job: JobModel | WatchedJobModel) -> list[tuple[str, Text | str]]:
    facts: list[tuple[str, Text | str]] = [
        ("job", str(job.id)),
        ("state", state_text(job)),
        ("definition", f"{job.definition} (version {job.definition_version})"),
        ("tenant", job.tenant),
        ("queue", f"{job.queue} (priority {job.priority})"),
        ("created", instant(job.created_at) + (f" by {job.created_by}" if job.created_by else "")),
    ]
    if isinstance(job, JobModel):
        facts.insert(5, ("payload", Text(orjson.dumps(job.payload).decode())))
    facts += _origin_facts(job)
    if job.waits_for:
        facts.append(("due", instant(job.scheduled_for)))
    if job.progress:
        facts.append(("progress", Text(progress_text(job))))
    if job.result is not None:
        facts.append(("result", Text(orjson.dumps(job.result).decode())))
    if job.last_error and job.state is not JobState.SUCCEEDED:
        facts.append(("error", Text(job.last_error.partition("\n")[0])))
    if job.error_key:
        facts.append(("error key", job.error_key))
    return facts


def _origin_facts(job: JobFacts) -> Iterator[tuple[str, Text | str]]:
    if came_from := _came_from(job):
        slot = "" if job.slot_at is None else f", slot {instant(job.slot_at)}"
        event = "" if job.event_id is None else f", event {job.event_id}"
        yield "from", Text(f"{came_from}{slot}{event}")
    if job.source not in (JobSource.CODE, JobSource.API) or not _came_from(job):
        yield "source", Text(job.source)
    if job.flow_id is not None:
        yield "flow", str(job.flow_id)
    if job.parent_ids:
        yield "parents", ", ".join(map(str, job.parent_ids))
    if job.worker_id is not None:
        yield "worker", str(job.worker_id)
    if job.delivery is Delivery.AT_MOST_ONCE:
        yield "delivery", job.delivery


def _came_from(job: JobFacts) -> str:
    """The one thing that enqueued it, as far as that is known; else who did."""
    if job.schedule is not None:
        return f"schedule {job.schedule}"
    if job.trigger is not None:
        return f"trigger {job.trigger}"
    if job.source == JobSource.JOB:
        return (job.created_by or "").replace(":", " ")
    if job.flow_id is not None:
        return f"flow {job.flow_id}"
    return job.created_by or ""


def _attempt_lines(attempt: AttemptModel) -> list[Text]:
    lasted = took(attempt.started_at, attempt.finished_at)
    facts = [str(attempt.state), f"worker {attempt.worker}"]
    facts += [] if attempt.exit_code is None else [f"exit code {attempt.exit_code}"]
    facts += [] if attempt.error_key is None else [f"error {attempt.error_key}"]
    facts += [ago(attempt.started_at), "-" if lasted is None else span(lasted)]
    lines = [Text(f"attempt {attempt.number}: {', '.join(facts)}", style="dim")]
    if attempt.late_report:
        at = "" if attempt.late_report_at is None else f" ({instant(attempt.late_report_at)})"
        lines.append(Text(f"  reported {attempt.late_report} too late{at}; refused"))
    texts = (
        ("stdout", attempt.stdout_tail),
        ("stderr", attempt.stderr_tail),
        ("error", attempt.error),
    )
    return lines + [_labeled(label, text) for label, text in texts if text]


def _labeled(label: str, text: str) -> Text:
    """Below its label if it has several lines."""
    text = text.rstrip("\n")
    if "\n" not in text:
        return Text(f"  {label}: {text}")
    return Text(f"  {label}:\n    " + text.replace("\n", "\n    "))


def _cells(job: JobFacts) -> list[Cell]:
    return [
        str(job.id),
        Text(str(job.state), style=STATE_STYLES[job.state]),
        job.tenant,
        job.definition,
        job.queue,
        job.attempt,
        job.created_at,
        took(job.started_at, job.finished_at),
        _came_from(job),
        _note(job),
    ]


JOBS = Listing(
    Columns(
        names=(
            *("ID", "STATE", "TENANT", "DEFINITION", "QUEUE", "TRY", "CREATED", "TOOK"),
            *("FROM", "NOTE"),
        ),
        dropped=("TRY", "QUEUE", "FROM", "TOOK", "CREATED"),
        text=("NOTE",),
        # Only an operator sees more than one tenant's.
        varied=("TENANT",),
    ),
    _cells,
)
