"""`client.schedules`."""

from collections.abc import AsyncIterator, Sequence
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
from mainspring.client._async.resource import Resource
from mainspring.client.requests import Request, act, create, given, named


class Schedules(Resource):
    """Schedules: `client.schedules`."""

    def list(self, **filters: Any) -> AsyncIterator[ScheduleModel]:
        """Schedules by name; filter by `is_enabled` and `definition`."""
        return self._client.pages(Request("GET", "/schedules", filters), Page[ScheduleModel])

    async def get(self, name: str) -> ScheduleModel:
        """One schedule with its results so far."""
        return await self._client.call(Request("GET", f"/schedules/{named(name)}"), ScheduleModel)

    async def create(self, name: str, definition: str, **fields: Any) -> ScheduleModel:
        """Create a schedule; `fields` are those of `ScheduleSpec`."""
        body = {"name": name, "definition": definition, **given(**fields)}
        return await self._client.call(create("/schedules", body), ScheduleModel)

    async def update(self, name: str, /, **changes: Any) -> ScheduleModel:
        """Update some fields; a new timing or condition replaces the old one."""
        return await self._client.call(
            Request("PATCH", f"/schedules/{named(name)}", body=changes), ScheduleModel
        )

    async def delete(self, name: str) -> None:
        """Delete a schedule with its history; its jobs are kept."""
        await self._client.send(Request("DELETE", f"/schedules/{named(name)}"))

    async def enable(self, name: str) -> ScheduleModel:
        """Enable a schedule from now on; its failure count is reset."""
        return await self._client.call(act(f"/schedules/{named(name)}/enable"), ScheduleModel)

    async def disable(self, name: str, reason: str | None = None) -> ScheduleModel:
        """Disable a schedule; the reason is shown until it is enabled."""
        body = given(reason=reason)
        return await self._client.call(
            act(f"/schedules/{named(name)}/disable", body), ScheduleModel
        )

    async def pause(self, name: str, until: datetime | None = None) -> ScheduleModel:
        """Pause a schedule, by default until it is resumed; missed slots are not caught up."""
        body = given(until=until)
        return await self._client.call(act(f"/schedules/{named(name)}/pause", body), ScheduleModel)

    async def resume(self, name: str) -> ScheduleModel:
        """Resume a paused schedule, from now on."""
        return await self._client.call(act(f"/schedules/{named(name)}/resume"), ScheduleModel)

    async def trigger(
        self, name: str, *, slot: datetime | None = None, force: bool = False, wait: float = 0
    ) -> TriggeredModel:
        """Fire a schedule now, or claim a past slot of it; wait up to `wait` seconds, at most 30,
        if a scheduler has to check first."""
        body = {**given(slot=slot), "force": force, "wait": wait}
        request = Request("POST", f"/schedules/{named(name)}/trigger", body=body, patience=wait)
        return await self._client.call(request, TriggeredModel)

    async def backfill(
        self, name: str, start: datetime, end: datetime, **options: Any
    ) -> Sequence[FilledModel]:
        """Enqueue the past slots in a range that had no job."""
        body = {"start": start, "end": end, **given(**options)}
        return (
            await self._client.call(act(f"/schedules/{named(name)}/backfill", body), Filling)
        ).items

    def history(self, name: str, **filters: Any) -> AsyncIterator[SlotModel]:
        """The slots of a schedule, newest first."""
        request = Request("GET", f"/schedules/{named(name)}/history", filters)
        return self._client.pages(request, Page[SlotModel])

    async def preview(
        self, name: str, *, count: int = 10, after: datetime | None = None
    ) -> Sequence[FireModel]:
        """The next slots of a schedule."""
        request = Request(
            "GET", f"/schedules/{named(name)}/preview", given(limit=count, after=after)
        )
        return (await self._client.call(request, Page[FireModel])).items
