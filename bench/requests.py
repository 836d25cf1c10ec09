"""The barest HTTP client there is, so that it is not what is measured: kept connections, requests
that were put together beforehand, answers read by their length.
"""

import asyncio
import time
from collections.abc import Mapping
from typing import Final

_ANSWER_SECONDS: Final = 30.0


class Refused(Exception):
    """An answer that was not a success."""


def request(method: str, path: str, headers: Mapping[str, str], *, body: bytes = b"") -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


class Connection:
    """One connection that is kept."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self._writer = reader, writer

    @classmethod
    async def open(cls, port: int) -> "Connection":
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    async def ask(self, request: bytes) -> bytes:
        """The body of the answer."""
        head = await self.start(request)
        length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
        return await self.reader.readexactly(length)

    async def start(self, request: bytes) -> bytes:
        """The head of the answer, in small letters; the body is left to be read."""
        self._writer.write(request)
        async with asyncio.timeout(_ANSWER_SECONDS):
            head = (await self.reader.readuntil(b"\r\n\r\n")).lower()
        if not head.startswith(b"http/1.1 2"):
            raise Refused(head.decode(errors="replace"))
        return head

    def close(self) -> None:
        self._writer.close()


async def rate(port: int, request: bytes, *, connections: int, count: int) -> float:
    """Requests answered in a second, by so many connections at once."""
    opened = [await Connection.open(port) for _ in range(connections)]
    left = count

    async def work(connection: Connection) -> None:
        nonlocal left
        while left > 0:
            left -= 1
            await connection.ask(request)

    await asyncio.gather(*(connection.ask(request) for connection in opened))
    started_at = time.perf_counter()
    await asyncio.gather(*map(work, opened))
    seconds = time.perf_counter() - started_at
    for connection in opened:
        connection.close()
    return count / seconds


async def median_ms(port: int, request: bytes, *, count: int) -> float:
    """How long one request takes, one after the other."""
    connection = await Connection.open(port)
    times = []
    for _ in range(count):
        started_at = time.perf_counter()
        await connection.ask(request)
        times.append((time.perf_counter() - started_at) * 1000)
    connection.close()
    return sorted(times)[count // 2]
