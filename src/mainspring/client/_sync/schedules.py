"""`client.schedules`."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from mainspring.api.models.base import Page
from mainspring.api.models.schedules import (
    FilledModel,
    Filling,
    FireModel,
    ScheduleModel,
    SlotModel,
    TriggeredModel,
)
from mainspring.client._sync.resource import Resource
from mainspring.client.requests import Request, act, create, given, named


class Schedules(Resource):
    """Schedules: `client.schedules`."""

    def list(self, **filters: Any) -> Iterator[ScheduleModel]:
        """Schedules by name; filter by `is_enabled` and `definition`."""
        return self._client.pages(Request("GET", "/schedules", filters), Page[ScheduleModel])

    def get(self, name: str) -> ScheduleModel:
        """One schedule with its results so far."""
        return self._client.call(Request("GET", f"/schedules/{named(name)}"), ScheduleModel)

    def create(self, name: str, definition: str, **fields: Any) -> ScheduleModel:
        """Create a schedule; `fields` are those of `ScheduleSpec`."""
        body = {"name": name, "definition": definition, **given(**fields)}
        return self._client.call(create("/schedules", body), ScheduleModel)

    def update(self, name: str, /, **changes: Any) -> ScheduleModel:
        """Update some fields; a new timing or condition replaces the old one."""
        return self._client.call(
            Request("PATCH", f"/schedules/{named(name)}", body=changes), ScheduleModel
        )

    def delete(self, name: str) -> None:
        """Delete a schedule with its history; its jobs are kept."""
        self._client.send(Request("DELETE", f"/schedules/{named(name)}"))

    def enable(self, name: str) -> ScheduleModel:
        """Enable a schedule from now on; its failure count is reset."""
        return self._client.call(act(f"/schedules/{named(name)}/enable"), ScheduleModel)

    def disable(self, name: str, reason: str | None = None) -> ScheduleModel:
        """Disable a schedule; the reason is shown until it is enabled."""
        body = given(reason=reason)
        return self._client.call(act(f"/schedules/{named(name)}/disable", body), ScheduleModel)

    def pause(self, name: str, until: datetime | None = None) -> ScheduleModel:
        """Pause a schedule, by default until it is resumed; missed slots are not caught up."""
        body = given(until=until)
        return self._client.call(act(f"/schedules/{named(name)}/pause", body), ScheduleModel)

    def resume(self, name: str) -> ScheduleModel:
        """Resume a paused schedule, from now on."""
        return self._client.call(act(f"/schedules/{named(name)}/resume"), ScheduleModel)

    def trigger(
        self, name: str, *, slot: datetime | None = None, force: bool = False, wait: float = 0
    ) -> TriggeredModel:
        """Fire a schedule now, or claim a past slot of it; wait up to `wait` seconds, at most 30,
        if a scheduler has to check first."""
        body = {**given(slot=slot), "force": force, "wait": wait}
        request = Request("POST", f"/schedules/{named(name)}/trigger", body=body, patience=wait)
        return self._client.call(request, TriggeredModel)

    def backfill(
        self, name: str, start: datetime, end: datetime, **options: Any
    ) -> Sequence[FilledModel]:
        """Enqueue the past slots in a range that had no job."""
        body = {"start": start, "end": end, **given(**options)}
        return (self._client.call(act(f"/schedules/{named(name)}/backfill", body), Filling)).items

    def history(self, name: str, **filters: Any) -> Iterator[SlotModel]:
        """The slots of a schedule, newest first."""
        request = Request("GET", f"/schedules/{named(name)}/history", filters)
        return self._client.pages(request, Page[SlotModel])

    def preview(
        self, name: str, *, count: int = 10, after: datetime | None = None
    ) -> Sequence[FireModel]:
        """The next slots of a schedule."""
        request = Request(
            "GET", f"/schedules/{named(name)}/preview", given(limit=count, after=after)
        )
        return (self._client.call(request, Page[FireModel])).items
