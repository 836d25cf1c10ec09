"""Fair share: how many jobs of the heavy tenant start while a job of a light one waits.

docs/guides/tenants.md: a worker starts the last of n ready jobs of a tenant of weight w before
n * W / w + t more of t other tenants whose weights add up to W, and what it starts until it has
learned of them. Here every weight is 1, and each of the workers is fair by itself.
"""

import bisect
from collections.abc import Iterator
from dataclasses import dataclass

from chaos.checks import Violation
from chaos.histories import History, Job
from chaos.waits import HEAVY

LIGHT = "other"
OTHER_TENANTS = 2
# A worker has this many places, and a job of the heavy tenant takes one for half a second.
PLACES = 30
BULK_SECONDS = 0.5
# What a worker starts until the notification arrives on a busy machine, and the 50 after it.
_LEARNING_SECONDS = 0.5
_LEARNING = PLACES / BULK_SECONDS * _LEARNING_SECONDS + 50


@dataclass(frozen=True, slots=True)
class Turn:
    """A job of the light tenant let `others` go first, and might have let `most`."""

    job: Job
    others: int
    most: float


def most_before(ready: int, workers: int) -> float:
    """How many others may start before the last of so many ready jobs."""
    return workers * (ready * OTHER_TENANTS + OTHER_TENANTS + _LEARNING)


def turns(history: History) -> Iterator[Turn]:
    """Of every job of the light tenant that was enqueued to run at once."""
    tenants = {job.job_id: job.tenant for job in history.jobs}
    claims: dict[str, list[float]] = {HEAVY: [], LIGHT: []}
    first: dict[int, float] = {}
    for hold in sorted(history.holds, key=lambda each: each.claimed_at):
        first.setdefault(hold.job_id, hold.claimed_at)
        if tenants.get(hold.job_id) == HEAVY:
            claims[HEAVY].append(hold.claimed_at)
    light = [job for job in history.jobs if job.tenant == LIGHT and _is_immediate(job)]
    enqueued = sorted(job.ready_at for job in light)
    started = sorted(first.get(job.job_id, history.ended_at) for job in light)
    for job in light:
        claimed_at = first.get(job.job_id, history.ended_at)
        others = _between(claims[HEAVY], job.ready_at, claimed_at)
        ready = bisect.bisect(enqueued, claimed_at) - bisect.bisect_left(started, job.ready_at)
        yield Turn(job, others, most_before(max(ready, 1), len(history.availability.workers)))


def starved(history: History) -> list[Violation]:
    """5: no light tenant waits for more of the heavy one than its share allows."""
    return [
        Violation(
            "5",
            f"{turn.others} jobs of the heavy tenant started before job {turn.job.job_id} of"
            f" tenant {turn.job.tenant}, at most {turn.most:g}",
        )
        for turn in turns(history)
        if turn.others > turn.most
    ]


def _is_immediate(job: Job) -> bool:
    return not job.is_delayed and not job.parents and job.definition == "plain"


def _between(instants: list[float], start: float, end: float) -> int:
    return max(0, bisect.bisect_left(instants, end) - bisect.bisect_right(instants, start))
