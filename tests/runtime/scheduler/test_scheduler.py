"""One scheduler: what it hears of, what it leaves alone, and what cannot stop it."""

import asyncio
from datetime import UTC, datetime, timedelta
from functools import partial

import psycopg
import pytest
from fastapi import FastAPI

from mainspring import Context, Launcher, Mainspring
from mainspring.db.template_databases import fresh_database
from mainspring.settings import load
from tests.support import rows, schedules
from tests.support.schedules import HOUR, MINUTE, scheduling
from tests.support.waiting import await_until
from tests.support.workers import working

SOON = 1.5


# What is heard of


async def test_a_row_inserted_by_plain_sql_fires_at_once(
    app: Mainspring, connection: psycopg.Connection
):
    async with scheduling(app):
        await await_until(lambda: schedules.is_resting(connection))
        schedules.insert_schedule(connection, at=datetime.now(UTC))
        await await_until(lambda: schedules.outcomes(connection) == ["enqueued"], SOON)


@pytest.mark.parametrize(
    "change",
    ["cron = '* * * * *', every = null", "every = '1 minute'", "zone = 'Asia/Tokyo'"],
)
async def test_a_row_changed_by_plain_sql_is_planned_anew_at_once(
    app: Mainspring, connection: psycopg.Connection, change: str
):
    schedules.insert_schedule(connection)
    async with scheduling(app):
        await await_until(lambda: schedules.is_planned(connection))
        await await_until(lambda: schedules.is_resting(connection))
        connection.execute(f"update mainspring.schedules set {change}")
        assert not schedules.is_planned(connection)
        await await_until(lambda: schedules.is_planned(connection), SOON)


async def test_a_run_instant_set_by_plain_sql_is_a_slot_of_its_own(
    app: Mainspring, connection: psycopg.Connection
):
    schedules.insert_schedule(connection)
    async with scheduling(app):
        await await_until(lambda: schedules.is_planned(connection))
        planned = schedules.schedule(connection)["next_slot_at"]
        await await_until(lambda: schedules.is_resting(connection))
        connection.execute("update mainspring.schedules set run_at = now()")
        slot = await await_until(lambda: schedules.decided(connection), SOON)

    assert slot["outcome"] == "enqueued"
    assert schedules.schedule(connection)["next_slot_at"] == planned


async def test_a_disabled_row_is_left_alone_until_it_is_enabled(
    app: Mainspring, connection: psycopg.Connection
):
    schedules.insert_schedule(connection, at=datetime.now(UTC), enabled=False)
    async with scheduling(app):
        await await_until(lambda: schedules.is_resting(connection))
        assert not schedules.slots(connection)
        connection.execute("update mainspring.schedules set enabled = true")
        await await_until(lambda: schedules.outcomes(connection) == ["enqueued"], SOON)


# What went wrong before


async def test_skips_are_no_failures_however_many(app: Mainspring, connection: psycopg.Connection):
    answers = iter([False, False, False, False, False, True, False])

    class CategoryRefresh(Launcher):
        def check_conditions(self) -> bool:
            return next(answers)

    app.schedules.register_launcher("refresh", CategoryRefresh)
    schedules.insert_schedule(connection, launcher="refresh", every=6 * HOUR, max_running=2)
    async with scheduling(app):
        for count in range(1, 8):
            await drive(connection, count)
            assert schedules.schedule(connection)["retry_count"] == 0

    assert schedules.outcomes(connection) == [*["skipped"] * 5, "enqueued", "skipped"]
    status = schedules.status(connection)
    assert (status["skipped_slots"], status["failed_launches"], status["enabled"]) == (6, 0, True)


async def test_five_failures_in_a_row_disable_a_schedule(
    app: Mainspring, connection: psycopg.Connection
):
    schedules.insert_schedule(connection, condition_sql="select 1 / 0", max_retries=5)
    async with scheduling(app):
        for count, minutes in enumerate((2, 4, 8, 16), start=1):
            await drive(connection, count)
            schedule = schedules.schedule(connection)
            assert schedule["retry_count"] == count
            assert schedule["next_run_at"] - schedule["last_failed_at"] == minutes * MINUTE
        await drive(connection, 5)

    schedule = schedules.schedule(connection)
    assert (schedule["enabled"], schedule["next_run_at"]) == (False, None)
    reason = "failed 5 times in a row; last error: the condition failed: division by zero"
    assert schedule["disabled_reason"] == reason
    entry = schedules.audit(connection)[-1]
    assert (entry["actor"], entry["action"], entry["reason"]) == ("scheduler", "disable", reason)


async def test_a_success_forgets_the_failures_before_it(
    app: Mainspring, connection: psycopg.Connection
):
    connection.execute("create table divisor as select 0 as number")
    schedules.insert_schedule(connection, condition_sql="select 1 / number from divisor")
    async with scheduling(app):
        for count in (1, 2):
            await drive(connection, count)
        assert schedules.schedule(connection)["retry_count"] == 2
        connection.execute("update divisor set number = 1")
        await drive(connection, 3)

    schedule = schedules.schedule(connection)
    assert (schedule["retry_count"], schedule["enabled"]) == (0, True)
    assert schedule["next_slot_at"] - schedule["last_slot_at"] <= HOUR


async def drive(connection: psycopg.Connection, count: int) -> None:
    await await_until(lambda: schedules.is_planned(connection))
    schedules.make_due(connection)
    await await_until(lambda: schedules.decided(connection, count=count))


# What cannot stop it


POISON = {
    "a calendar of nonsense": {"calendar": """'{"weekends": "perhaps"}'"""},
    "a zone that nobody knows": {"zone": "'Mars/Olympus'"},
    "an expression of nonsense": {"cron": "'* * * * 99'"},
}


@pytest.mark.parametrize("condition", [None, "select true"])
@pytest.mark.parametrize("columns", POISON.values(), ids=POISON)
async def test_a_timing_that_cannot_be_read_disables_its_schedule_and_stops_no_other(
    app: Mainspring, connection: psycopg.Connection, columns: dict[str, str], condition: str | None
):
    schedules.insert_due(connection, "poison", cron="0 * * * *", condition_sql=condition)
    schedules.update(connection, "poison", **columns)
    async with scheduling(app):
        await await_until(lambda: schedules.is_resting(connection))
        schedules.insert_schedule(connection, "healthy", at=datetime.now(UTC))
        await await_until(lambda: schedules.outcomes(connection, "healthy") == ["enqueued"], SOON)

    poison = schedules.schedule(connection, "poison")
    assert (poison["enabled"], schedules.slots(connection, "poison")) == (False, [])
    assert poison["disabled_reason"].startswith(next(iter(columns)))


async def test_an_error_that_nobody_foresaw_ends_the_scheduler_loudly(server_url: str):
    with (
        fresh_database(server_url) as url,
        psycopg.connect(url, autocommit=True) as connection,
    ):
        connection.execute("alter table mainspring.schedules drop constraint schedules_words")
        schedules.insert_due(connection)
        schedules.update(connection, catch_up="'never'")

        async with Mainspring(url) as app:
            with pytest.raises(ValueError, match="is not a valid CatchUp"):
                await asyncio.wait_for(app.schedules.scheduler().run(), 10)


# What takes its time


async def test_checks_without_room_delay_nobody_and_do_not_spin(
    database_url: str, connection: psycopg.Connection
):
    settings = load(database_url=database_url, condition_concurrency=1)
    for name in ("first", "second"):
        schedules.insert_due(connection, name, condition_sql="select pg_sleep(9) is null")
    async with Mainspring(settings=settings) as app, scheduling(app) as scheduler:
        await await_until(lambda: schedules.schedule(connection, "first")["checking_by"])
        schedules.insert_schedule(connection, every=timedelta(seconds=1), max_running=10)
        before = scheduler.loop.passes
        await await_until(lambda: schedules.decided(connection, count=2))
        passes = scheduler.loop.passes - before

    assert passes < 100
    assert max(slot["lateness_seconds"] for slot in schedules.slots(connection)) < 1


async def test_a_trigger_by_hand_does_not_hold_up_the_slot_that_is_being_checked(
    app: Mainspring, connection: psycopg.Connection
):
    schedules.insert_due(
        connection, condition_sql="select pg_sleep(0.5) is not null", max_running=10
    )
    async with scheduling(app):
        await await_until(lambda: schedules.schedule(connection)["checking_by"])
        connection.execute("select mainspring.trigger_scheduled_job('tick', force => true)")
        await await_until(lambda: schedules.decided(connection, count=2), 4)

    triggers = sorted(slot["trigger"] for slot in schedules.slots(connection))
    assert triggers == ["manual", "scheduler"]
    assert schedules.outcomes(connection) == ["enqueued", "enqueued"]


# Inside another program


async def test_it_runs_beside_a_worker_in_one_event_loop(
    app: Mainspring, connection: psycopg.Connection
):
    ran: list[str] = []

    @app.job
    async def greet(ctx: Context, name: str) -> None:
        assert ctx.slot is not None
        ran.append(f"{ctx.slot.schedule} {name}")

    async with working(app), scheduling(app):
        schedules.insert_schedule(
            connection, "hourly", definition="greet", payload={"name": "Ada"}, at=datetime.now(UTC)
        )
        await await_until(lambda: ran)

    assert ran == ["hourly Ada"]


async def test_it_runs_as_long_as_an_asgi_app_does(app: Mainspring, connection: psycopg.Connection):
    site = FastAPI(lifespan=app.lifespan)
    async with site.router.lifespan_context(site):
        schedules.insert_schedule(connection, "before", at=datetime.now(UTC))
        await await_until(lambda: schedules.decided(connection, "before"))
    schedules.insert_schedule(connection, "after", at=datetime.now(UTC))

    assert not schedules.is_there(connection)
    assert not schedules.slots(connection, "after")


# Through a pooler


async def test_through_a_pooler_it_polls(database_url: str, connection: psycopg.Connection):
    settings = load(database_url=database_url, use_pooler=True, poll_seconds=0.1)
    async with Mainspring(settings=settings) as app, scheduling(app):
        schedules.insert_schedule(connection, "plain", at=datetime.now(UTC))
        schedules.insert_due(connection, condition_sql="select true")
        for name in ("plain", "tick"):
            slot = await await_until(partial(schedules.decided, connection, name))
            assert slot["outcome"] == "enqueued"
        names = "select application_name from pg_stat_activity where datname = current_database()"
        assert ("mainspring listen",) not in connection.execute(names).fetchall()


async def test_through_a_pooler_a_condition_is_one_statement_as_well(
    database_url: str, connection: psycopg.Connection
):
    settings = load(database_url=database_url, use_pooler=True, poll_seconds=0.1)
    condition = "commit; insert into mainspring.tenants values ('mine') returning true"
    async with Mainspring(settings=settings) as app, scheduling(app):
        schedules.insert_due(connection, condition_sql=condition)
        slot = await await_until(lambda: schedules.decided(connection))

    assert slot["outcome"] == "failed"
    assert "must be a single query" in slot["reason"]
    assert rows.count(connection, "tenants") == 1
