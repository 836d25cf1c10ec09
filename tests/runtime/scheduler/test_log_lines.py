"""What schedulers and dispatchers log: which schedule, slot, event and tenant."""

from collections.abc import AsyncIterator
from datetime import datetime

import psycopg
import pytest

from mainspring import Launcher, Mainspring
from tests.support import events
from tests.support.log_lines import captured_lines, named
from tests.support.schedules import (
    HOUR,
    MINUTE,
    insert_due,
    insert_schedule,
    miss,
    scheduling,
    slots,
)
from tests.support.waiting import await_until


@pytest.fixture
async def app(database_url: str) -> AsyncIterator[Mainspring]:
    async with Mainspring(database_url) as app:
        yield app


async def test_one_slot_that_fires_is_named_whole(app, connection: psycopg.Connection):
    insert_due(connection, "nightly")
    with captured_lines() as lines:
        async with scheduling(app):
            (line,) = await await_until(lambda: named(lines, "slots_fired"))

    (slot,) = slots(connection, "nightly")
    names = [line[name] for name in ("tenant", "definition", "schedule", "job_id", "jobs")]
    assert names == ["default", "work", "nightly", slot["job_id"], 1]
    assert datetime.fromisoformat(line["slot"]) == slot["scheduled_for"]


async def test_of_many_slots_the_first_are_named(app, connection: psycopg.Connection):
    for number in range(12):
        insert_due(connection, f"tick {number}")
    with captured_lines() as lines:
        async with scheduling(app):
            (line,) = await await_until(lambda: named(lines, "slots_fired"))

    assert (line["count"], line["jobs"]) == (12, 12)
    assert len(line["schedules"]) == len(line["job_ids"]) == 10
    assert set(line["schedules"]) < {f"tick {number}" for number in range(12)}


async def test_a_slot_of_a_condition_names_its_job(app, connection: psycopg.Connection):
    insert_due(connection, "nightly", condition_sql="select true")
    with captured_lines() as lines:
        async with scheduling(app):
            (line,) = await await_until(lambda: named(lines, "schedule_fired"))

    (slot,) = slots(connection, "nightly")
    names = [line[name] for name in ("tenant", "definition", "schedule", "job_id")]
    assert names == ["default", "work", "nightly", slot["job_id"]]
    assert datetime.fromisoformat(line["slot"]) == slot["scheduled_for"]


async def test_a_trigger_by_hand_of_a_condition_names_its_job(app, connection):
    insert_schedule(connection, "nightly", condition_sql="select true")
    with captured_lines() as lines:
        async with scheduling(app):
            done = await app.schedules.atrigger("nightly", wait=MINUTE)
            (line,) = await await_until(lambda: named(lines, "schedule_fired"))

    assert line["job_id"] == done.job_id
    assert datetime.fromisoformat(line["slot"]) == done.slot_at


@pytest.mark.parametrize(
    ("columns", "event"),
    [({"condition_sql": "select true"}, "schedule_fired"), ({}, "slots_fired")],
)
async def test_every_slot_of_a_catch_up_is_named_with_its_job(app, connection, columns, event):
    insert_schedule(connection, "nightly", catch_up="all", overlap="queue", **columns)
    miss(connection, "nightly", 2 * HOUR + MINUTE)
    with captured_lines() as lines:
        async with scheduling(app):
            (line,) = await await_until(lambda: named(lines, event))

    fired = slots(connection, "nightly")
    assert (line["tenant"], line["definition"], line["schedule"]) == ("default", "work", "nightly")
    assert (line["count"], line["job_ids"]) == (3, [slot["job_id"] for slot in fired])
    instants = [datetime.fromisoformat(at) for at in line["slots"]]
    assert instants == [slot["scheduled_for"] for slot in fired]
    assert "slot" not in line


async def test_of_many_catch_ups_the_first_jobs_are_named(app, connection: psycopg.Connection):
    for name in ("one", "two"):
        insert_schedule(connection, name, catch_up="all", overlap="queue")
        miss(connection, name, HOUR + MINUTE)
    with captured_lines() as lines:
        async with scheduling(app):
            (line,) = await await_until(lambda: named(lines, "slots_fired"))

    assert (line["count"], line["jobs"], sorted(line["schedules"])) == (4, 4, ["one", "two"])
    fired = slots(connection, "one") + slots(connection, "two")
    assert sorted(line["job_ids"]) == sorted(slot["job_id"] for slot in fired)


async def test_a_scheduler_names_schedules_whose_launchers_it_does_not_know(app, connection):
    app.register_launcher("Broken", Broken)
    insert_schedule(connection, "nightly", launcher="Broken")
    insert_schedule(connection, "new words", launcher="NewWords")
    insert_schedule(connection, "off", launcher="NewWords", enabled=False)
    insert_schedule(connection, "plain")
    with captured_lines() as lines:
        async with scheduling(app):
            pass

    (line,) = named(lines, "launchers_missing")
    assert (line["level"], line["count"]) == ("WARNING", 1)
    assert (line["schedules"], line["launchers"]) == (["new words"], ["NewWords"])


async def test_a_scheduler_that_knows_all_launchers_does_not_warn(app, connection):
    app.register_launcher("Broken", Broken)
    insert_schedule(connection, "nightly", launcher="Broken")
    with captured_lines() as lines:
        async with scheduling(app):
            pass

    assert [line for line in named(lines, "launchers_missing") if "schedules" in line] == []


class Broken(Launcher):
    def check_conditions(self) -> bool:
        return self._look()

    def _look(self) -> bool:
        raise RuntimeError("no such table")


async def test_the_error_of_a_launcher_comes_with_its_traceback(app, connection):
    app.register_launcher("Broken", Broken)
    insert_due(connection, "nightly", launcher="Broken", tenant_id="default")
    with captured_lines() as lines:
        async with scheduling(app):
            (line,) = await await_until(lambda: named(lines, "schedule_failed"))

    (slot,) = slots(connection, "nightly")
    assert line["error"] == "Broken: RuntimeError: no such table"
    assert "in check_conditions\n    return self._look()" in line["details"]
    assert line["details"].endswith('raise RuntimeError("no such table")')
    assert "mainspring/runtime" not in line["details"]
    assert (line["tenant"], line["schedule"], line["definition"]) == ("default", "nightly", "work")
    assert datetime.fromisoformat(line["slot"]) == slot["scheduled_for"]
    assert slot["reason"] == line["error"]


async def test_a_condition_that_is_not_met_names_the_slot(app, connection: psycopg.Connection):
    insert_due(connection, "nightly", condition_sql="select false")
    with captured_lines() as lines:
        async with scheduling(app):
            (line,) = await await_until(lambda: named(lines, "schedule_skipped"))

    assert (line["tenant"], line["schedule"], line["definition"]) == ("default", "nightly", "work")
    assert "slot" in line


async def test_a_timing_that_cannot_be_read_names_its_schedules(app, connection):
    insert_due(connection, "nightly", cron="0 9 * * *")
    connection.execute("set session_replication_role = replica")
    connection.execute("update mainspring.schedules set cron = 'now and then'")
    connection.execute("set session_replication_role = origin")
    with captured_lines() as lines:
        async with scheduling(app):
            (line,) = await await_until(lambda: named(lines, "schedule_disabled"))

    assert (line["count"], line["schedules"]) == (1, ["nightly"])


async def test_events_and_triggers_are_named_with_their_tenant(app, connection):
    events.insert_trigger(connection, "good")
    events.insert_trigger(connection, "bad", definition="gone")
    with captured_lines() as lines:
        async with scheduling(app):
            events.emit_many(connection, 1)
            (failed,) = await await_until(lambda: named(lines, "trigger_failed"))

    (line,) = named(lines, "events_dispatched")
    (job,) = events.jobs(connection)
    assert (line["count"], line["jobs"], line["failed"]) == (1, 1, 1)
    assert (line["tenants"], line["job_ids"]) == (["default"], [job["job_id"]])
    assert (failed["tenant"], failed["trigger"]) == ("default", "bad")
    assert [failed["event_id"]] == line["event_ids"]


async def test_a_scheduler_without_launchers_does_not_warn_of_schedules_without_one(
    app, connection
):
    insert_schedule(connection, "plain")
    with captured_lines() as lines:
        async with scheduling(app):
            pass

    assert named(lines, "launchers_missing") == []
