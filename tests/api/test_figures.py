"""GET /figures."""

import psycopg
import pytest

from mainspring.domain.access.roles import Role
from mainspring.domain.types import JobState
from mainspring.runtime.maintenance import figures as looks
from tests.support.api import Api
from tests.support.rows import insert_job


@pytest.fixture
async def counted(
    api: Api, connection: psycopg.Connection, aconnection: psycopg.AsyncConnection
) -> Api:
    """Two jobs of `work` and one of `guarded` are queued, and one of another tenant."""
    await api.post("/tenants", {"name": "acme"})
    for definition, tenant in (
        ("work", "default"),
        ("work", "default"),
        ("guarded", "default"),
        ("work", "acme"),
    ):
        insert_job(connection, JobState.QUEUED, definition=definition, tenant_id=tenant)
    assert await looks.look(aconnection) == 0
    return api


async def test_figures_have_a_series_for_what_was_asked(counted: Api):
    answer = await counted.get("/figures?by=definition&step=1h")

    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert found["step"] == "1h"
    assert found["seen_at"] is not None
    series = {each["definition"]: each for each in found["series"]}
    assert {name: each["total"]["enqueued"] for name, each in series.items()} == {
        "work": 2,
        "guarded": 1,
    }
    assert [point["enqueued"] for point in series["work"]["points"]] == [2]
    assert series["work"]["total"]["waited"]["p95"] is None


async def test_figures_are_those_of_all_without_a_key_and_can_be_filtered(counted: Api):
    (everything,) = (await counted.get("/figures?points=false")).json()["series"]
    (some,) = (await counted.get("/figures?definition=guarded")).json()["series"]

    assert (everything["total"]["enqueued"], everything["points"]) == (3, [])
    assert some["total"]["enqueued"] == 1


async def test_a_tenant_sees_its_own_figures_and_an_operator_all(counted: Api):
    own = await counted.get("/figures?by=tenant", role=Role.VIEWER)
    foreign = await counted.get("/figures?by=tenant&tenant=acme", role=Role.VIEWER)
    everyone = await counted.get("/figures?by=tenant&tenant=*")

    assert [each["tenant"] for each in own.json()["series"]] == ["default"]
    assert foreign.status_code == 404
    assert [each["tenant"] for each in everyone.json()["series"]] == ["default", "acme"]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("step=7m", "step must be one of 1m, 5m, 15m, 1h, 6h, 1d, not '7m'"),
        ("from=2026-02-01T00:00:00Z&to=2026-01-01T00:00:00Z", "from must be before to"),
        ("from=2025-01-01T00:00:00Z&to=2026-01-01T00:00:00Z&step=1h", "more than 1,500 points"),
        ("by=colour", "by"),
        ("from=yesterday", "from"),
        ("colour=red", "colour"),
    ],
)
async def test_what_has_no_figures_is_refused_by_name(api: Api, query: str, said: str):
    answer = await api.get(f"/figures?{query}")

    assert answer.status_code == 422
    assert said in answer.text


async def test_a_member_may_not_read_them(api: Api):
    answer = await api.get("/figures", role=Role.MEMBER)

    assert answer.status_code == 403
    assert "requires the role admin or operator or viewer" in answer.text


async def test_before_the_first_look_there_are_none(api: Api):
    found = (await api.get("/figures")).json()

    assert (found["seen_at"], found["series"], found["more"]) == (None, [], 0)
