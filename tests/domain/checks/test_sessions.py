"""Other sessions: both sides of every bound."""

from dataclasses import replace

import pytest

from mainspring.domain.checks import sessions
from mainspring.domain.checks.sessions import (
    Connections,
    Hidden,
    LockWait,
    Prepared,
    ReplicationSlot,
    Standby,
    Transaction,
)

OPEN = Transaction(7, "ann", "report", 0.0, is_idle=True, idle_seconds=0.0)
NOBODY = Hidden(0, "app")
GIB = 1024**3


def severities(found) -> list[str]:
    return [str(each.severity) for each in found]


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(600, []), (601, ["warning"]), (3600, ["warning"]), (3601, ["critical"])],
)
def test_a_transaction_may_be_open_for_ten_minutes(seconds, expected):
    found = sessions.transactions([replace(OPEN, seconds=seconds)], NOBODY)

    assert severities(found) == expected


def test_hidden_sessions_are_a_note_with_the_login():
    (found,) = sessions.transactions([], Hidden(3, "app"))

    assert (found.severity, found.fact[:10]) == ("note", "3 sessions")
    assert found.advice.startswith("grant pg_read_all_stats to app;")


@pytest.mark.parametrize(("seconds", "expected"), [(300, []), (301, ["warning"])])
def test_a_transaction_may_be_idle_for_five_minutes(seconds, expected):
    idle = replace(OPEN, idle_seconds=seconds)

    assert severities(sessions.idle_transactions([idle], {})) == expected
    assert sessions.idle_transactions([replace(idle, is_idle=False)], {}) == []


@pytest.mark.parametrize(("value", "expected"), [("0", ["note"]), ("60000", [])])
def test_idle_transactions_should_have_an_end(value, expected):
    settings = {"idle_in_transaction_session_timeout": value}

    assert severities(sessions.idle_transactions([], settings)) == expected


@pytest.mark.parametrize(("seconds", "expected"), [(600, []), (601, ["critical"])])
def test_a_prepared_transaction_may_wait_for_ten_minutes(seconds, expected):
    assert severities(sessions.prepared([Prepared("x", "ann", seconds)])) == expected


@pytest.mark.parametrize(
    ("is_active", "holds_ids", "wal", "expected"),
    [
        (True, True, 10 * GIB, []),
        (False, False, 10 * GIB, []),
        (False, True, 0, ["warning"]),
        (True, False, 10 * GIB + 1, ["critical"]),
    ],
)
def test_a_replication_slot_may_keep_ten_gib(is_active, holds_ids, wal, expected):
    slot = ReplicationSlot("s", is_active, holds_ids, wal)

    assert severities(sessions.replication_slots([slot])) == expected


@pytest.mark.parametrize(
    ("age", "expected"),
    [
        (1_000_000, []),
        (1_000_001, ["warning"]),
        (10_000_000, ["warning"]),
        (10_000_001, ["critical"]),
    ],
)
def test_a_standby_may_keep_rows_of_a_million_transactions(age, expected):
    assert severities(sessions.standbys([Standby("s", age)])) == expected


@pytest.mark.parametrize(
    ("used", "expected"),
    [(80, []), (81, ["warning"]), (95, ["warning"]), (96, ["critical"])],
)
def test_connections_must_not_run_out(used, expected):
    assert severities(sessions.connections(Connections(used, 5, 100))) == expected


@pytest.mark.parametrize(("seconds", "expected"), [(5, []), (5.1, ["warning"])])
def test_a_lock_may_be_waited_for_five_seconds(seconds, expected):
    wait = LockWait(7, "jobs", seconds, 8, "report", "select 1")

    assert severities(sessions.lock_waits([wait])) == expected


def test_a_blocker_that_is_not_known_is_named_so():
    (found,) = sessions.lock_waits([LockWait(7, "jobs", 9, None, None, None)])

    assert found.fact.endswith("held by another session")
