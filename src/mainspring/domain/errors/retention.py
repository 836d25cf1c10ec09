"""Errors of retention policies."""

from mainspring.domain.errors import NotFoundError


class RetentionNotFound(NotFoundError):
    """There is no such retention policy; a default is none."""

    code = "retention_not_found"

    def __init__(self, kind: str, tenant_id: str | None, state: str | None) -> None:
        of_state = f" in state {state}" if state else ""
        whose = f"of tenant {tenant_id}" if tenant_id else "for all tenants"
        super().__init__(f"there is no retention policy {whose} for {kind}{of_state}")
        self.kind, self.tenant_id, self.state = kind, tenant_id, state
