"""What fails, grouped by error.

for group in app.errors.list(is_new=True):
    print(group.key, group.count, group.sample)
"""

from datetime import datetime

from mainspring.app import ids
from mainspring.app.namespaces import Namespace, blocking
from mainspring.domain.error_groups import ErrorGroup
from mainspring.domain.filters import Several
from mainspring.domain.types import DEFAULT_TENANT, TenantId
from mainspring.services import error_groups as services

# Inside the class `list` is one of its methods.
Groups = list[ErrorGroup]


class Errors(Namespace):
    """The errors of an app: `app.errors`."""

    async def alist(
        self,
        *,
        tenant_id: str = DEFAULT_TENANT,
        since: datetime | None = None,
        definition: Several[str] = None,
        is_new: bool | None = None,
        limit: int = 50,
    ) -> Groups:
        """What has failed since an instant, by default for a day: new errors first, then those with
        the most failures. Failures are counted by day (UTC)."""
        return await services.list_groups(
            self._app.database,
            TenantId(tenant_id),
            since=since,
            definition=definition,
            is_new=is_new,
            limit=ids.number("limit", limit),
        )

    async def aget(self, key: str, /, *, tenant_id: str = DEFAULT_TENANT) -> ErrorGroup:
        """One error with its days; raises ErrorGroupNotFound."""
        return await services.get(self._app.database, TenantId(tenant_id), key)

    list = blocking(alist)
    get = blocking(aget)
