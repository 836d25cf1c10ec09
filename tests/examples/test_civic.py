"""Jobs written in SQL alone: a function, and a row that says when it runs."""

import psycopg
import pytest

from tests.support.schedules import status
from tests.support.waiting import wait_until


@pytest.fixture(autouse=True)
def civic(start) -> None:
    start("civic")


def add_schedule(connection: psycopg.Connection, name: str, body: str | None = None) -> None:
    """A schedule of the function with this name, which has that body if one is given."""
    if body is not None:
        connection.execute(
            f"create function scheduled.{name}() returns jsonb language plpgsql"
            f" as $$ begin {body} end $$"
        )
    connection.execute(
        "insert into mainspring.schedules (name, definition, payload, cron)"
        " values (%s, 'sql_function', jsonb_build_object('function', %s::text), '@daily')",
        (name, name),
    )


def failure(connection: psycopg.Connection) -> str:
    """What the first attempt that failed says; empty while there is none."""
    row = connection.execute(
        "select error from mainspring.attempt_status where status = 'failed'"
    ).fetchone()
    return str(row[0]) if row else ""


def test_a_scheduled_function_does_its_work_and_says_what_it_did(connection, trigger):
    connection.execute(
        "insert into temporary_records (created_at)"
        " values (now() - interval '31 days'), (now() - interval '29 days')"
    )

    slot = trigger("daily_cleanup")

    result = connection.execute(
        "select result ->> 'message' from mainspring.job_status where job_id = %s",
        (slot["job_id"],),
    ).fetchone()
    assert result == ("Deleted 1 old records",)
    assert connection.execute("select count(*) from temporary_records").fetchone() == (1,)


def test_the_status_view_counts_the_run(connection, trigger):
    trigger("daily_cleanup")

    found = status(connection, "daily_cleanup")

    assert (found["total_runs"], found["last_run_success"]) == (1, True)
    assert found["success_rate_percent"] == 100


def test_a_function_without_success_is_rolled_back_and_tried_again(connection):
    body = """insert into temporary_records default values;
              return '{"success": false, "message": "the disk is full"}';"""
    add_schedule(connection, "unhappy", body)

    connection.execute("select mainspring.trigger_scheduled_job('unhappy')")

    assert "unhappy: the disk is full" in wait_until(lambda: failure(connection))
    assert connection.execute("select count(*) from temporary_records").fetchone() == (0,)


def test_an_answer_that_is_none_is_a_clear_error(connection):
    add_schedule(connection, "silent", "return '[1]';")

    connection.execute("select mainspring.trigger_scheduled_job('silent')")

    expected = "silent must return {success, message}, not [1]"
    assert expected in wait_until(lambda: failure(connection))


def test_a_function_that_is_not_there_fails_at_once(connection, trigger):
    add_schedule(connection, "gone")

    slot = trigger("gone")

    assert slot["run_state"] == "failed"
    assert "function scheduled.gone() does not exist" in slot["reason"]
