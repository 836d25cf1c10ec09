"""Use cases of jobs on the real database: dedupe, results, reading, steering."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

import psutil
import pytest

from mainspring import AttemptStatus, Fail, JobState, Mainspring
from mainspring.app.jobs import Jobs
from mainspring.domain.errors import (
    DuplicateJob,
    IllegalMove,
    InvalidOption,
    JobNotFound,
    JobUnsuccessful,
    ResultTimeout,
)
from mainspring.domain.jobs.options import MAX_PAYLOAD_BYTES
from mainspring.services.payloads import encode_payloads
from mainspring.testing import adrain

HOUR = timedelta(hours=1)


# Dedupe


async def test_a_dedupe_key_is_free_again_when_its_job_has_ended(app):
    first = await app.aenqueue("send", {}, dedupe_key="k")
    await adrain(app)
    second = await app.aenqueue("send", {}, dedupe_key="k")

    assert second.is_new
    assert second.id != first.id


async def test_existing_returns_the_job_that_holds_the_key(app):
    first = await app.aenqueue("send", {"a": 1}, dedupe_key="k")
    second = await app.aenqueue("send", {"a": 2}, dedupe_key="k", on_duplicate="existing")

    assert (second.id, second.is_new) == (first.id, False)
    assert repr(second) == f"<job {first.id} (existing)>"


async def test_a_dedupe_key_belongs_to_one_tenant(app, connection):
    connection.execute("insert into mainspring.tenants (tenant_id) values ('acme')")
    await app.aenqueue("send", {}, dedupe_key="k")

    assert (await app.aenqueue("send", {}, dedupe_key="k", tenant_id="acme")).is_new


async def test_equal_content_is_a_duplicate_whatever_the_order_of_its_keys(app):
    await app.aenqueue("send", {"a": 1, "b": 2}, dedupe_by="content")

    with pytest.raises(DuplicateJob):
        await app.aenqueue("send", {"b": 2, "a": 1}, dedupe_by="content")
    assert (await app.aenqueue("send", {"a": 1}, dedupe_by="content")).is_new


async def test_a_window_outlives_the_job_but_not_itself(app, connection):
    await app.aenqueue("send", {}, dedupe_key="k", dedupe_window=HOUR)
    await adrain(app)

    with pytest.raises(DuplicateJob):
        await app.aenqueue("send", {}, dedupe_key="k", dedupe_window=HOUR)
    connection.execute("update mainspring.enqueue_keys set expires_at = now()")
    assert (await app.aenqueue("send", {}, dedupe_key="k", dedupe_window=HOUR)).is_new


async def test_an_idempotency_key_returns_the_first_job_even_when_it_has_ended(app):
    first = await app.aenqueue("send", {"a": 1}, idempotency_key="k")
    await adrain(app)
    second = await app.aenqueue("send", {"a": 1}, idempotency_key="k")

    assert (second.id, second.is_new) == (first.id, False)
    assert len(await app.jobs.alist()) == 1


async def test_bulk_leaves_out_payloads_whose_dedupe_key_is_taken(app):
    await app.aenqueue("send", {}, dedupe_key="b")
    payloads = [{"n": n} for n in range(4)]
    job_ids = await app.aenqueue_many("send", payloads, dedupe_keys=["a", "b", None, "a"])

    assert [(await app.jobs.aget(job_id)).payload for job_id in job_ids] == [{"n": 0}, {"n": 2}]


# Results


async def test_a_result_can_be_awaited(app):
    handle = await app.aenqueue("send", {"a": [1, None, "é"]})
    await adrain(app)

    assert await handle.aresult(timeout=1) == {"a": [1, None, "é"]}


async def test_a_job_that_is_not_done_in_time_says_so(app):
    handle = await app.aenqueue("send", {})

    with pytest.raises(ResultTimeout, match=f"job {handle.id}, which is still queued") as refused:
        await handle.aresult(timeout=0.02)
    assert (refused.value.job_id, refused.value.state) == (handle.id, JobState.QUEUED)


async def test_a_job_without_success_has_no_result(app):
    @app.job
    async def fail() -> Fail:
        return Fail("no such user")

    handle = await fail.aenqueue()
    await adrain(app)

    with pytest.raises(JobUnsuccessful, match="is failed: no such user") as refused:
        await handle.aresult(timeout=1)
    assert (refused.value.state, refused.value.error) == (JobState.FAILED, "no such user")


async def test_the_result_of_another_tenants_job_cannot_be_had(app):
    handle = await app.aenqueue("send", {})

    with pytest.raises(JobNotFound):
        await app.jobs.aget(handle.id, tenant_id="acme")


# Reading


async def test_jobs_come_newest_first_by_page_and_by_filter(app):
    for number in range(5):
        await app.aenqueue("send", {"n": number}, queue="even" if number % 2 == 0 else "odd")

    newest = await app.jobs.alist(limit=2)
    assert [job.payload["n"] for job in newest] == [4, 3]
    older = await app.jobs.alist(before=newest[-1].id)
    assert [job.payload["n"] for job in older] == [2, 1, 0]
    assert [job.payload["n"] for job in await app.jobs.alist(queue="odd")] == [3, 1]
    assert await app.jobs.alist(state=JobState.RUNNING) == []
    assert await app.jobs.alist(definition="other") == []


async def test_a_job_keeps_everything_it_was_enqueued_with(app):
    due_at = datetime.now(UTC).replace(microsecond=5) + HOUR
    handle = await app.aenqueue(
        "send",
        {"a": 1},
        queue="mail",
        priority=7,
        max_attempts=9,
        scheduled_for=due_at,
        deadline=due_at + HOUR,
        dedupe_key="k",
        correlation_id="c",
        tags=["x", 'y"{,}\\'],
    )

    job = await handle.ajob()
    assert (job.queue, job.priority, job.max_attempts) == ("mail", 7, 9)
    assert (job.scheduled_for, job.deadline_at, job.waits_for) == (due_at, due_at + HOUR, "time")
    assert (job.dedupe_key, job.correlation_id, job.tags) == ("k", "c", ("x", 'y"{,}\\'))


@pytest.mark.parametrize("count", [2, 300])
async def test_bulk_jobs_keep_what_they_were_enqueued_with(app, count):
    due_at = datetime.now(UTC).replace(microsecond=5) + HOUR
    options = {"queue": "mail", "priority": 7, "max_attempts": 9, "scheduled_for": due_at}
    texts = {"correlation_id": "c\t\\N", "tags": ["x", 'y"{,}\\\n']}
    job_ids = await app.aenqueue_many("send", [{"n": n} for n in range(count)], **options, **texts)

    job = await app.jobs.aget(job_ids[-1])
    assert (job.queue, job.priority, job.max_attempts) == ("mail", 7, 9)
    assert (job.scheduled_for, job.waits_for, job.payload) == (due_at, "time", {"n": count - 1})
    assert (job.correlation_id, job.tags) == ("c\t\\N", ("x", 'y"{,}\\\n'))


def test_small_payloads_of_a_bulk_take_little_memory():
    payloads = [{"n": n} for n in range(100_000)]
    process = psutil.Process()
    before = process.memory_info().rss

    encoded = encode_payloads(payloads, MAX_PAYLOAD_BYTES)

    assert process.memory_info().rss - before < 100 * 2**20
    assert encoded[-1] == b'{"n":99999}'


async def test_attempts_tell_what_happened(app):
    @app.job(max_attempts=2)
    async def fail() -> None:
        raise ValueError("no")

    handle = await fail.aenqueue()
    await adrain(app, with_scheduled=True, with_errors="collect")
    first, second = await app.jobs.aattempts(handle.id)

    assert (first.number, first.status, second.number) == (1, AttemptStatus.FAILED, 2)
    assert first.finished_at is not None
    assert first.started_at <= first.finished_at <= second.started_at
    assert "ValueError: no" in (second.error or "")


# Steering


async def test_a_queued_job_is_canceled_at_once_and_can_be_retried(app):
    handle = await app.aenqueue("send", {"a": 1})

    assert await app.jobs.acancel(handle.id, "changed my mind") is JobState.CANCELED
    assert (await handle.ajob()).last_error == "changed my mind"
    await app.jobs.aretry(handle.id, {"a": 2})
    await adrain(app)
    assert await handle.aresult(timeout=0) == {"a": 2}


async def test_a_deleted_job_is_gone_with_its_attempts(app):
    handle = await app.aenqueue("send", {})
    await adrain(app)
    await app.jobs.adelete(handle.id)

    with pytest.raises(JobNotFound):
        await handle.ajob()
    assert await app.jobs.aattempts(handle.id) == []


Action = Callable[[Jobs, int], Awaitable[object]]


@pytest.mark.parametrize(
    ("action", "target"), [(Jobs.acancel, "canceled"), (Jobs.aretry, "queued")]
)
async def test_a_job_that_has_succeeded_stays_as_it_is(app, action: Action, target):
    handle = await app.aenqueue("send", {})
    await adrain(app)

    with pytest.raises(IllegalMove, match=f"is succeeded; it cannot become {target}") as refused:
        await action(app.jobs, handle.id)
    assert (refused.value.state, refused.value.target) == (JobState.SUCCEEDED, target)


@pytest.mark.parametrize("action", [Jobs.acancel, Jobs.aretry, Jobs.adelete])
async def test_a_job_that_is_not_there_is_said_so(app, action: Action):
    with pytest.raises(JobNotFound, match="there is no job 999"):
        await action(app.jobs, 999)


async def test_a_retry_does_not_take_a_dedupe_key_from_another_job(app):
    first = await app.aenqueue("send", {}, dedupe_key="k")
    await app.jobs.acancel(first.id)
    second = await app.aenqueue("send", {}, dedupe_key="k")

    with pytest.raises(DuplicateJob, match=f"job {second.id} already has"):
        await app.jobs.aretry(first.id)
    assert (await first.ajob()).state is JobState.CANCELED


# From blocking code


def test_a_job_can_be_read_canceled_retried_and_deleted_from_blocking_code(database_url):
    with Mainspring(database_url) as app:

        @app.job
        def send(a: int) -> None: ...

        handle = send.enqueue(a=1)
        assert app.jobs.cancel(handle.id, "changed my mind") is JobState.CANCELED
        assert app.jobs.get(handle.id).last_error == "changed my mind"
        app.jobs.retry(handle.id, {"a": 2})
        assert [job.payload for job in app.jobs.list(queue="default")] == [{"a": 2}]
        assert app.jobs.attempts(handle.id) == []
        app.jobs.delete(handle.id)
        assert app.jobs.list() == []


async def test_a_filter_takes_several_values(app):
    first, second, third = [await app.aenqueue("send", {}, queue=each) for each in "xyz"]
    await app.jobs.acancel(third.id)

    async def listed(**filters):
        return [job.id for job in await app.jobs.alist(**filters)]

    assert await listed(queue=["x", "y", "none"]) == [second.id, first.id]
    assert await listed(state=["canceled", JobState.QUEUED]) == [third.id, second.id, first.id]
    assert await listed(state={"failed", "canceled"}, queue="z") == [third.id]
    with pytest.raises(InvalidOption, match=r"state must be one of .* did you mean queued"):
        await app.jobs.alist(state=["queud"])


@pytest.mark.parametrize("action", [Jobs.cancel, Jobs.delete])
def test_what_is_done_to_a_job_in_a_transaction_is_rolled_back_with_it(
    database_url, connection, action: Callable[..., object]
):
    with Mainspring(database_url) as app:

        @app.job
        def send() -> None: ...

        handle = send.enqueue()
        with connection.transaction(force_rollback=True):
            action(app.jobs, handle.id, connection=connection)
        assert handle.job().state is JobState.QUEUED


async def test_a_retry_in_a_transaction_is_rolled_back_with_it(app, aconnection):
    handle = await app.aenqueue("send", {})
    await app.jobs.acancel(handle.id)

    async with aconnection.transaction(force_rollback=True):
        await app.jobs.aretry(handle.id, {"a": 2}, connection=aconnection)

    job = await handle.ajob()
    assert (job.state, job.payload) == (JobState.CANCELED, {})
