"""People: manage who may log in.

await app.people.acreate("ann", "admin", tenant_id="acme")
"""

from mainspring.app.namespaces import Namespace, blocking
from mainspring.domain.access.tokens import Person
from mainspring.services import people as person_services
from mainspring.services import tokens as services

# Inside the classes `list` is one of their methods.
Persons = list[Person]


class People(Namespace):
    """The people who may log in: `app.people`."""

    async def acreate(self, name: str, role: str, /, *, tenant_id: str | None = None) -> Person:
        """Create a person; `role` is operator, admin, member or viewer."""
        return await person_services.create(self._app.database, name, role, tenant_id=tenant_id)

    async def aget(self, name: str) -> Person:
        return await person_services.get(self._app.database, name)

    async def alist(self, *, after: str | None = None, limit: int = 100) -> Persons:
        """People by name; pass the last name as `after` for the next page."""
        return await person_services.list_people(self._app.database, after=after, limit=limit)

    async def achange(
        self, name: str, /, *, role: str | None = None, is_disabled: bool | None = None
    ) -> Person:
        """Change a person's role in their tenant, or disable their access."""
        return await person_services.change(
            self._app.database, name, role=role, is_disabled=is_disabled
        )

    async def adelete(self, name: str) -> None:
        """Delete a person with their tokens and sessions."""
        await person_services.delete(self._app.database, name)

    async def aopen_login(self, name: str) -> str:
        """A code that logs the person in at /login?code=..., once and for a short time."""
        return await services.open_login(self._app.database, name)

    create = blocking(acreate)
    get = blocking(aget)
    list = blocking(alist)
    change = blocking(achange)
    delete = blocking(adelete)
    open_login = blocking(aopen_login)
