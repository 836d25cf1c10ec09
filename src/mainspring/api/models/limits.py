"""Limits in requests and responses."""

from typing import Annotated

from pydantic import Field

from mainspring.api.models.base import (
    Answer,
    Body,
    Text,
)
from mainspring.domain.limits import LimitState

Count = Annotated[int, Field(ge=0, le=1_000_000_000)]
Burst = Annotated[int, Field(ge=1, le=1_000_000_000)]


class LimitModel(Answer):
    """What the definitions that share a limit may do together, and its current use."""

    name: str
    concurrency: int | None
    key_concurrency: int | None
    rate: str | None
    burst: int
    running: int
    waiting: int

    @classmethod
    def of(cls, state: LimitState) -> "LimitModel":
        limit = state.limit
        return cls.model_construct(
            name=limit.name,
            concurrency=limit.concurrency,
            key_concurrency=limit.key_concurrency,
            rate=None if limit.rate is None else str(limit.rate),
            burst=limit.burst,
            running=state.running,
            waiting=state.waiting,
        )


class LimitIn(Body):
    """What a limit allows; omitted fields are unlimited."""

    concurrency: Count | None = None
    key_concurrency: Count | None = None
    rate: Text | None = Field(None, description="For example, 100/minute.")
    burst: Burst = 1
