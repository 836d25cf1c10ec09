"""Figures in responses."""

from collections.abc import Mapping
from datetime import datetime

from mainspring.api.models.base import Answer
from mainspring.domain.figures import SPANS, Durations, FigureReport, Figures, Series
from mainspring.domain.types import AttemptStatus, JobState


class DurationsModel(Answer):
    """How long something took, in seconds; null where nothing did. Quantiles are off by at most
    4.4 %."""

    count: int
    mean: float | None
    p50: float | None
    p95: float | None
    p99: float | None
    worst: float | None

    @classmethod
    def of(cls, durations: Durations) -> "DurationsModel":
        return cls.model_construct(
            count=durations.count,
            mean=durations.mean,
            p50=durations.p50,
            p95=durations.p95,
            p99=durations.p99,
            worst=durations.worst,
        )


class PointModel(Answer):
    """What was counted in a span of time."""

    at: datetime
    enqueued: int
    started: int
    ended: Mapping[JobState, int]
    deleted: int
    revived: int
    attempts: Mapping[AttemptStatus, int]
    ready: int
    running: int
    oldest_ready_seconds: float
    waited: DurationsModel
    ran: DurationsModel

    @classmethod
    def of(cls, figures: Figures) -> "PointModel":
        return cls.model_construct(
            at=figures.at,
            enqueued=figures.enqueued,
            started=figures.started,
            ended=figures.ended,
            deleted=figures.deleted,
            revived=figures.revived,
            attempts=figures.attempts,
            ready=figures.ready,
            running=figures.running,
            oldest_ready_seconds=figures.oldest_ready_seconds,
            waited=DurationsModel.of(figures.waited),
            ran=DurationsModel.of(figures.ran),
        )


class SeriesModel(Answer):
    """The figures of one key."""

    tenant: str | None
    queue: str | None
    definition: str | None
    total: PointModel
    points: list[PointModel]

    @classmethod
    def of(cls, series: Series) -> "SeriesModel":
        return cls.model_construct(
            tenant=series.tenant_id,
            queue=series.queue,
            definition=series.definition,
            total=PointModel.of(series.total),
            points=[PointModel.of(point) for point in series.points],
        )


class FigureReportModel(Answer):
    """Figures of a time, the busiest keys first."""

    start: datetime
    end: datetime
    step: str
    seen_at: datetime | None
    series: list[SeriesModel]
    more: int

    @classmethod
    def of(cls, report: FigureReport) -> "FigureReportModel":
        return cls.model_construct(
            start=report.range.start,
            end=report.range.end,
            step=SPANS[report.range.span],
            seen_at=report.seen_at,
            series=[SeriesModel.of(series) for series in report.series],
            more=report.more,
        )
