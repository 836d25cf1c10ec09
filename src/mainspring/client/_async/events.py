"""`client.events`."""

from collections.abc import AsyncIterator
from typing import Any

from mainspring.api.models.base import Page
from mainspring.api.models.events import EmittedModel, EventModel
from mainspring.client._async.resource import Resource
from mainspring.client.requests import Request, create, given


class Events(Resource):
    """Events: `client.events`."""

    async def emit(
        self,
        name: str,
        context: dict[str, Any] | None = None,
        *,
        correlation_id: str | None = None,
    ) -> EmittedModel:
        """Emit an event; triggers that match its name turn it into jobs."""
        body = {"name": name, **given(context=context, correlation_id=correlation_id)}
        return await self._client.call(create("/events", body), EmittedModel)

    def list(self, **filters: Any) -> AsyncIterator[EventModel]:
        """Events, newest first."""
        return self._client.pages(Request("GET", "/events", filters), Page[EventModel])

    async def get(self, event_id: int) -> EventModel:
        """One event with what each trigger did with it."""
        return await self._client.call(Request("GET", f"/events/{event_id}"), EventModel)

    async def replay(self, event_id: int, trigger: str | None = None) -> EventModel:
        """Dispatch an event again, to all of its triggers or to one."""
        body = given(trigger=trigger)
        return await self._client.call(
            Request("POST", f"/events/{event_id}/replay", body=body), EventModel
        )
