"""A network between one worker and the database that can go silent: packets vanish, nothing closes.

As root it is a network namespace with two links that are taken down, and a name for the database
that leads over one of them; otherwise a proxy that stops passing on what it gets. In both the far
side of a link is a proxy from TCP to the server's socket.
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
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

_NAMESPACE = "mainspring-chaos"
_NAME = "database.chaos.test"
# `ip netns exec` shows this file as /etc/hosts.
_HOSTS = Path("/etc/netns") / _NAMESPACE / "hosts"


@dataclass(frozen=True, slots=True)
class Link:
    near: str
    far: str
    near_address: str
    far_address: str


_LINKS = (
    Link("msc-near-0", "msc-far-0", "10.213.77.1", "10.213.77.2"),
    Link("msc-near-1", "msc-far-1", "10.213.77.5", "10.213.77.6"),
)


@dataclass
class Proxy:
    """From TCP to a PostgreSQL socket."""

    target: str
    listener: socket.socket
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
    proxies: list[Proxy]
    has_namespace: bool
    link: int = 0

    @classmethod
    @contextmanager
    def opened(cls, url: str) -> Iterator["Network"]:
        is_root = os.geteuid() == 0 and shutil.which("ip") is not None
        has_namespace = is_root and _make_namespace()
        addresses = [each.near_address for each in _LINKS] if has_namespace else ["127.0.0.1"]
        proxies = _proxies(_socket_of(url), addresses)
        host = _NAME if has_namespace else addresses[0]
        far = f"postgresql://{urlsplit(url).username}@{host}:{proxies[0].port}{urlsplit(url).path}"
        prefix = ["ip", "netns", "exec", _NAMESPACE] if has_namespace else []
        try:
            yield cls(far, prefix, proxies, has_namespace)
        finally:
            for proxy in proxies:
                proxy.is_open.set()
                proxy.listener.close()
            if has_namespace:
                _remove_namespace()

    def silence(self) -> None:
        if self.has_namespace:
            _ip("link", "set", _LINKS[self.link].near, "down")
        else:
            self.proxies[0].is_open.clear()

    def restore(self) -> None:
        if self.has_namespace:
            for link in _LINKS:
                _ip("link", "set", link.near, "up")
        else:
            self.proxies[0].is_open.set()

    def move(self) -> None:
        """The name leads to the other address and the old one is silent until `restore`; without
        a namespace there is one address."""
        if self.has_namespace:
            self.silence()
            self.link = 1 - self.link
            _point_name_at(_LINKS[self.link])


def _proxies(target: str, addresses: list[str]) -> list[Proxy]:
    """On one port of each address."""
    port, proxies = 0, []
    for address in addresses:
        proxies.append(Proxy(target, socket.create_server((address, port))))
        proxies[-1].start()
        port = proxies[0].port
    return proxies


def _make_namespace() -> bool:
    """Whether this machine lets us."""
    _remove_namespace()
    try:
        _HOSTS.parent.mkdir(parents=True, exist_ok=True)
        _point_name_at(_LINKS[0])
        _ip("netns", "add", _NAMESPACE)
        for link in _LINKS:
            _add(link)
        _ip("-n", _NAMESPACE, "link", "set", "lo", "up")
    except (subprocess.CalledProcessError, OSError):
        _remove_namespace()
        return False
    return True


def _add(link: Link) -> None:
    _ip("link", "add", link.near, "type", "veth", "peer", "name", link.far, "netns", _NAMESPACE)
    _ip("address", "add", f"{link.near_address}/30", "dev", link.near)
    _ip("link", "set", link.near, "up")
    _ip("-n", _NAMESPACE, "address", "add", f"{link.far_address}/30", "dev", link.far)
    _ip("-n", _NAMESPACE, "link", "set", link.far, "up")


def _remove_namespace() -> None:
    with suppress(subprocess.CalledProcessError):
        _ip("netns", "delete", _NAMESPACE)
    shutil.rmtree(_HOSTS.parent, ignore_errors=True)


def _point_name_at(link: Link) -> None:
    """Written in place: the namespace shows this file, not this path."""
    _HOSTS.write_text(f"127.0.0.1 localhost\n{link.near_address} {_NAME}\n")


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


def _socket_of(url: str) -> str:
    query = parse_qs(urlsplit(url).query)
    return f"{query['host'][0]}/.s.PGSQL.{query.get('port', ['5432'])[0]}"
