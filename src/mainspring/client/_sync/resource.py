"""What every resource of a client is."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mainspring.client._sync.client import Client


class Resource:
    """The things of one kind, such as `client.jobs`."""

    def __init__(self, client: "Client") -> None:
        self._client = client
