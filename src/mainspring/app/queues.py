"""Queues: list, pause and resume them.

app.queues.pause("mail", reason="provider down", duration=timedelta(hours=1))
app.queues.resume("mail")
"""

from datetime import datetime, timedelta

from mainspring.app.namespaces import Namespace, blocking
from mainspring.domain.queues import QueuePause, QueueState
from mainspring.domain.types import TenantId
from mainspring.services import queues as services

# Inside the class `list` is one of its methods.
States = list[QueueState]


class Queues(Namespace):
    """The queues of an app: `app.queues`."""

    async def apause(
        self,
        name: str,
        /,
        *,
        reason: str = "",
        until: datetime | None = None,
        duration: timedelta | None = None,
        by: str | None = None,
    ) -> QueuePause:
        """Pause a queue for all tenants until an instant, for a while, or until it is resumed: no
        worker claims its jobs. `by` is who the audit log names."""
        return await services.pause(
            self._app.database, name, reason=reason, until=until, duration=duration, actor=by
        )

    async def aresume(self, name: str, /, *, by: str | None = None) -> None:
        """End the pause of a queue; raises QueueNotPaused."""
        await services.resume(self._app.database, name, actor=by)

    async def alist(self, *, tenant_id: str | None = None) -> States:
        """Queues that have live jobs or are paused, by name; of all tenants unless one is given."""
        tenant = None if tenant_id is None else TenantId(tenant_id)
        return await services.list_queues(self._app.database, tenant, limit=10_000)

    pause = blocking(apause)
    resume = blocking(aresume)
    list = blocking(alist)
