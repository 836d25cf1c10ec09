"""Retention: how long finished jobs, audit entries, slots and events are kept.

await app.retention.aset("jobs", keep=timedelta(days=2), state="succeeded")
"""

from datetime import timedelta

from mainspring.app.namespaces import Namespace, blocking
from mainspring.domain.retention import RetentionDay, RetentionPolicy
from mainspring.services import retention as services

# Inside the class `list` is one of its methods.
Policies = list[RetentionPolicy]
Days = list[RetentionDay]


class Retention(Namespace):
    """The retention policies of a database: `app.retention`."""

    async def aset(
        self,
        kind: str,
        /,
        *,
        keep: timedelta,
        state: str | None = None,
        tenant: str | None = None,
        by: str | None = None,
    ) -> RetentionPolicy:
        """Save how long records of a kind are kept: `jobs`, `audit`, `slots` or `events`; of a
        tenant, or of all. Jobs may have a policy for each `state`. `by` is who the audit log
        names."""
        return await services.set_policy(
            self._app.database, kind, keep=keep, tenant_id=tenant, state=state, actor=by
        )

    async def aunset(
        self,
        kind: str,
        /,
        *,
        state: str | None = None,
        tenant: str | None = None,
        by: str | None = None,
    ) -> None:
        """Remove a policy, so that the next more general one applies; raises RetentionNotFound."""
        await services.unset_policy(
            self._app.database, kind, tenant_id=tenant, state=state, actor=by
        )

    async def apreview(
        self,
        kind: str | None = None,
        /,
        *,
        keep: timedelta | None = None,
        state: str | None = None,
        tenant: str | None = None,
    ) -> Days:
        """What the next pass removes, by kind and day; with `keep`, as if that policy were
        saved."""
        return await services.preview(
            self._app.database, kind, keep=keep, tenant_id=tenant, state=state
        )

    async def alist(self, *, tenant: str | None = None) -> Policies:
        """All policies and defaults by kind, tenant and state; of a tenant, those that matter to
        it."""
        return await services.list_policies(self._app.database, tenant)

    set = blocking(aset)
    unset = blocking(aunset)
    preview = blocking(apreview)
    list = blocking(alist)
