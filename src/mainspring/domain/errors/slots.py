"""Errors about slots; the tree is drawn in `errors`."""

from datetime import UTC, datetime

from mainspring.domain.errors import ConflictError
from mainspring.domain.types import JobId


class SlotClaimed(ConflictError):
    """The slot of the schedule has its job already, or waits for a scheduler."""

    code = "slot_claimed"

    def __init__(self, name: str, slot_at: datetime, job_id: JobId | None) -> None:
        holder = "it waits for a scheduler" if job_id is None else f"job {job_id}"
        shown = f"{slot_at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
        super().__init__(f"slot {shown} of schedule {name!r} is already claimed: {holder}")
        self.name, self.slot_at, self.job_id = name, slot_at, job_id
