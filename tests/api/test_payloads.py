"""Payloads over REST are held to what the handler takes, whatever they are for."""

from uuid import UUID, uuid4

import pytest

from mainspring import Mainspring
from mainspring.domain.access.roles import Role
from mainspring.domain.errors import InvalidPayload
from tests.support.api import Api

WRONG = {"number": "seven"}
RIGHT = {"number": 7}
EVERY = {"name": "hourly", "definition": "guarded", "every": 3600}
TRIGGER = {"name": "on_change", "event": "changed", "definition": "guarded"}


async def ended_job(api: Api, connection) -> str:
    answer = await api.post("/jobs", {"definition": "guarded", "payload": RIGHT}, role=Role.ADMIN)
    job_id = str(answer.json()["id"])
    await api.post(f"/jobs/{job_id}/cancel", {}, role=Role.ADMIN)
    return job_id


async def refused(api: Api, path: str, body: dict[str, object]) -> None:
    answer = await api.post(path, body, role=Role.ADMIN)

    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_payload"), answer.text
    assert answer.json()["detail"].startswith("payload")


async def test_jobs(api: Api):
    await refused(api, "/jobs", {"definition": "guarded", "payload": WRONG})


async def test_schedules(api: Api):
    await refused(api, "/schedules", {**EVERY, "payload": WRONG})
    await refused(api, "/schedules", {**EVERY, "payload": {}})
    assert (await api.post("/schedules", {**EVERY, "payload": RIGHT}, role=Role.ADMIN)).is_success


@pytest.mark.parametrize("payload", [WRONG, {}, {"number": "{{event.n}}", "more": "{{event.m}}"}])
async def test_triggers(api: Api, payload: dict[str, object]):
    await refused(api, "/triggers", {**TRIGGER, "payload": payload})


async def test_a_trigger_may_take_its_values_from_the_event(api: Api):
    body = {**TRIGGER, "payload": {"number": "{{event.n}}"}}

    assert (await api.post("/triggers", body, role=Role.ADMIN)).is_success


async def test_a_retry_with_another_payload(api: Api, connection):
    job_id = await ended_job(api, connection)

    await refused(api, f"/jobs/{job_id}/retry", {"payload": WRONG})
    retried = await api.post(f"/jobs/{job_id}/retry", {"payload": {"number": 8}}, role=Role.ADMIN)
    assert retried.is_success, retried.text


async def test_an_app_that_knows_only_the_key(api: Api, database_url: str):
    async with Mainspring(database_url) as app:
        with pytest.raises(InvalidPayload, match="payload/number"):
            await app.aenqueue("guarded", WRONG)
        with pytest.raises(InvalidPayload, match="payload/number"):
            await app.aenqueue_many("guarded", [RIGHT, WRONG])
        flow = app.flow("two")
        flow.add("guarded", WRONG)
        with pytest.raises(InvalidPayload, match="payload/number"):
            await flow.aenqueue()


async def test_what_python_has_beside_json_is_checked_as_it_is_stored(database_url: str):
    async with Mainspring(database_url) as app:

        @app.job
        async def find(key: UUID, keys: list[UUID] | None = None) -> None: ...

        assert (await find.aenqueue(key=uuid4())).is_new
        assert len(await app.aenqueue_many(find, [{"key": uuid4(), "keys": [uuid4()]}])) == 1
        with pytest.raises(InvalidPayload, match="payload/keys"):
            await app.aenqueue("find", {"key": uuid4(), "keys": [1]})
