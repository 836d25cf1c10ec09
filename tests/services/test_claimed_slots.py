"""A past slot that a person runs: claimed once, whoever else wants it."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from mainspring import Context, Mainspring
from mainspring.domain.errors import InvalidSchedule
from mainspring.domain.errors.slots import SlotClaimed
from mainspring.testing import adrain
from tests.support import schedules
from tests.support.schedules import HOUR, scheduling
from tests.support.waiting import await_until

DAY = timedelta(days=1)
LAST_NOON = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0) - DAY
SHOWN = f"{LAST_NOON:%Y-%m-%dT%H:%M:%SZ}"


@pytest.fixture
async def noon(app: Mainspring) -> str:
    await app.schedules.acreate("noon", "send", cron="0 12 * * *")
    return "noon"


async def test_the_job_belongs_to_the_slot_that_was_asked_for(app: Mainspring):
    @app.job
    async def look(ctx: Context) -> Any:
        return None if ctx.slot is None else [ctx.slot.at.isoformat(), ctx.slot.trigger]

    await app.schedules.acreate("look", look, cron="0 12 * * *")
    done = await app.schedules.atrigger("look", slot=LAST_NOON)
    await adrain(app)

    assert (done.outcome, done.slot_at) == ("enqueued", LAST_NOON)
    assert done.job_id is not None
    assert (await app.jobs.aget(done.job_id)).result == [LAST_NOON.isoformat(), "manual"]
    (slot,) = await app.schedules.ahistory("look")
    assert (slot.scheduled_for, slot.run_state, slot.job_id) == (
        LAST_NOON,
        "succeeded",
        done.job_id,
    )


async def test_a_slot_is_claimed_once(app: Mainspring, noon: str):
    asked = [app.schedules.atrigger(noon, slot=LAST_NOON) for _ in range(5)]
    answers = await asyncio.gather(*asked, return_exceptions=True)

    refused = [each for each in answers if isinstance(each, BaseException)]
    assert len(refused) == 4
    for error in refused:
        assert isinstance(error, SlotClaimed)
        said = f"slot {SHOWN} of schedule 'noon' is already claimed: job {error.job_id}"
        assert (str(error), error.slot_at) == (said, LAST_NOON)
    assert await app.schedules.abackfill(noon, LAST_NOON, LAST_NOON) == []


async def test_a_slot_that_had_no_job_can_be_claimed(app: Mainspring, noon: str):
    await app.schedules.atrigger(noon, slot=LAST_NOON)
    skipped = await app.schedules.atrigger(noon, slot=LAST_NOON - DAY)
    await adrain(app)
    done = await app.schedules.atrigger(noon, slot=LAST_NOON - DAY)

    assert (skipped.outcome, done.outcome) == ("skipped", "enqueued")
    assert [slot.outcome for slot in await app.schedules.ahistory(noon)] == ["enqueued"] * 2


@pytest.mark.parametrize("late", [timedelta(0), HOUR / 2], ids=["on time", "late"])
async def test_a_scheduler_does_not_fire_a_slot_that_was_claimed(
    app: Mainspring, connection: psycopg.Connection, late: timedelta
):
    schedules.insert_schedule(connection)
    schedules.miss(connection, "tick", late)
    slot = schedules.schedule(connection)["next_slot_at"]

    done = await app.schedules.atrigger("tick", slot=slot)
    async with scheduling(app):
        await await_until(lambda: schedules.schedule(connection)["next_slot_at"] > slot)

    assert [job["job_id"] for job in schedules.jobs(connection)] == [done.job_id]
    assert schedules.outcomes(connection) == ["enqueued"]


async def test_a_condition_decides_about_the_slot_once(app: Mainspring):
    await app.schedules.acreate(
        "if", "send", cron="0 12 * * *", condition_sql="select true", payload={"at": "{{slot_at}}"}
    )
    pending = await app.schedules.atrigger("if", slot=LAST_NOON)
    with pytest.raises(SlotClaimed, match="is already claimed: it waits for a scheduler"):
        await app.schedules.atrigger("if", slot=LAST_NOON)
    async with scheduling(app):
        job_id = await await_until(lambda: job_of(app, "if"))

    assert (pending.outcome, pending.slot_at) == ("pending", LAST_NOON)
    assert job_id is not None
    assert (await app.jobs.aget(job_id)).payload == {"at": SHOWN}


async def job_of(app: Mainspring, name: str) -> int | None:
    (slot,) = await app.schedules.ahistory(name)
    return slot.job_id


@pytest.mark.parametrize(
    ("slot", "problem"),
    [
        (LAST_NOON + HOUR, r"T13:00:00Z is no slot of 'noon'; the next one is .*T12:00:00Z"),
        (LAST_NOON + 5 * DAY, "is not in the past; without a slot the schedule is fired now"),
        (LAST_NOON.replace(tzinfo=None), "needs a time zone"),
        (SHOWN, "must be a datetime, not '"),
    ],
    ids=["not due then", "future", "naive", "text"],
)
async def test_an_instant_that_is_no_past_slot_is_refused(
    app: Mainspring, noon: str, slot: Any, problem: str
):
    with pytest.raises(InvalidSchedule, match=problem) as refused:
        await app.schedules.atrigger(noon, slot=slot)
    assert refused.value.field == "slot"


def test_sql_claims_a_slot_once(connection: psycopg.Connection):
    schedules.insert_schedule(connection, cron="0 12 * * *")
    claim = "select mainspring.trigger_scheduled_job('tick', slot => %s)"

    row = connection.execute(claim, (LAST_NOON,)).fetchone()
    assert row is not None
    assert (row[0]["outcome"], row[0]["job_id"]) == ("enqueued", 1)
    with pytest.raises(psycopg.Error, match=f"slot {SHOWN} .* is already claimed: job 1") as error:
        connection.execute(claim, (LAST_NOON,))
    assert error.value.sqlstate == "MS043"
