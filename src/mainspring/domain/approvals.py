"""Approvals: what a job that awaits one asks for, and who has said what."""

from dataclasses import dataclass
from datetime import datetime

from mainspring.domain.types import JobId, JobState, Payload, TenantId


@dataclass(frozen=True, slots=True)
class Vote:
    """What someone said about a job."""

    actor: str
    is_approval: bool
    reason: str
    voted_at: datetime


@dataclass(frozen=True, slots=True)
class Approval:
    """What a job asks for; `approvers` are all if empty, `decision` is None while it is open."""

    job_id: JobId
    tenant_id: TenantId
    definition: str
    payload: Payload
    state: JobState
    needed: int
    approvers: tuple[str, ...]
    requested_at: datetime
    expires_at: datetime | None
    decision: str | None
    votes: tuple[Vote, ...]

    @property
    def missing(self) -> int:
        """How many more have to approve."""
        given = sum(vote.is_approval for vote in self.votes)
        return max(0, self.needed - given)
