"""Triggers: rules that turn events into jobs.

await app.triggers.acreate("resync", event="provider.*", definition="sync",
                           payload={"folder": "{{event.folder}}"})
"""

from collections.abc import Mapping
from typing import Any

import orjson

from mainspring.app.job_functions import JobFunction
from mainspring.app.namespaces import Namespace, blocking
from mainspring.domain.errors import InvalidOption
from mainspring.domain.filters import Several
from mainspring.domain.triggers import Trigger, TriggerState
from mainspring.domain.types import DEFAULT_TENANT, TenantId
from mainspring.services import definitions
from mainspring.services import events as event_services
from mainspring.services import triggers as services

# Inside the classes `list` is one of their methods.
States = list[TriggerState]


class Triggers(Namespace):
    """The triggers of an app: `app.triggers`."""

    async def acreate(
        self,
        name: str,
        /,
        *,
        event: str,
        definition: JobFunction[..., Any] | str,
        enabled: bool = True,
        tenant_id: str = DEFAULT_TENANT,
        **fields: Any,
    ) -> TriggerState:
        """Create a trigger, which enqueues the definition for each matching event of this tenant.

        `payload` is a template of the job's payload. `unknown_paths` is "refuse", or "null" to
        use null for what an event lacks. Identical payloads are ignored for `dedupe_window`.
        """
        given = {**fields, "event": event, "definition": _key(definition)}
        trigger = services.make(name, given)
        await self._ensure_fits(trigger)
        return await services.create(
            self._app.database, TenantId(tenant_id), trigger, is_enabled=_flag(enabled)
        )

    async def aupdate(
        self, name: str, /, *, tenant_id: str = DEFAULT_TENANT, **changes: Any
    ) -> TriggerState:
        """Update some fields, from the next event on; None clears an optional one."""
        if "definition" in changes:
            changes["definition"] = _key(changes["definition"])
        tenant = TenantId(tenant_id)
        trigger = await services.changed(self._app.database, tenant, name, changes=changes)
        if changes.keys() & {"definition", "payload"}:
            await self._ensure_fits(trigger)
        return await services.update(self._app.database, tenant, trigger, columns=changes)

    async def aenable(self, name: str, *, tenant_id: str = DEFAULT_TENANT) -> TriggerState:
        """Enable a trigger; it has missed the events handled in the meantime."""
        return await services.set_enabled(
            self._app.database, TenantId(tenant_id), name, is_enabled=True
        )

    async def adisable(self, name: str, *, tenant_id: str = DEFAULT_TENANT) -> TriggerState:
        """Disable a trigger."""
        return await services.set_enabled(
            self._app.database, TenantId(tenant_id), name, is_enabled=False
        )

    async def adelete(self, name: str, *, tenant_id: str = DEFAULT_TENANT) -> None:
        """Delete a trigger; its jobs and its record of events are kept."""
        await services.delete(self._app.database, TenantId(tenant_id), name)

    async def aget(self, name: str, *, tenant_id: str = DEFAULT_TENANT) -> TriggerState:
        """One trigger with what came of it last; raises TriggerNotFound."""
        return await services.get(self._app.database, TenantId(tenant_id), name)

    async def alist(
        self,
        *,
        event: Several[str] = None,
        definition: Several[str] = None,
        enabled: bool | None = None,
        after: str | None = None,
        limit: int = 100,
        tenant_id: str = DEFAULT_TENANT,
    ) -> States:
        """Triggers by name, or those that match one of the events; pass the last name as `after`
        for the next page."""
        return await services.list_triggers(
            self._app.database,
            TenantId(tenant_id),
            after=after,
            enabled=enabled,
            event=event,
            definition=definition,
            limit=limit,
        )

    async def atest(
        self,
        name: str,
        context: Mapping[str, Any] | None = None,
        *,
        event: str | None = None,
        tenant_id: str = DEFAULT_TENANT,
    ) -> dict[str, Any]:
        """The payload that an event with this context would produce; nothing is enqueued.

        Raises what would be recorded as a failure. Without `event`, a matching name is used.
        """
        given = dict(context) if isinstance(context, Mapping) else context or {}
        event_services.encode_context(given, self._app.settings.max_payload_bytes)
        await self._app.aregister_definitions()
        state = await self.aget(name, tenant_id=tenant_id)
        text = await services.rehearse(self._app.database, state, given, event=event)
        payload: dict[str, Any] = orjson.loads(text)
        return payload

    create = blocking(acreate)
    update = blocking(aupdate)
    enable = blocking(aenable)
    disable = blocking(adisable)
    delete = blocking(adelete)
    get = blocking(aget)
    list = blocking(alist)
    test = blocking(atest)

    async def _ensure_fits(self, trigger: Trigger) -> None:
        """Raise if there is no such definition, or a job of our code could not take the payload."""
        function = self._app.functions.get(trigger.definition)
        if function is not None:
            function.signature.payload_of((), dict(trigger.payload))
        await self._app.aregister_definitions()
        await definitions.ensure_known(self._app.database, [trigger.definition])


def _key(definition: object) -> Any:
    return definition.key if isinstance(definition, JobFunction) else definition


def _flag(enabled: object) -> bool:
    if not isinstance(enabled, bool):
        raise InvalidOption("enabled", f"must be True or False, not {enabled!r}")
    return enabled
