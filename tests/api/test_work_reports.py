"""/work: what a worker says of a job's end, also twice and also too late."""

from typing import Any

import httpx
import psycopg
import pytest

from mainspring.domain.jobs.tails import TAIL_LENGTH
from tests.support.api import Api
from tests.support.work import claim, define_remote, enqueue, register, state_of, told

ENDS: dict[str, dict[str, Any]] = {
    "complete": {"result": 1},
    "fail": {"error": "no luck"},
    "canceled": {"reason": "as asked"},
}


@pytest.fixture(autouse=True)
def remote(api: Api, connection: psycopg.Connection) -> None:
    define_remote(connection)


async def report(
    api: Api, worker: str, job: dict[str, Any], what: str, **facts: Any
) -> httpx.Response:
    given = {"fence": job["fence"], **ENDS[what], **facts}
    return await told(api, "POST", f"{worker}/jobs/{job['job_id']}/{what}", given)


async def attempts_of(api: Api, job_id: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await api.get(f"/jobs/{job_id}/attempts")).json()["items"]
    return found


def expire(connection: psycopg.Connection) -> None:
    connection.execute("update mainspring.workers set expires_at = now() - interval '1 second'")


# Output


@pytest.mark.parametrize("what", ENDS)
async def test_a_report_brings_what_was_printed_and_the_exit_code(api: Api, what: str):
    job_id = await enqueue(api)
    worker = await register(api)
    (job,) = await claim(api, worker)

    answer = await report(api, worker, job, what, stdout="out\n", stderr="err\n", exit_code=3)

    assert answer.status_code == 200, answer.text
    (attempt,) = await attempts_of(api, job_id)
    printed = (attempt["stdout_tail"], attempt["stderr_tail"], attempt["exit_code"])
    assert printed == ("out\n", "err\n", 3)


async def test_of_much_output_the_end_is_kept(api: Api):
    job_id = await enqueue(api)
    worker = await register(api)
    (job,) = await claim(api, worker)

    await report(api, worker, job, "complete", stdout="a" * 10 + "b" * TAIL_LENGTH)

    (attempt,) = await attempts_of(api, job_id)
    assert attempt["stdout_tail"] == "... 10 characters omitted ...\n" + "b" * TAIL_LENGTH


async def test_output_shows_no_secret(api: Api, connection: psycopg.Connection):
    connection.execute(
        "insert into mainspring.definitions (key, kind, queue, arg_schema) values ('login',"
        """ 'remote', 'far', '{"properties": {"word": {"type": "string", "writeOnly": true}}}')"""
    )
    secret = {"word": "hunter2-hunter2"}
    made = await api.post("/jobs", {"definition": "login", "payload": secret})
    worker = await register(api)
    (job,) = await claim(api, worker, definitions=["login"])

    await report(api, worker, job, "complete", stdout="as hunter2-hunter2\n", stderr="\0 odd")

    (attempt,) = await attempts_of(api, made.json()["id"])
    assert "hunter2" not in attempt["stdout_tail"]
    assert attempt["stderr_tail"] == "\ufffd odd"


@pytest.mark.parametrize(
    "wrong", [{"exit_code": 2**31}, {"exit_code": "x"}, {"stdout": "x" * 1_048_577}]
)
async def test_output_that_cannot_be_is_refused(api: Api, wrong: dict[str, Any]):
    job_id = await enqueue(api)
    worker = await register(api)
    (job,) = await claim(api, worker)

    refused = await report(api, worker, job, "complete", **wrong)

    assert (refused.status_code, refused.json()["code"]) == (422, "invalid_request")
    assert await state_of(api, job_id) == "running"


async def test_a_failure_after_the_time_is_up_is_a_timeout(
    api: Api, connection: psycopg.Connection
):
    job_id = await enqueue(api)
    worker = await register(api)
    (job,) = await claim(api, worker)
    connection.execute("update mainspring.jobs set started_at = now() - interval '2 hours'")

    await report(api, worker, job, "fail")

    assert [attempt["state"] for attempt in await attempts_of(api, job_id)] == ["timeout"]


async def test_a_job_that_has_ended_says_which_worker_ran_it_last(
    api: Api, connection: psycopg.Connection
):
    job_id = await enqueue(api)
    first, second = await register(api), await register(api)
    (job,) = await claim(api, first)
    await report(api, first, job, "fail")
    waiting = (await api.get(f"/jobs/{job_id}")).json()
    connection.execute("update mainspring.jobs set waits_for = null, scheduled_for = now()")
    (job,) = await claim(api, second)
    await report(api, second, job, "complete")

    ended = (await api.get(f"/jobs/{job_id}")).json()

    assert waiting["worker_id"] is None
    assert second == f"/workers/{ended['worker_id']}"


# Twice


@pytest.mark.parametrize("what", ENDS)
async def test_a_report_whose_answer_was_lost_may_be_repeated(api: Api, what: str):
    job_id = await enqueue(api)
    worker = await register(api)
    (job,) = await claim(api, worker)

    first = await report(api, worker, job, what)
    second = await report(api, worker, job, what)

    assert (first.status_code, second.status_code) == (200, 200)
    assert first.json() == second.json()
    assert len(await attempts_of(api, job_id)) == 1


async def test_a_report_that_differs_from_the_first_is_refused(api: Api):
    job_id = await enqueue(api)
    worker = await register(api)
    (job,) = await claim(api, worker)

    await report(api, worker, job, "complete")
    refused = await report(api, worker, job, "fail")

    assert (refused.status_code, refused.json()["code"]) == (409, "lease_lost")
    assert refused.json()["detail"] == (
        f"this attempt of job {job_id} has ended already, as succeeded; report the end of an "
        "attempt once"
    )
    assert await state_of(api, job_id) == "succeeded"


@pytest.mark.parametrize("what", [*ENDS, "progress", "checkpoint"])
async def test_a_report_on_a_job_that_the_worker_never_had_is_refused_as_that(api: Api, what: str):
    job_id = await enqueue(api)
    worker = await register(api)
    given = {"fence": "7", **ENDS.get(what, {"current": 1} if what == "progress" else {})}
    if what == "checkpoint":
        given["checkpoint"] = {}

    refused = await told(api, "POST", f"{worker}/jobs/{job_id}/{what}", given)

    assert (refused.status_code, refused.json()["code"]) == (409, "lease_lost")
    number = worker.rpartition("/")[2]
    said = f"worker {number} has no attempt of job {job_id} with this fence; report only jobs"
    assert refused.json()["detail"].startswith(said)
    assert await state_of(api, job_id) == "queued"


async def test_a_wrong_fence_is_not_taken_for_a_lost_lease(api: Api):
    job_id = await enqueue(api)
    worker = await register(api)
    (job,) = await claim(api, worker)
    wrong = {**job, "fence": str(int(job["fence"]) + 1)}

    refused = await report(api, worker, wrong, "complete")

    assert (refused.status_code, refused.json()["code"]) == (409, "lease_lost")
    said = f"the fence does not belong to this attempt of job {job_id}"
    assert refused.json()["detail"].startswith(said)
    assert await state_of(api, job_id) == "running"


# Too late


@pytest.mark.parametrize(
    ("what", "kept"), [("complete", "succeeded"), ("fail", "failed"), ("canceled", "canceled")]
)
async def test_a_late_report_is_kept_and_the_answer_says_so(
    api: Api, connection: psycopg.Connection, what: str, kept: str
):
    job_id = await enqueue(api)
    old = await register(api)
    (job,) = await claim(api, old)
    expire(connection)

    late = await report(api, old, job, what)

    assert (late.status_code, late.json()["code"]) == (409, "late_report")
    assert "kept as its late report" in late.json()["detail"]
    (attempt,) = await attempts_of(api, job_id)
    assert (attempt["state"], attempt["late_report"]) == ("lost", kept)
    assert await state_of(api, job_id) == "queued"


async def test_a_late_report_keeps_its_error_and_what_was_printed(
    api: Api, connection: psycopg.Connection
):
    job_id = await enqueue(api)
    old = await register(api)
    (job,) = await claim(api, old)
    expire(connection)

    said = {"error": "no\x00 luck", "stdout": "out\n", "stderr": "err\n", "exit_code": 3}
    for _ in range(2):
        await report(api, old, job, "fail", **said)

    (attempt,) = await attempts_of(api, job_id)
    assert attempt["error"].partition("\n\n")[2] == "reported too late: no\ufffd luck"
    assert attempt["late_report_at"] is not None
    printed = (attempt["stdout_tail"], attempt["stderr_tail"], attempt["exit_code"])
    assert printed == ("out\n", "err\n", 3)


async def test_a_late_report_shows_no_secret(api: Api, connection: psycopg.Connection):
    connection.execute(
        "insert into mainspring.definitions (key, kind, queue, arg_schema) values ('login',"
        """ 'remote', 'far', '{"properties": {"word": {"type": "string", "writeOnly": true}}}')"""
    )
    secret = {"word": "hunter2-hunter2"}
    made = await api.post("/jobs", {"definition": "login", "payload": secret})
    worker = await register(api)
    (job,) = await claim(api, worker, definitions=["login"])

    expire(connection)
    said = "as hunter2-hunter2"
    await report(api, worker, job, "fail", error=said, stdout=said, stderr=said)

    (attempt,) = await attempts_of(api, made.json()["id"])
    assert "reported too late: as [redacted]" in attempt["error"]
    assert (attempt["stdout_tail"], attempt["stderr_tail"]) == ("as [redacted]", "as [redacted]")


async def test_a_late_report_changes_nothing_of_the_next_attempt(
    api: Api, connection: psycopg.Connection
):
    job_id = await enqueue(api)
    old = await register(api)
    (first,) = await claim(api, old)
    expire(connection)
    await report(api, old, first, "complete")
    new = await register(api)
    connection.execute("update mainspring.jobs set waits_for = null, scheduled_for = now()")
    (second,) = await claim(api, new)

    again = await report(api, old, first, "complete")
    done = await report(api, new, second, "complete", result=2)

    assert (again.json()["code"], done.status_code) == ("late_report", 200)
    assert (await api.get(f"/jobs/{job_id}")).json()["result"] == 2


async def test_nobody_forges_a_late_report(api: Api, connection: psycopg.Connection):
    job_id = await enqueue(api)
    old = await register(api)
    (job,) = await claim(api, old)
    expire(connection)
    path = f"{old}/jobs/{job_id}/complete"

    other_tenant = await told(api, "POST", path, {"fence": job["fence"]}, tenant="acme")
    other_worker = await report(api, await register(api), job, "complete")
    other_fence = await told(api, "POST", path, {"fence": str(int(job["fence"]) + 1)})

    codes = [each.json()["code"] for each in (other_tenant, other_worker, other_fence)]
    assert codes == ["worker_gone", "lease_lost", "worker_gone"]
    assert not any(attempt["late_report"] for attempt in await attempts_of(api, job_id))


@pytest.mark.parametrize("what", ["progress", "checkpoint"])
async def test_what_is_no_end_is_not_kept(api: Api, connection: psycopg.Connection, what: str):
    await enqueue(api)
    old = await register(api)
    (job,) = await claim(api, old)
    expire(connection)

    facts = {"progress": {"current": 1}, "checkpoint": {"checkpoint": 1}}[what]
    path = f"{old}/jobs/{job['job_id']}/{what}"
    late = await told(api, "POST", path, {"fence": job["fence"], **facts})

    assert late.json()["code"] == "worker_gone"
