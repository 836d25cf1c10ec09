"""Triggers as rows: what is refused, and what is told of a change."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.types.json import Jsonb

from mainspring.db.sql_errors import translate
from mainspring.domain.errors import InvalidOption, InvalidTrigger
from tests.support import events
from tests.support.databases import role
from tests.support.rows import refused

NO_PATTERN = (
    " must be an event name, a prefix followed by .* such as provider.*, or * for all events"
)
GRANTS = """
grant usage on schema mainspring to {role};
grant select, insert, update, delete on mainspring.triggers to {role};
grant select on mainspring.trigger_status to {role};
"""


@pytest.mark.parametrize(
    ("columns", "field", "problem"),
    [
        ({"name": " "}, "name", "must have 1 to 200 characters"),
        ({"name": "n" * 201}, "name", "must have 1 to 200 characters"),
        ({"event": "a*"}, "event", "'a*'" + NO_PATTERN),
        ({"event": ".*"}, "event", "'.*'" + NO_PATTERN),
        ({"event": None}, "event", "null" + NO_PATTERN),
        ({"definition": ""}, "definition", "must name the definition to run"),
        ({"payload": Jsonb([1])}, "payload", "must be a JSON object"),
        ({"unknown_paths": "keep"}, "unknown_paths", "must be refuse or null"),
        ({"dedupe_window": "0"}, "dedupe_window", "must be more than 0 and at most 36500 days"),
        (
            {"dedupe_window": "36501 days"},
            "dedupe_window",
            "must be more than 0 and at most 36500 days",
        ),
        ({"queue": ""}, "queue", "must have 1 to 500 characters"),
        ({"priority": 1001}, "priority", "must be from 0 to 1000"),
    ],
)
def test_what_cannot_be_is_refused_by_its_name(
    tx: psycopg.Connection, columns: dict[str, Any], field: str, problem: str
):
    with refused(tx, "MS061", field, field=field, problem=problem):
        events.insert_trigger(tx, **columns)


@pytest.mark.parametrize("event", ["a", "a.b", "a.*", "a.b.*", "*", "a" * 200 + ".*"])
def test_a_pattern_that_python_takes_is_taken(tx, event):
    assert events.insert_trigger(tx, event=event)


def test_a_refusal_is_translated(tx):
    with pytest.raises(psycopg.Error) as caught, tx.transaction():
        events.insert_trigger(tx, event="a*")
    assert isinstance(translate(caught.value), InvalidTrigger)
    with pytest.raises(psycopg.Error) as caught, tx.transaction():
        events.insert_trigger(tx, tenant_id="nobody")
    assert isinstance(translate(caught.value), InvalidOption)


def test_a_name_is_taken_once_a_tenant(tx):
    events.insert_trigger(tx)
    events.insert_trigger(tx, tenant_id="acme")

    with pytest.raises(psycopg.errors.UniqueViolation), tx.transaction():
        events.insert_trigger(tx)


def test_every_change_is_audited_with_what_differs(tx):
    tx.execute("set local mainspring.actor = 'ada'")
    events.insert_trigger(tx, tenant_id="acme", dedupe_window="5 minutes")
    for change in ("queue = 'fast'", "is_enabled = false", "is_enabled = true", "name = name"):
        tx.execute(f"update mainspring.triggers set {change}".encode())
    tx.execute("delete from mainspring.triggers")

    rows = events.audit(tx)
    assert [row["action"] for row in rows] == ["create", "update", "disable", "enable", "delete"]
    assert {(row["actor"], row["tenant_id"]) for row in rows} == {("ada", "acme")}
    assert rows[0]["after"]["dedupe_window"] == "00:05:00"
    assert (rows[1]["before"], rows[1]["after"]) == (None, {"queue": "fast"})
    assert (rows[2]["before"], rows[2]["after"]) == ({"is_enabled": True}, {"is_enabled": False})


@pytest.fixture(scope="module")
def planner(module_url: str) -> Iterator[sql.Identifier]:
    with role(module_url) as name:
        yield sql.Identifier(name)


def test_a_role_with_the_documented_grants_keeps_triggers(tx, planner):
    tx.execute(sql.SQL(GRANTS).format(role=planner))
    tx.execute(sql.SQL("set local role {}").format(planner))
    tx.execute(
        "insert into mainspring.triggers (name, event, definition, tenant_id)"
        " values ('resync', 'a.*', 'work', 'acme')"
    )
    with refused(tx, "MS061", "priority", field="priority", problem="must be from 0 to 1000"):
        tx.execute("update mainspring.triggers set priority = 1001")
    tx.execute("update mainspring.triggers set is_enabled = false")
    found = tx.execute("select name, is_enabled from mainspring.trigger_status").fetchall()
    tx.execute("delete from mainspring.triggers where name = 'resync'")
    tx.execute("reset role")

    assert found == [("resync", False)]
    assert [row["action"] for row in events.audit(tx)] == ["create", "disable", "delete"]


def test_a_trigger_tells_what_came_of_it_last(tx):
    trigger_id = events.insert_trigger(tx)
    events.insert_trigger(tx, "idle")
    event_id = events.emit(tx)
    tx.execute(
        "insert into mainspring.dispatches"
        " (event_id, trigger_id, replay, outcome, trigger_name, error, dispatched_at)"
        " values (%(event)s, %(trigger)s, 0, 'failed', 'resync', 'first', now() - interval '1 s'),"
        "        (%(event)s, %(trigger)s, 1, 'failed', 'resync', 'second', now())",
        {"event": event_id, "trigger": trigger_id},
    )

    found = tx.execute("select name, last_error from mainspring.trigger_status order by name")
    assert found.fetchall() == [("idle", None), ("resync", "second")]
