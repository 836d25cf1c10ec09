"""Which jobs a list, a count or a bulk operation is about."""

from dataclasses import dataclass
from datetime import datetime

from mainspring.domain.jobs.options import ensure_instant, ensure_text
from mainspring.domain.types import JobSource, JobState


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Which jobs are meant; None is any. `error` is a part of the last error."""

    state: JobState | None = None
    queue: str | None = None
    definition: str | None = None
    source: JobSource | None = None
    tag: str | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None
    error: str | None = None
    created_by: str | None = None

    def __post_init__(self) -> None:
        for name in ("queue", "definition", "tag", "error", "created_by"):
            if getattr(self, name) is not None:
                ensure_text(name, getattr(self, name))
        for name in ("created_after", "created_before"):
            ensure_instant(name, getattr(self, name))
