"""The API inside an app of someone else's."""

import re
from pathlib import Path

import httpx
import psycopg
from fastapi import FastAPI

from mainspring import Mainspring
from tests.support.schedules import gunicorn
from tests.support.waiting import await_until, wait_until


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


async def test_a_link_is_made_of_no_host_that_a_request_names(database_url: str):
    async with Mainspring(database_url) as jobs:
        await jobs.people.acreate("ann", "admin", tenant_id="default")
        new = await jobs.tokens.acreate("ci", "admin", tenant_id="default")
        transport = httpx.ASGITransport(app=jobs.api())
        headers = {"Authorization": f"Bearer {new.text}"}
        async with httpx.AsyncClient(transport=transport, headers=headers) as client:
            path = "/api/v1/people/ann/login"
            elsewhere = await client.post(f"http://own.test{path}")
            here = await client.post(f"http://localhost:9{path}")

    assert (elsewhere.status_code, elsewhere.json()["code"]) == (409, "public_url_missing")
    assert here.json()["url"].startswith("http://localhost:9/login?code=")


def test_four_processes_serve_it_and_stop_while_someone_watches(
    database_url: str, connection: psycopg.Connection, tmp_path: Path
):
    connection.execute("insert into mainspring.definitions (key, kind) values ('work', 'python')")
    with Mainspring(database_url) as jobs:
        new = jobs.tokens.create("ci", "admin", tenant_id="default")
    headers = {"Authorization": f"Bearer {new.text}"}
    with gunicorn(database_url, "tests.support.mounted:site", workers=4, folder=tmp_path) as site:
        base = f"{site.address}/mainspring/api/v1"

        made: list[tuple[str, str]] = []

        def others_answer() -> bool:
            """Each job comes over a connection of its own."""
            answer = httpx.post(f"{base}/jobs", json={"definition": "work"}, headers=headers)
            made.append((answer.json()["id"], answer.headers["x-process"]))
            return len({process for _, process in made}) > 1

        wait_until(others_answer, what="a second process answers")
        listed = httpx.get(f"{base}/jobs", params={"limit": 1000}, headers=headers).json()["items"]
        with httpx.stream("GET", f"{base}/jobs/{made[0][0]}/stream", headers=headers) as answer:
            lines = answer.iter_lines()
            told = next(line for line in lines if line.startswith("data:"))
            exit_code = site.stop(within=5)
            assert not any(lines)

    assert {job["id"] for job in listed} == {job_id for job_id, _ in made}
    assert '"state":"queued"' in told
    assert exit_code == 0
    assert not re.search(r"(?i)\[(error|warning|critical) *\]|traceback", site.log), site.log


def test_every_process_of_gunicorn_is_listed_as_a_server_and_a_scheduler(
    database_url: str, connection: psycopg.Connection, tmp_path: Path
):
    query = "select kind, pid from mainspring.processes order by kind"
    with gunicorn(database_url, "tests.support.mounted:site", workers=2, folder=tmp_path) as site:
        assert httpx.get(f"{site.address}/mainspring/readyz").status_code == 200
        wait_until(lambda: len(connection.execute(query).fetchall()) == 4, 20, "all are listed")
        found = connection.execute(query).fetchall()
        site.stop()

    assert [kind for kind, _ in found] == ["scheduler", "scheduler", "server", "server"]
    assert len({pid for _, pid in found}) == 2
    assert connection.execute(query).fetchall() == []


async def test_the_api_alone_is_listed_while_its_lifespan_runs(
    database_url: str, connection: psycopg.Connection
):
    query = "select kind from mainspring.processes"
    async with Mainspring(database_url) as jobs:
        api = jobs.api()
        async with api.router.lifespan_context(api):
            await await_until(lambda: connection.execute(query).fetchone(), what="it is listed")

    assert connection.execute(query).fetchone() is None
