"""What a client needs of whatever sends its messages."""

from collections.abc import AsyncIterator, Iterator
from typing import Any, Protocol

from mainspring.client.requests import Message, Response


class Stream(Protocol):
    """An answer whose lines arrive over time."""

    @property
    def is_success(self) -> bool: ...

    def read(self) -> Response:
        """All of it, for an answer that is an error."""

    def lines(self) -> Iterator[str]: ...


class Transport(Protocol):
    """Sends the messages of a client. May be used by several threads."""

    def send(self, message: Message) -> Response: ...

    def stream(self, message: Message) -> Any:
        """A context manager that yields a Stream."""

    def close(self) -> None: ...


class AsyncStream(Protocol):
    """An answer whose lines arrive over time."""

    @property
    def is_success(self) -> bool: ...

    async def read(self) -> Response:
        """All of it, for an answer that is an error."""

    def lines(self) -> AsyncIterator[str]: ...


class AsyncTransport(Protocol):
    """Sends the messages of a client."""

    async def send(self, message: Message) -> Response: ...

    def stream(self, message: Message) -> Any:
        """A context manager that yields an AsyncStream."""

    async def close(self) -> None: ...
