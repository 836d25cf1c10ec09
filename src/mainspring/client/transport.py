"""The transport of the blocking client, on http.client: httpx alone takes longer to import than a
short command may run."""

import os
from base64 import b64encode
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from select import select
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

from mainspring.client.requests import Message, Response, TransportError, is_success


class HttpTransport:
    """HTTP to one server; connections are kept open and reused."""

    def __init__(self, url: str) -> None:
        self._server = urlsplit(url)
        self._idle: deque[HTTPConnection] = deque()

    def send(self, message: Message) -> Response:
        connection = self._take(message.timeout)
        try:
            answer = self._exchange(connection, message)
            response = _response(answer)
        except (OSError, HTTPException) as error:
            connection.close()
            raise TransportError(str(error) or type(error).__name__) from error
        if answer.will_close:
            connection.close()
        else:
            self._idle.append(connection)
        return response

    @contextmanager
    def stream(self, message: Message) -> Iterator["HttpStream"]:
        # A stream keeps its connection until the end, so it has one of its own.
        with closing(self._connect(message.timeout)) as connection:
            try:
                yield HttpStream(self._exchange(connection, message))
            except (OSError, HTTPException) as error:
                raise TransportError(str(error) or type(error).__name__) from error

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()

    def _exchange(self, connection: HTTPConnection, message: Message) -> HTTPResponse:
        target = f"{self._server.path.rstrip('/')}{message.target}"
        headers = dict(message.headers)
        if isinstance(connection, _ProxyConnection):
            target = f"{self._server.scheme}://{self._server.netloc}{target}"
            headers |= connection.headers
        connection.request(message.method, target, message.content, headers)
        return connection.getresponse()

    def _take(self, timeout: float) -> HTTPConnection:
        """An idle connection that the server has not closed, or a new one."""
        while self._idle:
            try:
                connection = self._idle.pop()
            except IndexError:
                break
            if connection.sock is not None and not select([connection.sock], [], [], 0)[0]:
                connection.sock.settimeout(timeout)
                return connection
            connection.close()
        return self._connect(timeout)

    def _connect(self, timeout: float) -> HTTPConnection:
        server = self._server
        if server.scheme not in ("http", "https") or not server.hostname:
            raise TransportError("the address must be a URL such as https://jobs.example.com")
        try:
            proxy = _proxy_of(server)
            if proxy is not None:
                return _through(proxy, server, timeout)
            return _connection(server, timeout)
        except (OSError, ValueError) as error:
            raise TransportError(str(error)) from error


class _ProxyConnection(HTTPConnection):
    """A connection to a proxy, which wants the whole address and its own login in each request."""

    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class HttpStream:
    """An answer that is read line by line."""

    answer: HTTPResponse

    @property
    def is_success(self) -> bool:
        return is_success(self.answer.status)

    def read(self) -> Response:
        return _response(self.answer)

    def lines(self) -> Iterator[str]:
        while line := self.answer.readline():
            yield line.decode().rstrip("\r\n")


def _response(answer: HTTPResponse) -> Response:
    headers = {name.lower(): value for name, value in answer.getheaders()}
    return Response(answer.status, headers, answer.read())


def _connection(server: SplitResult, timeout: float) -> HTTPConnection:
    host = server.hostname or ""
    if server.scheme == "https":
        return HTTPSConnection(host, server.port, timeout=timeout, context=_tls())
    return HTTPConnection(host, server.port, timeout=timeout)


def _tls() -> Any:
    """As httpx has it: the certificates that the environment names, else those of certifi."""
    import ssl  # noqa: PLC0415 - only for https

    import certifi  # noqa: PLC0415

    if os.environ.get("SSL_CERT_FILE") or os.environ.get("SSL_CERT_DIR"):
        return ssl.create_default_context()
    return ssl.create_default_context(cafile=certifi.where())


def _proxy_of(server: SplitResult) -> SplitResult | None:
    """The proxy that the environment names for this server."""
    if not any(name.lower().endswith("_proxy") for name in os.environ):
        return None
    from urllib import request  # noqa: PLC0415 - slow to import

    proxies = request.getproxies_environment()
    url = proxies.get(server.scheme) or proxies.get("all")
    if not url or request.proxy_bypass(server.netloc.rpartition("@")[2]):
        return None
    return urlsplit(url if "://" in url else f"http://{url}")


def _through(proxy: SplitResult, server: SplitResult, timeout: float) -> HTTPConnection:
    """A connection to the proxy: a tunnel for https, requests with the whole address for http."""
    login = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}" if proxy.username else ""
    headers = {}
    if login:
        headers["Proxy-Authorization"] = f"Basic {b64encode(login.encode()).decode()}"
    host = proxy.hostname or ""
    if server.scheme == "https":
        tunnel = HTTPSConnection(host, proxy.port, timeout=timeout, context=_tls())
        tunnel.set_tunnel(server.hostname or "", server.port, headers)
        return tunnel
    connection = _ProxyConnection(host, proxy.port, timeout=timeout)
    connection.headers = headers
    return connection
