"""Jobs written in SQL alone: a function, and a call that says when it runs."""

import psycopg
import pytest

from examples.install import install
from tests.support.schedules import status
from tests.support.waiting import wait_until


@pytest.fixture(autouse=True)
def civic(start) -> None:
    start("civic")


def add_schedule(connection: psycopg.Connection, name: str, body: str) -> None:
    """A schedule of a new function with this name and body."""
    connection.execute(
        f"create function civic.{name}() returns jsonb language plpgsql"
        f" as $$ begin {body} end $$".encode()
    )
    connection.execute(
        "select mainspring.schedule_function(%s, 'civic.' || %s, '@daily')", (name, name)
    )


def failure(connection: psycopg.Connection) -> str:
    """What the first attempt that failed says; empty while there is none."""
    row = connection.execute(
        "select error from mainspring.attempt_status where status = 'failed'"
    ).fetchone()
    return str(row[0]) if row else ""


def test_a_scheduled_function_does_its_work_and_says_what_it_did(connection, trigger):
    connection.execute(
        "insert into civic.temporary_records (created_at)"
        " values (now() - interval '31 days'), (now() - interval '29 days')"
    )

    slot = trigger("daily_cleanup")

    result = connection.execute(
        "select result ->> 'message' from mainspring.job_status where job_id = %s",
        (slot["job_id"],),
    ).fetchone()
    assert result == ("Deleted 1 old records",)
    assert connection.execute("select count(*) from civic.temporary_records").fetchone() == (1,)
    found = status(connection, "daily_cleanup")
    assert (found["total_runs"], found["last_run_success"]) == (1, True)
    assert found["success_rate_percent"] == 100


def test_installing_it_again_keeps_what_a_person_has_changed(connection, database_url):
    connection.execute("update mainspring.schedules set cron = '0 4 * * *'")

    install(database_url, "civic")

    found = connection.execute("select cron, zone from mainspring.schedules").fetchall()
    assert found == [("0 4 * * *", "America/New_York")]


def test_a_function_without_success_says_why(connection):
    add_schedule(
        connection, "unhappy", """return '{"success": false, "message": "the disk is full"}';"""
    )

    connection.execute("select mainspring.trigger_scheduled_job('unhappy')")

    assert "the disk is full" in wait_until(lambda: failure(connection))
