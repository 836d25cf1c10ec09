"""/approvals and who may decide: those whom the definition names, by name or by role."""

import psycopg
import pytest

from mainspring.domain.access.roles import Role
from mainspring.services import people, tokens
from tests.support.api import Api
from tests.support.rows import insert_definition


async def person(api: Api, name: str, role: Role = Role.MEMBER, tenant: str = "default") -> str:
    """A person who is logged in; the name."""
    await people.create(api.database, name, role, tenant_id=tenant)
    session = await tokens.log_in(api.database, await tokens.open_login(api.database, name))
    api.tokens[name, role] = session.text
    return name


async def ask(api: Api, definition: str, **given: object) -> str:
    answer = await api.post("/jobs", {"definition": definition, **given}, role=Role.ADMIN)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


@pytest.fixture
async def crew(api: Api, connection: psycopg.Connection) -> Api:
    """bob and cyd are members; `grave` needs both or ann, `shared` any two members."""
    insert_definition(connection, "grave", approvals_needed=2, approvers=["ann", "bob", "cyd"])
    insert_definition(connection, "shared", approvals_needed=2, approvers=["role:member"])
    await person(api, "bob")
    await person(api, "cyd")
    await person(api, "eve")
    return api


async def decide(api: Api, verb: str, job_id: str, who: str, role: Role = Role.MEMBER):
    return await api.post(f"/jobs/{job_id}/{verb}", {"reason": "why"}, role=role, tenant=who)


@pytest.mark.parametrize("definition", ["grave", "shared"])
async def test_members_whom_a_definition_names_approve(crew: Api, definition: str):
    job_id = await ask(crew, definition)

    first = await decide(crew, "approve", job_id, "bob")
    again = await decide(crew, "approve", job_id, "bob")
    second = await decide(crew, "approve", job_id, "cyd")

    states = [answer.json()["state"] for answer in (first, again, second)]
    assert states == ["awaiting_approval", "awaiting_approval", "queued"]
    told = (await crew.get(f"/approvals/{job_id}")).json()
    assert [vote["actor"] for vote in told["votes"]] == ["bob", "cyd"]


async def test_a_member_whom_a_definition_names_rejects(crew: Api):
    job_id = await ask(crew, "grave")

    answer = await decide(crew, "reject", job_id, "bob")

    assert answer.json() == {"id": job_id, "state": "canceled"}
    job = (await crew.get(f"/jobs/{job_id}")).json()
    assert job["last_error"] == "rejected by bob: why"


async def test_who_is_asked_sees_what_for_and_nothing_more(crew: Api):
    job_id = await ask(crew, "grave", payload={"tenant": "acme"})
    await ask(crew, "work", approvals_needed=1)

    listed = (await crew.get("/approvals", role=Role.MEMBER, tenant="bob")).json()["items"]
    read = await crew.get(f"/approvals/{job_id}", role=Role.MEMBER, tenant="bob")

    assert [approval["job_id"] for approval in listed] == [job_id]
    assert read.json()["payload"] == {"tenant": "acme"}
    for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/cancel"), ("POST", "/retry")):
        answer = await crew.ask(method, f"/jobs/{job_id}{path}", role=Role.MEMBER, tenant="bob")
        assert answer.status_code == 404, (method, path)
    assert (await crew.get("/jobs", role=Role.MEMBER, tenant="bob")).json()["items"] == []


async def test_who_is_not_asked_finds_no_such_job(crew: Api):
    job_id = await ask(crew, "grave")

    listed = (await crew.get("/approvals", role=Role.MEMBER, tenant="eve")).json()["items"]
    answers = [await decide(crew, verb, job_id, "eve") for verb in ("approve", "reject")]

    assert listed == []
    assert [answer.status_code for answer in answers] == [404, 404]
    assert (await crew.get(f"/jobs/{job_id}")).json()["state"] == "awaiting_approval"


@pytest.mark.parametrize(
    ("definition", "given", "named"),
    [
        ("grave", {}, "ann, bob, cyd may"),
        ("work", {"approvals_needed": 1}, "role:admin, role:operator may"),
    ],
)
async def test_a_member_does_not_approve_its_own_job_unless_it_is_asked(
    crew: Api, definition: str, given: dict[str, object], named: str
):
    made = await crew.post(
        "/jobs", {"definition": definition, **given}, role=Role.MEMBER, tenant="eve"
    )
    job_id = made.json()["id"]

    answer = await decide(crew, "approve", job_id, "eve")

    assert (answer.status_code, answer.json()["code"]) == (403, "not_an_approver")
    assert answer.json()["detail"] == f"eve may not decide on job {job_id}; {named}"


async def test_an_admin_who_is_not_named_is_refused_and_told_who_may(crew: Api):
    job_id = await ask(crew, "grave")

    admin = await decide(crew, "approve", job_id, "default", Role.ADMIN)
    operator = await decide(crew, "approve", job_id, "*", Role.OPERATOR)
    viewer = await decide(crew, "approve", job_id, "default", Role.VIEWER)

    assert [answer.status_code for answer in (admin, operator, viewer)] == [403, 403, 403]
    assert admin.json()["detail"] == (
        f"admin-default may not decide on job {job_id}; ann, bob, cyd may"
    )


async def test_a_token_is_not_the_person_it_is_named_after(crew: Api):
    job_id = await ask(crew, "grave")
    new = await tokens.create(crew.database, "ann", "admin", tenant_id="default")
    crew.tokens["forged", Role.ADMIN] = new.text

    answer = await decide(crew, "approve", job_id, "forged", Role.ADMIN)

    assert answer.status_code == 403


async def test_an_approver_of_another_tenant_finds_no_such_job(crew: Api):
    await person(crew, "zoe", tenant="acme")
    job_id = await ask(crew, "shared")

    assert (await decide(crew, "approve", job_id, "zoe")).status_code == 404


async def test_a_role_that_is_none_is_refused(api: Api):
    answer = await api.post(
        "/definitions",
        {
            "key": "odd",
            "kind": "command",
            "argv": ["/bin/true"],
            "approvals_needed": 1,
            "approvers": ["role:membr"],
        },
    )

    assert answer.status_code == 422
    assert "did you mean role:member?" in answer.json()["detail"]


async def decide_for(api: Api, verb: str, job_id: str, name: str):
    """What an operator records for someone else."""
    body = {"reason": "by phone", "by": name}
    return await api.post(f"/jobs/{job_id}/{verb}?tenant=default", body, role=Role.OPERATOR)


@pytest.mark.parametrize("definition", ["grave", "shared"])
@pytest.mark.parametrize(
    ("verb", "state"), [("approve", "awaiting_approval"), ("reject", "canceled")]
)
async def test_an_operator_decides_for_who_may(crew: Api, definition: str, verb: str, state: str):
    job_id = await ask(crew, definition)

    answer = await decide_for(crew, verb, job_id, "bob")

    assert (answer.status_code, answer.json()["state"]) == (200, state), answer.text


async def test_an_operator_lends_its_role_to_nobody(crew: Api, connection: psycopg.Connection):
    insert_definition(connection, "ours", approvals_needed=1, approvers=["ann", "role:operator"])
    job_id = await ask(crew, "ours")

    answer = await decide_for(crew, "approve", job_id, "bob")

    assert answer.status_code == 403
    assert answer.json()["detail"] == f"bob may not decide on job {job_id}; ann, role:operator may"
