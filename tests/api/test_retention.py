"""/retention: policies of an admin's own tenant, and of all tenants for operators."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from mainspring import JobState
from mainspring.domain.access.roles import Role
from tests.support.api import Api, serving
from tests.support.rows import insert_job

DAY = 86_400.0
YEAR = 365 * DAY


async def put(api: Api, role: Role = Role.ADMIN, **body: Any) -> Any:
    return await api.ask("PUT", "/retention", role=role, json=body)


async def policies(api: Api, **given: Any) -> list[tuple[Any, ...]]:
    items = (await api.get("/retention", **given)).json()["items"]
    return [
        (it["kind"], it["tenant"], it["state"], it["keep"] / DAY, it["is_default"]) for it in items
    ]


async def test_everyone_begins_with_the_defaults(api: Api):
    assert await policies(api) == [
        ("audit", None, None, 730, False),
        ("events", None, None, 30, True),
        ("jobs", None, None, 30, False),
        ("jobs", None, "succeeded", 7, False),
        ("slots", None, None, 90, True),
    ]


async def test_a_list_has_pages(api: Api):
    first = (await api.get("/retention", params={"limit": 2})).json()
    rest = (await api.get("/retention", params={"cursor": first["next_cursor"]})).json()

    assert [it["kind"] for it in first["items"]] == ["audit", "events"]
    assert [it["kind"] for it in rest["items"]] == ["jobs", "jobs", "slots"]


async def test_an_admin_saves_policies_of_its_own_tenant_only(api: Api):
    saved = await put(api, kind="jobs", state="failed", keep=5 * DAY)

    assert saved.json() == {
        "kind": "jobs",
        "tenant": "default",
        "state": "failed",
        "keep": 5 * DAY,
        "is_default": False,
    }
    own = ("jobs", "default", "failed", 5, False)
    assert own in await policies(api, role="admin")
    assert own in await policies(api)
    assert own not in await policies(api, role="admin", tenant="acme")
    strange = await api.ask(
        "PUT",
        "/retention",
        role="admin",
        params={"tenant": "acme"},
        json={"kind": "jobs", "keep": DAY},
    )
    assert strange.status_code == 404


async def test_an_operator_saves_for_all_or_for_the_tenant_it_names(api: Api):
    body = {"kind": "slots", "keep": 10 * DAY}
    await api.ask("PUT", "/retention", json=body)
    await api.ask("PUT", "/retention", params={"tenant": "acme"}, json={**body, "keep": 20 * DAY})

    found = [each for each in await policies(api) if each[0] == "slots"]
    assert found == [("slots", None, None, 10, False), ("slots", "acme", None, 20, False)]
    gone = {"kind": "slots", "tenant": "acme"}
    assert (await api.ask("DELETE", "/retention", params=gone)).status_code == 204
    again = await api.ask("DELETE", "/retention", params=gone)
    assert (again.status_code, again.json()["code"]) == (404, "retention_not_found")


@pytest.mark.parametrize("role", [Role.MEMBER, Role.VIEWER, Role.WORKER])
async def test_nobody_below_an_admin_sees_or_saves_policies(api: Api, role: Role):
    answers = [
        await api.get("/retention", role=role),
        await api.get("/retention/preview", role=role),
        await put(api, role, kind="jobs", keep=DAY),
        await api.ask("DELETE", "/retention", role=role, params={"kind": "jobs"}),
    ]

    assert [answer.status_code for answer in answers] == [403] * 4


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"kind": "audti", "keep": DAY}, "did you mean audit"),
        ({"kind": "jobs", "state": "succeded", "keep": DAY}, "did you mean succeeded"),
        ({"kind": "events", "state": "failed", "keep": DAY}, "events have no state"),
        ({"kind": "slots", "keep": DAY - 1}, "must be from 1 to 36500 days for slots"),
        ({"kind": "jobs", "keep": -1}, "must be from 0 seconds to 100 years"),
        ({"kind": "jobs", "keep": "7d"}, "must be a number of seconds"),
        ({"kind": "jobs"}, "keep"),
    ],
)
async def test_mistakes_are_refused_with_a_sentence(api: Api, body: dict[str, Any], said: str):
    answer = await put(api, Role.OPERATOR, **body)

    assert answer.status_code == 422
    assert said in answer.text


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"keep": DAY}, "kind is required with keep"),
        ({"kind": "jobs", "state": "failed"}, "keep is required with state"),
        ({"kind": "evnets"}, "did you mean events"),
        ({"kind": "jobs", "keep": -1}, "keep"),
    ],
)
async def test_a_preview_says_what_it_lacks(api: Api, params: dict[str, Any], said: str):
    answer = await api.get("/retention/preview", params=params)

    assert answer.status_code == 422
    assert said in answer.text


# Bounds


@pytest.fixture
async def strict(database_url: str, connection: psycopg.Connection) -> AsyncIterator[Api]:
    bounds = {"tenant_retention_least_days": 3, "tenant_retention_most_days": 800}
    async with serving(database_url, **bounds) as served:
        yield served


async def test_the_operator_says_how_short_and_long_admins_keep(strict: Api):
    for days, status in ((3, 200), (800, 200), (2.9, 422), (800.1, 422)):
        assert (await put(strict, kind="jobs", keep=days * DAY)).status_code == status, days
    assert (await put(strict, Role.OPERATOR, kind="jobs", keep=DAY)).status_code == 200


async def test_an_admin_cannot_shorten_what_shows_what_it_did(strict: Api):
    async def unset() -> int:
        asked = {"kind": "audit"}
        answer = await strict.ask("DELETE", "/retention", role=Role.ADMIN, params=asked)
        return answer.status_code

    assert (await put(strict, kind="audit", keep=729 * DAY)).status_code == 422
    assert (await put(strict, kind="audit", keep=740 * DAY)).status_code == 200
    refused = await put(strict, kind="audit", keep=735 * DAY)
    assert "the audit is kept for 740 days; ask an operator" in refused.text
    assert await unset() == 422
    await strict.ask("PUT", "/retention", json={"kind": "audit", "keep": 750 * DAY})
    assert await unset() == 204


# Preview


async def test_a_preview_counts_only_what_is_the_tenants(api: Api, connection: psycopg.Connection):
    ended = datetime.now(UTC) - timedelta(days=20)
    for tenant, count in (("default", 2), ("acme", 3)):
        for _ in range(count):
            insert_job(connection, JobState.FAILED, tenant_id=tenant, finished_at=ended)
    asked = {"kind": "jobs", "keep": 10 * DAY}

    mine = (await api.get("/retention/preview", params=asked, role="admin")).json()
    all_of_it = (await api.get("/retention/preview", params=asked)).json()
    now = (await api.get("/retention/preview")).json()
    strange = await api.get("/retention/preview", params={"tenant": "acme"}, role="admin")

    day = {"kind": "jobs", "day": ended.date().isoformat(), "count": 2, "already": 0}
    assert mine == {"count": 2, "already": 0, "days": [day]}
    assert (all_of_it["count"], all_of_it["already"]) == (5, 0)
    assert now == {"count": 0, "already": 0, "days": []}
    assert strange.status_code == 404
