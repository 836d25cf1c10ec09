"""Lists of jobs: short rows whatever the jobs hold, and pages of bounded size."""

import random
from typing import Any

import psycopg
import pytest

from mainspring.api.responses import PAGE_BYTES
from mainspring.db.statements import load
from tests.support.api import Api

LARGE = 1_000_000
BODIES = {"payload", "result", "checkpoint"}


def large_jobs(connection: psycopg.Connection, count: int) -> None:
    """Finished jobs with a payload and a result of a megabyte each, which do not compress."""
    text = random.Random(7).randbytes(LARGE // 2).hex()
    connection.execute("alter table mainspring.jobs_history disable trigger user")
    connection.execute(
        "insert into mainspring.jobs_history (job_id, definition, state, finished_at, payload,"
        " result, last_error, progress) select n, 'work', 'failed', now(),"
        " jsonb_build_object('text', %(text)s::text), to_jsonb(%(text)s::text), repeat('x', 5000),"
        " jsonb_build_object('current', 1, 'data', %(text)s::text)"
        " from generate_series(1, %(count)s) as n",
        {"text": text, "count": count},
    )


@pytest.mark.parametrize("query", ["", "&state=failed", "&tenant=*", "&tenant=*&state=failed"])
async def test_a_list_of_large_jobs_is_short(api: Api, connection: psycopg.Connection, query: str):
    large_jobs(connection, 3)

    answer = await api.get(f"/jobs?limit=1000{query}")

    items = answer.json()["items"]
    assert len(items) == 3
    assert not BODIES & set(items[0])
    assert items[0]["last_error"] == "x" * 999 + "…"
    assert items[0]["progress"] == {"current": 1.0, "total": None, "message": None, "data": None}
    assert len(answer.content) < 7_000


async def test_a_job_is_whole(api: Api, connection: psycopg.Connection):
    large_jobs(connection, 1)

    job = (await api.get("/jobs/1")).json()

    assert set(job) > BODIES
    assert len(job["payload"]["text"]) == LARGE
    assert len(job["last_error"]) == 5000


async def test_a_page_with_payloads_has_a_bounded_size(api: Api, connection: psycopg.Connection):
    large_jobs(connection, 10)
    seen: list[str] = []
    cursor = ""
    pages = 0

    while True:
        answer = await api.get(f"/jobs?limit=1000&include=payload{cursor}")
        page: dict[str, Any] = answer.json()
        assert len(answer.content) < PAGE_BYTES + 1000
        assert all("payload" in item and "result" not in item for item in page["items"])
        seen += [item["id"] for item in page["items"]]
        pages += 1
        if page["next_cursor"] is None:
            break
        cursor = f"&cursor={page['next_cursor']}"

    assert seen == [str(number) for number in range(10, 0, -1)]
    assert pages == 3


async def test_what_can_be_included_is_known(api: Api):
    answer = await api.get("/jobs?include=checkpoint")

    assert answer.status_code == 422
    assert "include" in answer.json()["detail"]


LISTED = {
    "tenant_id": "default",
    "before": None,
    "state": "failed",
    "created_by": "ann",
    "schedule_id": 1,
    "job_ids": [1, 2],
    "filter": "{}",
    "most": 20_000,
    "limit": 50,
}


@pytest.mark.parametrize(
    "name", [name for name in load("jobs") if name.startswith("list_") and "edge" not in name]
)
def test_a_list_does_not_read_payloads_or_results(connection: psycopg.Connection, name: str):
    statement = load("jobs")[name].sql

    plan = connection.execute(f"explain (verbose) {statement}", LISTED).fetchall()

    text = "\n".join(line for (line,) in plan)
    outputs = [line for line in text.splitlines() if "Output:" in line]
    assert outputs
    assert not [line for line in outputs if "redacted(" in line or "result" in line], text
