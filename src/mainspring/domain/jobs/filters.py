"""Which jobs a list, a count or a bulk operation is about."""

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

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


def write_filter(asked: JobFilter) -> dict[str, Any]:
    """As it is kept in a payload, with the names of the API."""
    facts = {name: value for name, value in asdict(asked).items() if value is not None}
    if "state" in facts:
        facts["status"] = facts.pop("state")
    return {
        name: value.isoformat() if isinstance(value, datetime) else str(value)
        for name, value in facts.items()
    }
