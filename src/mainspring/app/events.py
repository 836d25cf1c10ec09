"""Events: emit, read and replay them.

await app.aemit("provider.folder_changed", {"folder": "/photos"})
await app.triggers.acreate("resync", event="provider.*", definition="sync",
                           payload={"folder": "{{event.folder}}"})
"""

from collections.abc import Mapping
from typing import Any

from mainspring.app import ids
from mainspring.app.namespaces import Namespace, blocking, twins
from mainspring.db.plans import Plan
from mainspring.domain.events import Event
from mainspring.domain.filters import Several
from mainspring.domain.types import DEFAULT_TENANT, EventId, TenantId
from mainspring.services import events as event_services

# Inside the classes `list` is one of their methods.
Found = list[Event]


class Events(Namespace):
    """The events of an app: `app.events`."""

    def _emit(
        self,
        name: str,
        context: Mapping[str, Any] | None = None,
        *,
        tenant_id: str = DEFAULT_TENANT,
        correlation_id: str | None = None,
        connection: object = None,
    ) -> Plan[EventId]:
        """Emit an event; with `connection=` in that connection's transaction."""
        return event_services.emit(
            name,
            dict(context) if isinstance(context, Mapping) else {} if context is None else context,
            tenant_id=tenant_id,
            correlation_id=correlation_id,
            limit=self._app.settings.max_payload_bytes,
            connection=connection,
        )

    emit, aemit = twins(_emit)

    async def aget(self, event_id: int, *, tenant_id: str = DEFAULT_TENANT) -> Event:
        """One event with what each trigger did with it."""
        return await event_services.get(
            self._app.database, TenantId(tenant_id), ids.event(event_id)
        )

    async def alist(
        self,
        *,
        name: Several[str] = None,
        handled: bool | None = None,
        failed: bool | None = None,
        before: int | None = None,
        limit: int = 50,
        tenant_id: str = DEFAULT_TENANT,
    ) -> Found:
        """Events, newest first; a name may be a pattern. Pass the last id as `before` for the
        next page."""
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
        """Dispatch a handled event again, to all of its triggers or to one.

        A dispatcher carries it out. Dedupe windows are neither checked nor opened.
        """
        return await event_services.replay(
            self._app.database, TenantId(tenant_id), ids.event(event_id), trigger=trigger
        )

    async def adispatch(self) -> int:
        """Turn all waiting events into jobs now, as a scheduler would; returns how many there
        were. For tests and scripts."""
        # A worker dispatches nothing.
        from mainspring.runtime.dispatcher.batches import RoundRobin  # noqa: PLC0415

        await self._app.aregister_definitions()
        round_robin, handled = RoundRobin(self._app.settings), 0
        async with (await self._app.database.async_pool()).connection() as connection:
            while count := await round_robin.dispatch(connection):
                handled += count
        return handled

    get = blocking(aget)
    list = blocking(alist)
    replay = blocking(areplay)
    dispatch = blocking(adispatch)
