"""Slots of schedules on the real database: triggered by hand, filled in later, looked back at."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from mainspring import Launcher, Mainspring, SlotOutcome, SlotTrigger
from mainspring.domain.errors import InputError, InvalidOption, InvalidSchedule
from mainspring.testing import adrain
from tests.support import reading

DAY = timedelta(days=1)
MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)
LAST_NOON = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0) - DAY


@pytest.fixture
async def nightly(app: Mainspring) -> str:
    """The name of a schedule of `send`, at noon every day."""
    await app.schedules.acreate("nightly", "send", cron="0 12 * * *")
    return "nightly"


def count(connection, table: str) -> int:
    ((rows,),) = connection.execute(f"select count(*) from mainspring.{table}").fetchall()
    return int(rows)


# Triggering


async def test_a_trigger_enqueues_a_job_in_a_slot_of_its_own(app, nightly):
    done = await app.schedules.atrigger(nightly)
    (slot,) = await app.schedules.ahistory(nightly)

    assert (done.outcome, done.job_id, done.message) == ("enqueued", 1, "job 1 is enqueued")
    assert (slot.scheduled_for, slot.trigger, slot.job_id) == (done.slot_at, "manual", 1)
    assert abs(datetime.now(UTC) - done.slot_at) < MINUTE


async def test_a_trigger_respects_the_overlap_rule(app, nightly):
    await app.schedules.atrigger(nightly)
    done = await app.schedules.atrigger(nightly)

    assert (done.outcome, done.job_id) == (SlotOutcome.SKIPPED, None)
    assert "an earlier run is still live" in done.message


async def test_a_condition_waits_for_a_scheduler_unless_forced(app):
    await app.schedules.acreate("x", "send", every=DAY, condition_sql="select false")

    asked = await app.schedules.atrigger("x", wait=timedelta(milliseconds=50))
    assert (asked.outcome, asked.job_id) == (SlotOutcome.PENDING, None)
    assert (await app.schedules.atrigger("x", force=True)).outcome is SlotOutcome.ENQUEUED


@pytest.mark.parametrize(
    ("condition", "outcome", "message"),
    [
        ("select true", "enqueued", "job 1 is enqueued"),
        ("select false", "skipped", "the condition is not met"),
        ("select 1/0", "failed", "the condition failed: division by zero"),
    ],
)
async def test_a_running_scheduler_decides_while_one_waits(app, condition, outcome, message):
    await app.schedules.acreate("x", "send", every=DAY, condition_sql=condition)

    async with app.schedules.running():
        done = await app.schedules.atrigger("x", wait=timedelta(seconds=20))

    assert (done.outcome, done.message) == (outcome, message)
    assert (done.job_id is None) == (outcome != "enqueued")


async def test_nobody_can_wait_for_what_is_not_committed(app, nightly, aconnection):
    with pytest.raises(InputError, match="cannot wait"):
        await app.schedules.atrigger(nightly, wait=SECOND, connection=aconnection)


# Filling


async def test_a_backfill_enqueues_the_slots_that_had_no_job(app, nightly, connection):
    first = await app.schedules.abackfill(nightly, LAST_NOON - DAY, LAST_NOON)
    again = await app.schedules.abackfill(nightly, LAST_NOON - 2 * DAY, LAST_NOON)

    assert first == [(LAST_NOON - DAY, 1), (LAST_NOON, 2)]
    assert again == [(LAST_NOON - 2 * DAY, 3)]
    assert {slot.trigger for slot in await app.schedules.ahistory(nightly)} == {"backfill"}


async def test_both_ends_of_a_range_belong_to_it(app, nightly):
    tick = timedelta(microseconds=1)

    async def slots(start: datetime, end: datetime) -> int:
        return len(await app.schedules.abackfill(nightly, start, end, dry_run=True))

    assert await slots(LAST_NOON - DAY, LAST_NOON) == 2
    assert await slots(LAST_NOON - DAY + tick, LAST_NOON) == 1
    assert await slots(LAST_NOON - DAY, LAST_NOON - tick) == 1


async def test_a_dry_run_writes_nothing(app, nightly, connection):
    would = await app.schedules.abackfill(nightly, LAST_NOON - DAY, LAST_NOON, dry_run=True)

    assert would == [(LAST_NOON - DAY, None), (LAST_NOON, None)]
    assert (count(connection, "slots"), count(connection, "jobs")) == (0, 0)


async def test_a_dry_run_leaves_out_the_slots_that_had_their_job(app, nightly):
    await app.schedules.abackfill(nightly, LAST_NOON, LAST_NOON)
    would = await app.schedules.abackfill(nightly, LAST_NOON - DAY, LAST_NOON, dry_run=True)

    assert would == [(LAST_NOON - DAY, None)]


async def test_a_backfill_takes_no_more_than_its_limit(app, nightly):
    start = LAST_NOON - 2 * DAY

    with pytest.raises(InvalidSchedule, match="range: contains more than 2 slots"):
        await app.schedules.abackfill(nightly, start, LAST_NOON, limit=2)
    assert len(await app.schedules.abackfill(nightly, start, LAST_NOON, limit=3)) == 3


@pytest.mark.parametrize("limit", [0, 100_001])
async def test_the_limit_of_a_backfill_has_limits(app, nightly, limit):
    with pytest.raises(InvalidOption, match="limit must be from 1 to 100,000"):
        await app.schedules.abackfill(nightly, LAST_NOON, LAST_NOON, limit=limit)


@pytest.mark.parametrize(
    ("start", "end", "problem"),
    [
        (LAST_NOON, datetime.now(UTC) + DAY, "ends in the future"),
        (LAST_NOON, LAST_NOON - SECOND, "ends before it starts"),
        (LAST_NOON.replace(tzinfo=None), LAST_NOON, "needs instants with a time zone"),
        (LAST_NOON, LAST_NOON.replace(tzinfo=None), "needs instants with a time zone"),
    ],
)
async def test_a_range_that_cannot_be_is_refused(app, nightly, start, end, problem):
    with pytest.raises(InvalidSchedule, match=f"range: {problem}"):
        await app.schedules.abackfill(nightly, start, end)


async def test_filled_slots_run_one_after_the_other_whatever_the_overlap_rule(app, nightly):
    await app.schedules.aupdate(nightly, overlap="replace")
    await app.schedules.abackfill(nightly, LAST_NOON - 2 * DAY, LAST_NOON)

    assert [job.waits_for for job in await app.jobs.alist()] == ["turn", "turn", None]
    assert (await adrain(app)).succeeded == 3


async def test_a_template_is_filled_in_for_every_slot(app, connection):
    payload = {"day": "{{slot_at|date}}", "by": "{{schedule}} {{trigger}} {{missed}} {{tenant}}"}
    await app.schedules.acreate("x", "send", cron="0 12 * * *", payload=payload)
    await app.schedules.abackfill("x", LAST_NOON - DAY, LAST_NOON)

    for job_id, day in ((1, LAST_NOON - DAY), (2, LAST_NOON)):
        filled = {"day": f"{day:%Y-%m-%d}", "by": "x backfill 0 default"}
        assert reading.job(connection, job_id)["payload"] == filled


async def test_a_template_knows_the_day_in_the_schedules_zone(app, connection):
    payload = {"utc": "{{slot_at|date}}", "day": "{{local_at|date}}"}
    spec = {"cron": "0 1 * * *", "zone": "Asia/Tokyo", "payload": payload}
    await app.schedules.acreate("x", "send", **spec)

    ((slot_at, job_id),) = await app.schedules.abackfill("x", LAST_NOON - DAY, LAST_NOON)

    local = slot_at.astimezone(ZoneInfo("Asia/Tokyo"))
    filled = {"utc": f"{slot_at:%Y-%m-%d}", "day": f"{local:%Y-%m-%d}"}
    assert reading.job(connection, job_id)["payload"] == filled
    assert filled["utc"] != filled["day"]


async def test_a_launcher_makes_its_payloads_itself_so_nobody_else_can(app):
    class Picky(Launcher): ...

    await app.schedules.acreate("x", "send", cron="0 12 * * *", launcher=Picky)

    with pytest.raises(InvalidSchedule, match="'x' cannot be backfilled"):
        await app.schedules.abackfill("x", LAST_NOON, LAST_NOON)


# Looking back


async def test_the_history_is_newest_first_paged_and_filtered(app, nightly):
    await app.schedules.abackfill(nightly, LAST_NOON - 2 * DAY, LAST_NOON)
    newest, *rest = await app.schedules.ahistory(nightly)

    assert [slot.scheduled_for for slot in rest] == [LAST_NOON - DAY, LAST_NOON - 2 * DAY]
    assert await app.schedules.ahistory(nightly, before=newest.scheduled_for) == rest
    assert await app.schedules.ahistory(nightly, limit=1) == [newest]
    assert await app.schedules.ahistory(nightly, outcome="skipped") == []
    assert len(await app.schedules.ahistory(nightly, outcome=SlotOutcome.ENQUEUED)) == 3


async def test_an_outcome_that_there_is_not_is_refused(app, nightly):
    with pytest.raises(InvalidOption, match=r"outcome must be one of pending, .* not 'done'"):
        await app.schedules.ahistory(nightly, outcome="done")


async def test_a_run_that_ended_is_seen_in_the_history_and_the_figures(app, nightly):
    await app.schedules.atrigger(nightly)
    await adrain(app)
    (slot,) = await app.schedules.ahistory(nightly)
    figures = (await app.schedules.aget(nightly)).figures

    assert (slot.run_state, slot.trigger) == ("succeeded", SlotTrigger.MANUAL)
    assert (figures["total_runs"], figures["success_rate_percent"]) == (1, 100)
