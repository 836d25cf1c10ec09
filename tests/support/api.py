"""The REST API on a database of the test, and a caller for every role."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
from fastapi import FastAPI

from mainspring import settings
from mainspring.api.app import create_app
from mainspring.db.database import Database
from mainspring.domain.access.roles import Role
from mainspring.services import people, tenants, tokens

BASE = "http://mainspring.test"


@dataclass
class Api:
    """The application, its database, and a token for each role by tenant."""

    app: FastAPI
    database: Database
    client: httpx.AsyncClient
    tokens: dict[tuple[str, Role], str]

    async def ask(
        self,
        method: str,
        path: str,
        *,
        role: Role | str = Role.OPERATOR,
        tenant: str = "default",
        headers: Mapping[str, str] | None = None,
        **given: Any,
    ) -> httpx.Response:
        """A request of the role in the tenant; paths are those after /api/v1."""
        known = Role(role)
        text = self.tokens["*" if known is Role.OPERATOR else tenant, known]
        return await self.client.request(
            method,
            f"/api/v1{path}",
            headers={"Authorization": f"Bearer {text}", **(headers or {})},
            **given,
        )

    async def get(self, path: str, **given: Any) -> httpx.Response:
        return await self.ask("GET", path, **given)

    async def post(self, path: str, json: Any = None, **given: Any) -> httpx.Response:
        return await self.ask("POST", path, json=json, **given)


@asynccontextmanager
async def serving(database_url: str, **flags: Any) -> AsyncIterator[Api]:
    """An API with the tenants default and acme, and a token for every role in both."""
    known = {"public_url": BASE, **flags}
    database = Database(settings.load(database_url=database_url, **known))
    app = create_app(database, version="test")
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
    try:
        await tokens.open_to_app(database)
        await tenants.create(database, "acme")
        shown = await _tokens(database)
        async with httpx.AsyncClient(transport=transport, base_url=BASE) as client:
            yield Api(app, database, client, shown)
    finally:
        await database.aclose()


async def _tokens(database: Database) -> dict[tuple[str, Role], str]:
    shown: dict[tuple[str, Role], str] = {}
    for tenant in ("default", "acme"):
        for role in Role:
            if role is Role.OPERATOR:
                continue
            new = await tokens.create(database, f"{role}-{tenant}", role, tenant_id=tenant)
            shown[tenant, role] = new.text
    shown["*", Role.OPERATOR] = (await tokens.create(database, "ops", "operator")).text
    await people.create(database, "ann", "admin", tenant_id="default")
    return shown
