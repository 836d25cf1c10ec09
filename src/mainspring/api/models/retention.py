"""Retention policies in requests and responses."""

from collections.abc import Sequence
from datetime import date

from pydantic import Field

from mainspring.api.models.base import Answer, Body, DurationIn, DurationOut, Text
from mainspring.domain.retention import RetentionDay, RetentionPolicy


class RetentionModel(Answer):
    """How long something is kept, in seconds: of a tenant or, without one, of everyone; of jobs in
    a state, or in all. A default comes from a setting."""

    kind: str
    tenant: str | None
    state: str | None
    keep: DurationOut
    is_default: bool

    @classmethod
    def of(cls, policy: RetentionPolicy) -> "RetentionModel":
        return cls.model_construct(
            kind=policy.kind,
            tenant=policy.tenant_id,
            state=policy.state,
            keep=policy.keep,
            is_default=policy.is_default,
        )


class RetentionIn(Body):
    """A retention policy to save."""

    kind: Text = Field(description="jobs, audit, slots or events.")
    keep: DurationIn = Field(description="In seconds; at least a day for all but jobs.")
    state: Text | None = Field(None, description="Of jobs, e.g. failed; omit for all states.")


class RetentionDayModel(Answer):
    """How many records of a day the next pass removes, and how many of them it removes in any
    case."""

    kind: str
    day: date
    count: int
    already: int

    @classmethod
    def of(cls, day: RetentionDay) -> "RetentionDayModel":
        return cls.model_construct(kind=day.kind, day=day.day, count=day.count, already=day.already)


class RetentionPreviewModel(Answer):
    """What the next pass removes, by day and in total. `already` counts what it removes in any
    case, by the policies that are saved."""

    count: int
    already: int
    days: list[RetentionDayModel]

    @classmethod
    def of(cls, days: Sequence[RetentionDay]) -> "RetentionPreviewModel":
        return cls.model_construct(
            count=sum(day.count for day in days),
            already=sum(day.already for day in days),
            days=[RetentionDayModel.of(day) for day in days],
        )
