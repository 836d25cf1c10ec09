"""What a handler may return, and what becomes of its job."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any, assert_never

from mainspring.domain.jobs.backoff import Backoff, ensure_delay
from mainspring.domain.types import AttemptStatus, JobState

MAX_ERROR_LENGTH = 20_000


class AttemptFailed(Exception):
    """An attempt that failed, in words that are kept as they are, without a traceback; `answer` is
    what its handler returned nevertheless."""

    def __init__(self, words: str, answer: Mapping[str, Any] | None = None) -> None:
        super().__init__(words)
        self.answer = answer


@dataclass(frozen=True, slots=True)
class Snooze:
    """Run the job again after a delay, without using up an attempt."""

    delay: timedelta

    def __post_init__(self) -> None:
        ensure_delay("Snooze delay", self.delay)


@dataclass(frozen=True, slots=True)
class Cancel:
    """End the job as canceled."""

    reason: str


@dataclass(frozen=True, slots=True)
class Fail:
    """End the job as failed, even if attempts are left."""

    reason: str


@dataclass(frozen=True, slots=True)
class PutOff:
    """Leave the job, which has not begun, to another worker: it is ready again after the delay."""

    reason: str
    delay: timedelta


class StopReason(StrEnum):
    """Why a worker told a handler to stop."""

    TIMEOUT = "timeout"
    CANCEL = "cancel"
    SHUTDOWN = "shutdown"
    LEASE_LOST = "lease_lost"
    ABANDONED = "abandoned"


@dataclass(frozen=True, slots=True)
class Succeed:
    """The job is done."""

    result: Any = None


@dataclass(frozen=True, slots=True)
class End:
    """The job is over without success."""

    state: JobState
    status: AttemptStatus
    error: str
    failed: int = 0
    lost: int = 0
    answer: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Requeue:
    """The job runs again after the delay."""

    status: AttemptStatus
    error: str | None
    delay: timedelta
    failed: int = 0
    lost: int = 0


@dataclass(frozen=True, slots=True)
class Trials:
    """How often a job has failed, may fail, and how long to wait in between; whether it has to end
    with the process that runs it."""

    failures: int
    max_attempts: int
    backoff: Backoff
    runs_once: bool = False


Outcome = Succeed | End | Requeue


def of_answer(answer: object) -> Outcome:
    """The outcome of what a handler returned."""
    match answer:
        case Snooze(delay):
            return Requeue(AttemptStatus.SNOOZED, None, delay)
        case PutOff(reason, delay):
            return Requeue(AttemptStatus.SNOOZED, clean(reason), delay)
        case Cancel(reason):
            return End(JobState.CANCELED, AttemptStatus.CANCELED, clean(reason))
        case Fail(reason):
            return End(JobState.FAILED, AttemptStatus.FAILED, clean(reason), failed=1)
        case _:
            return Succeed(answer)


def of_failure(
    error: str,
    trials: Trials,
    *,
    random: Callable[[], float],
    status: AttemptStatus = AttemptStatus.FAILED,
    answer: Mapping[str, Any] | None = None,
) -> Outcome:
    """The outcome of an exception or a timeout: again after the backoff, or no more. The answer is
    kept with the end."""
    failures = trials.failures + 1
    if failures >= trials.max_attempts:
        return End(JobState.DEAD_LETTER, status, clean(error), failed=1, answer=answer)
    return Requeue(status, clean(error), trials.backoff.delay(failures, random), failed=1)


def of_stop(
    reason: StopReason, error: str, trials: Trials, *, random: Callable[[], float]
) -> Outcome | None:
    """The outcome of a handler that was stopped; None when there is nothing left to report."""
    match reason:
        case StopReason.TIMEOUT:
            return of_failure(error, trials, random=random, status=AttemptStatus.TIMEOUT)
        case StopReason.CANCEL:
            return End(JobState.CANCELED, AttemptStatus.CANCELED, clean(error))
        case StopReason.SHUTDOWN:
            if trials.runs_once:
                return of_loss(error)
            return Requeue(AttemptStatus.LOST, clean(error), timedelta(0))
        case StopReason.LEASE_LOST | StopReason.ABANDONED:
            return None
        case _:
            assert_never(reason)


def of_loss(error: str) -> End:
    """The outcome of the only run of a job that ended with its process."""
    return End(
        JobState.DEAD_LETTER,
        AttemptStatus.LOST,
        clean(f"lost, and not run again because it runs at most once: {error}"),
    )


def clean(text: str, *, limit: int | None = MAX_ERROR_LENGTH) -> str:
    """Text that PostgreSQL can store: no NUL, no lone surrogates, not endless."""
    storable = text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode("utf-8")
    if limit is None or len(storable) <= limit:
        return storable
    half = limit // 2
    left_out = len(storable) - limit
    return f"{storable[:half]}\n... {left_out} characters omitted ...\n{storable[-half:]}"
