"""`client.sessions`."""

from collections.abc import AsyncIterator
from typing import Any

from mainspring.api.models.base import Page
from mainspring.api.models.sessions import SessionModel
from mainspring.client._async.resource import Resource
from mainspring.client.requests import Request


class Sessions(Resource):
    """The sessions of people who are logged in: `client.sessions`."""

    def list(self, **filters: Any) -> AsyncIterator[SessionModel]:
        """Sessions, newest first: your own, or those of the people you may manage."""
        return self._client.pages(Request("GET", "/sessions", filters), Page[SessionModel])

    async def end(self, session_id: int) -> None:
        """End a session, which logs its person out."""
        await self._client.send(Request("DELETE", f"/sessions/{session_id}"))

    async def log_out(self) -> None:
        """End the session that the client uses; raises ApiError if it uses a token."""
        await self._client.send(Request("DELETE", "/sessions/current"))
