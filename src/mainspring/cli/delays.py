"""Why a job has not started, for whoever waits for it."""

from mainspring.api.models.jobs import JobModel
from mainspring.cli.times import relative
from mainspring.client import Client
from mainspring.domain.errors.client import ApiError
from mainspring.domain.types import JobState, Kind

_WAITS = {
    "limit": "its limit is used up; see `mainspring limits list`",
    "parents": "the jobs that it comes after have not ended",
    "turn": "an earlier job of its schedule has not ended",
}


def why_not_started(client: Client, job: JobModel) -> str:
    """What would have to change; empty for a job that runs, or that a worker will soon claim."""
    if job.state is JobState.AWAITING_APPROVAL:
        return f"see `mainspring approvals show {job.id}`"
    if job.waits_for == "time":
        return f"it is due {relative(job.scheduled_for)}"
    if job.waits_for == "handler":
        return f"no worker knows its definition; {_start(client, job, '--app')}"
    if job.waits_for is not None:
        return _WAITS.get(job.waits_for, f"it waits for {job.waits_for}")
    return _no_worker(client, job) if job.state is JobState.QUEUED else ""


def _no_worker(client: Client, job: JobModel) -> str:
    try:
        alive = [worker for worker in client.workers() if worker.is_alive]
    except ApiError:
        return ""  # Not everyone may see workers.
    if not alive:
        how = _start(client, job, "--app` or `mainspring up")
        return f"no worker is running; {how}"
    if not any(job.queue in worker.queues for worker in alive):
        how = _start(client, job, f"--queues {job.queue}")
        return f"no running worker works on the queue {job.queue}; {how}"
    return "the workers of its queue are busy with other jobs"


def _start(client: Client, job: JobModel, options: str) -> str:
    """Which worker to start."""
    try:
        kind = client.definitions.get(job.definition).kind
    except ApiError:
        kind = Kind.PYTHON  # Deleted, or not to be seen with this token.
    if kind is Kind.REMOTE:
        return f"start the program that runs {job.definition}, which claims its jobs over the API"
    return f"start one with `mainspring worker {options}`"
