"""How much was enqueued, started and ended, and how long it took.

report = await app.figures.aread(by=["definition"])
"""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

from mainspring.app.namespaces import Namespace, blocking
from mainspring.domain.figures import FigureReport
from mainspring.domain.types import DEFAULT_TENANT, TenantId
from mainspring.services import figures as services


class Figures(Namespace):
    """The figures of an app: `app.figures`."""

    async def aread(
        self,
        *,
        tenant_id: str | None = DEFAULT_TENANT,
        start: datetime | None = None,
        end: datetime | None = None,
        step: timedelta | None = None,
        by: Collection[str] = (),
        queues: Sequence[str] | None = None,
        definitions: Sequence[str] | None = None,
    ) -> FigureReport:
        """Figures of a time, of the last day by default, with a point every `step`; a series for
        each of `by`, which are "tenant", "queue" and "definition". Of all tenants if `tenant_id` is
        None."""
        return await services.read(
            self._app.database,
            None if tenant_id is None else TenantId(tenant_id),
            start=start,
            end=end,
            span=step,
            by=by,
            queues=queues,
            definitions=definitions,
        )

    read = blocking(aread)
