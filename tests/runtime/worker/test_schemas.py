"""Payloads are checked once more before they run: SQL enqueues without a look at the schema."""

import psycopg
import pytest

from mainspring import JobHandle, JobState, Mainspring
from mainspring.domain.types import DEFAULT_TENANT
from tests.support.workers import ended, working

SCHEMA = {
    "type": "object",
    "properties": {"days": {"type": "integer"}},
    "required": ["days"],
}
ENQUEUE = "select mainspring.enqueue('tidy', %s::text::jsonb)"


@pytest.fixture
async def app(database_url: str):
    async with Mainspring(database_url) as app:
        yield app


async def enqueued(app: Mainspring, connection: psycopg.Connection, payload: str):
    """What became of a job that plain SQL enqueued."""
    await app.aregister_definitions()
    ((job_id,),) = connection.execute(ENQUEUE, (payload,)).fetchall()
    async with working(app):
        return await ended(JobHandle(job_id, True, DEFAULT_TENANT, app))


@pytest.mark.parametrize("kind", ["async", "thread"])
async def test_a_payload_that_does_not_fit_fails_without_a_call(app, connection, kind):
    called = []
    if kind == "async":

        @app.job(key="tidy", arg_schema=SCHEMA, max_attempts=5)
        async def tidy(**payload: object) -> None:
            called.append(payload)
    else:

        @app.job(key="tidy", arg_schema=SCHEMA, max_attempts=5)
        def tidy_plainly(**payload: object) -> None:
            called.append(payload)

    wrong = await enqueued(app, connection, '{"days": "many"}')
    right = await enqueued(app, connection, '{"days": 3}')

    assert (wrong.state, wrong.attempt) == (JobState.FAILED, 1)
    assert wrong.last_error.startswith("payload/days: ")
    assert right.state is JobState.SUCCEEDED
    assert called == [{"days": 3}]


async def test_a_schema_of_nonsense_by_plain_sql_fails_its_jobs_and_no_worker(app, connection):
    connection.execute(
        "create schema civic; create function civic.bare() returns jsonb language sql"
        """ as $$ select '{"success": true}'::jsonb $$;"""
        "insert into mainspring.definitions (key, kind, spec, arg_schema)"
        """ values ('tidy', 'sql', '{"function": "civic.bare"}', '{"type": "nonsense"}')"""
    )

    job = await enqueued(app, connection, "{}")

    assert job.state is JobState.FAILED
    assert job.last_error.startswith("tidy: arg_schema is not a valid JSON Schema")


@pytest.mark.parametrize(("count", "state"), [(4000, JobState.SUCCEEDED), (9000, JobState.FAILED)])
async def test_a_payload_that_would_take_long_to_check_is_not_checked(
    app, connection, count, state
):
    choices = [{"const": number} for number in range(1500)]
    schema = {"type": "object", "properties": {"a": {"items": {"anyOf": choices}}}}

    @app.job(key="tidy", arg_schema=schema)
    async def tidy(**payload: object) -> None: ...

    job = await enqueued(app, connection, f'{{"a": {[1] * count}}}')

    assert job.state is state, job.last_error
    if state is JobState.FAILED:
        assert "would take up to 13," in job.last_error
