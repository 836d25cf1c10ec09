"""Why a job does not run: what `mainspring.why` in SQL, where the rule stands, answers."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from mainspring.domain.types import JobId, JobState, WaitsFor


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason for the state of a job: what is the matter, and the command or SQL statement that
    resolves it, if one does."""

    code: str
    sentence: str
    since: datetime | None
    until: datetime | None
    facts: Mapping[str, Any]
    fix: str | None


@dataclass(frozen=True, slots=True)
class Estimate:
    """When a job may start, and what that is based on."""

    at: datetime
    basis: str


@dataclass(frozen=True, slots=True)
class Why:
    """The state of a job and the reasons for it; the first is the one that, once it is gone, lets
    the job go on. An id that no job has has no state."""

    job_id: JobId
    state: JobState | None
    waits_for: WaitsFor | None
    reasons: tuple[Reason, ...]
    estimate: Estimate | None
