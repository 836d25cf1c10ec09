"""`client.people`."""

from collections.abc import AsyncIterator
from typing import Any

from mainspring.api.models.base import Page
from mainspring.api.models.people import LoginModel, PersonModel
from mainspring.api.models.sessions import EndedSessions
from mainspring.client._async.resource import Resource
from mainspring.client.requests import Request, create, named


class People(Resource):
    """The people who may log in: `client.people`."""

    def list(self, **filters: Any) -> AsyncIterator[PersonModel]:
        """People by name."""
        return self._client.pages(Request("GET", "/people", filters), Page[PersonModel])

    async def get(self, name: str) -> PersonModel:
        """One person of the tenant."""
        return await self._client.call(Request("GET", f"/people/{named(name)}"), PersonModel)

    async def create(self, name: str, role: str) -> PersonModel:
        """Create a person; `role` is operator, admin, member or viewer."""
        return await self._client.call(create("/people", {"name": name, "role": role}), PersonModel)

    async def change(self, name: str, **changes: Any) -> PersonModel:
        """Change a person's `role`, or disable their access with `is_enabled=False`."""
        return await self._client.call(
            Request("PATCH", f"/people/{named(name)}", body=changes), PersonModel
        )

    async def delete(self, name: str) -> None:
        """Delete a person with their sessions and the tokens they created."""
        await self._client.send(Request("DELETE", f"/people/{named(name)}"))

    async def open_login(self, name: str) -> LoginModel:
        """A login link for the person; it works once and for a short time."""
        return await self._client.call(Request("POST", f"/people/{named(name)}/login"), LoginModel)

    async def end_sessions(self, name: str) -> int:
        """Log the person out everywhere; returns how many sessions there were."""
        request = Request("DELETE", f"/people/{named(name)}/sessions")
        return (await self._client.call(request, EndedSessions)).ended
