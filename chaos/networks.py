"""A network between one worker and the database that can go silent: packets vanish, nothing closes.

As root it is a network namespace with a link that is taken down; otherwise a proxy that stops
passing on what it gets. In both the far side of the link is a proxy from TCP to the server's
socket.
"""

import os
import select
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlsplit

_NAMESPACE = "mainspring-chaos"
_NEAR, _FAR = "msc-near", "msc-far"
_NEAR_ADDRESS, _FAR_ADDRESS = "10.213.77.1", "10.213.77.2"


@dataclass
class Proxy:
    """From TCP to a PostgreSQL socket."""

    target: str
    listener: socket.socket
    is_silent: threading.Event = field(default_factory=threading.Event)
    is_open: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        self.is_open.set()
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def port(self) -> int:
        return int(self.listener.getsockname()[1])

    def _accept(self) -> None:
        with suppress(OSError):  # The listener is closed at the end.
            while True:
                client, _ = self.listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as server:
            try:
                server.connect(self.target)
                while self._pass_on(client, server):
                    pass
            except OSError:
                return  # One side has gone, and both are closed.

    def _pass_on(self, client: socket.socket, server: socket.socket) -> bool:
        ready, _, _ = select.select([client, server], [], [], 1)
        for side in ready:
            data = side.recv(65536)
            self.is_open.wait()
            if not data:
                return False
            (server if side is client else client).sendall(data)
        return True


@dataclass
class Network:
    """How the far worker reaches the database, and how that goes silent."""

    url: str
    prefix: list[str]
    proxy: Proxy
    has_namespace: bool

    @classmethod
    @contextmanager
    def opened(cls, url: str) -> Iterator["Network"]:
        has_namespace = os.geteuid() == 0 and shutil.which("ip") is not None
        if has_namespace:
            has_namespace = _make_namespace()
        address = _NEAR_ADDRESS if has_namespace else "127.0.0.1"
        listener = socket.create_server((address, 0))
        proxy = Proxy(_socket_of(url), listener)
        proxy.start()
        far = f"postgresql://{urlsplit(url).username}@{address}:{proxy.port}{urlsplit(url).path}"
        prefix = ["ip", "netns", "exec", _NAMESPACE] if has_namespace else []
        try:
            yield cls(far, prefix, proxy, has_namespace)
        finally:
            proxy.is_open.set()
            listener.close()
            if has_namespace:
                _ip("netns", "delete", _NAMESPACE)

    def silence(self) -> None:
        if self.has_namespace:
            _ip("link", "set", _NEAR, "down")
        else:
            self.proxy.is_open.clear()

    def restore(self) -> None:
        if self.has_namespace:
            _ip("link", "set", _NEAR, "up")
        else:
            self.proxy.is_open.set()


def _make_namespace() -> bool:
    """Whether this machine lets us."""
    with suppress(subprocess.CalledProcessError):
        _ip("netns", "delete", _NAMESPACE)
    try:
        _ip("netns", "add", _NAMESPACE)
        _ip("link", "add", _NEAR, "type", "veth", "peer", "name", _FAR, "netns", _NAMESPACE)
        _ip("address", "add", f"{_NEAR_ADDRESS}/30", "dev", _NEAR)
        _ip("link", "set", _NEAR, "up")
        _ip("-n", _NAMESPACE, "address", "add", f"{_FAR_ADDRESS}/30", "dev", _FAR)
        _ip("-n", _NAMESPACE, "link", "set", _FAR, "up")
        _ip("-n", _NAMESPACE, "link", "set", "lo", "up")
    except subprocess.CalledProcessError:
        return False
    return True


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


def _socket_of(url: str) -> str:
    query = parse_qs(urlsplit(url).query)
    return f"{query['host'][0]}/.s.PGSQL.{query.get('port', ['5432'])[0]}"
