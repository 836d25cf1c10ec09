"""`client.retention`."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from mainspring.api.models.base import Page
from mainspring.api.models.retention import RetentionModel, RetentionPreviewModel
from mainspring.client._sync.resource import Resource
from mainspring.client.requests import Request, given


class Retention(Resource):
    """Retention policies: `client.retention`."""

    def list(self, **filters: Any) -> Iterator[RetentionModel]:
        """Retention policies and defaults, by kind, tenant and state."""
        return self._client.pages(Request("GET", "/retention", filters), Page[RetentionModel])

    def set(
        self, kind: str, *, keep: timedelta | float, state: str | None = None
    ) -> RetentionModel:
        """Save a policy of the client's tenant, or for all tenants; `keep` is in seconds or a
        timedelta."""
        body = given(kind=kind, keep=keep, state=state)
        return self._client.call(Request("PUT", "/retention", body=body), RetentionModel)

    def unset(self, kind: str, *, state: str | None = None) -> None:
        """Remove a policy; the next more general one applies."""
        self._client.send(Request("DELETE", "/retention", {"kind": kind, "state": state}))

    def preview(
        self,
        kind: str | None = None,
        *,
        keep: timedelta | float | None = None,
        state: str | None = None,
    ) -> RetentionPreviewModel:
        """What the next pass removes, by day; with `keep`, as if that policy were saved."""
        seconds = keep.total_seconds() if isinstance(keep, timedelta) else keep
        params = {"kind": kind, "keep": seconds, "state": state}
        return self._client.call(
            Request("GET", "/retention/preview", params), RetentionPreviewModel
        )
