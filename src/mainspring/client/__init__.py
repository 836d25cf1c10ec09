"""A typed client for the REST API, blocking or async.

with Client("http://127.0.0.1:8080", token) as client:
    made = client.jobs.enqueue("send_welcome", {"user_id": 7})
    for change in client.jobs.follow(made.id):
        print(change.job.state)

`AsyncClient` has the same methods, to be awaited; its lists and streams are for `async for`.
"""

from typing import TYPE_CHECKING

from mainspring.client._sync.client import Client
from mainspring.domain.errors.client import ApiError, ServerUnreachable

__all__ = ["ApiError", "AsyncClient", "Client", "ServerUnreachable"]

if TYPE_CHECKING:
    from mainspring.client._async.client import AsyncClient
else:

    def __getattr__(name: str) -> object:
        """Import the async client on first use: httpx is slow to import."""
        if name == "AsyncClient":
            from mainspring.client._async.client import AsyncClient  # noqa: PLC0415

            globals()[name] = AsyncClient
            return AsyncClient
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
