"""Why a job has not started, for whoever waits for it."""

from mainspring.api.models.jobs import JobModel
from mainspring.cli.times import relative
from mainspring.client import Client
from mainspring.domain.errors.client import ApiError
from mainspring.domain.types import JobState

_WAITS = {
    "limit": "its limit is used up; see `mainspring limits list`",
    "parents": "the jobs that it comes after have not ended",
    "handler": "no worker knows its definition; is `mainspring worker --app` running?",
    "turn": "an earlier job of its schedule has not ended",
}


def why_not_started(client: Client, job: JobModel) -> str:
    """What would have to change; empty for a job that runs, or that a worker will soon claim."""
    if job.state is JobState.AWAITING_APPROVAL:
        return f"see `mainspring approvals show {job.id}`"
    if job.waits_for == "time":
        return f"it is due {relative(job.scheduled_for)}"
    if job.waits_for is not None:
        return _WAITS.get(job.waits_for, f"it waits for {job.waits_for}")
    return _no_worker(client, job.queue) if job.state is JobState.QUEUED else ""


def _no_worker(client: Client, queue: str) -> str:
    try:
        alive = [worker for worker in client.workers() if worker.is_alive]
    except ApiError:
        return ""  # Not everyone may see workers.
    if not alive:
        return "no worker is running; start one with `mainspring worker --app` or `mainspring up`"
    if not any(queue in worker.queues for worker in alive):
        return f"no running worker works on the queue {queue}; start one with --queues {queue}"
    return "the workers of its queue are busy with other jobs"
