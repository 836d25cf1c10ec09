"""Results, checkpoints and progress have a size; what is over it is refused before it is sent."""

from typing import Any

import psycopg
import pytest

from mainspring import Context, JobState, Mainspring
from mainspring.domain.errors import PayloadTooLarge
from mainspring.domain.jobs.options import (
    MAX_CHECKPOINT_BYTES,
    MAX_PROGRESS_BYTES,
    MAX_RESULT_BYTES,
)
from mainspring.runtime.worker.results import UnstorableResult, encode_result
from tests.support import apps, reading
from tests.support.workers import ended, working

TOO_LARGE = (
    "the result is 5,242,882 bytes, the limit is 1,048,576; store the data elsewhere and return a "
    "reference to it"
)


def test_a_result_may_be_as_large_as_the_limit_and_no_larger():
    assert len(encode_result("x" * (MAX_RESULT_BYTES - 2)) or b"") == MAX_RESULT_BYTES
    with pytest.raises(UnstorableResult, match="the result is 1,048,577 bytes"):
        encode_result("x" * (MAX_RESULT_BYTES - 1))


async def test_a_job_with_too_large_a_result_fails_for_good_and_the_others_succeed(
    app: Mainspring, connection: psycopg.Connection
):
    @app.job
    async def answer(n: int) -> str:
        return "x" * n

    @app.job
    def answer_in_thread(n: int) -> str:
        return "x" * n

    await app.aregister_definitions()
    large = [await each.aenqueue(n=5 * 1024 * 1024) for each in (answer, answer_in_thread)]
    app.enqueue_many("answer", [{"n": n} for n in range(100)])
    async with working(app):
        jobs = [await ended(handle) for handle in large]
        handle = await answer.aenqueue(n=MAX_RESULT_BYTES - 2)
        assert len(await handle.aresult(5)) == MAX_RESULT_BYTES - 2

    assert [(job.state, job.last_error) for job in jobs] == [(JobState.FAILED, TOO_LARGE)] * 2
    assert reading.statuses(connection, large[0].id) == ["failed"]


async def test_too_large_a_result_does_not_leave_its_process(
    shared_app: Mainspring, connection: psycopg.Connection
):
    async with working(shared_app):
        plain = await ended(await apps.answer_much_in_process.aenqueue())
        with_effect = await ended(await apps.add_effect_and_answer_much_in_process.aenqueue())
        await shared_app.database.close_loop()

    assert (plain.state, plain.last_error) == (JobState.FAILED, TOO_LARGE)
    assert (with_effect.state, with_effect.last_error) == (JobState.FAILED, TOO_LARGE)
    assert connection.execute("select from effects").rowcount == 0


@pytest.mark.parametrize("size", [1, 100 * MAX_CHECKPOINT_BYTES])
async def test_too_large_a_checkpoint_or_progress_is_an_error_in_the_handler(
    app: Mainspring, size: int
):
    seen: list[PayloadTooLarge] = []

    async def refused(call: Any) -> None:
        try:
            await call
        except PayloadTooLarge as error:
            seen.append(error)

    @app.job
    async def save(ctx: Context) -> Any:
        await ctx.acheckpoint("x" * (MAX_CHECKPOINT_BYTES - 2))
        await refused(ctx.acheckpoint("x" * (MAX_CHECKPOINT_BYTES - 2 + size)))
        try:
            ctx.progress(1, data="x" * (MAX_PROGRESS_BYTES + size))
        except PayloadTooLarge as error:
            seen.append(error)

    async with working(app):
        assert (await ended(await save.aenqueue())).state is JobState.SUCCEEDED

    assert [(error.what, error.limit) for error in seen] == [
        ("checkpoint", MAX_CHECKPOINT_BYTES),
        ("progress", MAX_PROGRESS_BYTES),
    ]
