"""Outcomes: what becomes of a job when its handler has ended."""

from datetime import timedelta

import pytest

from mainspring.domain.jobs.backoff import Backoff
from mainspring.domain.jobs.outcomes import (
    MAX_ERROR_LENGTH,
    Cancel,
    End,
    Fail,
    Requeue,
    Snooze,
    StopReason,
    Succeed,
    Trials,
    clean,
    of_answer,
    of_failure,
    of_stop,
)
from mainspring.domain.types import AttemptStatus, JobState

FIVE = timedelta(seconds=5)


def trials(failures: int) -> Trials:
    return Trials(failures, 3, Backoff(jitter=timedelta(0)))


def none() -> float:
    return 0.0


@pytest.mark.parametrize("answer", [None, 0, "", {"a": 1}, [Fail("x")], Exception("returned")])
def test_anything_but_a_verdict_is_the_result(answer):
    assert of_answer(answer) == Succeed(answer)


def test_a_snooze_spends_no_attempt():
    assert of_answer(Snooze(FIVE)) == Requeue(AttemptStatus.SNOOZED, None, FIVE, failed=0)


def test_a_cancel_ends_as_canceled_and_a_fail_as_failed():
    assert of_answer(Cancel("not needed")) == End(
        JobState.CANCELED, AttemptStatus.CANCELED, "not needed", failed=0
    )
    assert of_answer(Fail("bad")) == End(JobState.FAILED, AttemptStatus.FAILED, "bad", failed=1)


def test_a_failure_is_tried_again_until_the_attempts_are_used_up():
    assert of_failure("no", trials(0), random=none) == Requeue(
        AttemptStatus.FAILED, "no", FIVE, failed=1
    )
    assert of_failure("no", trials(1), random=none) == Requeue(
        AttemptStatus.FAILED, "no", 2 * FIVE, failed=1
    )
    assert of_failure("no", trials(2), random=none) == End(
        JobState.DEAD_LETTER, AttemptStatus.FAILED, "no", failed=1
    )


def test_a_timeout_is_a_failure_with_a_status_of_its_own():
    outcome = of_stop(StopReason.TIMEOUT, "too long", trials(0), random=none)

    assert outcome == Requeue(AttemptStatus.TIMEOUT, "too long", FIVE, failed=1)
    last = of_stop(StopReason.TIMEOUT, "too long", trials(2), random=none)
    assert last == End(JobState.DEAD_LETTER, AttemptStatus.TIMEOUT, "too long", failed=1)


def test_a_cancel_by_request_ends_the_job_and_counts_no_failure():
    outcome = of_stop(StopReason.CANCEL, "by request", trials(0), random=none)

    assert outcome == End(JobState.CANCELED, AttemptStatus.CANCELED, "by request", failed=0)


def test_a_shutdown_hands_the_job_back_at_once_and_counts_no_failure():
    outcome = of_stop(StopReason.SHUTDOWN, "stopping", trials(2), random=none)

    assert outcome == Requeue(AttemptStatus.LOST, "stopping", timedelta(0), failed=0)


@pytest.mark.parametrize("reason", [StopReason.LEASE_LOST, StopReason.ABANDONED])
def test_who_lost_the_lease_has_nothing_to_report(reason):
    assert of_stop(reason, "", trials(0), random=none) is None


def test_every_reason_to_stop_has_an_outcome():
    for reason in StopReason:
        of_stop(reason, "", trials(0), random=none)


def test_text_is_made_storable():
    assert clean("a\x00b\ud800c") == "a\ufffdb?c"


@pytest.mark.parametrize("length", [MAX_ERROR_LENGTH - 1, MAX_ERROR_LENGTH])
def test_text_up_to_the_limit_is_kept(length):
    assert clean("x" * length) == "x" * length


def test_longer_text_loses_its_middle():
    text = clean("a" * MAX_ERROR_LENGTH + "z")

    assert text.startswith("aaa")
    assert text.endswith("az")
    assert "... 1 characters omitted ..." in text
