"""What every request passes before anyone looks at it: its size, its rate, and safe answers."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import Response
from starlette.requests import cookie_parser

from mainspring.api.addresses import Network, client_of
from mainspring.api.asgi import as_starlette
from mainspring.api.auth import SESSION_COOKIE, ServerState, bearer_token
from mainspring.api.errors import problem
from mainspring.api.routing import whole_names

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

_MOST_CALLERS = 10_000
_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    # Not no-referrer: with that a browser sends `Origin: null` with a form, even to its own site.
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (
        b"content-security-policy",
        b"default-src 'none'; style-src 'unsafe-inline'; form-action 'self'",
    ),
)


# How long a body may take: this, and for each byte that has come as long as a slow line needs.
_BODY_SECONDS = 30.0
_SLOWEST_BYTES_PER_SECOND = 16_384


class _TooLarge(Exception):
    pass


class _TooSlow(Exception):
    pass


class RequestMiddleware:
    """The outermost part of the API."""

    def __init__(
        self,
        app: Application,
        *,
        most_bytes: int,
        rate_per_minute: int,
        proxies: Sequence[Network] = (),
    ) -> None:
        self._app = app
        self._most_bytes = most_bytes
        self._buckets = RateLimiter(rate_per_minute)
        self._proxies = proxies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope = _with_whole_names(scope)
        safely = _with_headers(send)
        refused = self._refusal(scope)
        if refused is not None:
            await refused(scope, receive, safely)
            return
        try:
            await self._app(scope, self._counted(receive), safely)
        except _TooLarge:
            await _too_large(self._most_bytes)(scope, receive, safely)
        except _TooSlow:
            await _too_slow()(scope, receive, safely)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = dict(scope["headers"])
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length) > self._most_bytes:
            return _too_large(self._most_bytes)
        # Whoever is not known to be someone is counted by address: to be counted anew would take
        # another address, and not another spelling of a header.
        who = (_identity(scope, headers), client_of(scope, self._proxies))
        if not self._buckets.take(who):
            return _refused(
                HTTPStatus.TOO_MANY_REQUESTS,
                "too_many_requests",
                "too many requests per minute from one caller; slow down",
                headers={"Retry-After": "1"},
            )
        return None

    def _counted(self, receive: Receive) -> Receive:
        seen = 0
        began = time.monotonic()
        is_whole = False

        async def counted() -> MutableMapping[str, Any]:
            nonlocal seen, is_whole
            if is_whole:
                return await receive()
            until = began + _BODY_SECONDS + seen / _SLOWEST_BYTES_PER_SECOND
            try:
                async with asyncio.timeout(until - time.monotonic()):
                    message = await receive()
            except TimeoutError:
                raise _TooSlow from None
            is_whole = not message.get("more_body", False)
            seen += len(message.get("body", b""))
            if seen > self._most_bytes:
                raise _TooLarge
            return message

        return counted


class RateLimiter:
    """Requests that each caller may still make; refilled steadily, a second's worth at the most
    beyond the rate."""

    def __init__(self, per_minute: int) -> None:
        self._per_second = per_minute / 60
        self._most = max(self._per_second * 10, 20.0)
        self._left: dict[object, tuple[float, float]] = {}

    def take(self, who: object, now: float | None = None) -> bool:
        if not self._per_second:
            return True
        now = time.monotonic() if now is None else now
        left, since = self._left.pop(who, (self._most, now))
        left = min(self._most, left + (now - since) * self._per_second)
        if len(self._left) >= _MOST_CALLERS:
            # Whoever has asked for nothing the longest, and so has the most left anyway.
            del self._left[next(iter(self._left))]
        self._left[who] = (max(left - 1, 0.0), now)
        return left >= 1


def _with_whole_names(scope: Scope) -> Scope:
    raw = scope.get("raw_path")
    if raw is None:
        return {**scope, "path": scope["path"].replace("%", "%25")}
    return {**scope, "path": whole_names(raw.decode("latin-1"))} if b"%" in raw else scope


def _too_large(most_bytes: int) -> Response:
    return _refused(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        "request_too_large",
        f"the request is larger than {most_bytes:,} bytes; send less at a time",
        headers={"Connection": "close"},
    )


def _too_slow() -> Response:
    return _refused(
        HTTPStatus.REQUEST_TIMEOUT,
        "request_timeout",
        "the body of the request took too long to arrive; send it again",
        headers={"Connection": "close"},
    )


def _refused(status: HTTPStatus, code: str, detail: str, *, headers: dict[str, str]) -> Response:
    return as_starlette(problem(status, code, detail, headers=headers))


def _identity(scope: Scope, headers: Mapping[bytes, bytes]) -> str | None:
    """Who is known to ask, by a token that was good a moment ago."""
    server: ServerState = scope["app"].state.server
    shown = headers.get(b"authorization")
    if shown is not None:
        return server.identity_of(bearer_token(shown.decode("latin-1")))
    cookies = cookie_parser(headers.get(b"cookie", b"").decode("latin-1"))
    return server.identity_of(cookies.get(SESSION_COOKIE, ""))


def _with_headers(send: Send) -> Send:
    async def safely(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            given = list(message["headers"])
            known = {name.lower() for name, _ in given}
            given += [(name, value) for name, value in _HEADERS if name not in known]
            if b"cache-control" not in known:
                given.append((b"cache-control", b"no-store"))
            message["headers"] = given
        await send(message)

    return safely
