"""Tenants: create them, and set the share of a queue each may use.

await app.tenants.acreate("acme", weight=2)
"""

from typing import Any

from mainspring.app.namespaces import Namespace, blocking
from mainspring.domain.tenants import TenantState
from mainspring.services import tenants as services

# Inside the class `list` is one of its methods.
States = list[TenantState]


class Tenants(Namespace):
    """The tenants of a database: `app.tenants`."""

    async def acreate(
        self, tenant_id: str, /, *, weight: int = 1, max_running: int | None = None
    ) -> TenantState:
        """Create a tenant. In a shared queue it gets `weight` jobs for each job of a tenant of
        weight 1; at most `max_running` of its jobs run at once, if given."""
        return await services.create(
            self._app.database, tenant_id, weight=weight, max_running=max_running
        )

    async def aupdate(self, tenant_id: str, /, **changes: Any) -> TenantState:
        """Change `weight` or `max_running`; None removes the limit."""
        return await services.update(self._app.database, tenant_id, changes)

    async def aget(self, tenant_id: str) -> TenantState:
        return await services.get(self._app.database, tenant_id)

    async def alist(self, *, after: str | None = None, limit: int = 100) -> States:
        """Tenants by name; pass the last name as `after` for the next page."""
        return await services.list_tenants(self._app.database, after=after, limit=limit)

    create = blocking(acreate)
    update = blocking(aupdate)
    get = blocking(aget)
    list = blocking(alist)
