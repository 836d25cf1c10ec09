"""Tokens of workers that serve one tenant, several or all."""

from typing import Any

import httpx
import psycopg
import pytest

from mainspring.domain.access.roles import Role
from mainspring.services import tenants
from tests.support.api import Api
from tests.support.work import define_remote, told

BOTH = ["default", "acme"]


@pytest.fixture(autouse=True)
async def jobs(api: Api, connection: psycopg.Connection) -> None:
    """One job in each of three tenants."""
    define_remote(connection)
    await tenants.create(api.database, "bell")
    for tenant in (*BOTH, "bell"):
        made = await api.post(f"/jobs?tenant={tenant}", {"definition": "remote"})
        assert made.status_code == 201, made.text


async def make_token(api: Api, by: Role = Role.OPERATOR, **given: Any) -> httpx.Response:
    return await api.post("/tokens", {"name": "far", "role": "worker", **given}, role=by)


async def use(api: Api, served: list[str]) -> None:
    """Let the requests of workers show such a token."""
    made = await make_token(api, tenants=served)
    assert made.status_code == 201, made.text
    api.tokens["default", Role.WORKER] = made.json()["token"]


async def claimed(api: Api) -> tuple[str, list[dict[str, Any]]]:
    worker = await told(api, "POST", "/workers", {"name": "w", "queues": ["far"]})
    path = f"/workers/{worker.json()['worker_id']}"
    asked = {"definitions": ["remote"], "limit": 10}
    return path, (await told(api, "POST", f"{path}/claim", asked)).json()["jobs"]


@pytest.mark.parametrize(
    ("served", "expected"),
    [(["*"], ["acme", "bell", "default"]), (BOTH, ["acme", "default"]), (["bell"], ["bell"])],
)
async def test_a_worker_is_given_the_jobs_of_its_tenants(
    api: Api, served: list[str], expected: list[str]
):
    await use(api, served)

    worker, jobs = await claimed(api)
    ended = [
        await told(api, "POST", f"{worker}/jobs/{job['job_id']}/complete", {"fence": job["fence"]})
        for job in jobs
    ]

    assert sorted(job["tenant"] for job in jobs) == expected
    assert {answer.status_code for answer in ended} == {200}


async def test_limits_keep_to_the_tenants_too(api: Api, connection: psycopg.Connection):
    connection.execute(
        "insert into mainspring.definitions (key, kind, queue, concurrency)"
        " values ('one', 'remote', 'far', 10)"
    )
    for tenant in (*BOTH, "bell"):
        await api.post(f"/jobs?tenant={tenant}", {"definition": "one"})
    await use(api, BOTH)
    worker = await told(api, "POST", "/workers", {"name": "w", "queues": ["far"]})
    asked = {"definitions": ["remote", "one"], "limit": 10}
    path = f"/workers/{worker.json()['worker_id']}/claim"

    jobs = (await told(api, "POST", path, asked)).json()["jobs"]

    assert sorted(job["tenant"] for job in jobs) == ["acme", "acme", "default", "default"]


async def test_a_token_shows_the_tenants_that_its_worker_serves(api: Api):
    everyone = await make_token(api, tenants=["*"], name="all")
    two = await make_token(api, tenants=[*BOTH, "acme"])
    one = await make_token(api, name="one")

    shown = [each.json()["details"] for each in (everyone, two, one)]
    assert [(each["tenant"], each["tenants"]) for each in shown] == [
        (None, ["*"]),
        (None, BOTH),
        ("default", None),
    ]


@pytest.mark.parametrize(
    ("given", "status", "said"),
    [
        ({"tenants": []}, 422, "tenants"),
        ({"tenants": ["*", "acme"]}, 422, "must be * alone"),
        ({"tenants": ["nobody"]}, 404, "nobody"),
        ({"tenants": ["acme"], "role": "member"}, 422, "is for the role worker"),
        ({"tenants": ["*"], "role": "operator"}, 422, "is for the role worker"),
    ],
)
async def test_tenants_that_cannot_be_are_refused(
    api: Api, given: dict[str, Any], status: int, said: str
):
    refused = await make_token(api, **given)

    assert (refused.status_code, said in refused.json()["detail"]) == (status, True), refused.text


@pytest.mark.parametrize("served", [["*"], ["default", "acme"], ["acme"], ["default"]])
async def test_an_admin_makes_no_token_for_several_tenants(api: Api, served: list[str]):
    refused = await make_token(api, Role.ADMIN, tenants=served)

    assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")


async def test_an_admin_neither_sees_nor_revokes_a_token_of_several_tenants(api: Api):
    await use(api, BOTH)

    listed = await api.get("/tokens", role=Role.ADMIN)
    revoked = await api.post("/tokens/far/revoke", role=Role.ADMIN)

    assert "far" not in [token["name"] for token in listed.json()["items"]]
    assert revoked.status_code == 404


async def test_a_worker_of_several_tenants_sees_nothing_but_its_jobs(api: Api):
    await use(api, BOTH)

    jobs = await api.get("/jobs", role=Role.WORKER)
    elsewhere = await api.get("/definitions?tenant=bell", role=Role.WORKER)
    definitions = await api.get("/definitions", role=Role.WORKER)

    assert (jobs.status_code, elsewhere.status_code) == (403, 404)
    assert definitions.status_code == 200


async def test_a_tenant_that_is_deleted_is_served_no_more_if_made_again(
    api: Api, connection: psycopg.Connection
):
    await use(api, ["acme", "bell"])
    connection.execute("delete from mainspring.jobs where tenant_id = 'bell'")
    connection.execute("select mainspring.delete_rest_of_tenant('bell')")
    await tenants.create(api.database, "bell")
    await api.post("/jobs?tenant=bell", {"definition": "remote"})

    _, jobs = await claimed(api)

    assert [job["tenant"] for job in jobs] == ["acme"]


async def test_programs_of_the_release_before_do_not_take_several_tenants_for_all(
    api: Api, connection: psycopg.Connection
):
    await use(api, BOTH)
    known = "select count(*) from mainspring.tokens as t, mainspring.bearer(t.digest) as b"

    assert connection.execute(f"{known} where t.name = 'far'").fetchone() == (0,)
