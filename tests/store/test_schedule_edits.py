"""Schedules changed by plain SQL or by the code that declares them, and the trace this leaves."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.support.calls import call
from tests.support.rows import count, refused
from tests.support.schedules import Row, audit, insert_schedule, schedule, update

EPOCH = datetime.fromtimestamp(0, UTC)
INSTANT = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.fixture
def planned(tx: psycopg.Connection) -> psycopg.Connection:
    """The transaction with a schedule that a scheduler has computed the next slot of."""
    insert_schedule(tx, cron="@daily", payload={"a": 1})
    arrange(tx, revision=7, next_slot_at="now()", next_run_at="now() + interval '5 seconds'")
    tx.execute("delete from mainspring.audit")
    return tx


def arrange(connection: psycopg.Connection, **columns: object) -> None:
    """Columns set behind the back of our triggers, which work again afterwards."""
    update(connection, None, **columns)
    connection.execute("set local session_replication_role = origin")


def change(connection: psycopg.Connection, assignments: str) -> Row:
    """The schedule after an update by plain SQL."""
    connection.execute(f"update mainspring.schedules set {assignments}")
    return schedule(connection)


# What is computed anew


@pytest.mark.parametrize(
    "assignments",
    [
        "cron = '@hourly'",
        "cron = null, every = '1 hour'",
        "cron = null, at = '2030-01-01Z'",
        "zone = 'Europe/Berlin'",
        "dst_gap = 'skip'",
        "dst_fold = 'both'",
        "starts_at = '2030-01-01Z'",
        "ends_at = '2030-01-01Z'",
        """calendar = '{"weekends": true}'""",
        "jitter = '1 minute'",
        "anchor_at = '2030-01-01Z'",
        "paused_until = '2030-01-01Z'",
    ],
)
def test_another_timing_has_its_next_slot_computed_anew(planned, assignments):
    row = change(planned, assignments)

    assert (row["next_run_at"], row["next_slot_at"], row["revision"]) == (EPOCH, None, 8)


@pytest.mark.parametrize(
    "assignments",
    [
        "description = 'b'",
        "overlap = 'queue'",
        "max_retries = 9",
        "name = name",
        "cron = '@daily'",
    ],
)
def test_anything_else_leaves_the_next_slot(planned, assignments):
    before = schedule(planned)

    row = change(planned, assignments)

    kept = ("next_run_at", "next_slot_at", "revision", "changed_at")
    assert [row[name] for name in kept] == [before[name] for name in kept]


@pytest.mark.parametrize(
    "assignments",
    [
        "condition_sql = 'select true'",
        """payload = '{"a": 2}'""",
        """payload = '{"a": "{{slot_at}}"}'""",
        "definition = 'other'",
        "misfire_grace = '1 hour'",
        "catch_up = 'all'",
    ],
)
def test_what_becomes_of_a_slot_is_decided_anew_and_the_slot_stays(planned, assignments):
    arrange(planned, checking_until="now() + interval '1 minute'", checking_by="'someone'")
    before = schedule(planned)

    row = change(planned, assignments)

    kept = ("next_run_at", "next_slot_at", "changed_at")
    assert [row[name] for name in kept] == [before[name] for name in kept]
    assert (row["revision"], row["checking_by"]) == (before["revision"] + 1, None)


def test_a_timing_is_looked_at_anew_even_while_a_condition_is_being_checked(planned):
    arrange(planned, checking_until="now() + interval '1 minute'", checking_by="'someone'")

    row = change(planned, "cron = '@hourly'")

    assert (row["checking_until"], row["checking_by"]) == (None, None)


def test_slots_before_a_change_are_forgotten(planned):
    arrange(planned, changed_at="'2020-01-01Z'")

    assert change(planned, "cron = '@hourly'")["changed_at"].year > 2020


@pytest.mark.parametrize(("text", "is_templated"), [("{{slot_at}}", True), ("{slot_at}", False)])
def test_a_payload_with_a_template_is_noticed(planned, text, is_templated):
    planned.execute("update mainspring.schedules set payload = %s", (Jsonb({"day": text}),))

    assert schedule(planned)["is_templated"] is is_templated


# Enabling and disabling


def test_disabling_takes_the_next_run_away(planned):
    row = change(planned, "enabled = false")

    assert (row["next_run_at"], row["next_slot_at"], row["revision"]) == (None, None, 8)


def test_enabling_starts_with_a_clean_record(planned):
    arrange(planned, enabled="false", next_run_at="null", next_slot_at="null")
    arrange(planned, retry_count=5, disabled_reason="'it failed'")

    row = change(planned, "enabled = true")

    assert (row["retry_count"], row["disabled_reason"]) == (0, None)
    assert (row["next_run_at"], row["next_slot_at"]) == (EPOCH, None)


def test_a_change_of_a_disabled_schedule_does_not_start_it(planned):
    change(planned, "enabled = false")

    row = change(planned, "cron = '@hourly'")

    assert (row["enabled"], row["next_run_at"]) == (False, None)


# The next run set by hand


def test_a_run_set_by_hand_is_a_slot_of_its_own(planned):
    row = change(planned, "run_at = '2030-01-01Z'")

    assert (row["next_run_at"], row["next_slot_at"], row["revision"]) == (INSTANT, INSTANT, 8)


@pytest.mark.parametrize("instant", ["epoch", "-infinity"])
def test_the_epoch_set_by_hand_has_the_next_slot_computed_anew(planned, instant):
    row = change(planned, f"run_at = '{instant}'")

    assert (row["next_run_at"], row["next_slot_at"], row["revision"]) == (EPOCH, None, 8)


def test_a_run_set_by_hand_is_taken_out_of_the_hand(planned):
    assert change(planned, "run_at = '2030-01-01Z'")["run_at"] is None


def test_a_run_set_by_hand_may_be_set_to_the_same_again(planned):
    change(planned, "run_at = '2030-01-01Z'")
    arrange(planned, next_run_at="now()", next_slot_at="now()")

    assert change(planned, "run_at = '2030-01-01Z'")["next_slot_at"] == INSTANT


def test_a_run_set_together_with_another_timing_comes_first(planned):
    row = change(planned, "cron = '@hourly', run_at = '2030-01-01Z'")

    assert (row["next_run_at"], row["next_slot_at"], row["revision"]) == (INSTANT, INSTANT, 8)


def test_a_run_set_while_enabling_comes_first(planned):
    change(planned, "enabled = false")

    row = change(planned, "enabled = true, run_at = '2030-01-01Z'")

    assert (row["next_run_at"], row["next_slot_at"]) == (INSTANT, INSTANT)


def test_a_run_beyond_every_calendar_is_refused(planned):
    problem = "must be in the years 1 to 9999"

    with refused(planned, "MS041", problem, field="run_at", problem=problem):
        change(planned, "run_at = 'infinity'")


def test_a_disabled_schedule_cannot_be_given_a_run(planned):
    change(planned, "enabled = false")

    problem = "the schedule is disabled; enable it first"
    with refused(planned, "MS041", problem, field="run_at", problem=problem):
        change(planned, "run_at = '2030-01-01Z'")


# Deleting


def test_a_deleted_schedule_takes_its_slots_and_figures_along(planned):
    schedule_id = schedule(planned)["schedule_id"]
    insert_schedule(planned, "other")
    call(planned, "trigger_scheduled_job", "tick")
    call(planned, "trigger_scheduled_job", "other")
    planned.execute("insert into mainspring.schedule_figures (schedule_id) values (%s)", (0,))
    planned.execute("update mainspring.schedule_figures set schedule_id = %s", (schedule_id,))

    planned.execute("delete from mainspring.schedules where name = 'tick'")

    slots = planned.execute("select name from mainspring.slot_status").fetchall()
    assert (slots, count(planned, "slots")) == ([("other",)], 1)
    assert (count(planned, "schedule_figures"), count(planned, "jobs")) == (0, 2)


# Audit


def entry(connection: psycopg.Connection, name: str = "tick") -> Row:
    (row,) = audit(connection, name)
    return {key: row[key] for key in ("actor", "action", "before", "after", "reason")}


def test_a_new_schedule_is_told_with_all_that_was_decided(tx):
    insert_schedule(tx, cron="@daily", payload={"a": None}, tenant_id="acme")

    (row,) = audit(tx)
    assert (row["action"], row["noun"], row["tenant_id"]) == ("create", "schedule", "acme")
    assert (row["actor"], row["before"]) == (tx.info.user, None)
    assert row["after"].items() >= {"cron": "@daily", "payload": {"a": None}}.items()
    assert not {"every", "revision", "next_run_at", "enqueued_count"} & row["after"].keys()


def test_a_change_is_told_with_what_differs_and_no_more(planned):
    change(planned, """payload = '{"a": 2}', max_retries = 9, zone = zone""")

    told = entry(planned)
    assert (told["action"], told["actor"]) == ("update", planned.info.user)
    assert told["before"] == {"payload": {"a": 1}, "max_retries": 5}
    assert told["after"] == {"payload": {"a": 2}, "max_retries": 9}


def test_what_is_given_or_taken_away_is_on_one_side(planned):
    change(planned, "cron = null, every = '1 hour'")

    told = entry(planned)
    assert (told["before"], told["after"]) == ({"cron": "@daily"}, {"every": "01:00:00"})


@pytest.mark.parametrize("assignments", ["max_retries = 5", "cron = '@daily'", "run_at = now()"])
def test_what_changes_nothing_leaves_no_trace(planned, assignments):
    change(planned, assignments)

    assert audit(planned) == []


def test_disabling_and_enabling_are_told_by_their_names(planned):
    change(planned, "enabled = false, disabled_reason = 'holidays'")
    change(planned, "enabled = true")

    first, second = audit(planned)
    assert (first["action"], first["reason"], first["after"]) == (
        "disable",
        "holidays",
        {"enabled": False},
    )
    assert (second["action"], second["before"]) == ("enable", {"enabled": False})


def test_a_deleted_schedule_is_told_as_it_was(planned):
    planned.execute("delete from mainspring.schedules")

    told = entry(planned)
    assert (told["action"], told["after"]) == ("delete", None)
    assert told["before"].items() >= {"cron": "@daily", "payload": {"a": 1}}.items()


def test_a_program_may_say_on_whose_behalf_it_acts(planned):
    planned.execute("set local mainspring.actor = 'ada'")
    change(planned, "max_retries = 9")

    assert entry(planned)["actor"] == "ada"


# Waking the schedulers


@pytest.fixture
def heard(connection: psycopg.Connection, database_url: str) -> Iterator[psycopg.Connection]:
    """A connection that listens; `connection` has a schedule."""
    insert_schedule(connection, cron="@daily")
    with psycopg.connect(database_url, autocommit=True) as listener:
        listener.execute("listen mainspring")
        yield listener


def messages(listener: psycopg.Connection, connection: psycopg.Connection) -> list[str]:
    """What was heard until now: the end is marked, since messages keep their order."""
    connection.execute("notify mainspring, 'end'")
    heard = [message.payload for message in listener.notifies(timeout=10, stop_after=1)]
    while "end" not in heard:
        heard += [message.payload for message in listener.notifies(timeout=10, stop_after=1)]
    return heard[:-1]


@pytest.mark.parametrize(
    "statement",
    [
        "insert into mainspring.schedules (name, definition, cron) values ('b', 'work', '@daily')",
        "update mainspring.schedules set cron = '@hourly'",
        "update mainspring.schedules set enabled = false",
        "update mainspring.schedules set paused_until = '2030-01-01Z'",
        "update mainspring.schedules set run_at = '2030-01-01Z'",
    ],
)
def test_schedulers_hear_of_a_change_that_may_fire_sooner(heard, connection, statement):
    connection.execute(statement)

    assert messages(heard, connection) == ["schedule:"]


def test_many_rows_of_one_statement_are_one_message(heard, connection):
    connection.execute(
        "insert into mainspring.schedules (name, definition, cron)"
        " select 'many ' || n, 'work', '@daily' from generate_series(1, 5) as n"
    )

    assert messages(heard, connection) == ["schedule:"]


def test_schedulers_do_not_hear_of_what_does_not_concern_them(heard, connection):
    connection.execute("update mainspring.schedules set description = 'b'")

    assert messages(heard, connection) == []


# Declared by code

SPEC: Row = {
    "tenant_id": "default",
    "name": "tick",
    "definition": "work",
    "description": "",
    "enabled": True,
    "cron": "@daily",
    "zone": "UTC",
    "dst_gap": "run_after",
    "dst_fold": "once",
    "jitter": "0",
    "payload": {"a": None},
    "misfire_grace": "1 minute",
    "catch_up": "latest",
    "catch_up_limit": 100,
    "overlap": "skip",
    "max_running": 1,
    "condition_timeout": "10 seconds",
    "max_retries": 5,
}


def declare(connection: psycopg.Connection, *, overwrite: bool = False, **changes: Any) -> str:
    spec = Jsonb({**SPEC, **changes})
    (outcome,) = call(connection, "declare_schedule", spec=spec, overwrite=overwrite)
    return str(outcome)


def test_a_declared_schedule_is_created_once(tx):
    assert declare(tx) == "created"
    revision = schedule(tx)["revision"]

    assert declare(tx) == "unchanged"
    assert declare(tx, overwrite=True) == "unchanged"
    assert (schedule(tx)["revision"], len(audit(tx))) == (revision, 1)


def test_another_declaration_changes_what_nobody_touched(tx):
    declare(tx)
    change(tx, "max_retries = 9")

    assert declare(tx, cron="@hourly", max_retries=7, payload={"b": None}) == "changed"

    row = schedule(tx)
    assert (row["cron"], row["max_retries"], row["payload"]) == ("@hourly", 9, {"b": None})


def test_a_declaration_that_only_changes_what_a_person_changed_changes_nothing(tx):
    declare(tx)
    change(tx, "cron = '@weekly'")

    assert declare(tx, cron="@hourly") == "kept"
    assert schedule(tx)["cron"] == "@weekly"
    assert declare(tx, cron="@hourly") == "unchanged"


def test_what_the_code_gives_up_is_taken_away(tx):
    declare(tx, queue="tools")

    assert declare(tx) == "changed"
    assert schedule(tx)["queue"] is None


def test_a_schedule_that_a_person_made_is_kept(tx):
    insert_schedule(tx, cron="@weekly")

    assert declare(tx) == "kept"
    row = schedule(tx)
    assert (row["cron"], row["declared"]) == ("@weekly", None)


def test_a_declaration_that_overwrites_undoes_what_a_person_changed(tx):
    declare(tx)
    change(tx, "cron = null, every = '1 hour', queue = 'slow', enabled = false")

    assert declare(tx, overwrite=True) == "changed"

    row = schedule(tx)
    assert (row["cron"], row["every"], row["queue"]) == ("@daily", None, None)
    assert row["enabled"]


def test_a_declaration_that_overwrites_takes_over_what_a_person_made(tx):
    insert_schedule(tx, every="1 hour")

    assert declare(tx, overwrite=True) == "changed"
    assert (schedule(tx)["cron"], declare(tx)) == ("@daily", "unchanged")


@pytest.mark.parametrize(
    ("by_person", "declared"),
    [
        ("cron = '@weekly'", {"cron": None, "every": "1 hour"}),
        ("cron = null, at = '2030-01-01Z'", {"cron": "@hourly"}),
        ("condition_sql = 'select true'", {"launcher": "stale"}),
        ("starts_at = '2030-01-01Z'", {"ends_at": "2029-01-01T00:00:00+00:00"}),
    ],
)
def test_parts_that_belong_together_are_kept_together(tx, by_person, declared):
    declare(tx)
    row = change(tx, by_person)

    assert declare(tx, **declared) == "kept"
    assert {**schedule(tx), "declared": None} == {
        **row,
        "declared": None,
        "updated_at": schedule(tx)["updated_at"],
    }
