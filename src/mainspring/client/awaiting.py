"""The async client, written by `tools/write_async_client.py` from the blocking one."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any, Self, TypeVar

import httpx
from pydantic import BaseModel

from mainspring.api.models.audit import AuditModel
from mainspring.api.models.base import Page
from mainspring.api.models.callers import CallerModel
from mainspring.api.models.queues import QueueModel, Queues
from mainspring.api.models.workers import WorkerModel, Workers
from mainspring.client import asking
from mainspring.client.asking import TRIES, Ask, EventReader, given
from mainspring.client.awaiting_access_nouns import People, Tenants, Tokens
from mainspring.client.awaiting_nouns import (
    Approvals,
    Definitions,
    Events,
    Flows,
    Jobs,
    Limits,
    Schedules,
    Triggers,
)

Model = TypeVar("Model", bound=BaseModel)


class AsyncClient:
    """The REST API of one server. `tenant` is whose things an operator means."""

    def __init__(
        self,
        url: str,
        token: str,
        *,
        tenant: str | None = None,
        timeout: float = 30.0,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.url, self._tenant, self._timeout = url.rstrip("/"), tenant, timeout
        self._http = httpx.AsyncClient(
            base_url=self.url,
            headers={"Authorization": f"Bearer {token}"},
            timeout=timeout,
            transport=transport,
            # Reading the world's certificates takes longer than a small request.
            verify=self.url.startswith("https:"),
        )
        self.jobs = Jobs(self)
        self.definitions = Definitions(self)
        self.limits = Limits(self)
        self.schedules = Schedules(self)
        self.events = Events(self)
        self.triggers = Triggers(self)
        self.flows = Flows(self)
        self.approvals = Approvals(self)
        self.tenants = Tenants(self)
        self.people = People(self)
        self.tokens = Tokens(self)

    async def me(self) -> CallerModel:
        """Who the token is, and what it may do."""
        return await self.ask(Ask("GET", "/me"), CallerModel)

    async def workers(self) -> list[WorkerModel]:
        return (await self.ask(Ask("GET", "/workers"), Workers)).items

    async def queues(self) -> list[QueueModel]:
        return (await self.ask(Ask("GET", "/queues"), Queues)).items

    def audit(
        self,
        *,
        actor: str | None = None,
        noun: str | None = None,
        subject: str | None = None,
        limit: int = 50,
    ) -> AsyncIterator[AuditModel]:
        """What was changed, the newest first; `limit` is the size of a page."""
        ask = Ask("GET", "/audit", given(actor=actor, noun=noun, subject=subject, limit=limit))
        return self.pages(ask, Page[AuditModel])

    async def ask(self, ask: Ask, model: type[Model]) -> Model:
        """What the server answers; raises ApiError for what it refuses."""
        return asking.read(await self.send(ask), model)

    async def do(self, ask: Ask) -> None:
        """The same where there is nothing to answer."""
        asking.ensure_ok(await self.send(ask))

    async def send(self, ask: Ask) -> httpx.Response:
        """The answer, after some tries where trying again is safe."""
        arguments = self._arguments(ask)
        for number in range(TRIES):
            response, trouble = None, None
            try:
                response = await self._http.request(ask.method, ask.url, **arguments)
            except httpx.TransportError as error:
                trouble = error
            pause = asking.pause_of(response, number) if ask.may_repeat else None
            if pause is not None and number + 1 < TRIES:
                await asyncio.sleep(pause)
            elif response is not None:
                return response
            else:
                break
        raise asking.unreachable(self.url, trouble or OSError("no answer"))

    async def pages(self, ask: Ask, model: type[Page[Model]]) -> AsyncIterator[Model]:
        """Every item of a list, page by page as they are asked for."""
        cursor = None
        while True:
            params = {**ask.params, **given(cursor=cursor)}
            page = await self.ask(Ask(ask.method, ask.path, params), model)
            for item in page.items:
                yield item
            cursor = page.next_cursor
            if cursor is None:
                return

    async def listen(
        self, path: str, params: Mapping[str, Any] | None = None
    ) -> AsyncIterator[tuple[str, bytes]]:
        """The events of a stream; one that breaks off is taken up again."""
        reader, failures = EventReader(), 0
        while True:
            headers = given(**{"Last-Event-ID": reader.last_id})
            arguments = self._arguments(Ask("GET", path, params or {}, headers=headers))
            try:
                async with self._http.stream(
                    "GET", f"{asking.PREFIX}{path}", **arguments
                ) as answer:
                    if not answer.is_success:
                        await answer.aread()
                        asking.ensure_ok(answer)
                    async for line in answer.aiter_lines():
                        for event in reader.feed(line):
                            failures = 0
                            yield event
                            if event[0] == "end":
                                return
            except httpx.TransportError as error:
                failures += 1
                if failures > TRIES:
                    raise asking.unreachable(self.url, error) from error
            await asyncio.sleep(asking.pause_of(None, failures) or 0)

    async def close(self) -> None:
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _arguments(self, ask: Ask) -> dict[str, Any]:
        arguments = ask.arguments()
        if ask.patience:
            arguments["timeout"] = self._timeout + ask.patience
        if self._tenant is not None:
            arguments["params"] = {"tenant": self._tenant, **arguments["params"]}
        return arguments
