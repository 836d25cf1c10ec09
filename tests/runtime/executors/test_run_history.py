"""What a slot keeps of its run: the message and details of the result, and the duration, for as
long as the slot is kept, although the job goes sooner."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from mainspring import Backoff, Mainspring, Slot
from tests.support.secret_schemas import MARKED, of
from tests.support.waiting import await_until
from tests.support.workers import working

ANSWERS = """
create function public.answers(payload jsonb) returns jsonb language sql as $$ select payload $$
"""
RAISES = """
create function public.raises() returns jsonb language plpgsql as $$
begin raise exception 'the books are closed' using detail = 'since Friday'; end $$
"""
TOO_LONG = "the handler exceeded its timeout of 0.05 s"
DONE = {"success": True, "message": "5 sessions removed", "details": {"removed": 5}}
DECLINED = {"success": False, "message": "the books are closed", "details": {"rows": [7, 8]}}


@pytest.fixture
async def app(database_url: str, connection: psycopg.Connection) -> AsyncIterator[Mainspring]:
    connection.execute(ANSWERS)
    async with Mainspring(database_url) as app:
        yield app


async def run(app: Mainspring, key: str, payload: dict[str, Any]) -> Slot:
    """The slot of a run of the definition, once it has ended."""
    async with working(app):
        await app.schedules.acreate("nightly", key, cron="0 3 * * *", payload=payload)
        await app.schedules.atrigger("nightly")

        async def ended() -> Slot | None:
            (slot,) = await app.schedules.ahistory("nightly")
            return slot if slot.run_state else None

        slot = await await_until(ended)
    assert slot is not None
    return slot


async def run_function(app: Mainspring, answer: dict[str, Any], **fields: Any) -> Slot:
    how = {"role": "pg_database_owner", "trusted": True, "max_attempts": 1, **fields}
    await app.definitions.acreate("answers", "sql", function="public.answers", **how)
    return await run(app, "answers", answer)


async def test_the_answer_of_a_function_outlives_its_job(
    app: Mainspring, connection: psycopg.Connection
):
    slot = await run_function(app, DONE)
    connection.execute("select mainspring.delete_job(%s)", (slot.job_id,))

    (kept,) = await app.schedules.ahistory("nightly")

    assert (kept.message, kept.details) == ("5 sessions removed", {"removed": 5})
    assert kept.run_state == "succeeded"
    assert kept.started_at is not None
    assert kept.finished_at is not None
    assert kept.seconds == (kept.finished_at - kept.started_at).total_seconds()


async def test_what_a_function_says_of_its_failure_stays_json(
    app: Mainspring, connection: psycopg.Connection
):
    slot = await run_function(app, DECLINED)

    assert slot.job_id is not None
    job = await app.jobs.aget(slot.job_id)
    assert (slot.run_state, slot.message) == ("dead_letter", "the books are closed")
    assert slot.details == {"rows": [7, 8]}
    assert str(slot.reason).startswith("the function returned success: false; the books are closed")
    assert job.result == DECLINED
    ((stored,),) = connection.execute("select details from mainspring.slot_status").fetchall()
    assert stored == {"rows": [7, 8]}


async def test_only_the_answer_of_the_last_attempt_is_kept(app: Mainspring):
    slot = await run_function(app, {"success": True, "message": "no details"})

    assert (slot.message, slot.details, slot.is_details_omitted) == ("no details", None, False)


@pytest.mark.parametrize(
    ("result", "message", "details"),
    [
        ({"message": "done", "details": {"rows": 3}}, "done", {"rows": 3}),
        ({"details": [1]}, None, [1]),
        ({"rows": 3}, None, {"rows": 3}),
        ({"message": 3}, None, {"message": 3}),
        ([1, 2], None, [1, 2]),
        ("fine", None, "fine"),
        (None, None, None),
    ],
)
async def test_the_result_of_python_code_is_kept_too(
    app: Mainspring, result: Any, message: str | None, details: Any
):
    @app.job
    async def work() -> Any:
        return result

    slot = await run(app, "work", {})

    assert (slot.message, slot.details) == (message, details)


async def test_a_run_that_raised_keeps_its_error_as_its_message(app: Mainspring):
    @app.job(max_attempts=1)
    async def work() -> None:
        raise ValueError("torn")

    slot = await run(app, "work", {})

    assert str(slot.reason).startswith("ValueError: torn")
    assert (slot.message, slot.details) == ("ValueError: torn", None)


async def test_a_run_that_took_too_long_says_so_in_its_message(app: Mainspring):
    @app.job(max_attempts=1, timeout=timedelta(milliseconds=50))
    async def work() -> None:
        await asyncio.Event().wait()

    slot = await run(app, "work", {})

    assert (slot.run_state, slot.message) == ("dead_letter", TOO_LONG)


async def test_a_function_that_raises_leaves_its_error_although_the_job_is_gone(
    app: Mainspring, connection: psycopg.Connection
):
    connection.execute(RAISES)
    how: dict[str, Any] = {"role": "pg_database_owner", "trusted": True, "max_attempts": 2}
    backoff = Backoff(base=timedelta(0))
    await app.definitions.acreate("raises", "sql", function="public.raises", backoff=backoff, **how)
    slot = await run(app, "raises", {})
    connection.execute("select mainspring.delete_job(%s)", (slot.job_id,))

    (kept,) = await app.schedules.ahistory("nightly")

    assert kept.run_state == "dead_letter"
    assert "the books are closed" in str(kept.message)
    assert str(kept.reason).startswith(str(kept.message))


async def test_secrets_are_redacted(app: Mainspring):
    secret = {**DECLINED, "message": "no login with hunter2-hunter2", "password": "hunter2-hunter2"}

    slot = await run_function(
        app, {**secret, "details": {"tried": "hunter2-hunter2"}}, arg_schema=of(password=MARKED)
    )

    assert slot.message == "no login with [redacted]"
    assert slot.details == {"tried": "[redacted]"}


@pytest.mark.parametrize(("size", "is_kept"), [(8192, True), (8193, False)])
def test_large_details_are_left_out(connection: psycopg.Connection, size: int, is_kept: bool):
    details = "x" * (size - 2)

    query = "select * from mainspring.run_answer(%s)"
    result = Jsonb({"message": "m" * 3000, "details": details})
    ((message, kept, is_omitted),) = connection.execute(query, (result,)).fetchall()

    assert message == "m" * 2000
    assert (kept, is_omitted) == ((details, False) if is_kept else (None, True))
