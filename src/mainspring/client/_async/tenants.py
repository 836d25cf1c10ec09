"""`client.tenants`."""

from collections.abc import AsyncIterator
from typing import Any

from mainspring.api.models.base import Page
from mainspring.api.models.tenants import TenantDeletionModel, TenantModel
from mainspring.client._async.resource import Resource
from mainspring.client.requests import Request, create, named


class Tenants(Resource):
    """Tenants, for operators: `client.tenants`."""

    def list(self, **filters: Any) -> AsyncIterator[TenantModel]:
        """Tenants by name."""
        return self._client.pages(Request("GET", "/tenants", filters), Page[TenantModel])

    async def get(self, name: str) -> TenantModel:
        """One tenant with the number of its live jobs."""
        return await self._client.call(Request("GET", f"/tenants/{named(name)}"), TenantModel)

    async def create(self, name: str, **fields: Any) -> TenantModel:
        """Create a tenant; `fields` are `weight`, `max_running` and `zone`."""
        return await self._client.call(create("/tenants", {"name": name, **fields}), TenantModel)

    async def update(self, name: str, **changes: Any) -> TenantModel:
        """Change `weight`, `max_running` (None removes the limit), `zone` or `is_enabled`."""
        return await self._client.call(
            Request("PATCH", f"/tenants/{named(name)}", body=changes), TenantModel
        )

    async def delete(self, name: str, *, dry_run: bool = False) -> TenantDeletionModel:
        """Delete a tenant with all it has, in the background; a dry run only counts."""
        request = Request("DELETE", f"/tenants/{named(name)}", {"dry_run": dry_run})
        return await self._client.call(request, TenantDeletionModel)
