"""Probation: from which loss on a job is recorded before it begins, and when it is a suspect."""

import pytest

from mainspring.domain.claiming.probation import is_on_probation, is_suspect


@pytest.mark.parametrize(("losses", "expected"), [(0, False), (1, True), (2, True)])
def test_the_first_loss_puts_a_job_on_probation(losses: int, expected: bool):
    assert is_on_probation(losses) is expected


@pytest.mark.parametrize(("losses", "expected"), [(0, False), (1, False), (2, True), (3, True)])
def test_the_second_loss_makes_it_a_suspect(losses: int, expected: bool):
    assert is_suspect(losses) is expected
