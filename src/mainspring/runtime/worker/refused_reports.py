"""Reports that the database refuses: found among the others, and what becomes of their jobs.

    batch ─ refused ─▶ halves ─▶ ... ─▶ one report ─▶ failed, if what it says is at fault
                                                  ├▶ queued again after a while, if that is refused
                                                  │  too or something else is at fault
                                                  └▶ sent again later, if the job's row is locked

Nothing else in the batch waits. A job that can be neither ended nor queued stays in its worker's
name, and the worker tries again every now and then.
"""

import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Any, Protocol, TypeVar

import psycopg
from psycopg import AsyncConnection

from mainspring.domain.jobs.outcomes import clean
from mainspring.domain.secrets.redaction import Redactor
from mainspring.domain.sqlstates import is_worth_retrying
from mainspring.domain.types import AttemptStatus, JobState, WorkerId
from mainspring.store.attempts import Ending, Finished, Report, Return, Successes

_AGAIN_AFTER = timedelta(minutes=5)
_FIRST_PAUSE = 1.0
_LONGEST_PAUSE = 60.0
# Data, constraints, limits of the program, and what a trigger raises.
_OF_THE_REPORT = ("22", "23", "54", "P0")
# A statement that was canceled, and trouble with files.
_OF_THE_MOMENT = ("57014", "58")
_LOCK_TIMEOUT = "55P03"

Reports = Successes | Sequence[Ending] | Sequence[Return]
Statement = Callable[[AsyncConnection[Any], WorkerId, Any], Awaitable[Finished]]


class Sliceable(Protocol):
    def __len__(self) -> int: ...

    def __getitem__(self, part: slice, /) -> Any: ...


B = TypeVar("B", bound=Sliceable)


async def send_in_halves(
    batch: B,
    send: Callable[[B], Awaitable[None]],
    on_refused: Callable[[B, psycopg.Error], Awaitable[None]],
) -> None:
    """Send what can be sent; what is refused alone is passed on with the reason."""
    try:
        await send(batch)
    except psycopg.Error as error:
        if len(batch) <= 1:
            await on_refused(batch, error)
            return
        half = len(batch) // 2
        await send_in_halves(batch[:half], send, on_refused)
        await send_in_halves(batch[half:], send, on_refused)


def is_retried(sqlstate: str | None, *, is_alone: bool) -> bool:
    """Whether the same batch is sent again after an error. What was canceled, or took too long, is
    tried in halves first; alone it is no fault of the report. A locked row holds up its own report
    only."""
    if sqlstate == _LOCK_TIMEOUT:
        return False
    is_of_the_moment = is_alone and (sqlstate or "").startswith(_OF_THE_MOMENT)
    return is_worth_retrying(sqlstate) or is_of_the_moment


def is_at_fault(error: psycopg.Error) -> bool:
    """Whether another report of the same job may be accepted."""
    # Without a code it is psycopg that cannot send it.
    return error.sqlstate is None or error.sqlstate.startswith(_OF_THE_REPORT)


def is_locked(error: psycopg.Error) -> bool:
    """Whether someone holds the job's row, such as its handler in a transaction of its own."""
    return error.sqlstate == _LOCK_TIMEOUT


def said_by(error: psycopg.Error) -> str:
    """The error of the server, without the statement."""
    return error.diag.message_primary or str(error)


class RefusedReport:
    """One report, and those that may take its place."""

    def __init__(self, reports: Reports, error: psycopg.Error, redactor: Redactor) -> None:
        self.lease = leases_of(reports)[0][0]
        self.is_at_fault = is_at_fault(error)
        what = "result" if isinstance(reports, Successes) else "report"
        self.problem = clean(redactor.tail(f"the {what} could not be stored: {said_by(error)}"))
        self._timings = _timings(reports)

    def ending(self) -> Ending:
        return Ending(
            *self.lease,
            *self._timings,
            state=JobState.FAILED,
            status=AttemptStatus.FAILED,
            error=self.problem,
            failed=1,
        )

    def requeue(self) -> Return:
        return Return(
            *self.lease,
            *self._timings,
            status=AttemptStatus.FAILED,
            error=self.problem,
            failed=1,
            delay=_AGAIN_AFTER,
        )


def put_off(report: Report, problem: str) -> Return:
    """Of a job that never began."""
    return Return(
        *report, 0, 0, status=AttemptStatus.FAILED, error=problem, failed=0, delay=_AGAIN_AFTER
    )


class Unsent:
    """Reports that could not be stored, with their statements; they are tried again."""

    def __init__(self) -> None:
        self._reports: list[tuple[Statement, Reports]] = []
        self._pause = _FIRST_PAUSE
        self._due_at = 0.0

    def add(self, statement: Statement, reports: Reports) -> None:
        if not self._reports:
            self._due_at = time.monotonic() + self._pause
        self._reports.append((statement, reports))

    def job_ids(self) -> set[int]:
        return {lease.job_id for _, reports in self._reports for lease, _ in leases_of(reports)}

    def take_due(self) -> list[tuple[Statement, Reports]]:
        if not self._reports:
            self._pause = _FIRST_PAUSE
            return []
        if time.monotonic() < self._due_at:
            return []
        self._pause = min(self._pause * 2, _LONGEST_PAUSE)
        return self.take_all()

    def take_all(self) -> list[tuple[Statement, Reports]]:
        taken, self._reports = self._reports, []
        return taken


def leases_of(reports: Reports) -> list[tuple[Report, AttemptStatus]]:
    if isinstance(reports, Successes):
        return [(lease, AttemptStatus.SUCCEEDED) for lease in reports.leases()]
    return [(Report(each.job_id, each.fence), each.status) for each in reports]


def _timings(reports: Reports) -> tuple[int, int]:
    if isinstance(reports, Successes):
        return reports.waits[0], reports.runs[0]
    return reports[0].waited, reports[0].ran
