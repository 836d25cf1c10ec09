"""Use cases of figures: how much was enqueued, started and ended, and how long it took."""

from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import groupby

from mainspring.db.sessions import Session
from mainspring.domain.errors import InvalidOption
from mainspring.domain.figures import (
    MOST_SERIES,
    Durations,
    FigureReport,
    Figures,
    Key,
    Range,
    Series,
)
from mainspring.domain.suggestions import did_you_mean
from mainspring.domain.types import AttemptStatus, JobState, TenantId
from mainspring.store import figures as store
from mainspring.store.figures import FigureRow, RowKey

_DAY = timedelta(days=1)
# Longer than any figures are kept, so that all of a key are one.
_ALL_TIME = timedelta(days=100_000)
_ENDED = (JobState.SUCCEEDED, JobState.FAILED, JobState.DEAD_LETTER, JobState.CANCELED)
_ATTEMPTS = (
    AttemptStatus.SUCCEEDED,
    AttemptStatus.FAILED,
    AttemptStatus.TIMEOUT,
    AttemptStatus.CANCELED,
    AttemptStatus.SNOOZED,
    AttemptStatus.LOST,
)


async def read(
    session: Session,
    tenant_id: TenantId | None,
    *,
    start: datetime | None = None,
    end: datetime | None = None,
    span: timedelta | None = None,
    by: Collection[str] = (),
    queues: Sequence[str] | None = None,
    definitions: Sequence[str] | None = None,
    has_points: bool = True,
) -> FigureReport:
    """Figures of a time, of the last day if none is given; of all tenants if none is given."""
    _ensure_keys(by)
    now = datetime.now(UTC)
    end = end or now
    span_of = Range.of(start or end - _DAY, end, span=span, now=now)
    watches = await store.watches(session)
    parts = span_of.parts(watches.complete)
    rows_of = partial(
        store.read, session, tenant_id, parts, by=by, queues=queues, definitions=definitions
    )
    totals = await rows_of(span=_ALL_TIME)
    totals.sort(key=_busy, reverse=True)
    points: dict[RowKey, list[FigureRow]] = {}
    if has_points and totals:
        rows = await rows_of(span=span_of.span)
        rows.sort(key=lambda row: row.key)
        points = {key: list(each) for key, each in groupby(rows, key=lambda row: row.key)}
    series = tuple(_series(total, points.get(total.key, [])) for total in totals[:MOST_SERIES])
    return FigureReport(span_of, watches.seen_at, series, max(0, len(totals) - MOST_SERIES))


def _ensure_keys(by: Collection[str]) -> None:
    for key in by:
        if key not in list(Key):
            raise InvalidOption(
                "by", f"must be one of {', '.join(Key)}, not {key!r}{did_you_mean(key, Key)}"
            )


def _busy(row: FigureRow) -> tuple[int, int]:
    return row.enqueued + row.started, row.running


def _series(total: FigureRow, points: Sequence[FigureRow]) -> Series:
    return Series(
        tenant_id=TenantId(total.tenant_id) if total.tenant_id else None,
        queue=total.queue or None,
        definition=total.definition or None,
        total=_figures(total),
        points=tuple(_figures(point) for point in points),
    )


def _figures(row: FigureRow) -> Figures:
    return Figures(
        at=row.at,
        enqueued=row.enqueued,
        started=row.started,
        ended={state: getattr(row, state) for state in _ENDED},
        deleted=row.deleted,
        revived=row.revived,
        attempts={status: getattr(row, f"attempts_{status}") for status in _ATTEMPTS},
        ready=row.ready,
        running=row.running,
        oldest_ready_seconds=row.oldest_ready_seconds,
        waited=Durations.of(row.wait_buckets, row.wait_sum, row.wait_worst),
        ran=Durations.of(row.run_buckets, row.run_sum, row.run_worst),
    )
