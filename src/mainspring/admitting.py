"""Who may come in through the API, at the Python door: people and tokens.

new = await app.tokens.acreate("ci", "member", tenant_id="acme")
print(new.text)  # shown this once
"""

from collections.abc import Sequence
from datetime import timedelta

from mainspring.domain.tokens import Person, Token
from mainspring.doors import Door, blocking
from mainspring.services import people as person_services
from mainspring.services import tokens as services
from mainspring.services.tokens import NewToken

# Inside the classes `list` is one of their methods.
Found = list[Token]
Persons = list[Person]


class Tokens(Door):
    """The tokens of a database: `app.tokens`."""

    async def acreate(
        self,
        name: str,
        role: str,
        /,
        *,
        tenant_id: str | None = None,
        scopes: Sequence[str] | None = None,
        expires_in: timedelta | None = None,
    ) -> NewToken:
        """Make a token; its text is in the answer and nowhere else. `role` is operator, admin,
        member, viewer or worker; every role but operator has a tenant."""
        return await services.create(
            self._app.database, name, role, tenant_id=tenant_id, scopes=scopes, life=expires_in
        )

    async def aget(self, name: str) -> Token:
        return await services.get(self._app.database, name)

    async def alist(
        self, *, after: str | None = None, limit: int = 100, with_ended: bool = False
    ) -> Found:
        """By name; page on with the last name as `after`."""
        return await services.list_tokens(
            self._app.database, after=after, limit=limit, with_ended=with_ended
        )

    async def arevoke(self, name: str) -> Token:
        """Let nobody in by it, from the next request on."""
        return await services.revoke(self._app.database, name)

    create = blocking(acreate)
    get = blocking(aget)
    list = blocking(alist)
    revoke = blocking(arevoke)


class People(Door):
    """Who may log in: `app.people`."""

    async def acreate(self, name: str, role: str, /, *, tenant_id: str | None = None) -> Person:
        """Add a person; `role` is operator, admin, member or viewer."""
        return await person_services.create(self._app.database, name, role, tenant_id=tenant_id)

    async def aget(self, name: str) -> Person:
        return await person_services.get(self._app.database, name)

    async def alist(self, *, after: str | None = None, limit: int = 100) -> Persons:
        """By name; page on with the last name as `after`."""
        return await person_services.list_people(self._app.database, after=after, limit=limit)

    async def achange(
        self, name: str, /, *, role: str | None = None, is_disabled: bool | None = None
    ) -> Person:
        """Give a person another role in its tenant, or keep it out."""
        return await person_services.change(
            self._app.database, name, role=role, is_disabled=is_disabled
        )

    async def adelete(self, name: str) -> None:
        """Remove a person with its tokens and sessions."""
        await person_services.delete(self._app.database, name)

    async def aopen_login(self, name: str) -> str:
        """A code with which the person logs in at /login?code=..., once and soon."""
        return await services.open_login(self._app.database, name)

    create = blocking(acreate)
    get = blocking(aget)
    list = blocking(alist)
    change = blocking(achange)
    delete = blocking(adelete)
    open_login = blocking(aopen_login)
