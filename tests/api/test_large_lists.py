"""Lists of what may be large: pages of bounded size, which lead to all there is."""

import random
from typing import Any

import psycopg
import pytest

from mainspring.api.responses import PAGE_BYTES
from tests.support.api import Api

COUNT = 12
TEXT = random.Random(7).randbytes(400_000).hex()
OBJECT = "jsonb_build_object('text', %(text)s::text)"
ROWS = {
    "events": "insert into mainspring.events (tenant_id, name, context, handled_at)"
    f" select 'default', 'a', {OBJECT}, now() from generate_series(1, %(count)s)",
    "approvals": "with job as (insert into mainspring.jobs (definition, state, waits_for, payload)"
    f" select 'work', 'awaiting_approval', 'approval', {OBJECT} from generate_series(1, %(count)s)"
    " returning job_id) insert into mainspring.approvals (job_id, tenant_id, needed)"
    " select job_id, 'default', 1 from job",
    "schedules": "insert into mainspring.schedules (name, definition, cron, payload)"
    f" select 's' || n, 'work', '@yearly', {OBJECT} from generate_series(1, %(count)s) as n",
    "audit": "insert into mainspring.audit (tenant_id, actor, action, noun, subject, after)"
    f" select 'default', 'ann', 'edit', 'thing', n::text, {OBJECT}"
    " from generate_series(1, %(count)s) as n",
    "schedules/tick/history": "with tick as (insert into mainspring.schedules (name, definition,"
    " cron) values ('tick', 'work', '@yearly') returning schedule_id)"
    " insert into mainspring.slots (schedule_id, scheduled_for, outcome, details)"
    f" select schedule_id, now() - n * interval '1 hour', 'skipped', {OBJECT}"
    " from tick, generate_series(1, %(count)s) as n",
    "definitions": "insert into mainspring.definitions (key, kind, arg_schema)"
    f" select 'd' || n, 'python', {OBJECT} from generate_series(1, %(count)s) as n",
}


@pytest.mark.parametrize("noun", ROWS)
async def test_a_page_has_a_bounded_size(api: Api, connection: psycopg.Connection, noun: str):
    connection.execute(ROWS[noun].encode(), {"text": TEXT, "count": COUNT})
    seen: list[Any] = []
    pages, cursor = 0, ""

    while True:
        answer = await api.get(f"/{noun}?limit=1000{cursor}")
        page: dict[str, Any] = answer.json()
        assert answer.status_code == 200, answer.text
        assert len(answer.content) < PAGE_BYTES + 1000
        seen += [str(item) for item in page["items"] if TEXT in str(item)]
        pages += 1
        if page["next_cursor"] is None:
            break
        cursor = f"&cursor={page['next_cursor']}"

    assert len(seen) == len(set(seen)) == COUNT
    assert pages in (3, 4)


async def test_triggers_of_many_pages_are_all_listed(api: Api, connection: psycopg.Connection):
    connection.execute(
        "insert into mainspring.triggers (name, event, definition, payload)"
        " select 't' || n, 'a', 'work', jsonb_build_object('text', left(%(text)s, 60000))"
        " from generate_series(1, 90) as n",
        {"text": TEXT},
    )

    first = (await api.get("/triggers?limit=1000")).json()
    second = (await api.get(f"/triggers?limit=1000&cursor={first['next_cursor']}")).json()

    assert len(first["items"]) < 90
    assert len({item["name"] for item in first["items"] + second["items"]}) == 90
    assert second["next_cursor"] is None


async def test_of_many_attempts_the_latest_are_whole(api: Api, connection: psycopg.Connection):
    job_id = (await api.post("/jobs", {"definition": "work"})).json()["id"]
    connection.execute(
        "insert into mainspring.attempts (job_id, fence, worker_id, started_at, number, status,"
        " error) select %(job)s, n, 1, now(), n, 'failed', repeat('x', 5000)"
        " from generate_series(1, 1100) as n",
        {"job": job_id},
    )
    connection.execute(
        "insert into mainspring.outputs (job_id, fence, stdout_tail)"
        " select %(job)s, n, repeat('y', 60000) from generate_series(1, 1100) as n",
        {"job": job_id},
    )

    answer = await api.get(f"/jobs/{job_id}/attempts?limit=1000")

    items = answer.json()["items"]
    assert [item["number"] for item in items] == list(range(101, 1101))
    assert {len(item["error"]) for item in items[:-20]} == {200}
    assert {len(item["error"]) for item in items[-20:]} == {5000}
    assert {item["stdout_tail"] for item in items[:-20]} == {None}
    assert all(item["stdout_tail"] for item in items[-20:])
    assert len(answer.content) < PAGE_BYTES


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        ("x" * 1000, "x" * 1000),
        ("x" * 1001, "x" * 999 + "…"),
        ("x" * 20_000, "x" * 999 + "…"),
        ("exited with code 3\nTraceback", "exited with code 3"),
        ("x" * 1000 + "\nmore", "x" * 1000),
    ],
)
async def test_jobs_of_a_flow_have_the_first_line_of_their_error(
    api: Api, connection: psycopg.Connection, error: str, shown: str
):
    steps = [{"step": "a", "definition": "work"}]
    flow = (await api.post("/flows", {"name": "f", "steps": steps})).json()
    connection.execute("update mainspring.jobs set last_error = %s", (error,))

    (job,) = (await api.get(f"/flows/{flow['id']}/jobs")).json()["items"]

    assert job["last_error"] == shown


async def test_a_page_looks_at_so_many_jobs(api: Api, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("mainspring.store.jobs._MOST_SEEN", 4)
    await api.post("/jobs/many", {"definition": "work", "payloads": [{}] * 9})

    first = (await api.get("/jobs?error=none")).json()

    assert first["items"] == []
    assert first["next_cursor"] is not None
