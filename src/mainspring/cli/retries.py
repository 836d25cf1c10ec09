"""Asking before jobs are run again that may have begun, though they run at most once."""

import sys
from collections.abc import Sequence

from mainspring.api.models.jobs import JobFacts
from mainspring.cli.output import confirm
from mainspring.client import Client
from mainspring.domain.errors import InputError
from mainspring.domain.types import AttemptStatus, Delivery, JobState


def confirm_job(client: Client, job_id: int, *, is_sure: bool) -> None:
    if not is_sure:
        _confirm(client, [client.jobs.get(job_id)])


def confirm_flow(client: Client, flow_id: int, *, is_sure: bool) -> None:
    if not is_sure:
        _confirm(client, list(client.jobs.list(flow_id=[flow_id], state=[JobState.DEAD_LETTER])))


def _confirm(client: Client, jobs: Sequence[JobFacts]) -> None:
    lost = [job for job in jobs if _is_lost(client, job)]
    if not lost:
        return
    one = len(lost) == 1
    named = f"job {lost[0].id} runs" if one else f"{len(lost)} of its jobs run"
    said = f"{named} at most once and {'was' if one else 'were'} lost: "
    said += "a retry may repeat what the lost attempt has done"
    if not sys.stdin.isatty():
        raise InputError(f"{said}; pass --yes to retry anyway")
    confirm(f"{said[0].upper()}{said[1:]}. Retry anyway?", is_sure=False)


def _is_lost(client: Client, job: JobFacts) -> bool:
    if job.state is not JobState.DEAD_LETTER or job.delivery is not Delivery.AT_MOST_ONCE:
        return False
    attempts = client.jobs.attempts(job.id)
    return bool(attempts) and attempts[-1].state is AttemptStatus.LOST
