"""Schedules written by plain SQL: what the defaults are, what is refused, and who may write."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import psycopg
import pytest
from psycopg import sql
from psycopg.types.json import Jsonb

from mainspring.store import due_schedules as store
from tests.support.calls import call
from tests.support.databases import role
from tests.support.rows import insert, not_becoming, refused
from tests.support.schedules import Row, audit, insert_schedule, schedule

DAILY = "insert into mainspring.schedules (name, definition, cron) values (%s, %s, %s)"
ONE_TIMING = "give exactly one of cron, every and at"
YEARS = "must be in the years 1 to 9999"
GAUGE = "needs gauge_sql, gauge_lower and gauge_upper, the lower not above the upper"
THOUSAND = "must be from 1 to 1000"
LONG = "36501 days"
NO_ROLE = "nobody at all does not exist; create it, or name another role"


@contextmanager
def refuses(connection: psycopg.Connection, field: str, problem: str) -> Iterator[None]:
    message = re.escape(f"{field}: {problem}")
    with refused(connection, "MS041", message, field=field, problem=problem):
        yield


def test_a_name_a_definition_and_a_timing_are_enough(tx):
    tx.execute(DAILY, ("nightly", "work", "0 2 * * *"))

    row = schedule(tx, "nightly")
    assert (row["tenant_id"], row["enabled"], row["zone"]) == ("default", True, "UTC")
    assert (row["overlap"], row["catch_up"], row["max_running"]) == ("skip", "latest", 1)
    assert (row["dst_gap"], row["dst_fold"], row["payload"]) == ("run_after", "once", {})
    assert (row["max_retries"], row["misfire_grace"]) == (5, timedelta(minutes=1))


def test_a_new_schedule_waits_for_a_scheduler_to_compute_its_first_slot(tx):
    insert_schedule(tx)

    row = schedule(tx)
    assert (row["next_run_at"].timestamp(), row["next_slot_at"], row["revision"]) == (0, None, 0)


@pytest.mark.parametrize("cron", ["@every 90s", " @EVERY 90s"])
async def test_an_interval_in_any_spelling_counts_from_when_it_was_written(
    aconnection, connection, cron
):
    insert_schedule(connection, cron=cron)

    (group,) = await store.due(aconnection, limit=10)

    assert group.timing().anchor_at == schedule(connection)["anchor_at"]


def test_an_instant_given_with_a_new_schedule_is_its_first_slot(tx):
    insert_schedule(tx, run_at="2030-01-01T00:00:30Z")

    row = schedule(tx)
    assert row["next_run_at"].isoformat() == "2030-01-01T00:00:30+00:00"
    assert row["next_slot_at"] == row["next_run_at"]


def test_a_null_instant_is_no_instant(tx):
    insert_schedule(tx, run_at=None)

    assert schedule(tx)["next_run_at"].timestamp() == 0


def test_a_schedule_may_be_written_disabled(tx):
    insert_schedule(tx, enabled=False)

    row = schedule(tx)
    assert (row["next_run_at"], row["next_slot_at"]) == (None, None)


@pytest.mark.parametrize(
    ("columns", "field", "problem"),
    [
        ({"name": ""}, "name", "must have 1 to 200 characters"),
        ({"name": " \t"}, "name", "must have 1 to 200 characters"),
        ({"name": "x" * 201}, "name", "must have 1 to 200 characters"),
        ({"name": None}, "name", "must have 1 to 200 characters"),
        ({"definition": ""}, "definition", "must name the definition to run"),
        ({"cron": "@daily", "every": "1 hour"}, "timing", ONE_TIMING),
        ({"cron": "@daily", "at": "2030-01-01Z"}, "timing", ONE_TIMING),
        ({"cron": None}, "timing", ONE_TIMING),
        ({"cron": "60 * * * *"}, "cron minute", "60 is not from 0 to 59"),
        ({"cron": "0 24 * * *"}, "cron hour", "24 is not from 0 to 23"),
        ({"cron": "0 0 0 * *"}, "cron day of month", "0 is not from 1 to 31"),
        ({"cron": "0 0 * 13 *"}, "cron month", "13 is not from 1 to 12"),
        ({"cron": "0 0 * * 8"}, "cron day of week", "8 is not from 0 to 7"),
        ({"cron": "0 0 30 2 *"}, "cron", "'0 0 30 2 *' never matches; there is no such date"),
        ({"every": "0.999 seconds"}, "every", "must be from 1 second to 36500 days"),
        ({"every": LONG}, "every", "must be from 1 second to 36500 days"),
        ({"zone": "Nowhere"}, "zone", "there is no time zone 'Nowhere'"),
        ({"zone": ""}, "zone", "there is no time zone ''"),
        (
            {"zone": "PDT"},
            "zone",
            "there is no time zone 'PDT'; did you mean 'America/Los_Angeles'?",
        ),
        (
            {"zone": "UTC+3"},
            "zone",
            (
                "there is no time zone 'UTC+3'; did you mean 'Etc/GMT-3'? That is 3 hours ahead of "
                "UTC: the signs of these zones are reversed"
            ),
        ),
        (
            {"zone": "europe/berlin"},
            "zone",
            "there is no time zone 'europe/berlin'; did you mean 'Europe/Berlin'?",
        ),
        (
            {"zone": "Berlin"},
            "zone",
            "there is no time zone 'Berlin'; did you mean 'Europe/Berlin'?",
        ),
        (
            {"starts_at": "2030-01-02Z", "ends_at": "2030-01-02Z"},
            "ends_at",
            "must be after starts_at",
        ),
        ({"at": "infinity"}, "at", YEARS),
        ({"starts_at": "-infinity"}, "starts_at", YEARS),
        ({"ends_at": "10000-01-01Z"}, "ends_at", YEARS),
        ({"run_at": "infinity"}, "run_at", YEARS),
        (
            {"paused_until": "infinity"},
            "paused_until",
            f"{YEARS}; to stop it for good, disable it",
        ),
        ({"dst_gap": "run"}, "dst_gap", "must be run_after or skip"),
        ({"dst_fold": "twice"}, "dst_fold", "must be once or both"),
        ({"overlap": "allow"}, "overlap", "must be skip, queue or replace"),
        ({"catch_up": "some"}, "catch_up", "must be none, latest or all"),
        ({"payload": Jsonb([1])}, "payload", "must be a JSON object"),
        ({"calendar": Jsonb("DE")}, "calendar", "must be a JSON object"),
        ({"jitter": "-1 second"}, "jitter", "must be from 0 to 36500 days"),
        ({"misfire_grace": "-1 second"}, "misfire_grace", "must be from 0 to 36500 days"),
        (
            {"catch_up_max_age": "0"},
            "catch_up_max_age",
            "must be from 1 second to 36500 days",
        ),
        ({"run_timeout": "0"}, "run_timeout", "must be from 1 second to 36500 days"),
        (
            {"condition_timeout": "0"},
            "condition_timeout",
            "must be from 1 millisecond to 1 day",
        ),
        ({"max_retries": 0}, "max_retries", THOUSAND),
        ({"max_retries": 1001}, "max_retries", THOUSAND),
        ({"max_running": 0}, "max_running", THOUSAND),
        ({"max_attempts": 1001}, "max_attempts", THOUSAND),
        ({"catch_up_limit": 10_001}, "catch_up_limit", "must be from 1 to 10000"),
        ({"priority": -1}, "priority", "must be from 0 to 1000"),
        (
            {"launcher": "stale", "condition_sql": "select true"},
            "condition",
            "give at most one of launcher, condition_sql and gauge_sql",
        ),
        ({"gauge_sql": "select 1"}, "gauge", GAUGE),
        ({"gauge_lower": 1, "gauge_upper": 2}, "gauge", GAUGE),
        ({"gauge_sql": "select 1", "gauge_lower": 1}, "gauge", GAUGE),
        ({"gauge_sql": "select 1", "gauge_lower": 2, "gauge_upper": 1}, "gauge", GAUGE),
        ({"condition_role": "nobody at all"}, "condition_role", NO_ROLE),
    ],
    ids=str,
)
def test_what_is_wrong_is_refused_by_the_name_of_its_field(tx, columns, field, problem):
    with refuses(tx, field, problem):
        insert(tx, "schedules", **_whole(columns))


def _whole(columns: Row) -> Row:
    """The columns with a name, a definition, and a timing if they say nothing of one."""
    timing = {} if {"cron", "every", "at"} & columns.keys() else {"cron": "@daily"}
    return {"name": "tick", "definition": "work", **timing, **columns}


@pytest.mark.parametrize(
    "columns",
    [
        {"name": "x" * 200},
        {"every": "1 second"},
        {"every": "36500 days"},
        {"at": "2030-01-01Z"},
        {"starts_at": "2030-01-01Z", "ends_at": "2030-01-02Z"},
        {"zone": "Etc/GMT+5"},
        {"zone": "America/Port-au-Prince"},
        {"jitter": "0", "misfire_grace": "0"},
        {"max_retries": 1, "max_running": 1000, "max_attempts": 1000, "catch_up_limit": 10_000},
        {"priority": 0},
        {"gauge_sql": "select 1", "gauge_lower": 1, "gauge_upper": 1},
        {"overlap": "replace", "catch_up": "all", "dst_gap": "skip", "dst_fold": "both"},
    ],
    ids=str,
)
def test_what_is_just_right_is_accepted(tx, columns):
    whole = _whole(columns)
    insert(tx, "schedules", **whole)

    assert schedule(tx, whole["name"])["revision"] == 0


@pytest.mark.parametrize("column", ["overlap", "payload", "max_running", "definition"])
def test_a_null_is_refused_by_the_name_of_its_column(tx, column):
    with pytest.raises(psycopg.errors.NotNullViolation) as caught:
        insert(tx, "schedules", **_whole({column: None}))

    assert caught.value.diag.column_name == column


def test_a_name_that_is_taken_is_named(tx):
    insert_schedule(tx, "nightly")

    with pytest.raises(psycopg.errors.UniqueViolation) as caught, tx.transaction():
        insert_schedule(tx, "nightly")
    assert "nightly" in str(caught.value.diag.message_detail)
    insert_schedule(tx, "nightly", tenant_id="acme")


def test_a_tenant_that_is_not_there_is_named(tx):
    gone = {"option": "tenant", "problem": "does not exist"}
    with refused(tx, "MS003", "there is no tenant 'nowhere'", **gone):
        insert_schedule(tx, tenant_id="nowhere")


def test_a_change_is_checked_like_a_new_schedule(tx):
    insert_schedule(tx, cron="@daily")

    with refuses(tx, "cron hour", "24 is not from 0 to 23"):
        tx.execute("update mainspring.schedules set cron = '0 24 * * *'")
    with refuses(tx, "overlap", "must be skip, queue or replace"):
        tx.execute("update mainspring.schedules set overlap = 'allow'")
    assert schedule(tx)["cron"] == "@daily"


def test_a_schedule_that_went_wrong_can_be_stopped_but_not_started(tx):
    """As when its zone has left the tz database."""
    insert_schedule(tx)
    with tx.transaction():
        tx.execute("set local session_replication_role = replica")
        tx.execute("update mainspring.schedules set zone = 'Nowhere'")
        tx.execute("set local session_replication_role = origin")

    tx.execute("update mainspring.schedules set enabled = false")
    with refuses(tx, "zone", "there is no time zone 'Nowhere'"):
        tx.execute("update mainspring.schedules set enabled = true")


def test_the_callers_time_zone_stays_as_it_was(tx):
    tx.execute("set local timezone = 'Asia/Kolkata'")

    insert_schedule(tx, zone="Europe/Berlin")
    with pytest.raises(psycopg.Error, match="there is no time zone"), tx.transaction():
        insert_schedule(tx, "other", zone="Nowhere")

    assert tx.execute("show timezone").fetchone() == ("Asia/Kolkata",)


# Grants

GRANTS = """
grant usage on schema mainspring to {role};
grant select on mainspring.schedule_status, mainspring.slot_status to {role};
grant select, insert, update on mainspring.schedules to {role};
grant execute on function mainspring.trigger_scheduled_job to {role};
"""
OPEN_FUNCTIONS = """
select proname from pg_proc
 where pronamespace = 'mainspring'::regnamespace and has_function_privilege(oid, 'execute')
"""
OPEN_RELATIONS = """
select relname, privilege
  from pg_class, unnest('{select,insert,update,delete,truncate}'::text[]) as privilege
 where relnamespace = 'mainspring'::regnamespace and relkind in ('r', 'p', 'v')
   and has_table_privilege(pg_class.oid, privilege)
"""


@pytest.fixture(scope="module")
def caller(module_url: str) -> Iterator[str]:
    with role(module_url) as name:
        yield name


@pytest.fixture
def guest(tx: psycopg.Connection, caller: str) -> psycopg.Connection:
    """The transaction of a role with the documented grants; `owned` is a schedule of the owner."""
    insert_schedule(tx, "owned", condition_sql="select true")
    tx.execute(sql.SQL(GRANTS).format(role=sql.Identifier(caller)))
    tx.execute(sql.SQL("set local role {}").format(sql.Identifier(caller)))
    return tx


def test_the_grants_let_a_role_write_schedules(guest, caller):
    insert(guest, "schedules", name="mine", definition="work", cron="@daily")
    guest.execute("update mainspring.schedules set cron = '@hourly' where name = 'mine'")

    guest.execute("reset role")
    row = schedule(guest, "mine")
    assert (row["cron"], row["revision"], row["condition_role"]) == ("@hourly", 1, caller)


def test_the_grants_let_a_role_trigger_and_watch(guest):
    insert(guest, "schedules", name="mine", definition="work", cron="@daily")
    (answer,) = call(guest, "trigger_scheduled_job", "mine")

    assert answer["outcome"] == "enqueued"
    watch = "select outcome, total_runs from mainspring.slot_status join mainspring.schedule_status"
    assert guest.execute(f"{watch} using (schedule_id)").fetchall() == [("enqueued", 0)]


def test_the_grants_let_a_role_move_the_next_run(guest):
    guest.execute("update mainspring.schedules set run_at = '2030-01-01Z'")

    guest.execute("reset role")
    assert schedule(guest, "owned")["next_slot_at"].year == 2030


def test_the_grants_open_one_function_beside_those_that_views_call(guest):
    found = {name for (name,) in guest.execute(OPEN_FUNCTIONS).fetchall()}

    assert found == {
        *("trigger_scheduled_job", "redacted", "redacted_at"),
        *("is_isolated", "is_visible", "is_own", "source_of", "error_line"),
        *("creator_of", "trigger_of"),
        # Defaults of columns, which run as whoever inserts.
        *("creator", "is_program"),
        # Triggers that run as whoever writes.
        *("may_set_role", "has_rights_of", "acts_as_owner", "grant_of"),
        # What schedule_function calls, which runs as its caller.
        "check_function_name",
    }


def test_the_grants_open_three_relations_and_no_other(guest):
    assert set(guest.execute(OPEN_RELATIONS).fetchall()) == {
        ("schedule_status", "select"),
        ("slot_status", "select"),
        ("schedules", "select"),
        ("schedules", "insert"),
        ("schedules", "update"),
    }


def test_a_refusal_reaches_a_role_with_its_words(guest):
    with refuses(guest, "cron minute", "60 is not from 0 to 59"):
        insert(guest, "schedules", **_whole({"cron": "60 * * * *"}))


def test_the_owner_of_a_session_is_the_actor_of_what_a_role_does(guest):
    insert(guest, "schedules", name="mine", definition="work", cron="@daily")
    guest.execute("reset role")

    (entry,) = audit(guest, "mine")
    assert (entry["actor"], entry["action"]) == (guest.info.user, "create")


@pytest.mark.parametrize(
    "change",
    [
        "condition_sql = 'select false'",
        "condition_sql = null, gauge_sql = 'select 1', gauge_lower = 1, gauge_upper = 2",
    ],
)
def test_nobody_changes_a_condition_that_runs_under_the_role_of_another(guest, caller, change):
    with refuses(guest, "condition_role", not_becoming(caller, guest.info.user)):
        guest.execute(f"update mainspring.schedules set {change} where name = 'owned'")


def test_nobody_has_a_condition_run_under_a_role_that_is_not_theirs(guest, caller):
    insert(guest, "schedules", name="mine", definition="work", cron="@daily")

    with refuses(guest, "condition_role", not_becoming(caller, guest.info.user)):
        guest.execute("update mainspring.schedules set condition_role = session_user")
    with refuses(guest, "condition_role", not_becoming(caller, guest.info.user)):
        insert(guest, "schedules", **_whole({"condition_role": guest.info.user}))


def test_a_schedule_whose_condition_stays_may_be_changed_by_anyone_with_the_grant(guest):
    guest.execute(
        "update mainspring.schedules set cron = '@hourly', every = null,"
        " condition_sql = condition_sql, condition_role = condition_role"
    )

    guest.execute("reset role")
    row = schedule(guest, "owned")
    assert (row["cron"], row["condition_role"]) == ("@hourly", guest.info.user)


def test_a_grant_by_columns_may_leave_conditions_out(tx, caller):
    names = {"role": sql.Identifier(caller)}
    tx.execute(sql.SQL("grant usage on schema mainspring to {role}").format(**names))
    columns = "grant insert (name, definition, cron) on mainspring.schedules to {role}"
    tx.execute(sql.SQL(columns).format(**names))
    tx.execute(sql.SQL("set local role {role}").format(**names))

    insert(tx, "schedules", name="mine", definition="work", cron="@daily")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        insert(tx, "schedules", **_whole({"condition_sql": "select true"}))


def test_a_member_of_a_role_may_have_conditions_run_under_it(guest, caller):
    guest.execute("reset role")
    names = {"group": sql.Identifier(f"{caller}_group"), "member": sql.Identifier(caller)}
    guest.execute(sql.SQL("create role {group} role {member}").format(**names))
    guest.execute(sql.SQL("set local role {member}").format(**names))

    row = _whole({"condition_role": f"{caller}_group", "condition_sql": "select true"})
    insert(guest, "schedules", **row)

    guest.execute("reset role")
    assert schedule(guest)["condition_role"] == f"{caller}_group"
