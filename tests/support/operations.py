"""Bulk operations over the API, and what came of them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import psycopg

from mainspring import Mainspring
from mainspring.domain.access.roles import Role
from tests.support.api import Api
from tests.support.workers import working


@asynccontextmanager
async def operating(api: Api) -> AsyncIterator[None]:
    """A worker of the queue `mainspring`, which leaves the jobs of the tests alone."""
    async with (
        Mainspring(api.database.url) as app,
        working(app, queues=("mainspring",), concurrency=1),
    ):
        yield


async def bulk(api: Api, action: str, role: Role = Role.ADMIN, **said: Any) -> httpx.Response:
    around = {name: said.pop(name) for name in ("all", "dry_run", "reason") if name in said}
    return await api.post("/jobs/bulk", {"action": action, "filter": said, **around}, role=role)


async def enqueue(api: Api, count: int = 1, role: Role = Role.ADMIN, **given: Any) -> list[str]:
    body = {"definition": "work", "payloads": [{}] * count, "queue": "left alone", **given}
    return list((await api.post("/jobs/many", body, role=role)).json()["ids"])


def states(connection: psycopg.Connection, definition: str = "work") -> dict[str, int]:
    rows = connection.execute(
        "select state, count(*) from mainspring.job_status where definition = %s group by state",
        (definition,),
    )
    return dict(rows.fetchall())
