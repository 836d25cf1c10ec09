"""Approvals: what a job that awaits one asks for, and who has said what.

An approver is the name of a person or of a token, or a role of the API such as `role:member`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from mainspring.domain.access.roles import Role
from mainspring.domain.errors import InvalidOption
from mainspring.domain.jobs.options import ensure_text
from mainspring.domain.suggestions import did_you_mean
from mainspring.domain.types import JobId, JobState, Payload, TenantId

MAX_APPROVERS: Final = 100
_OF_ROLE: Final = "role:"
_DECIDING: Final = tuple(
    f"{_OF_ROLE}{role.value}" for role in (Role.OPERATOR, Role.ADMIN, Role.MEMBER)
)


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


def is_list_of_text(given: object) -> bool:
    """Whether it is a list of strings, and not a single one."""
    return (
        isinstance(given, Sequence)
        and not isinstance(given, str)
        and all(isinstance(each, str) for each in given)
    )


def ensure_approvers(approvers: Sequence[str]) -> None:
    """Refuse what nobody could ever be."""
    if not is_list_of_text(approvers) or not all(approvers):
        raise InvalidOption("approvers", "must be a list of names")
    if len(approvers) > MAX_APPROVERS:
        raise InvalidOption(
            "approvers", f"must have at most {MAX_APPROVERS} entries, not {len(approvers)}"
        )
    for name in approvers:
        ensure_text("approvers", name)
        if name.startswith(_OF_ROLE) and name not in _DECIDING:
            hint = did_you_mean(name, _DECIDING)
            raise InvalidOption(
                "approvers", f"may name the roles {', '.join(_DECIDING)}, not {name}{hint}"
            )
