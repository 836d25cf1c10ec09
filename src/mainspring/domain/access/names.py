"""Names of people and tokens, which are each tenant's own."""

from collections.abc import Sequence
from typing import Protocol, TypeVar

from mainspring.domain.errors.access import AmbiguousName
from mainspring.domain.types import TenantId


class Named(Protocol):
    """A person or a token."""

    @property
    def name(self) -> str: ...

    @property
    def tenant_id(self) -> TenantId | None: ...


N = TypeVar("N", bound=Named)


def the_one(found: Sequence[N]) -> N | None:
    """Who is meant by a name: an operator, who belongs to no tenant, before anyone a tenant calls
    so; else the only one there is. Raises AmbiguousName where several tenants have one."""
    own = [each for each in found if each.tenant_id is None]
    meant = own or found
    if len(meant) > 1:
        tenants = sorted(str(each.tenant_id) for each in meant)
        raise AmbiguousName(meant[0].name, tenants)
    return meant[0] if meant else None
