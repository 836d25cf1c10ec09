"""People: manage who may log in.

await app.people.acreate("ann", "admin", tenant_id="acme")
"""

from mainspring.app.namespaces import Namespace, blocking
from mainspring.domain.access.tokens import Person
from mainspring.services import people as person_services
from mainspring.services import sessions as session_services
from mainspring.services import tokens as services

# Inside the classes `list` is one of their methods.
Persons = list[Person]


class People(Namespace):
    """The people who may log in: `app.people`."""

    async def acreate(self, name: str, role: str, /, *, tenant_id: str | None = None) -> Person:
        """Create a person; `role` is operator, admin, member or viewer."""
        return await person_services.create(self._app.database, name, role, tenant_id=tenant_id)

    async def aget(self, name: str, /, *, tenant_id: str | None = None) -> Person:
        """One person; without a tenant, an operator, or the person of the only tenant with this
        name. Raises PersonNotFound or AmbiguousName."""
        return await person_services.get(self._app.database, name, tenant_id)

    async def alist(self, *, after: str | None = None, limit: int = 100) -> Persons:
        """People by name; pass the last name as `after` for the next page."""
        return await person_services.list_people(self._app.database, after=after, limit=limit)

    async def achange(
        self,
        name: str,
        /,
        *,
        role: str | None = None,
        is_disabled: bool | None = None,
        tenant_id: str | None = None,
    ) -> Person:
        """Change a person's role in their tenant, or disable their access."""
        return await person_services.change(
            self._app.database, name, tenant_id, role=role, is_disabled=is_disabled
        )

    async def adelete(self, name: str, /, *, tenant_id: str | None = None) -> None:
        """Delete a person with their sessions and the tokens they created."""
        await person_services.delete(self._app.database, name, tenant_id)

    async def aopen_login(self, name: str, /, *, tenant_id: str | None = None) -> str:
        """A code that logs the person in at /login?code=..., once and for a short time."""
        return await services.open_login(self._app.database, name, tenant_id)

    async def aend_sessions(self, name: str, /, *, tenant_id: str | None = None) -> int:
        """Log the person out everywhere; returns how many sessions there were."""
        return await session_services.end_all(self._app.database, name, tenant_id)

    create = blocking(acreate)
    get = blocking(aget)
    list = blocking(alist)
    change = blocking(achange)
    delete = blocking(adelete)
    open_login = blocking(aopen_login)
    end_sessions = blocking(aend_sessions)
