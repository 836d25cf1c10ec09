"""Tenants: create them, and set the share of a queue each may use.

await app.tenants.acreate("acme", weight=2)
"""

from typing import Any

from mainspring.app.namespaces import Namespace, blocking
from mainspring.domain.tenants import TenantContents, TenantState
from mainspring.domain.types import JobId
from mainspring.services import housekeeping
from mainspring.services import tenants as services

# Inside the class `list` is one of its methods.
States = list[TenantState]


class Tenants(Namespace):
    """The tenants of a database: `app.tenants`."""

    async def acreate(
        self,
        tenant_id: str,
        /,
        *,
        weight: int = 1,
        max_running: int | None = None,
        zone: str = "UTC",
    ) -> TenantState:
        """Create a tenant. In a shared queue it gets `weight` jobs for each job of a tenant of
        weight 1; at most `max_running` of its jobs run at once, if given; its schedules are in
        `zone` unless they name another."""
        return await services.create(
            self._app.database, tenant_id, weight=weight, max_running=max_running, zone=zone
        )

    async def aupdate(self, tenant_id: str, /, **changes: Any) -> TenantState:
        """Change `weight`, `max_running` (None removes the limit), `zone` or `is_enabled`."""
        return await services.update(self._app.database, tenant_id, changes)

    async def adisable(self, tenant_id: str) -> TenantState:
        """Enqueue nothing for a tenant, start none of its jobs and refuse its tokens, until it is
        enabled. Jobs that run go on."""
        return await services.update(self._app.database, tenant_id, {"is_enabled": False})

    async def aenable(self, tenant_id: str) -> TenantState:
        """Accept and start the jobs of a disabled tenant again."""
        return await services.update(self._app.database, tenant_id, {"is_enabled": True})

    async def acontents(self, tenant_id: str) -> TenantContents:
        """What `delete` would delete."""
        return await services.contents(self._app.database, tenant_id)

    async def adelete(self, tenant_id: str) -> JobId:
        """Disable a tenant and delete it with all it has, in the background; returns the id of the
        job that does it. The audit log stays."""
        await housekeeping.install(self._app.database, with_schedules=False)
        return await services.delete(self._app.database, tenant_id)

    async def aget(self, tenant_id: str) -> TenantState:
        """One tenant with the number of its live jobs; raises TenantNotFound."""
        return await services.get(self._app.database, tenant_id)

    async def alist(self, *, after: str | None = None, limit: int = 100) -> States:
        """Tenants by name; pass the last name as `after` for the next page."""
        return await services.list_tenants(self._app.database, after=after, limit=limit)

    create = blocking(acreate)
    update = blocking(aupdate)
    disable = blocking(adisable)
    enable = blocking(aenable)
    contents = blocking(acontents)
    delete = blocking(adelete)
    get = blocking(aget)
    list = blocking(alist)
