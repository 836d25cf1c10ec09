"""`worker(job_data, job_id, queue)`, as ADR-050 of the knowledge graph describes it."""

import re
import threading
from typing import Any

import psycopg
import pytest

from mainspring import Mainspring, Progress
from mainspring.domain.errors import InputError
from mainspring.testing import adrain
from tests.support import apps
from tests.support.waiting import await_until
from tests.support.workers import ended, working

PAGES = {"current": 3, "total": 9}
STAGE = {"stage": "embedding", "percent": 20, "chunk": 4}


async def test_a_worker_resumes_from_the_checkpoint_of_its_last_attempt(app: Mainspring):
    def ingest(job_data: dict[str, Any], job_id: str, queue: Any) -> dict[str, Any]:
        done = (queue.get_job(job_id)["checkpoint"] or {"chunk": 0})["chunk"]
        for chunk in range(done, job_data["chunks"]):
            queue.update_job(job_id, {"checkpoint": {"chunk": chunk + 1}})
            if chunk == 2 and not done:
                raise ConnectionError("the model went away")
        return {"resumed_at": done, "saved": queue.get_job(job_id)["checkpoint"]}

    app.register_worker("ingestion", ingest, backoff=apps.AT_ONCE)
    async with working(app):
        handle = await app.aenqueue("ingestion", {"chunks": 5})
        job = await ended(handle)

    assert job.result == {"resumed_at": 3, "saved": {"chunk": 5}}
    assert job.progress is None


async def test_the_job_tells_a_worker_what_it_runs(app: Mainspring):
    def look(job_data: dict[str, Any], job_id: str, job_queue: Any) -> Any:
        job_queue.update_job(job_id, {"progress": 10})
        return job_queue.get_job(job_id)

    app.register_worker("look", look, max_attempts=4)
    handle = await app.aenqueue("look", {"path": "a.txt"}, tags=["x"])
    await adrain(app)

    job = await handle.aresult(timeout=1)
    assert job["created_at"] < job["started_at"]
    assert job | {"created_at": None, "started_at": None} == {
        "job_id": str(handle.id),
        "job_type": "look",
        "job_data": {"path": "a.txt"},
        "status": "running",
        "progress": {"current": 10, "total": 100, "message": None, "data": None},
        "checkpoint": None,
        "attempt": 1,
        "max_attempts": 4,
        "error": None,
        "tenant": "default",
        "queue": "default",
        "priority": 100,
        "tags": ["x"],
        "created_by": None,
        "job_source": "code",
        "is_system_job": False,
        "created_at": None,
        "started_at": None,
    }


async def test_an_update_changes_only_what_it_names(app: Mainspring):
    def report(job_data: dict[str, Any], job_id: str, queue: Any) -> Any:
        for update in job_data["updates"]:
            queue.update_job(job_id, update)
        return queue.get_job(job_id)["progress"]

    cases: list[tuple[list[dict[str, Any]], Progress]] = [
        ([{"progress": 50}, {"message": "half"}], Progress(50, 100, "half")),
        ([{"progress": 50, "message": "half"}, {"progress": 60}], Progress(60, 100, "half")),
        ([{"progress": PAGES}, {"data": {"a": 1}}], Progress(3, 9, None, {"a": 1})),
        ([{"progress": PAGES}, {"checkpoint": 4}], Progress(3, 9)),
        ([{"data": [1]}, {"progress": PAGES}], Progress(3, 9, None, [1])),
        ([{"progress": STAGE}], Progress(20, 100, "embedding", {"chunk": 4})),
        (
            [{"progress": STAGE, "message": "chunk 4"}],
            Progress(20, 100, "chunk 4", {"stage": "embedding", "chunk": 4}),
        ),
        ([{"progress": 0}], Progress(0, 100)),
        ([{"progress": 100}], Progress(100, 100)),
        ([{"message": "starts"}], Progress(0, None, "starts")),
    ]
    app.register_worker("report", report)
    handles = [await app.aenqueue("report", {"updates": updates}) for updates, _ in cases]
    await adrain(app)

    reported = [Progress(**await handle.aresult(timeout=1)) for handle in handles]
    assert reported == [progress for _, progress in cases]


async def test_an_update_can_be_seen_while_the_worker_runs(app: Mainspring):
    seen = threading.Event()

    def report(job_data: dict[str, Any], job_id: str, queue: Any) -> None:
        queue.update_job(job_id, {"progress": 50})
        queue.update_job(job_id, {"message": "half"})
        seen.wait(10)

    async def is_reported() -> bool:
        return (await handle.ajob()).progress == Progress(50, 100, "half")

    app.register_worker("report", report)
    async with working(app):
        handle = await app.aenqueue("report", {})
        await await_until(is_reported)
        seen.set()
        await ended(handle)


async def test_an_update_keeps_the_progress_of_the_attempt_before(
    app: Mainspring, connection: psycopg.Connection
):
    def report(job_data: dict[str, Any], job_id: str, queue: Any) -> Any:
        queue.update_job(job_id, {"message": "goes on"})
        return queue.get_job(job_id)["progress"]

    app.register_worker("report", report)
    handle = await app.aenqueue("report", {})
    connection.execute(
        'update mainspring.jobs set progress = \'{"current": 7, "total": 9,'
        ' "message": null, "data": [1]}\''
    )
    await adrain(app)

    expected = {"current": 7, "total": 9, "message": "goes on", "data": [1]}
    assert await handle.aresult(timeout=1) == expected


async def test_an_update_that_means_nothing_is_refused(app: Mainspring):
    refused: list[tuple[Any, str]] = [
        ({"status": "failed"}, "'status' cannot be set by a worker; return the result or raise"),
        ({"result": 1}, "'result' cannot be set by a worker; return the result or raise an error"),
        ({"chekpoint": 1}, "unknown field 'chekpoint'; did you mean checkpoint?"),
        ({"chunks": 1}, "unknown field 'chunks'; put values of your own under 'data'"),
        ({"progress": True}, "progress must be a finite number, not True"),
        ({"progress": "half"}, "from 0 to 100 or a dict, not 'half'; put a text under 'message'"),
        ({"progress": 101}, "progress must be from 0 to 100, not 101; for another scale, give a"),
        ({"progress": -1}, "progress must be from 0 to 100, not -1"),
        ({"progress": {"percent": 101}}, "progress must be from 0 to 100, not 101"),
        ({"progress": float("nan")}, "progress must be a finite number, not nan"),
        ({"progress": {"current": "3"}}, "progress must be a finite number, not '3'"),
        ({"progress": {"current": 3, "total": "9"}}, "progress must be a finite number, not '9'"),
        ({"message": 3}, "message must be a string, not 3"),
        ({"checkpoint": object}, "the checkpoint is not JSON"),
        ([("progress", 3)], "updates must be a dict, not list"),
    ]

    def report(job_data: dict[str, Any], job_id: str, queue: Any) -> Any:
        for updates, problem in refused:
            with pytest.raises(InputError, match=re.escape(problem)):
                queue.update_job(job_id, updates)
        job = queue.get_job(job_id)
        return [job["progress"], job["checkpoint"]]

    app.register_worker("report", report)
    handle = await app.aenqueue("report", {})
    await adrain(app)

    assert await handle.aresult(timeout=1) == [None, None]


async def test_a_worker_reaches_no_other_job(app: Mainspring):
    def reach(job_data: dict[str, Any], job_id: str, queue: Any) -> None:
        other, only = job_data["other"], f": a worker reaches only its own job, {job_id}"
        with pytest.raises(InputError, match=f"get_job of job {other}{only}"):
            queue.get_job(other)
        with pytest.raises(InputError, match=f"update_job of job {other}{only}"):
            queue.update_job(other, {"progress": 99})
        with pytest.raises(InputError, match=f"is_canceled of job {other}{only}"):
            queue.is_canceled(other)

    app.register_worker("reach", reach)
    other = await app.aenqueue("reach", {}, queue="other")
    await app.aenqueue("reach", {"other": str(other.id)})
    summary = await adrain(app, queue="default")

    assert summary.succeeded == 1
    assert (await other.ajob()).progress is None
