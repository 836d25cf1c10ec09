"""`client.tenants`."""

from collections.abc import Iterator
from typing import Any

from mainspring.api.models.base import Page
from mainspring.api.models.tenants import TenantDeletionModel, TenantModel
from mainspring.client._sync.resource import Resource
from mainspring.client.requests import Request, create, named


class Tenants(Resource):
    """Tenants, for operators: `client.tenants`."""

    def list(self, **filters: Any) -> Iterator[TenantModel]:
        """Tenants by name."""
        return self._client.pages(Request("GET", "/tenants", filters), Page[TenantModel])

    def get(self, name: str) -> TenantModel:
        """One tenant with the number of its live jobs."""
        return self._client.call(Request("GET", f"/tenants/{named(name)}"), TenantModel)

    def create(self, name: str, **fields: Any) -> TenantModel:
        """Create a tenant; `fields` are `weight`, `max_running` and `zone`."""
        return self._client.call(create("/tenants", {"name": name, **fields}), TenantModel)

    def update(self, name: str, **changes: Any) -> TenantModel:
        """Change `weight`, `max_running` (None removes the limit), `zone` or `is_enabled`."""
        return self._client.call(
            Request("PATCH", f"/tenants/{named(name)}", body=changes), TenantModel
        )

    def delete(self, name: str, *, dry_run: bool = False) -> TenantDeletionModel:
        """Delete a tenant with all it has, in the background; a dry run only counts."""
        request = Request("DELETE", f"/tenants/{named(name)}", {"dry_run": dry_run})
        return self._client.call(request, TenantDeletionModel)
