"""Which hosts a request may name: those that people reach this server by.

Any other name in the Host header is someone else's: a page of theirs whose name they point here, or
a forged one.
"""

import socket
from collections.abc import Awaitable, Callable, MutableMapping
from http import HTTPStatus
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from mainspring.api.asgi import as_starlette
from mainspring.api.errors import problem
from mainspring.settings import Settings
from mainspring.settings.rules import is_loopback

Message = MutableMapping[str, Any]
Application = Callable[
    [Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]],
    Awaitable[None],
]
_EVERY_ADDRESS = ("0.0.0.0", "::")  # noqa: S104 - compared with, not listened on


class HostMiddleware:
    """Refuses requests that name another host. An application that is mounted in someone else's
    and has no settings for it leaves that to whoever serves it."""

    def __init__(self, app: Application, *, settings: Settings) -> None:
        self._app = app
        self._listed = settings.host_names
        self._public = _name_of(urlsplit(settings.public_url or "").netloc)

    async def __call__(
        self,
        scope: Message,
        receive: Callable[[], Awaitable[Message]],
        send: Callable[[Message], Awaitable[None]],
    ) -> None:
        if scope["type"] == "http":
            host = _host(scope)
            if host is not None and not self._is_known(host, scope["app"].state.listens_on):
                await as_starlette(_refusal(host))(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _is_known(self, host: str, listens_on: str | None) -> bool:
        if listens_on is None and not self._listed and not self._public:
            return True
        name = _name_of(host)
        return (
            is_loopback(name)
            or name in (self._public, *self._listed)
            or any(each[:2] == "*." and name.endswith(each[1:]) for each in self._listed)
            or (listens_on is not None and _is_address_of(name, listens_on))
        )


def _host(scope: Message) -> str | None:
    """None where the request names none, as HTTP/1.0 allows."""
    found = (value for name, value in scope["headers"] if name == b"host")
    value = next(found, None)
    return None if value is None else value.decode("latin-1")


def _name_of(host: str) -> str:
    """Without the port, in the one way to write it."""
    try:
        return (urlsplit(f"//{host}").hostname or "").rstrip(".")
    except ValueError:
        return ""


def reached_by(listens_on: str) -> str:
    """The host that leads to a server: on every address of a machine, the name of the machine."""
    return socket.gethostname() if listens_on in _EVERY_ADDRESS else listens_on


def _is_address_of(name: str, listens_on: str) -> bool:
    if name == reached_by(listens_on).lower():
        return True
    if listens_on not in _EVERY_ADDRESS:
        return False
    # A name could be pointed here by anyone; an address can not.
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _refusal(host: str) -> Any:
    return problem(
        HTTPStatus.BAD_REQUEST,
        "unknown_host",
        f"{host[:200]!r} is not a host of this server; if it should be, set public_url or "
        "allowed_hosts on the server",
    )
