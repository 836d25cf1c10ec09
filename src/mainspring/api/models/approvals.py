"""Approvals in requests and responses."""

from datetime import datetime

from mainspring.api.models.base import Answer, IdOut, Object
from mainspring.domain.approvals import Approval, Vote
from mainspring.domain.types import JobState


class VoteModel(Answer):
    """One person's decision on a job."""

    actor: str
    is_approval: bool
    reason: str
    voted_at: datetime

    @classmethod
    def of(cls, vote: Vote) -> "VoteModel":
        return cls.model_construct(**{name: getattr(vote, name) for name in cls.model_fields})


class ApprovalModel(Answer):
    """A job's request for approval; if `approvers` is empty, anyone with permission may decide."""

    job_id: IdOut
    tenant: str
    definition: str
    payload: Object
    state: JobState
    needed: int
    missing: int
    approvers: list[str]
    requested_at: datetime
    expires_at: datetime | None
    decision: str | None
    votes: list[VoteModel]

    @classmethod
    def of(cls, approval: Approval) -> "ApprovalModel":
        own = {
            name: getattr(approval, name) for name in cls.model_fields if hasattr(approval, name)
        }
        own |= {"tenant": approval.tenant_id, "approvers": list(approval.approvers)}
        return cls.model_construct(**{**own, "votes": [VoteModel.of(v) for v in approval.votes]})
