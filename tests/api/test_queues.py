"""/queues: who may pause one, and who sees that it is paused."""

import pytest

from mainspring.domain.access.roles import Role
from tests.support.api import Api
from tests.support.rows import insert_definition


async def test_an_operator_pauses_and_resumes_a_queue(api: Api):
    body = {"reason": "down", "duration": 3600}
    paused = await api.post("/queues/mail/pause", body)
    again = await api.post("/queues/mail/pause")
    resumed = await api.post("/queues/mail/resume")
    twice = await api.post("/queues/mail/resume")

    assert paused.status_code == 200, paused.text
    assert (paused.json()["paused_by"], paused.json()["reason"]) == ("ops", "down")
    assert paused.json()["paused_until"] is not None
    assert again.json()["paused_until"] is None
    assert resumed.status_code == 204
    assert (twice.status_code, twice.json()["code"]) == (404, "queue_not_paused")


@pytest.mark.parametrize("role", [Role.ADMIN, Role.MEMBER, Role.VIEWER])
async def test_a_tenant_sees_the_pause_of_a_queue_with_its_jobs(api: Api, connection, role):
    insert_definition(connection, "send", queue="mail")
    await api.post("/jobs", {"definition": "send"}, role=role if role != Role.VIEWER else "admin")
    await api.post("/queues/mail/pause", {"reason": "down"})
    await api.post("/queues/secret/pause")

    (seen,) = (await api.get("/queues", role=role)).json()["items"]
    other = (await api.get("/queues", role=role, tenant="acme")).json()["items"]
    operators = (await api.get("/queues")).json()["items"]

    assert (seen["name"], seen["pause"]["reason"]) == ("mail", "down")
    assert other == []
    assert [queue["name"] for queue in operators] == ["mail", "secret"]


@pytest.mark.parametrize(
    "body",
    [
        {"duration": 0},
        {"until": "2020-01-01T00:00:00Z"},
        {"until": "2030-01-01T00:00:00Z", "duration": 5},
        {"reason": "x" * 10_001},
        {"untill": "2030-01-01T00:00:00Z"},
    ],
)
async def test_a_pause_that_cannot_be_is_refused(api: Api, body):
    answer = await api.post("/queues/mail/pause", body)

    assert (answer.status_code, answer.json()["code"]) in {
        (422, "invalid_option"),
        (422, "invalid_request"),
    }
    assert (await api.get("/queues")).json()["items"] == []
