"""The API inside an app of someone else's."""

import httpx
import psycopg
from fastapi import FastAPI

from mainspring import Mainspring


async def test_the_api_works_where_it_is_mounted(database_url: str, connection: psycopg.Connection):
    connection.execute("insert into mainspring.definitions (key, kind) values ('work', 'python')")
    async with Mainspring(database_url) as jobs:
        new = await jobs.tokens.acreate("ci", "admin", tenant_id="default")
        app = FastAPI()
        app.mount("/mainspring", jobs.api())
        transport = httpx.ASGITransport(app=app)
        headers = {"Authorization": f"Bearer {new.text}"}
        async with httpx.AsyncClient(
            transport=transport, base_url="http://own.test/mainspring", headers=headers
        ) as client:
            made = await client.post("/api/v1/jobs", json={"definition": "work"})
            wrong = await client.put("/api/v1/jobs")
            front = await client.get("/")

    assert made.status_code == 201
    assert made.headers["location"] == f"/mainspring/api/v1/jobs/{made.json()['id']}"
    assert wrong.headers["allow"] == "GET, POST"
    assert 'href="/mainspring/api/v1/openapi.json"' in front.text
