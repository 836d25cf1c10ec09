"""The transport of the async client, on httpx."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from mainspring.client.requests import Message, Response, TransportError


class AsyncHttpTransport:
    """HTTP to one server; connections are kept open and reused."""

    def __init__(self, url: str) -> None:
        # Reading all certificates takes longer than a small request.
        self._http = httpx.AsyncClient(base_url=url, verify=url.startswith("https:"))

    async def send(self, message: Message) -> Response:
        try:
            answer = await self._http.request(message.method, message.target, **_options(message))
        except httpx.TransportError as error:
            raise TransportError(str(error) or type(error).__name__) from error
        return _response(answer)

    @asynccontextmanager
    async def stream(self, message: Message) -> AsyncIterator["AsyncHttpStream"]:
        options = _options(message)
        try:
            async with self._http.stream(message.method, message.target, **options) as answer:
                yield AsyncHttpStream(answer)
        except httpx.TransportError as error:
            raise TransportError(str(error) or type(error).__name__) from error

    async def close(self) -> None:
        await self._http.aclose()


@dataclass(frozen=True, slots=True)
class AsyncHttpStream:
    """An answer that is read line by line."""

    answer: httpx.Response

    @property
    def is_success(self) -> bool:
        return self.answer.is_success

    async def read(self) -> Response:
        await self.answer.aread()
        return _response(self.answer)

    def lines(self) -> AsyncIterator[str]:
        return self.answer.aiter_lines()


def _options(message: Message) -> dict[str, Any]:
    return {
        "headers": dict(message.headers),
        "content": message.content,
        "timeout": message.timeout,
    }


def _response(answer: httpx.Response) -> Response:
    headers = {name.lower(): value for name, value in answer.headers.items()}
    return Response(answer.status_code, headers, answer.content)
