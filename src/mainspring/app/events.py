"""Events and triggers at the Python door.

await app.aemit("provider.folder_changed", {"folder": "/photos"})
await app.triggers.acreate("resync", event="provider.*", definition="sync",
                           payload={"folder": "{{event.folder}}"})
"""

from collections.abc import Mapping
from typing import Any

from mainspring.app.namespaces import Door, blocking
from mainspring.db.calls import Call
from mainspring.domain.events import Event
from mainspring.domain.types import DEFAULT_TENANT, EventId, TenantId
from mainspring.runtime.dispatcher.batches import Turns
from mainspring.services import events as event_services

# Inside the classes `list` is one of their methods.
Found = list[Event]


class Events(Door):
    """The events of an app: `app.events`."""

    def emit(
        self,
        name: str,
        context: Mapping[str, Any] | None = None,
        *,
        tenant_id: str = DEFAULT_TENANT,
        correlation_id: str | None = None,
        connection: object = None,
    ) -> EventId:
        """Say that something happened; `connection=` does it in that connection's transaction."""
        call = self._plan(name, context, tenant_id, correlation_id=correlation_id)
        ((event_id,),) = self._app.database.run(call, connection)
        return EventId(event_id)

    async def aemit(
        self,
        name: str,
        context: Mapping[str, Any] | None = None,
        *,
        tenant_id: str = DEFAULT_TENANT,
        correlation_id: str | None = None,
        connection: object = None,
    ) -> EventId:
        """The same from async code."""
        call = self._plan(name, context, tenant_id, correlation_id=correlation_id)
        ((event_id,),) = await self._app.database.arun(call, connection)
        return EventId(event_id)

    async def aget(self, event_id: int, *, tenant_id: str = DEFAULT_TENANT) -> Event:
        """One event with what each trigger made of it."""
        return await event_services.get(self._app.database, TenantId(tenant_id), EventId(event_id))

    async def alist(
        self,
        *,
        name: str | None = None,
        handled: bool | None = None,
        failed: bool | None = None,
        before: int | None = None,
        limit: int = 50,
        tenant_id: str = DEFAULT_TENANT,
    ) -> Found:
        """Newest first; the name may be a pattern. Page on with the last id as `before`."""
        return await event_services.list_events(
            self._app.database,
            TenantId(tenant_id),
            name=name,
            handled=handled,
            failed=failed,
            before=None if before is None else EventId(before),
            limit=limit,
        )

    async def areplay(
        self, event_id: int, trigger: str | None = None, *, tenant_id: str = DEFAULT_TENANT
    ) -> Event:
        """Give a handled event to its triggers once more, or to one of them.

        A dispatcher does it. Dedupe windows are not asked, and none is opened.
        """
        return await event_services.replay(
            self._app.database, TenantId(tenant_id), EventId(event_id), trigger=trigger
        )

    async def adispatch(self) -> int:
        """Turn all events that wait into jobs, here and now, as a scheduler would; how many they
        were. For tests and scripts."""
        await self._app.async_definitions()
        turns, handled = Turns(self._app.settings), 0
        async with (await self._app.database.async_pool()).connection() as connection:
            while count := await turns.dispatch(connection):
                handled += count
        return handled

    get = blocking(aget)
    list = blocking(alist)
    replay = blocking(areplay)
    dispatch = blocking(adispatch)

    def _plan(
        self,
        name: str,
        context: Mapping[str, Any] | None,
        tenant_id: str,
        *,
        correlation_id: str | None,
    ) -> Call:
        return event_services.plan_emit(
            name,
            dict(context) if isinstance(context, Mapping) else {} if context is None else context,
            tenant_id=tenant_id,
            correlation_id=correlation_id,
            limit=self._app.settings.max_payload_bytes,
        )
