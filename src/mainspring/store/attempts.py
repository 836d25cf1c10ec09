"""Statements on attempts: what workers do with the jobs they hold a lease on."""

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, NamedTuple

import orjson

from mainspring.db.arrays import IntegerArray, TextArray
from mainspring.db.sessions import Session
from mainspring.db.statements import load
from mainspring.domain.claiming.lanes import Lane, ReadyLane, Span
from mainspring.domain.types import AttemptStatus, Fence, JobId, JobState, WaitsFor, WorkerId
from mainspring.store.rows.errors import encoded, error_params

_STATEMENTS = load("attempts")
_DISCOVER = _STATEMENTS["discover"].sql
_LAST_ID = 2**63 - 1
_MICROSECOND = timedelta(microseconds=1)
_CLAIM = _STATEMENTS["claim"].sql
_FINISH_SUCCEEDED = _STATEMENTS["finish_succeeded"].sql


class ClaimedRow(NamedTuple):
    """A claimed job as the database gives it; payload and extras are JSON text."""

    job_id: JobId
    fence: Fence
    definition: str
    payload: str
    attempt: int
    failures: int
    losses: int
    max_attempts: int
    queue: str
    priority: int
    tenant_id: str
    extras: str | None
    limit_name: str | None
    limit_key: str | None
    version: int

    @property
    def id(self) -> JobId:
        return self.job_id

    @property
    def report(self) -> "Report":
        return Report(self.job_id, self.fence)

    @property
    def is_rated(self) -> bool:
        """Whether it has to take a token before it begins."""
        return bool(self.extras and orjson.loads(self.extras).get("is_rated"))

    @property
    def is_suspect(self) -> bool:
        """Whether it lost the process that ran it before."""
        return bool(self.extras and orjson.loads(self.extras).get("is_suspect"))

    @property
    def runs_once(self) -> bool:
        """Whether it is not to run again once it has begun."""
        return bool(self.extras and orjson.loads(self.extras).get("runs_once"))

    @property
    def lane(self) -> Lane:
        return Lane(self.priority, self.tenant_id, self.queue)


class Report(NamedTuple):
    """A lease by the two numbers that identify it."""

    job_id: JobId
    fence: Fence


class Finished(NamedTuple):
    """What came of reports: those that were refused, and the jobs that others wait for."""

    refused: list[Report]
    parents: list[JobId]


@dataclass(slots=True)
class Successes:
    """Columns of reports of success; `results` are JSON text, None for null. `progress` is that of
    the few jobs whose last report is not stored yet."""

    job_ids: list[int] = field(default_factory=list)
    fences: list[int] = field(default_factory=list)
    waits: list[int] = field(default_factory=list)
    runs: list[int] = field(default_factory=list)
    results: list[bytes | None] = field(default_factory=list)
    progress: dict[int, bytes] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.job_ids)

    def __getitem__(self, part: slice) -> "Successes":
        return Successes(
            self.job_ids[part],
            self.fences[part],
            self.waits[part],
            self.runs[part],
            self.results[part],
            self.progress,
        )

    def leases(self) -> Iterator[Report]:
        pairs = zip(self.job_ids, self.fences, strict=True)
        return (Report(JobId(job_id), Fence(fence)) for job_id, fence in pairs)

    def without(self, job_ids: AbstractSet[int]) -> "Successes":
        columns = (self.job_ids, self.fences, self.waits, self.runs, self.results)
        rows = [row for row in zip(*columns, strict=True) if row[0] not in job_ids]
        if not rows:
            return Successes()
        ids, fences, waits, runs, results = map(list, zip(*rows, strict=True))
        return Successes(ids, fences, waits, runs, results, self.progress)


@dataclass(frozen=True, slots=True)
class Ending:
    """A report that the job is over without success."""

    job_id: JobId
    fence: Fence
    waited: int
    ran: int
    state: JobState
    status: AttemptStatus
    error: str
    failed: int
    lost: int = 0
    progress: bytes | None = None
    result: bytes | None = None


@dataclass(frozen=True, slots=True)
class Return:
    """A report that the job goes back to queued after a delay."""

    job_id: JobId
    fence: Fence
    waited: int
    ran: int
    status: AttemptStatus
    error: str | None
    failed: int
    delay: timedelta
    lost: int = 0


async def discover(session: Session, queues: Sequence[str]) -> list[ReadyLane]:
    """The lanes with ready jobs."""
    cursor = await session.execute(_DISCOVER, {"queues": list(queues)})
    return [
        ReadyLane(Lane(priority, tenant_id, queue), first, weight)
        for priority, tenant_id, queue, first, weight in await cursor.fetchall()
    ]


async def claim(
    session: Session,
    worker_id: WorkerId,
    lanes: Sequence[tuple[Lane, int]],
    *,
    limit: int,
    shares: Sequence[int] | None = None,
    untils: Sequence[int] | None = None,
) -> list[tuple[Any, ...]]:
    """Rows in the shape of ClaimedRow, in no particular order; from each lane up to its share and
    its id, or without these up to all there is."""
    cursor = await session.execute(
        _CLAIM,
        {
            "worker_id": worker_id,
            "queues": TextArray([lane.queue.encode() for lane, _ in lanes]),
            "priorities": IntegerArray([lane.priority for lane, _ in lanes]),
            "tenants": TextArray([lane.tenant_id.encode() for lane, _ in lanes]),
            "marks": IntegerArray([mark for _, mark in lanes]),
            "untils": IntegerArray(untils or [_LAST_ID] * len(lanes)),
            "shares": IntegerArray(shares or [limit] * len(lanes)),
            "limit": limit,
        },
    )
    return await cursor.fetchall()


async def find_ready(
    session: Session, parts: Sequence[tuple[Lane, Span]], *, limit: int
) -> list[tuple[Lane, int]]:
    """The jobs that a claim of these parts of lanes would take, but for those set aside."""
    params = {
        "queues": [lane.queue for lane, _ in parts],
        "priorities": [lane.priority for lane, _ in parts],
        "tenants": [lane.tenant_id for lane, _ in parts],
        "marks": [span.mark for _, span in parts],
        "untils": [span.until for _, span in parts],
        "shares": [span.share for _, span in parts],
        "limit": limit,
    }
    cursor = await session.execute(_STATEMENTS["find_ready"].sql, params)
    return [(Lane(*row[:3]), row[3]) for row in await cursor.fetchall()]


def _finished(rows: list[tuple[Any, ...]], leases: Iterable[Report]) -> Finished:
    ((accepted, parents),) = rows
    return Finished(_refused([(accepted,)], leases), parents)


def _refused(rows: list[tuple[Any, ...]], leases: Iterable[Report]) -> list[Report]:
    """The reports that are not among the accepted; null means that all are."""
    ((accepted,),) = rows
    if accepted is None:
        return []
    known = {tuple(lease) for lease in accepted}
    return [lease for lease in leases if lease not in known]


def _succeeded_params(worker_id: WorkerId, reports: Successes) -> dict[str, Any]:
    return {
        "worker_id": worker_id,
        "count": len(reports),
        "job_ids": IntegerArray(reports.job_ids),
        "fences": IntegerArray(reports.fences),
        "waits": IntegerArray(reports.waits),
        "runs": IntegerArray(reports.runs),
        "results": TextArray(reports.results),
        "progress": TextArray(_progress_of(reports)),
    }


def _progress_of(reports: Successes) -> list[bytes | None]:
    """None at all is short for null for each."""
    known = reports.progress
    return [known.get(job_id) for job_id in reports.job_ids] if known else []


async def finish_succeeded(session: Session, worker_id: WorkerId, reports: Successes) -> Finished:
    cursor = await session.execute(_FINISH_SUCCEEDED, _succeeded_params(worker_id, reports))
    return _finished(await cursor.fetchall(), reports.leases())


async def finish_ended(
    session: Session, worker_id: WorkerId, reports: Sequence[Ending]
) -> Finished:
    cursor = await session.execute(
        _STATEMENTS["finish_ended"].sql,
        {
            "worker_id": worker_id,
            "count": len(reports),
            "job_ids": [report.job_id for report in reports],
            "fences": [report.fence for report in reports],
            "waits": [report.waited for report in reports],
            "runs": [report.ran for report in reports],
            "states": [str(report.state) for report in reports],
            "statuses": [str(report.status) for report in reports],
            "errors": [report.error for report in reports],
            "failures": [report.failed for report in reports],
            "losses": [report.lost for report in reports],
            "results": TextArray([report.result for report in reports]),
            "progress": TextArray([report.progress for report in reports]),
            **{name: TextArray(each) for name, each in error_params(reports).items()},
        },
    )
    leases = [Report(report.job_id, report.fence) for report in reports]
    return _finished(await cursor.fetchall(), leases)


async def finish_requeued(
    session: Session, worker_id: WorkerId, reports: Sequence[Return]
) -> Finished:
    """A job that goes back to queued lets nobody go."""
    cursor = await session.execute(
        _STATEMENTS["finish_requeued"].sql,
        {
            "worker_id": worker_id,
            "count": len(reports),
            "job_ids": IntegerArray([report.job_id for report in reports]),
            "fences": IntegerArray([report.fence for report in reports]),
            "waits": IntegerArray([report.waited for report in reports]),
            "runs": IntegerArray([report.ran for report in reports]),
            "statuses": TextArray([report.status.encode() for report in reports]),
            "errors": TextArray([encoded(report.error) for report in reports]),
            "failures": IntegerArray([report.failed for report in reports]),
            "losses": IntegerArray([report.lost for report in reports]),
            "delays": IntegerArray([report.delay // _MICROSECOND for report in reports]),
            **{name: TextArray(each) for name, each in error_params(reports).items()},
        },
    )
    ((accepted, _),) = await cursor.fetchall()
    leases = [Report(report.job_id, report.fence) for report in reports]
    return Finished(_refused([(accepted,)], leases), [])


async def hand_back(
    session: Session,
    reports: Sequence[Report],
    waits_for: WaitsFor | None = None,
) -> set[str]:
    """Returns the queues that have ready work again."""
    cursor = await session.execute(
        _STATEMENTS["hand_back"].sql,
        {**_leases(reports), "waits_for": waits_for},
    )
    return {row[0] for row in await cursor.fetchall()}


async def record_late_reports(
    session: Session, reports: Sequence[tuple[Report, AttemptStatus]]
) -> tuple[list[JobId], set[Report]]:
    """The jobs whose reports were kept, and the reports of attempts still open: nobody has taken
    the job back yet.

    A report that had been accepted before is neither.
    """
    cursor = await session.execute(
        _STATEMENTS["record_late_reports"].sql,
        {
            **_leases([report for report, _ in reports]),
            "statuses": [str(status) for _, status in reports],
        },
    )
    (row,) = await cursor.fetchall()
    return row[0], {Report(job_id, fence) for job_id, fence in row[1]}


async def cancel_requests(session: Session, worker_id: WorkerId) -> list[tuple[Report, str]]:
    """Running jobs of the worker that were asked to stop, with the reason."""
    cursor = await session.execute(_STATEMENTS["cancel_requests"].sql, {"worker_id": worker_id})
    return [(Report(row[0], row[1]), row[2] or "") for row in await cursor.fetchall()]


async def held_by(session: Session, worker_id: WorkerId, known: set[int]) -> list[Report]:
    """Jobs the worker has claimed beyond those it knows of."""
    params = {"worker_id": worker_id, "known": IntegerArray(list(known))}
    cursor = await session.execute(_STATEMENTS["held_by"].sql, params)
    return [Report(*row) for row in await cursor.fetchall()]


async def end_with_lease(session: Session, worker_id: WorkerId) -> None:
    """Let the server end this session if its transaction is idle until the worker's lease ends."""
    await session.execute(_STATEMENTS["end_with_lease"].sql, {"worker_id": worker_id})


async def mark_alone(session: Session, report: Report) -> bool:
    """False when the lease was lost."""
    cursor = await session.execute(_STATEMENTS["mark_alone"].sql, report._asdict())
    return await cursor.fetchone() is not None


async def mark_begun(session: Session, reports: Sequence[Report]) -> int:
    """How many of them are still under their lease; the lease of the others was lost."""
    cursor = await session.execute(_STATEMENTS["mark_begun"].sql, _leases(reports))
    return len(await cursor.fetchall())


async def lock_lease(session: Session, report: Report) -> bool:
    """False when the lease was lost; else nobody can take it before the transaction ends."""
    cursor = await session.execute(_STATEMENTS["lock_lease"].sql, report._asdict())
    return await cursor.fetchone() is not None


async def report_progress(session: Session, reports: Sequence[tuple[Report, bytes]]) -> set[Report]:
    """The reports of jobs whose row was locked; these may be sent again."""
    cursor = await session.execute(
        _STATEMENTS["report_progress"].sql,
        {
            "job_ids": [report.job_id for report, _ in reports],
            "fences": [report.fence for report, _ in reports],
            "progress": TextArray([progress for _, progress in reports]),
        },
    )
    return {Report(*row) for row in await cursor.fetchall()}


async def store_progress(session: Session, report: Report, progress: bytes) -> bool:
    """False when the lease was lost."""
    params = {**report._asdict(), "progress": progress.decode()}
    cursor = await session.execute(_STATEMENTS["store_progress"].sql, params)
    return await cursor.fetchone() is not None


async def save_checkpoint(session: Session, report: Report, checkpoint: str) -> bool:
    """False when the lease was lost."""
    params = {**report._asdict(), "checkpoint": checkpoint}
    cursor = await session.execute(_STATEMENTS["save_checkpoint"].sql, params)
    return await cursor.fetchone() is not None


def _leases(reports: Sequence[Report]) -> dict[str, list[int]]:
    return {
        "job_ids": [report.job_id for report in reports],
        "fences": [report.fence for report in reports],
    }
