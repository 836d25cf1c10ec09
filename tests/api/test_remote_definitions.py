"""Definitions of the kind `remote`, whose jobs are run by programs that claim over the API."""

import psycopg

from tests.support.api import Api
from tests.support.work import claim, register, told

SCHEMA = {"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}}
WORD_COUNT = {"key": "word_count", "kind": "remote", "queue": "far", "arg_schema": SCHEMA}


async def test_a_remote_definition_is_created_enqueued_and_run(api: Api):
    made = await api.post("/definitions", WORD_COUNT)
    job = await api.post("/jobs", {"definition": "word_count", "payload": {"text": "a b"}})
    worker = await register(api)
    (claimed,) = await claim(api, worker, definitions=["word_count"])
    report = {"fence": claimed["fence"], "result": {"words": 2}}
    done = await told(api, "POST", f"{worker}/jobs/{claimed['job_id']}/complete", report)

    assert (made.status_code, made.json()["kind"], made.json()["spec"]) == (201, "remote", {})
    assert (job.status_code, claimed["payload"], done.status_code) == (201, {"text": "a b"}, 200)


async def test_a_payload_is_checked_by_the_schema_of_a_remote_definition(api: Api):
    await api.post("/definitions", WORD_COUNT)

    refused = await api.post("/jobs", {"definition": "word_count", "payload": {}})

    assert (refused.status_code, refused.json()["code"]) == (422, "invalid_payload")


async def test_a_remote_definition_can_be_changed(api: Api):
    await api.post("/definitions", WORD_COUNT)

    changed = await api.ask("PATCH", "/definitions/word_count", json={"timeout": 60})

    assert (changed.status_code, changed.json()["timeout"]) == (200, 60)


async def test_a_remote_definition_names_no_function_or_program(api: Api):
    refused = await api.post("/definitions", {**WORD_COUNT, "function": "public.f"})

    assert refused.status_code == 422
    assert "function is not a field of a remote definition" in refused.json()["detail"]


async def test_sql_creates_a_remote_definition(api: Api, connection: psycopg.Connection):
    connection.execute("insert into mainspring.definitions (key, kind) values ('count', 'remote')")

    assert (await api.get("/definitions/count")).json()["kind"] == "remote"
