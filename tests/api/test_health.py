"""`/health`, which needs no token."""

import httpx

from mainspring.api.app import create_app
from mainspring.db.database import Database
from mainspring.settings import load
from tests.support.api import Api


async def ask(database_url: str) -> httpx.Response:
    app = create_app(Database(load(database_url=database_url)), version="test")
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        answer = await client.get("/health")
    await app.state.server.database.aclose()
    return answer


async def test_it_answers_without_a_token(api: Api, database_url: str):
    answer = await ask(database_url)

    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


async def test_it_says_that_the_database_is_unavailable():
    answer = await ask("postgresql://127.0.0.1:1/none")

    assert (answer.status_code, answer.json()["code"]) == (503, "database_unreachable")
    assert answer.headers["Retry-After"]
