"""Probation: how a job is run whose worker died, and which deaths it is blamed for.

A worker runs many jobs at a time, and a host that is switched off or a `kill -9` looks like a
segmentation fault in one of them. So the death of a worker is nobody's fault: each job that it held
becomes a **suspect** and no more. A suspect runs in a process of its own, side by side with other
suspects, and the death of that process is its own fault: a **loss**. At `max_losses` the job is
parked in dead_letter, and the workers have survived all of these.

    its worker dies ─▶ suspect ─▶ runs in a process of its own ─▶ ends like any other job
                          ▲                 ├─ the process dies: one loss more ─▶ dead_letter
                          └─────────────────┤                                     at max_losses
                                            └─ the worker dies: no loss

The processes of suspects are used again while more suspects wait, so that a worker that held a
thousand small jobs does not cost a thousand processes. A job that lost a process before gets a new
one, and so does every job if the first loss would park it: a process that others have used may die
of what they left behind.

Some suspects cannot have a process of their own: handlers that cannot be imported by name, and jobs
of workers over HTTP. These run **alone**: their worker runs nothing else meanwhile, so its death is
attributed to them.
"""

from collections.abc import Callable
from datetime import timedelta

from mainspring.domain.jobs.outcomes import End, Requeue
from mainspring.domain.types import AttemptStatus, JobState

# A worker over HTTP has to be empty for a job to run alone in it. That is asked of it only if the
# job was there each time that so many workers died.
ALONE_AFTER = 2
# How long a suspect that has to run alone leaves a busy worker over HTTP to others.
PATIENCE = timedelta(seconds=15)

_LONGEST_DELAY = timedelta(seconds=1)


def needs_new_process(losses: int, max_losses: int) -> bool:
    """Whether a suspect may not use a process that another has used."""
    return losses > 0 or max_losses == 1


def of_death(
    how: str, losses: int, max_losses: int, *, random: Callable[[], float]
) -> End | Requeue:
    """The outcome of an attempt whose own process died, of a job with so many losses before."""
    error = f"the job's process {how} (death {losses + 1} of {max_losses})"
    if losses + 1 >= max_losses:
        return End(JobState.DEAD_LETTER, AttemptStatus.LOST, error, lost=1)
    return Requeue(AttemptStatus.LOST, error, _LONGEST_DELAY * random(), lost=1)
