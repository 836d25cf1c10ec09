"""API tokens: create, list and revoke them.

new = await app.tokens.acreate("ci", "member", tenant_id="acme")
print(new.text)  # shown this once
"""

from collections.abc import Sequence
from datetime import timedelta

from mainspring.app.namespaces import Namespace, blocking
from mainspring.domain.access.tokens import Token, TokenState
from mainspring.domain.filters import Several
from mainspring.services import tokens as services
from mainspring.services.tokens import NewToken

# Inside the classes `list` is one of their methods.
Found = list[Token]


class Tokens(Namespace):
    """The tokens of a database: `app.tokens`."""

    async def acreate(
        self,
        name: str,
        role: str,
        /,
        *,
        tenant_id: str | None = None,
        tenants: Sequence[str] | None = None,
        scopes: Sequence[str] | None = None,
        expires_in: timedelta | None = None,
    ) -> NewToken:
        """Create a token; its text is returned only here. `role` is operator, admin, member,
        viewer or worker; every role but operator needs a tenant. A worker can serve several
        `tenants` instead, or all: `["*"]`."""
        return await services.create(
            self._app.database,
            name,
            role,
            tenant_id=tenant_id,
            tenants=tenants,
            scopes=scopes,
            life=expires_in,
        )

    async def aget(self, name: str, /, *, tenant_id: str | None = None) -> Token:
        """One token; without a tenant, an operator's, or that of the only tenant with this name.
        Raises TokenNotFound or AmbiguousName."""
        return await services.get(self._app.database, name, tenant_id)

    async def alist(
        self,
        *,
        state: Several[str] = TokenState.ACTIVE,
        role: Several[str] = None,
        after: str | None = None,
        limit: int = 100,
    ) -> Found:
        """Tokens by name, the active ones unless `state` says otherwise, of which None is all;
        pass the last name as `after` for the next page."""
        return await services.list_tokens(
            self._app.database, after=after, limit=limit, state=state, role=role
        )

    async def arevoke(self, name: str, /, *, tenant_id: str | None = None) -> Token:
        """Revoke a token, from the next request on."""
        return await services.revoke(self._app.database, name, tenant_id)

    create = blocking(acreate)
    get = blocking(aget)
    list = blocking(alist)
    revoke = blocking(arevoke)
