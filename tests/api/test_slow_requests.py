"""Requests that the database takes too long for: they end with an answer that says so."""

import psycopg
import pytest

from mainspring.db import request_pools
from mainspring.domain.access.roles import Role
from tests.support.api import Api

SLOW = """
create or replace function mainspring.parts_sought(asked jsonb)
returns text[] language plpgsql stable
as $$ begin perform pg_sleep(60); return '{}'; end $$
"""


async def test_a_list_with_a_slow_filter_is_stopped(
    api: Api, connection: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(request_pools, "SEARCH_SECONDS", 1)
    connection.execute(SLOW)
    await api.post("/jobs", {"definition": "work"}, role=Role.ADMIN)

    stopped = await api.get("/jobs?error=x", role=Role.VIEWER)
    others = await api.get("/jobs", role=Role.VIEWER)

    assert (stopped.status_code, stopped.json()["code"]) == (503, "statement_timeout")
    assert stopped.headers["retry-after"] == "1"
    assert others.status_code == 200


async def test_a_request_for_what_is_locked_is_refused(api: Api, connection: psycopg.Connection):
    job = await api.post("/jobs", {"definition": "work"}, role=Role.ADMIN)
    path = f"/jobs/{job.json()['id']}/cancel"

    with connection.transaction():
        connection.execute("select from mainspring.jobs for update")
        refused = await api.post(path, role=Role.ADMIN)

    assert (refused.status_code, refused.json()["code"]) == (503, "lock_timeout")
    assert refused.json()["detail"].startswith("another request, a worker or a transaction")
    assert (await api.post(path, role=Role.ADMIN)).status_code == 200
