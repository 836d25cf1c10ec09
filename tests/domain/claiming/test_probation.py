"""Probation: which process a suspect gets, and what the death of that process does to it."""

from datetime import timedelta

import pytest

from mainspring.domain.claiming.probation import needs_new_process, of_death
from mainspring.domain.jobs.outcomes import End, Requeue
from mainspring.domain.types import AttemptStatus, JobState


@pytest.mark.parametrize(
    ("losses", "max_losses", "expected"),
    [(0, 3, False), (1, 3, True), (2, 3, True), (0, 1, True), (0, 2, False)],
)
def test_a_suspect_shares_a_process_unless_it_lost_one_or_would_be_parked(
    losses: int, max_losses: int, expected: bool
):
    assert needs_new_process(losses, max_losses) is expected


def test_a_job_whose_process_died_runs_again_within_a_second():
    outcome = of_death("was killed by SIGSEGV", 1, 3, random=lambda: 0.5)

    error = "the job's process was killed by SIGSEGV (death 2 of 3)"
    assert outcome == Requeue(AttemptStatus.LOST, error, timedelta(seconds=0.5), lost=1)


@pytest.mark.parametrize(("losses", "max_losses"), [(2, 3), (0, 1), (5, 3)])
def test_the_last_death_parks_it(losses: int, max_losses: int):
    outcome = of_death("exited with code 3", losses, max_losses, random=lambda: 0.5)

    assert isinstance(outcome, End)
    assert (outcome.state, outcome.status) == (JobState.DEAD_LETTER, AttemptStatus.LOST)
    assert (outcome.lost, outcome.failed) == (1, 0)
