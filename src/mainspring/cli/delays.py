"""Why a job has not started, for whoever waits for it."""

from mainspring.client import Client
from mainspring.domain.types import JobId


def why_not_started(client: Client, job_id: JobId) -> str:
    """The first reason, and what resolves it."""
    (first, *_) = client.jobs.why(job_id).reasons
    sentence = first.sentence[0].lower() + first.sentence[1:].rstrip(".")
    return sentence if first.fix is None else f"{sentence}; try `{first.fix}`"
