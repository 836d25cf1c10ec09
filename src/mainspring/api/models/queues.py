"""Queues in requests and responses."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

from mainspring.api.models.base import Answer, Body, DurationIn, InstantIn, LongText
from mainspring.domain.queues import QueuePause, QueueState


class QueuePauseModel(Answer):
    """The pause of a queue: since when, until when if that is known, by whom and why."""

    name: str
    paused_at: datetime
    paused_until: datetime | None
    paused_by: str
    reason: str

    @classmethod
    def of(cls, pause: QueuePause) -> "QueuePauseModel":
        return cls.model_construct(
            name=pause.name,
            paused_at=pause.paused_at,
            paused_until=pause.paused_until,
            paused_by=pause.paused_by,
            reason=pause.reason,
        )


class QueueModel(Answer):
    """The live jobs of a queue: ready, waiting, running, or held for approval or parents; and
    whether it is paused."""

    name: str
    tenant: str
    ready: int
    waiting: int
    running: int
    held: int
    oldest_ready_at: datetime | None
    pause: QueuePauseModel | None

    @classmethod
    def of(cls, state: QueueState) -> "QueueModel":
        return cls.model_construct(
            name=state.name,
            tenant=state.tenant_id,
            ready=state.ready,
            waiting=state.waiting,
            running=state.running,
            held=state.held,
            oldest_ready_at=state.oldest_ready_at,
            pause=None if state.pause is None else QueuePauseModel.of(state.pause),
        )


class PauseIn(Body):
    """How long a queue is paused, and why; without an end it is until someone resumes it."""

    reason: LongText = ""
    until: InstantIn | None = None
    duration: Annotated[DurationIn | None, Field(description="Seconds from now.")] = None
