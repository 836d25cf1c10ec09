"""Connections of the server: how many there may be, and how long one may take to ask for something.

A connection that asks for nothing, or for something so slowly that it never gets there, holds a
place that others need. The time that a body takes is bounded by `middleware.py`.
"""

import asyncio
import socket
from collections import Counter
from collections.abc import Sequence
from typing import Any, ClassVar

import orjson
from uvicorn.protocols.http.h11_impl import H11Protocol

from mainspring import telemetry
from mainspring.api.addresses import Network, client_of, is_proxy
from mainspring.api.errors import PROBLEM

KEEP_ALIVE_SECONDS = 5
# From the first byte, or from the connection, to the end of the headers.
_HEADER_SECONDS = 10.0
# A peer that is gone without a word is noticed after two minutes.
_KEEPALIVE = (
    ("TCP_KEEPIDLE", 60),
    ("TCP_KEEPINTVL", 15),
    ("TCP_KEEPCNT", 4),
    ("TCP_USER_TIMEOUT", 120_000),
)


class Connections:
    """Those that are open, by address."""

    def __init__(self, most: int, most_of_one: int, proxies: Sequence[Network]) -> None:
        self._most, self._most_of_one, self._proxies = most, most_of_one, proxies
        self._open: Counter[str] = Counter()

    def enter(self, peer: Any) -> tuple[str, str | None]:
        """The address it is counted by, and why it is refused, if it is."""
        scope = {"client": peer, "headers": []}
        address = client_of(scope, ())
        self._open[address] += 1
        if self._open.total() > self._most:
            return address, "the server has too many connections; try again later"
        if self._open[address] > self._most_of_one and not is_proxy(scope, self._proxies):
            return address, f"too many connections from {address}; close some"
        return address, None

    def leave(self, address: str) -> None:
        self._open[address] -= 1
        if self._open[address] <= 0:
            del self._open[address]


class BoundedProtocol(H11Protocol):
    """A connection."""

    connections_open: ClassVar[Connections]
    _address: str | None = None
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        peer = transport.get_extra_info("peername")
        _notice_silence(transport.get_extra_info("socket"))
        self._address, refusal = self.connections_open.enter(peer)
        if refusal is not None:
            telemetry.event("connection_refused", address=self._address)
            transport.write(_refusal(refusal))
            transport.close()
            return
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._unwatch()
        if self._address is not None:
            self.connections_open.leave(self._address)
            self._address = None

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._unwatch()
        else:
            self._watch()

    def _watch(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(_HEADER_SECONDS, self._drop)

    def _unwatch(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _drop(self) -> None:
        self._deadline = None
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()


def protocol_of(connections: Connections) -> type[BoundedProtocol]:
    """The class of the connections of one server."""
    return type("ServerProtocol", (BoundedProtocol,), {"connections_open": connections})


def _notice_silence(connected: socket.socket | None) -> None:
    if connected is None or connected.family not in (socket.AF_INET, socket.AF_INET6):
        return
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE:
        if hasattr(socket, name):  # Not on every system.
            connected.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _refusal(detail: str) -> bytes:
    body = orjson.dumps(
        {
            "type": "about:blank",
            "title": "Service Unavailable",
            "status": 503,
            "code": "overloaded",
            "detail": detail,
            "errors": [],
        }
    )
    head = (
        f"HTTP/1.1 503 Service Unavailable\r\ncontent-type: {PROBLEM}\r\nretry-after: 1\r\n"
        f"connection: close\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body
