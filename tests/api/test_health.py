"""`/health`, which needs no token."""

import httpx
import pytest

from mainspring.api.app import create_app
from mainspring.db.database import Database
from mainspring.settings import load
from tests.support.api import Api
from tests.support.waiting import await_until


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


async def ask_for(path: str, database_url: str, *, is_stopping: bool = False) -> httpx.Response:
    app = create_app(Database(load(database_url=database_url)), version="test")
    app.state.server.is_stopping = is_stopping
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        answer = await client.get(path)
    await app.state.server.health.close()
    await app.state.server.database.aclose()
    return answer


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
async def test_a_server_with_its_database_is_healthy_and_ready(database_url: str, path: str):
    async def is_yes() -> bool:
        answer = await ask_for(path, database_url)
        return (answer.status_code, answer.json()) == (200, {"status": "ok", "reasons": []})

    await await_until(is_yes, what=f"{path} answers 200")


async def test_a_server_without_its_database_is_healthy_and_not_ready():
    url = "postgresql://ada:secret@127.0.0.1:1/none"
    healthy, ready = await ask_for("/healthz", url), await ask_for("/readyz", url)

    assert healthy.status_code == 200
    assert (ready.status_code, ready.json()) == (
        503,
        {"status": "failing", "reasons": ["the database cannot be reached"]},
    )


async def test_a_server_that_stops_is_healthy_and_not_ready(database_url: str):
    healthy = await ask_for("/healthz", database_url, is_stopping=True)
    ready = await ask_for("/readyz", database_url, is_stopping=True)

    assert healthy.status_code == 200
    assert (ready.status_code, ready.json()["reasons"]) == (503, ["server: stopping"])
