"""The launchers and workers of ADR-050 of the knowledge graph run as they are printed there."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest
import pytest_asyncio

from mainspring import Launcher, Mainspring
from mainspring.domain.errors import InputError
from mainspring.testing import adrain
from tests.support import adr_050, rows, schedules
from tests.support.adr_050 import GRAPH, CategoryRefreshLauncher, VocabConsolidationLauncher
from tests.support.schedules import scheduling
from tests.support.waiting import await_until

NEW = [{"name": "Temporal", "relationship_types": ["llm_generated"]}]
REFRESH = {"operation": "refresh_categories", "auto_mode": True, "filter": "llm_generated"}


@pytest_asyncio.fixture
async def queue(app: Mainspring) -> AsyncIterator[Mainspring]:
    app.register_worker("vocab_refresh", adr_050.run_vocab_refresh_worker)
    app.register_worker("vocab_consolidate", adr_050.run_vocab_refresh_worker)
    await app.aregister_definitions()
    GRAPH.update(categories=NEW, stats={"active_types": 100, "inactive_types": 21})
    yield app
    GRAPH.clear()


class Decide:
    """Fires a schedule of a launcher; what came of its slot."""

    def __init__(self, app: Mainspring, connection: psycopg.Connection) -> None:
        self._app, self._connection = app, connection

    async def __call__(self, kind: type[Launcher], **columns: Any) -> schedules.Row:
        name = kind.__name__
        self._app.schedules.launchers[name] = kind
        schedules.insert_due(
            self._connection, name, launcher=name, definition="vocab_refresh", **columns
        )
        async with scheduling(self._app):
            return await await_until(lambda: schedules.decided(self._connection, name))


@pytest.fixture
def decide(queue: Mainspring, connection: psycopg.Connection) -> Decide:
    return Decide(queue, connection)


async def test_a_launch_enqueues_the_job_of_its_slot(
    queue: Mainspring, connection: psycopg.Connection, decide: Decide
):
    slot = await decide(CategoryRefreshLauncher)
    await adrain(queue)

    assert slot["outcome"] == "enqueued"
    job = await queue.jobs.aget(slot["job_id"])
    assert job.result == {"job_id": str(job.id), "is_system_job": True, **REFRESH}
    assert job.created_by == "system:scheduler:CategoryRefreshLauncher"
    ran = schedules.decided(connection, "CategoryRefreshLauncher")
    assert (ran["run_state"], ran["job_id"]) == ("succeeded", job.id)


@pytest.mark.parametrize(("inactive", "outcome"), [(20, "skipped"), (21, "enqueued")])
async def test_a_launch_decides_which_job_runs(
    queue: Mainspring, connection: psycopg.Connection, decide: Decide, inactive: int, outcome: str
):
    GRAPH["stats"]["inactive_types"] = inactive
    slot = await decide(VocabConsolidationLauncher)

    assert slot["outcome"] == outcome
    if outcome == "enqueued":
        assert rows.job(connection, slot["job_id"])["definition"] == "vocab_consolidate"
    assert schedules.schedule(connection, slot["name"])["retry_count"] == 0


async def test_a_launch_that_raises_is_a_failure(
    queue: Mainspring, connection: psycopg.Connection, decide: Decide
):
    del GRAPH["categories"]
    slot = await decide(CategoryRefreshLauncher)

    reason = "CategoryRefreshLauncher: KeyError: 'categories'"
    assert (slot["outcome"], slot["reason"]) == ("failed", reason)
    assert schedules.schedule(connection, slot["name"])["retry_count"] == 1
    assert schedules.jobs(connection) == []


async def test_a_launch_without_a_scheduler_returns_a_job_id_or_none(queue: Mainspring):
    job_id = await asyncio.to_thread(CategoryRefreshLauncher(queue).launch)

    assert job_id is not None
    assert (await queue.jobs.aget(int(job_id))).payload == REFRESH
    GRAPH["categories"] = []
    assert await asyncio.to_thread(CategoryRefreshLauncher(queue).launch) is None


class Parts(Launcher):
    """Has no launch() of its own."""

    job_type = "vocab_refresh"

    async def check_conditions(self) -> bool:
        return bool(GRAPH["categories"])

    async def prepare_job_data(self) -> dict[str, Any]:
        return {"from": "parts"}


async def test_every_launcher_can_be_launched_without_a_scheduler(queue: Mainspring):
    job_id = await asyncio.to_thread(Parts(queue).launch)

    assert (await queue.jobs.aget(int(job_id))).payload == {"from": "parts"}
    GRAPH["categories"] = []
    assert await asyncio.to_thread(Parts(queue).launch) is None
    with pytest.raises(InputError, match="Launcher has no schedule outside a scheduler"):
        Launcher(queue).launch()


class Twice(Launcher):
    def launch(self) -> Any:
        self.job_queue.enqueue("vocab_refresh", {})
        return self.job_queue.enqueue("vocab_refresh", {})


class Forgetful(Launcher):
    def launch(self) -> None:
        self.job_queue.enqueue("vocab_refresh", {})


class Elsewhere(Launcher):
    async def launch(self) -> str:
        return "celery-7"


class BothWays(Launcher):
    async def launch(self) -> str:
        self.job_queue.enqueue("vocab_refresh", {})
        return "celery-7"


class WithOptions(Launcher):
    def launch(self) -> Any:
        return self.job_queue.enqueue("vocab_refresh", {}, priority=1)


class Renamed(Launcher):
    def launch(self) -> Any:
        job_id = self.job_queue.enqueue("vocab_refresh", {})
        self.job_queue.update_job(job_id, {"created_by": "ada"})
        return job_id


@pytest.mark.parametrize(
    ("kind", "problem"),
    [
        (Twice, "launch() enqueued two jobs, and a slot has one; enqueue the others in its"),
        (Forgetful, "but returned None; return the id that self.job_queue.enqueue returned"),
        (Elsewhere, "job celery-7, which was enqueued elsewhere, is not part of this slot"),
        (BothWays, "job celery-7, which was enqueued elsewhere, is not part of this slot"),
        (WithOptions, "launch() cannot enqueue with priority; set it on the schedule"),
        (Renamed, "created_by of a scheduled job is 'system:scheduler:' and the name of the"),
    ],
)
async def test_a_launch_that_would_lose_its_job_fails_and_says_what_to_write(
    connection: psycopg.Connection, decide: Decide, kind: type[Launcher], problem: str
):
    slot = await decide(kind)

    assert slot["outcome"] == "failed"
    assert problem in slot["reason"]
    assert schedules.jobs(connection) == []


@pytest.mark.parametrize("returns_id", [True, False])
async def test_a_slot_whose_job_was_enqueued_elsewhere_is_not_tried_again(
    queue: Mainspring, connection: psycopg.Connection, decide: Decide, returns_id: bool
):
    class Backup(Launcher):
        def launch(self) -> Any:
            job = queue.enqueue("vocab_refresh", {})
            return job.id if returns_id else job

    slot = await decide(Backup, max_retries=2, every=schedules.HOUR)

    (job,) = await queue.jobs.alist(definition="vocab_refresh")
    reason = f"Backup: job {job.id}, which was enqueued elsewhere, is not part of this slot and may"
    assert slot["outcome"] == "failed"
    assert slot["reason"].startswith(reason)
    row = schedules.schedule(connection, "Backup")
    assert (row["retry_count"], row["enabled"], row["failed_count"]) == (1, True, 1)
    assert row["next_slot_at"] == row["next_run_at"]
    # A retry would come after two minutes.
    assert row["next_slot_at"] > slot["scheduled_for"] + 50 * schedules.MINUTE


async def test_a_launcher_that_always_enqueues_elsewhere_is_disabled(
    queue: Mainspring, connection: psycopg.Connection, decide: Decide
):
    await decide(Elsewhere, max_retries=1)

    row = schedules.schedule(connection, "Elsewhere")
    assert row["enabled"] is False
    assert row["disabled_reason"].startswith("failed once; last error: Elsewhere: job celery-7")


class Forced(Launcher):
    def check_conditions(self) -> bool:
        return False

    async def launch(self) -> Any:
        self.reason = "nothing new"
        return super().launch()


async def test_a_launch_may_be_async_and_call_the_one_it_overrides(
    queue: Mainspring, connection: psycopg.Connection, decide: Decide
):
    slot = await decide(Forced)
    async with scheduling(queue):
        done = await queue.schedules.atrigger("Forced", force=True, wait=schedules.MINUTE)

    assert (slot["outcome"], slot["reason"]) == ("skipped", "nothing new")
    assert done.job_id is not None
    assert rows.job(connection, done.job_id)["slot_at"] == done.slot_at
