"""/jobs/bulk: what is refused there, and every other way to start an operation."""

from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from mainspring import JobState
from mainspring.domain.access.roles import Role
from tests.support.api import Api
from tests.support.operations import bulk, enqueue, operating, states
from tests.support.rows import insert_job
from tests.support.waiting import await_until

BUILT_IN = "mainspring.prune_keys"

SENSELESS: list[tuple[dict[str, Any], str]] = [
    ({}, "body.action"),
    ({"action": "stop", "filter": {"queue": "a"}}, "body.action"),
    ({"action": "cancel"}, 'filter is empty; set "all" to true if every job should be canceled'),
    ({"action": "cancel", "filter": {}}, "filter is empty"),
    ({"action": "cancel", "filter": {"queue": None}}, "filter is empty"),
    (
        {"action": "cancel", "filter": {"queue": "a"}, "all": True},
        "all and a filter cannot be used together",
    ),
    ({"action": "cancel", "filter": {"quue": "a"}}, "body.filter.quue"),
    ({"action": "cancel", "filter": {"queue": ""}}, "body.filter.queue"),
    ({"action": "cancel", "filter": {"tag": "\x00"}}, "body.filter.tag"),
    ({"action": "cancel", "filter": {"state": "over"}}, "body.filter.state"),
    ({"action": "cancel", "filter": {"created_after": "today"}}, "body.filter.created_after"),
    (
        {"action": "cancel", "filter": {"state": "succeeded"}},
        (
            "state succeeded cannot be combined with cancel: such jobs cannot be canceled; choose "
            "awaiting_approval, blocked, queued or running"
        ),
    ),
    ({"action": "retry", "filter": {"state": "succeeded"}}, "failed, dead_letter or canceled"),
    ({"action": "retry", "filter": {"state": "queued"}}, "cannot be retried"),
    ({"action": "delete", "filter": {"state": "running"}}, "cannot be deleted"),
    ({"action": "delete", "filter": {"definition": BUILT_IN}}, "is built in"),
    (
        {
            "action": "delete",
            "filter": {
                "created_after": "2026-01-02T00:00:00Z",
                "created_before": "2026-01-02T00:00:00Z",
            },
        },
        "no job can match",
    ),
]


async def test_what_makes_no_sense_is_refused_and_nothing_is_started(
    api: Api, connection: psycopg.Connection
):
    for body, said in SENSELESS:
        answer = await api.post("/jobs/bulk", body)

        assert answer.status_code == 422, answer.text
        assert said in answer.json()["detail"]
    assert states(connection, "mainspring.bulk") == {}


FORGED = {
    "action": "delete",
    "filter": {},
    "tenant": "acme",
    "actor": "operator",
    "reason": "forged",
}


ENQUEUED = {"definition": "mainspring.bulk", "payload": FORGED}
INTERFACES: list[tuple[str, dict[str, Any]]] = [
    ("/jobs", ENQUEUED),
    ("/jobs", {**ENQUEUED, "dedupe_key": "a"}),
    ("/jobs/many", {"definition": "mainspring.bulk", "payloads": [FORGED]}),
    ("/jobs/many", {"definition": "mainspring.bulk", "payloads": [FORGED] * 300}),
    ("/flows", {"name": "two", "steps": [{"step": "a", **ENQUEUED}]}),
    ("/schedules", {"name": "nightly", "cron": "0 2 * * *", **ENQUEUED}),
    ("/triggers", {"name": "on-thing", "event": "thing.*", **ENQUEUED}),
]


async def test_nobody_forges_an_operation(api: Api, connection: psycopg.Connection):
    await api.app.state.server.install()

    for path, body in INTERFACES:
        for role in (Role.ADMIN, Role.OPERATOR):
            answer = await api.post(path, body, role=role)

            assert answer.status_code == 422, answer.text
            assert "POST /api/v1/jobs/bulk" in answer.json()["detail"]
    assert states(connection, "mainspring.bulk") == {}


@pytest.mark.parametrize("role", [Role.ADMIN, Role.MEMBER])
async def test_what_is_built_in_is_for_operators(
    api: Api, connection: psycopg.Connection, role: Role
):
    connection.execute(
        "insert into mainspring.definitions (key, kind) values (%s, 'python')", [BUILT_IN]
    )
    many = {"definition": BUILT_IN, "payloads": [{}]}
    answers = [
        await api.post("/jobs", {"definition": BUILT_IN}, role=role),
        await api.post("/jobs/many", many, role=role),
    ]

    for answer in answers:
        assert answer.status_code == 422
        assert "is built in and for operators only" in answer.json()["detail"]
    assert states(connection, BUILT_IN) == {}
    allowed = await api.post("/jobs", {"definition": BUILT_IN}, role=Role.OPERATOR)
    assert allowed.status_code == 201


async def test_an_operation_is_retried_as_it_was_and_with_no_other_payload(
    api: Api, connection: psycopg.Connection
):
    operation = (await bulk(api, "cancel", queue="left alone")).json()["job_id"]
    await api.post(f"/jobs/{operation}/cancel")

    forged = await api.post(f"/jobs/{operation}/retry", {"payload": FORGED}, role=Role.ADMIN)
    retried = await api.post(f"/jobs/{operation}/retry", role=Role.ADMIN)

    assert forged.status_code == 422
    assert "given another payload" in forged.json()["detail"]
    assert retried.json()["state"] == "queued"
    assert states(connection, "mainspring.bulk") == {"queued": 1}


async def test_a_job_that_comes_by_a_back_door_does_nothing(
    api: Api, connection: psycopg.Connection
):
    await api.app.state.server.install()
    await enqueue(api)
    job_id = insert_job(
        connection,
        JobState.QUEUED,
        definition="mainspring.bulk",
        queue="mainspring",
        payload=Jsonb({**FORGED, "tenant": "default"}),
    )

    async def is_over() -> bool:
        return bool((await api.get(f"/jobs/{job_id}")).json()["state"] == "failed")

    async with operating(api):
        await await_until(is_over)

    error = (await api.get(f"/jobs/{job_id}")).json()["last_error"]
    assert "can be started only by POST /api/v1/jobs/bulk" in error
    assert states(connection) == {"queued": 1}
