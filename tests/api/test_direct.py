"""A request that is answered without a server is answered as a server would."""

import re
from types import SimpleNamespace
from typing import Any

import httpx
import orjson
import pytest

from mainspring.api import direct
from mainspring.api.auth import ServerState
from mainspring.api.routes import all_routers, routers_of
from mainspring.domain.access.roles import Role
from tests.support.api import Api, serving

REQUESTS: list[tuple[str, str, Any]] = [
    ("GET", "/jobs", None),
    ("GET", "/jobs?limit=1", None),
    ("GET", "/jobs?limit=0", None),
    ("GET", "/jobs?limit=x&state=done", None),
    ("GET", "/jobs?limt=1", None),
    ("GET", "/jobs?limit=1&limit=2", None),
    ("GET", "/jobs?state=queued&state=canceled", None),
    ("GET", "/jobs?state=queued&state=done", None),
    ("GET", "/jobs?state=queued,canceled", None),
    ("GET", "/jobs?status=queued&tag=a&tag=b&created_after=x&created_after=y", None),
    ("GET", "/jobs?cursor=xyz", None),
    ("GET", "/jobs?created_after=yesterday", None),
    ("GET", "/jobs?created_after=2026-01-31T12:00:00Z&state=", None),
    ("GET", "/jobs?tenant=nowhere", None),
    ("GET", "/jobs?tenant=%2A", None),
    ("GET", "/jobs/1", None),
    ("GET", "/jobs/0", None),
    ("GET", "/jobs/99999999999999999999", None),
    ("GET", "/jobs/1/attempts", None),
    ("GET", "/jobs/x", None),
    ("GET", "/nothing", None),
    ("GET", "/jobs/summary", None),
    ("POST", "/jobs", b"{"),
    ("POST", "/jobs", b""),
    ("POST", "/jobs", b"[]"),
    ("POST", "/jobs", {"definition": "nope"}),
    ("POST", "/jobs", {"definition": "work", "priority": 1001, "delay": -1}),
    ("POST", "/jobs", {"definition": "work", "prio": 1}),
    ("POST", "/jobs", {"definition": "work", "after": ["x"]}),
    ("POST", "/jobs/1/cancel", b""),
    ("POST", "/jobs/1/cancel", {"reason": 7}),
    ("POST", "/jobs/1/reject", b""),
    ("POST", "/jobs/bulk", {"action": "cancel"}),
    ("POST", "/jobs/bulk", {"action": "cancel", "all": True, "dry_run": True}),
    ("GET", "/definitions", None),
    ("GET", "/definitions/a%2Fb", None),
    ("GET", "/definitions/50%25", None),
    ("GET", "/definitions/work", None),
    ("PATCH", "/definitions/work", {"description": 7}),
    ("GET", "/limits", None),
    ("GET", "/limits/none", None),
    ("PUT", "/limits/shared", {"concurrency": 0}),
    ("DELETE", "/limits/none", None),
    ("GET", "/schedules", None),
    ("GET", "/schedules/none/preview?limit=0", None),
    ("POST", "/schedules", {"name": "x", "definition": "work", "cron": "x"}),
    ("GET", "/events", None),
    ("GET", "/triggers?event=", None),
    ("GET", "/flows?before=x", None),
    ("GET", "/approvals", None),
    ("GET", "/tenants", None),
    ("GET", "/people", None),
    ("GET", "/tokens?state=maybe", None),
    ("GET", "/workers", None),
    ("GET", "/queues", None),
    ("GET", "/audit?noun=token", None),
    ("GET", "/me", None),
]


async def ask_directly(
    api: Api, method: str, path: str, *, token: str, content: bytes
) -> tuple[int, Any]:
    state = SimpleNamespace(server=ServerState(api.database), public_url="http://mainspring.test")
    headers = {"authorization": f"Bearer {token}"}
    target = f"/api/v1{path}"
    answer = await direct.answer(direct.DirectRequest(method, target, headers, content, state))
    return answer.status_code, read(answer.body)


def read(body: bytes) -> Any:
    """What is said, less what changes from one look to the next."""
    facts = orjson.loads(body) if body else None
    text = orjson.dumps(facts).decode()
    return re.sub(r'"(last_used_at|last_seen_at)":"[^"]*"', r'"\1":"..."', text)


def encode(body: Any) -> bytes:
    return body if isinstance(body, bytes) else b"" if body is None else orjson.dumps(body)


@pytest.mark.parametrize("role", [Role.OPERATOR, Role.VIEWER])
async def test_both_ways_answer_the_same(database_url, connection, role):
    connection.execute("insert into mainspring.definitions (key, kind) values ('work', 'python')")
    connection.execute("select mainspring.enqueue('work', '{}')")
    async with serving(database_url) as api:
        token = api.tokens["*" if role is Role.OPERATOR else "default", role]
        for method, path, body in REQUESTS:
            content = encode(body)
            answer: httpx.Response = await api.ask(method, path, role=role, content=content)
            said = await ask_directly(api, method, path, token=token, content=content)

            assert said == (answer.status_code, read(answer.content)), (method, path, body)


async def test_a_token_that_is_unknown_is_refused(database_url):
    async with serving(database_url) as api:
        status, said = await ask_directly(api, "GET", "/jobs", token="msk_no", content=b"")

    assert status == 401
    assert "unauthenticated" in said


def test_every_path_is_found_by_its_first_segment():
    for router in all_routers():
        for route in router.routes:
            segment = route.path.split("/")[1]
            assert router in list(routers_of(segment)), route.path
