"""A worker over HTTP as a test asks for it: one request after the other."""

from typing import Any

import httpx
import psycopg

from mainspring.domain.access.roles import Role
from tests.support.api import Api


def define_remote(connection: psycopg.Connection) -> None:
    """The definition of the jobs that these workers run, in the queue that they serve."""
    connection.execute(
        "insert into mainspring.definitions (key, kind, queue, max_attempts, backoff_base,"
        " backoff_jitter) values ('remote', 'python', 'far', 2, '0', '0')"
    )


async def told(api: Api, method: str, path: str, json: Any = None, **given: Any) -> httpx.Response:
    given.setdefault("role", Role.WORKER)
    return await api.ask(method, f"/work{path}", json=json or {}, **given)


async def register(api: Api, **given: Any) -> str:
    answer = await told(api, "POST", "/workers", {"name": "w", "queues": ["far"]}, **given)
    assert answer.status_code == 201, answer.text
    return f"/workers/{answer.json()['worker_id']}"


async def enqueue(api: Api, **given: Any) -> str:
    answer = await api.post("/jobs", {"definition": "remote", "payload": {"n": 1}, **given})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


async def claim(api: Api, worker: str, **given: Any) -> list[dict[str, Any]]:
    asked = {"definitions": ["remote"], "limit": 10, **given}
    answer = await told(api, "POST", f"{worker}/claim", asked)
    assert answer.status_code == 200, answer.text
    jobs: list[dict[str, Any]] = answer.json()["jobs"]
    return jobs


async def state_of(api: Api, job_id: str) -> str:
    return str((await api.get(f"/jobs/{job_id}")).json()["state"])
