"""A gauge shows itself: on the command line, over REST and in SQL."""

import psycopg
import pytest

from tests.support.commands import facts, table
from tests.support.processes import says

GAUGE = [
    *("schedules", "create", "merge", "--definition", "hello", "--payload", '{"name": "Ada"}'),
    *("--cron", "0 12 * * *", "--overlap", "queue", "--gauge-sql", "select value from reading"),
    *("--gauge-lower", "0.1", "--gauge-upper", "0.2"),
]


@pytest.fixture
def trigger(start, command, connection: psycopg.Connection, database_url: str):
    """Reads the gauge at a value."""
    connection.execute("create table reading (value float); insert into reading values (0)")
    says(start("scheduler", MAINSPRING_DATABASE_URL=database_url), "scheduler_started")

    def trigger(value: float):
        connection.execute("update reading set value = %s", (value,))
        return command("schedules", "trigger", "merge", "--wait", "30")

    return trigger


def test_a_gauge_shows_its_value_its_side_and_its_history(
    command, connection: psycopg.Connection, trigger
):
    command(*GAUGE, "--gauge-bounds", "exclusive")
    before = command("schedules", "show", "merge").stdout
    said = [trigger(value) for value in (0.2, 0.25, 0.1)]

    assert "not read yet; high above 0.2, low below 0.1" in before
    assert said[0].stderr == "skipped: 0.2 is not above 0.2\n"
    assert [done.stdout for done in said[1:]] == ["1\n", "2\n"]
    shown = command("schedules", "show", "merge").stdout
    assert "gauge bounds" in shown
    assert "0.1, high, " in shown
    slots = table(command("schedules", "history", "merge"))
    assert [slot["VALUE"] for slot in slots] == ["0.1", "0.25", "0.2"]

    schedule = facts(command("schedules", "show", "merge", "--json"))
    read_at = schedule["gauge"].pop("read_at")
    assert schedule["gauge"] == {
        "value": 0.1,
        "side": "high",
        "lower": 0.1,
        "upper": 0.2,
        "bounds": "exclusive",
    }
    history = facts(command("schedules", "history", "merge", "--json"))["slots"]
    assert [slot["gauge_value"] for slot in history] == [0.1, 0.25, 0.2]
    assert read_at >= history[0]["scheduled_for"]
    row = connection.execute(
        "select name, value, side, lower, upper, bounds, read_at is not null"
        "  from mainspring.gauge_status"
    ).fetchone()
    assert row == ("merge", 0.1, "high", 0.1, 0.2, "exclusive", True)


def test_bounds_without_a_gauge_are_refused(command):
    every = ["schedules", "create", "x", "--definition", "hello", "--every", "1h"]
    alone = command(*every, "--gauge-bounds", "exclusive")

    assert alone.stderr == "error: gauge_sql: is required with gauge_bounds\n"
