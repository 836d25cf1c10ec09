"""Probation: how a job that was running when its worker died is run again.

The first loss may be anyone's fault, so every job of a dead worker gets one. From then on a job is
on probation: it is recorded as begun just before it begins, and only what had begun is blamed for
the next loss. A job with two losses is a suspect. A worker runs one suspect at a time, so the next
worker that dies names the job to blame; at `max_losses` that job is parked in dead_letter.

    losses  0 ─▶ 1 ──────────────▶ 2 ────────────────────▶ 3 = max_losses: dead_letter
            │    on probation      suspect, one at a time
            └ blamed whether it had begun or not
"""

SUSPECT_LOSSES = 2


def is_on_probation(losses: int) -> bool:
    """Whether the job has to be recorded as begun before it begins."""
    return losses > 0


def is_suspect(losses: int) -> bool:
    """Whether the worker may run no other suspect beside the job."""
    return losses >= SUSPECT_LOSSES
