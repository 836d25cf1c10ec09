"""`client.triggers`."""

from collections.abc import Iterator
from typing import Any

from mainspring.api.models.base import Page
from mainspring.api.models.triggers import RehearsedModel, TriggerModel
from mainspring.client._sync.resource import Resource
from mainspring.client.requests import Request, act, create, given, named


class Triggers(Resource):
    """Triggers: `client.triggers`."""

    def list(self, **filters: Any) -> Iterator[TriggerModel]:
        """Triggers by name."""
        return self._client.pages(Request("GET", "/triggers", filters), Page[TriggerModel])

    def get(self, name: str) -> TriggerModel:
        """One trigger with what came of it last."""
        return self._client.call(Request("GET", f"/triggers/{named(name)}"), TriggerModel)

    def create(self, name: str, *, event: str, definition: str, **fields: Any) -> TriggerModel:
        """Create a trigger, which enqueues the definition for each event that matches `event`."""
        body = {"name": name, "event": event, "definition": definition, **given(**fields)}
        return self._client.call(create("/triggers", body), TriggerModel)

    def update(self, name: str, **changes: Any) -> TriggerModel:
        """Update some fields, from the next event on; None clears an optional one."""
        return self._client.call(
            Request("PATCH", f"/triggers/{named(name)}", body=changes), TriggerModel
        )

    def delete(self, name: str) -> None:
        """Delete a trigger; its jobs and its record of events are kept."""
        self._client.send(Request("DELETE", f"/triggers/{named(name)}"))

    def enable(self, name: str) -> TriggerModel:
        """Enable a trigger; it has missed the events handled in the meantime."""
        return self._client.call(act(f"/triggers/{named(name)}/enable"), TriggerModel)

    def disable(self, name: str) -> TriggerModel:
        """Disable a trigger."""
        return self._client.call(act(f"/triggers/{named(name)}/disable"), TriggerModel)

    def test(
        self, name: str, context: dict[str, Any] | None = None, *, event: str | None = None
    ) -> dict[str, Any]:
        """The payload that an event with this context would produce; nothing is enqueued."""
        body = given(context=context, event=event)
        return (
            self._client.call(act(f"/triggers/{named(name)}/test", body), RehearsedModel)
        ).payload
