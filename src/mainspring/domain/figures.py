"""Figures: how much was enqueued, started and ended, and how long jobs waited and ran.

A duration is counted in a bucket: bucket b holds what took up to 2^(b/8) seconds, and more than
2^((b-1)/8). Buckets of any times and keys add up without loss, and a quantile read from them is off
by 4.4 % at most. It is the scale of Prometheus' native histograms of schema 3.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from itertools import accumulate

from mainspring.domain.errors import InvalidOption
from mainspring.domain.suggestions import did_you_mean
from mainspring.domain.types import AttemptStatus, JobState, TenantId

BUCKETS_PER_DOUBLING = 8

# A look costs as much as there is live; it may take a hundredth of the time.
_FEWEST_SECONDS = 5.0
_MOST_SECONDS = 120.0
_REST_PER_SECOND = 100.0

MOST_POINTS = 1500
MOST_SERIES = 50
_SHARES = (0.5, 0.95, 0.99)


class Key(StrEnum):
    """What figures can be told apart by."""

    TENANT = "tenant"
    QUEUE = "queue"
    DEFINITION = "definition"


class Step(StrEnum):
    """For how long a time figures are kept together."""

    MINUTE = "minute"
    HOUR = "hour"
    DAY = "day"

    @property
    def length(self) -> timedelta:
        return _LENGTHS[self]


_LENGTHS = {
    Step.MINUTE: timedelta(minutes=1),
    Step.HOUR: timedelta(hours=1),
    Step.DAY: timedelta(days=1),
}

# How long each is kept; days are what is left of hours, and hours of minutes.
KEPT = {
    Step.MINUTE: timedelta(hours=26),
    Step.HOUR: timedelta(days=62),
    Step.DAY: timedelta(days=3 * 365),
}


def rest_after(seconds: float) -> float:
    """Seconds until the next look, when the last one took so many."""
    return max(_FEWEST_SECONDS, min(_REST_PER_SECOND * seconds, _MOST_SECONDS))


def bucket_of(seconds: float) -> int:
    """The number of the bucket of a duration."""
    return math.ceil(math.log2(max(seconds, 1e-6)) * BUCKETS_PER_DOUBLING)


def quantile(buckets: Iterable[Sequence[int]], share: float) -> float | None:
    """The duration in seconds that this share of all does not exceed; None of nothing."""
    ordered = sorted((bucket, count) for bucket, count in buckets)
    total = sum(count for _, count in ordered)
    if not total:
        return None
    rank = share * (total - 1)
    reached = accumulate(count for _, count in ordered)
    bucket = next(number for (number, _), seen in zip(ordered, reached, strict=True) if seen > rank)
    # The middle of the bucket, where the error is least.
    return float(2 ** ((bucket - 0.5) / BUCKETS_PER_DOUBLING))


@dataclass(frozen=True, slots=True)
class Part:
    """Figures of one step from an instant until before another."""

    step: Step
    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class Range:
    """A time to look at: from `start` until before `end`, a point every `span`."""

    start: datetime
    end: datetime
    span: timedelta

    @classmethod
    def of(
        cls, start: datetime, end: datetime, *, span: timedelta | None, now: datetime
    ) -> "Range":
        """Rounded to whole points; refuses what has no figures or too many."""
        if start >= end:
            raise InvalidOption("from", "must be before to")
        if span is None:
            span = _fitting(end - start)
        if span not in SPANS:
            raise InvalidOption("step", f"must be one of {', '.join(Span)}")
        if (end - start) / span > MOST_POINTS:
            raise InvalidOption(
                "step",
                f"{SPANS[span]} makes more than {MOST_POINTS:,} points; choose a longer step, "
                f"such as {SPANS[_fitting(end - start)]}, or a shorter time",
            )
        if span < Step.HOUR.length and start < now - KEPT[Step.MINUTE]:
            raise InvalidOption(
                "step", "must be 1h or longer before the last 26 hours, of which minutes are kept"
            )
        return cls(_floor(start, span), _floor(end + span - timedelta(microseconds=1), span), span)

    def parts(self, complete: Mapping[Step, datetime | None]) -> list[Part]:
        """Which figures make it up: days and hours as far as they are complete, then smaller ones.
        `complete` is up to when a step is."""
        parts: list[Part] = []
        start = self.start
        for step in (Step.DAY, Step.HOUR):
            until = complete.get(step)
            if self.span >= step.length and until is not None and start < min(until, self.end):
                parts.append(Part(step, start, min(until, self.end)))
                start = min(until, self.end)
        if start < self.end:
            parts.append(Part(Step.MINUTE, start, self.end))
        return parts


class Span(StrEnum):
    """How long a point of a series is."""

    MINUTE = "1m"
    FIVE_MINUTES = "5m"
    QUARTER = "15m"
    HOUR = "1h"
    SIX_HOURS = "6h"
    DAY = "1d"


SPANS = {
    timedelta(minutes=1): Span.MINUTE,
    timedelta(minutes=5): Span.FIVE_MINUTES,
    timedelta(minutes=15): Span.QUARTER,
    timedelta(hours=1): Span.HOUR,
    timedelta(hours=6): Span.SIX_HOURS,
    timedelta(days=1): Span.DAY,
}
_FEW_POINTS = 200


def read_span(text: str) -> timedelta:
    """The length of a point as people write it."""
    for span, name in SPANS.items():
        if name == text:
            return span
    raise InvalidOption(
        "step", f"must be one of {', '.join(Span)}, not {text!r}{did_you_mean(text, Span)}"
    )


def _fitting(length: timedelta) -> timedelta:
    """The shortest span that makes no more than a few hundred points."""
    return next((span for span in SPANS if length / span <= _FEW_POINTS), max(SPANS))


def _floor(instant: datetime, span: timedelta) -> datetime:
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    return epoch + (instant - epoch) // span * span


@dataclass(frozen=True, slots=True)
class Durations:
    """How long something took, in seconds; None where nothing did."""

    count: int
    mean: float | None
    p50: float | None
    p95: float | None
    p99: float | None
    worst: float | None

    @classmethod
    def of(cls, buckets: Sequence[Sequence[int]], total: float, worst: float) -> "Durations":
        count = sum(each for _, each in buckets)
        if not count:
            return cls(0, None, None, None, None, None)
        # What is counted in a bucket of its own cannot be longer than the longest.
        p50, p95, p99 = (min(quantile(buckets, share) or 0.0, worst) for share in _SHARES)
        return cls(count, total / count, p50, p95, p99, worst)


@dataclass(frozen=True, slots=True)
class Figures:
    """What was counted in a span of time that begins at `at`.

    `ended` are jobs, by state; `attempts` are by status. `ready`, `running` and
    `oldest_ready_seconds` are the most that a look found.
    """

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
    waited: Durations
    ran: Durations


@dataclass(frozen=True, slots=True)
class Series:
    """The figures of one key: in all, and point by point in the order of time; a point in which
    nothing was is missing. A part of the key that was not asked for is None."""

    tenant_id: TenantId | None
    queue: str | None
    definition: str | None
    total: Figures
    points: tuple[Figures, ...]


@dataclass(frozen=True, slots=True)
class FigureReport:
    """Figures of a time, the busiest keys first; how many more there are; and as of when they
    are, which is None before the first look."""

    range: Range
    seen_at: datetime | None
    series: tuple[Series, ...]
    more: int
