"""Asking long-running processes whether they are healthy and ready."""

import asyncio
import socket
import time
from typing import Any

import httpx

from tests.support.waiting import wait_until


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
    return port


class Probe:
    """What a process answers on its health port, or a server on its own."""

    def __init__(self, port: int) -> None:
        self.port = port

    def status(self, path: str) -> int | None:
        """None while nobody answers."""
        try:
            return self.ask(path).status_code
        except httpx.TransportError:
            return None

    def ask(self, path: str) -> httpx.Response:
        return httpx.get(f"http://127.0.0.1:{self.port}/{path}", timeout=5)

    def reasons(self, path: str) -> list[str]:
        found: Any = self.ask(path).json()
        reasons: list[str] = found["reasons"]
        return reasons

    def becomes(self, path: str, status: int, within: float = 30) -> None:
        wait_until(lambda: self.status(path) == status, within, f"{path} answers {status}")

    # Where the test's own event loop has something to do meanwhile

    async def abecomes(self, path: str, status: int, within: float = 30) -> None:
        await asyncio.to_thread(self.becomes, path, status, within)

    async def astatuses(self, path: str, *, seconds: float) -> set[int | None]:
        """All that it answers in so many seconds."""
        until, seen = time.monotonic() + seconds, set[int | None]()
        while time.monotonic() < until:
            seen.add(await asyncio.to_thread(self.status, path))
        return seen
