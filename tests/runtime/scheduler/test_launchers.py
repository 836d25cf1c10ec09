"""Whether a slot becomes a job: launchers, SQL conditions, gauges and templates.

One scheduler process decides about the schedules of all tests, the broken ones among them.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Any

import psycopg
import pytest

from mainspring.db.template_databases import fresh_database
from tests.support import rows, schedules
from tests.support.databases import role
from tests.support.schedules import SchedulerProcess, scheduler_processes
from tests.support.waiting import wait_until

Decide = Callable[..., schedules.Row]

pytestmark = pytest.mark.usefixtures("scheduler")


@pytest.fixture(scope="module")
def database_url(server_url: str) -> Iterator[str]:
    with fresh_database(server_url) as url:
        yield url


@pytest.fixture(scope="module")
def scheduler(
    database_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SchedulerProcess]:
    with scheduler_processes(database_url, tmp_path_factory.mktemp("logs")) as start:
        scheduler = start("tests.support.asgi:app")
        scheduler.started()
        yield scheduler
        assert scheduler.stop() == 0


@pytest.fixture(scope="module", autouse=True)
def other_definition(database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        rows.insert_definition(connection, "other")


@pytest.fixture
def decide(connection: psycopg.Connection, request: pytest.FixtureRequest) -> Decide:
    """Adds a schedule that is due; its first slot once it is decided."""

    def first_slot(**columns: Any) -> schedules.Row:
        name = str(request.node.name)
        schedules.insert_due(connection, name, **columns)
        return wait_until(lambda: schedules.decided(connection, name), 10, f"{name} is decided")

    return first_slot


def payload_of(connection: psycopg.Connection, slot: schedules.Row) -> Any:
    return rows.job(connection, slot["job_id"])["payload"]


# Launchers in Python


def test_a_launcher_knows_its_slot(decide: Decide, connection: psycopg.Connection):
    slot = decide(launcher="Plain", max_retries=3)

    assert payload_of(connection, slot) == {
        "schedule": slot["name"],
        "trigger": "scheduler",
        "slot_at": slot["scheduled_for"].astimezone(UTC).isoformat(),
        "missed": 0,
        "max_retries": 3,
        "has_queue": True,
    }


@pytest.mark.parametrize("kind", ["Asynchronous", "HalfAsynchronous"])
def test_a_launcher_may_be_async(decide: Decide, connection: psycopg.Connection, kind: str):
    slot = decide(launcher=kind)

    assert payload_of(connection, slot) == {"from": "a coroutine"}


def test_the_methods_of_a_launcher_share_a_thread(decide: Decide, connection: psycopg.Connection):
    slot = decide(launcher="SameThread")

    assert payload_of(connection, slot) == {"is_same": True}


def test_a_launcher_may_start_another_definition(decide: Decide, connection: psycopg.Connection):
    slot = decide(launcher="Other", payload={"number": 7})

    job = rows.job(connection, slot["job_id"])
    assert (job["definition"], job["payload"]) == ("other", {"number": 7})


@pytest.mark.parametrize(
    ("kind", "reason"), [("No", "the condition is not met"), ("NoBecause", "nothing new")]
)
def test_a_launcher_that_says_no_is_a_skip(
    decide: Decide, connection: psycopg.Connection, kind: str, reason: str
):
    slot = decide(launcher=kind)

    assert (slot["outcome"], slot["reason"]) == ("skipped", reason)
    assert schedules.schedule(connection, slot["name"])["retry_count"] == 0


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("Raise", "Raise: ValueError: the feed is down"),
        ("RaiseAsynchronously", "RaiseAsynchronously: ValueError: the feed is down"),
        ("RaiseAtOnce", "RaiseAtOnce: ValueError: no such feed"),
        ("RaiseInPayload", "RaiseInPayload: KeyError: 'feed'"),
        ("RaiseTimeout", "RaiseTimeout: TimeoutError: the feed is slow"),
        ("StopIterating", "StopIterating: RuntimeError: coroutine raised StopIteration"),
        ("Exit", "Exit: SystemExit: bye"),
        ("ExitAsynchronously", "ExitAsynchronously: SystemExit: bye"),
        ("CancelItself", "CancelItself: CancelledError: "),
        ("SayNul", "SayNul: ValueError: a \ufffd and a ?"),
        ("NoPayload", "NoPayload: InvalidPayload: prepare_job_data returned NoneType, not a dict"),
        ("ListPayload", "ListPayload: InvalidPayload: prepare_job_data returned list, not a dict"),
        ("NulPayload", "the payload contains a NUL byte, which PostgreSQL cannot store"),
        ("Missing", "unknown definition 'nowhere'"),
        ("Numbered", "job_type must be a string, not int"),
        ("Raze", "no launcher is registered as 'Raze'; did you mean 'Raise'?"),
        ("unheard-of", "no launcher is registered as 'unheard-of'; register it with"),
    ],
)
def test_what_a_launcher_does_wrong_is_a_failure_of_its_schedule(
    decide: Decide, connection: psycopg.Connection, kind: str, reason: str
):
    slot = decide(launcher=kind)

    assert slot["outcome"] == "failed"
    assert slot["reason"].startswith(reason)
    schedule = schedules.schedule(connection, slot["name"])
    assert (schedule["retry_count"], schedule["enabled"]) == (1, True)
    assert schedule["last_error"] == slot["reason"]


@pytest.mark.parametrize(
    ("kind", "reason"), [("DatePayload", "datetime"), ("LargePayload", "the limit is 1,048,576")]
)
def test_a_payload_that_no_enqueue_would_take_is_a_failure(decide: Decide, kind: str, reason: str):
    slot = decide(launcher=kind)

    assert slot["outcome"] == "failed"
    assert reason in slot["reason"]


@pytest.mark.parametrize("kind", ["Hang", "HangAsynchronously", "HangAtOnce"])
def test_a_launcher_that_hangs_is_a_failure_after_its_timeout(decide: Decide, kind: str):
    slot = decide(launcher=kind, condition_timeout="0.2 seconds")

    assert (slot["outcome"], slot["reason"]) == ("failed", f"{kind} did not answer within 0.2 s")


def test_slow_launchers_delay_nobody(decide: Decide, connection: psycopg.Connection):
    slow = [f"slow {number}" for number in range(5)]
    for name in slow:
        schedules.insert_due(connection, name, launcher="Slow")

    plain = decide()
    assert all(not schedules.decided(connection, name) for name in slow), "they were not slow"

    assert plain["lateness_seconds"] < 1
    slots = [wait_until(partial(schedules.decided, connection, name)) for name in slow]
    assert all(slot["outcome"] == "enqueued" and slot["lateness_seconds"] < 5 for slot in slots)


# Conditions in SQL


@pytest.mark.parametrize(
    "condition",
    [
        "select true",
        "select 3, 'the second column does not matter'",
        "select 0.5::numeric",
        "select -1.5::double precision",
        "values (true), (false)",
        "select 5 % 2 = 1 and '%s' <> ''",
        "select true;",
        "with answer as (select true as yes) select yes from answer",
    ],
)
def test_a_condition_that_says_yes_enqueues(decide: Decide, condition: str):
    assert decide(condition_sql=condition)["outcome"] == "enqueued"


@pytest.mark.parametrize(
    "condition",
    ["select false", "select null", "select 0", "select 0.0::numeric", "select 1 where false"],
)
def test_a_condition_that_does_not_say_yes_skips(decide: Decide, condition: str):
    slot = decide(condition_sql=condition)

    assert (slot["outcome"], slot["reason"]) == ("skipped", "the condition is not met")


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        ("select 'yes'", "condition_sql: returned str 'yes'; it must return a boolean or a number"),
        ("select '{}'::jsonb", "condition_sql: returned dict '{}'; it must return a boolean"),
        ("selec true", 'the condition failed: syntax error at or near "selec"'),
        ("select true from nothing", 'the condition failed: relation "nothing" does not exist'),
        ("select 1 / 0", "the condition failed: division by zero"),
        ("select pg_sleep(9)", "the condition did not finish within 0.2 s"),
        ("select true; select true", "condition: must be a single query"),
        ("commit; select true", "condition: must be a single query"),
        ("commit", "condition: must be a single query"),
        ("-- nothing", "condition: must be a single query"),
        ("delete from mainspring.jobs returning true", "the condition tried to write"),
        # The login of tests is a superuser, so conditions have no right but to read.
        ("select nextval('mainspring.job_ids')", "the condition failed: permission denied for"),
        ("select mainspring.enqueue('work')", "the condition failed: permission denied for"),
        ("set transaction read write", "condition: must be a single query"),
        ("select pg_terminate_backend(pg_backend_pid())", "the condition failed: permission"),
    ],
)
def test_what_a_condition_does_wrong_is_a_failure_of_its_schedule(
    decide: Decide, connection: psycopg.Connection, condition: str, reason: str
):
    slot = decide(condition_sql=condition, condition_timeout="0.2 seconds")

    assert slot["outcome"] == "failed"
    assert slot["reason"].startswith(reason)
    assert schedules.schedule(connection, slot["name"])["retry_count"] == 1


def test_a_condition_has_no_more_rights_than_its_role(
    decide: Decide, connection: psycopg.Connection, database_url: str
):
    with role(database_url) as name:
        slot = decide(condition_sql="select count(*) from mainspring.jobs", condition_role=name)

    assert slot["outcome"] == "failed"
    assert "permission denied" in slot["reason"]


def test_a_condition_has_the_rights_of_its_role(
    decide: Decide, connection: psycopg.Connection, database_url: str
):
    with role(database_url) as name:
        slot = decide(condition_sql=f"select current_user = '{name}'", condition_role=name)

    assert slot["outcome"] == "enqueued"


def test_a_role_that_is_gone_is_a_failure(connection: psycopg.Connection, database_url: str):
    with role(database_url) as name:
        schedules.insert_schedule(
            connection, "gone", condition_sql="select true", condition_role=name
        )
        wait_until(lambda: schedules.is_planned(connection, "gone"))

    slot = drive(connection, "gone")

    assert slot["outcome"] == "failed"
    assert slot["reason"].startswith(
        f'the condition failed: cannot log in as {name}: role "{name}" does not exist; '
    )


def test_a_condition_keeps_no_lock(decide: Decide, connection: psycopg.Connection):
    assert decide(condition_sql="select pg_try_advisory_lock(4711)")["outcome"] == "enqueued"

    (row,) = connection.execute("select pg_try_advisory_lock(4711)").fetchall()
    assert row == (True,)


# Gauges


def test_a_gauge_remembers_the_side_it_was_on(connection: psycopg.Connection):
    connection.execute("create table gauge as select 0 as level")
    schedules.insert_schedule(
        connection, "gauge", gauge_sql="select level from gauge", gauge_lower=2, gauge_upper=5
    )
    wait_until(lambda: schedules.is_planned(connection, "gauge"))

    for level, expected in [
        (4, "skipped"),
        (5, "enqueued"),
        (3, "enqueued"),
        (2, "skipped"),
        (4, "skipped"),
        (9, "enqueued"),
        (1, "skipped"),
    ]:
        connection.execute("delete from mainspring.jobs")
        connection.execute("update gauge set level = %s", (level,))
        assert drive(connection, "gauge")["outcome"] == expected, level


def drive(connection: psycopg.Connection, name: str) -> schedules.Row:
    """The next slot of a schedule, at once."""
    count = len(schedules.slots(connection, name)) + 1
    schedules.make_due(connection, name)
    return wait_until(lambda: schedules.decided(connection, name, count), 10, f"slot {count}")


@pytest.mark.parametrize("gauge", ["select 'much'", "select null", "select 1 where false"])
def test_a_gauge_that_gives_no_number_is_a_failure(decide: Decide, gauge: str):
    slot = decide(gauge_sql=gauge, gauge_lower=2, gauge_upper=5)

    assert slot["outcome"] == "failed"
    assert slot["reason"].endswith("it must return one number")


# Payload templates and definitions


def test_a_template_becomes_a_payload(decide: Decide, connection: psycopg.Connection):
    slot = decide(payload={"name": "{{ schedule }}", "text": "at {{ slot_at }}", "n": 1})

    payload = payload_of(connection, slot)
    assert payload["name"] == slot["name"]
    assert datetime.fromisoformat(payload["text"].removeprefix("at ")) == slot["scheduled_for"]
    assert payload["n"] == 1


def test_a_template_that_cannot_be_rendered_is_a_failure(decide: Decide):
    slot = decide(payload={"name": "{{ nothing }}"})

    assert slot["outcome"] == "failed"
    assert "nothing" in slot["reason"]


def test_a_definition_that_does_not_exist_is_a_failure(decide: Decide):
    slot = decide(definition="nowhere")

    assert slot["outcome"] == "failed"
    assert slot["reason"] == "unknown definition 'nowhere'"


# By hand


@pytest.mark.parametrize(
    ("condition", "force", "expected"),
    [
        ("select true", False, ("enqueued", None)),
        ("select false", False, ("skipped", "the condition is not met")),
        ("select 1 / 0", False, ("failed", "the condition failed: division by zero")),
        ("select false", True, ("enqueued", None)),
    ],
)
def test_a_trigger_by_hand_checks_the_condition_unless_forced(
    connection: psycopg.Connection, condition: str, force: bool, expected: tuple[str, str | None]
):
    name = f"by hand {condition} {force}"
    schedules.insert_schedule(connection, name, condition_sql=condition)

    slot = trigger(connection, name, force=force)

    assert (slot["outcome"], slot["reason"]) == expected
    assert slot["trigger"] == "manual"
    assert schedules.schedule(connection, name)["retry_count"] == 0


@pytest.mark.parametrize(("force", "outcome"), [(False, "skipped"), (True, "enqueued")])
def test_a_forced_trigger_does_not_ask_the_launcher_but_takes_its_payload(
    connection: psycopg.Connection, force: bool, outcome: str
):
    name = f"launcher by hand {force}"
    schedules.insert_schedule(connection, name, launcher="No", payload={"number": 7})

    slot = trigger(connection, name, force=force)

    assert slot["outcome"] == outcome
    assert [job["payload"] for job in schedules.jobs(connection, name)] == (
        [{"number": 7}] if force else []
    )


def trigger(connection: psycopg.Connection, name: str, *, force: bool) -> schedules.Row:
    connection.execute("select mainspring.trigger_scheduled_job(%s, force => %s)", (name, force))
    return wait_until(lambda: schedules.decided(connection, name), 10, f"{name} is decided")


def test_a_trigger_by_hand_leaves_the_next_slot_alone(connection: psycopg.Connection):
    schedules.insert_schedule(connection, "beside", condition_sql="select true")
    wait_until(lambda: schedules.is_planned(connection, "beside"))
    before = schedules.schedule(connection, "beside")["next_slot_at"]

    trigger(connection, "beside", force=False)

    assert schedules.schedule(connection, "beside")["next_slot_at"] == before
