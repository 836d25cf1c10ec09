"""Events in SQL: what is emitted and refused, who may, and how a batch of them is dispatched."""

import json
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.types.json import Jsonb

from mainspring.db.sql_errors import translate
from mainspring.domain import errors
from mainspring.domain.events import is_name, matches
from tests.domain.test_events import NAMES, NO_NAMES
from tests.support import events
from tests.support.calls import call
from tests.support.databases import role
from tests.support.rows import count, insert_tenant, job, refused

NO_OBJECT = "must be a JSON object, not {}"
TOO_LARGE = (
    "is 1048588 bytes, the limit is 1048576; store the data elsewhere and pass a reference to it"
)


def refuses_event(tx: psycopg.Connection, field: str, problem: str) -> Any:
    return refused(tx, "MS060", field, field=field, problem=problem)


# Emitting


def test_an_event_is_a_row_that_waits(tx):
    event_id = events.emit(tx, "a.b", {"size": 3}, tenant="acme", correlation_id="order-7")

    row = events.event(tx, event_id)
    assert (row["tenant_id"], row["name"], row["context"]) == ("acme", "a.b", {"size": 3})
    assert (row["correlation_id"], row["handled_at"], row["replays"]) == ("order-7", None, 0)
    assert (row["jobs"], row["duplicates"], row["failures"], row["last_error"]) == (0, 0, 0, None)


def test_a_context_may_be_left_out(tx):
    (event_id,) = call(tx, "emit", "a")

    assert events.event(tx, event_id)["context"] == {}


@pytest.mark.parametrize(
    ("context", "shown"),
    [
        ({"password": "x"}, {"password": "[redacted]"}),
        (
            {"db_Password": 7, "apiKey": ["x"]},
            {"db_Password": "[redacted]", "apiKey": "[redacted]"},
        ),
        ({"a": [{"token": "x"}, None]}, {"a": [{"token": "[redacted]"}, None]}),
        ({"token": None, "tokens": 3}, {"token": None, "tokens": 3}),
        ({"from": "ftp://me:word@host/a"}, {"from": "ftp://me:[redacted]@host/a"}),
        ({"at": "http://host:80/a@b", "n": 1.5, "b": True}, None),
    ],
)
def test_readers_do_not_see_what_is_named_as_a_secret(tx, context, shown):
    event_id = events.emit(tx, "a", context)

    assert events.event(tx, event_id)["context"] == (shown or context)


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_python_takes_is_taken(tx, name):
    assert events.emit(tx, name)


@pytest.mark.parametrize("name", [name for name in NO_NAMES if not isinstance(name, int)])
def test_a_name_that_python_refuses_is_refused(tx, name):
    assert not is_name(name)
    with pytest.raises(psycopg.Error) as caught, tx.transaction():
        events.emit(tx, name)

    assert caught.value.sqlstate == "MS060"
    assert json.loads(caught.value.diag.message_detail or "")["field"] == "name"
    assert count(tx, "events") == 0


@pytest.mark.parametrize(
    ("context", "problem"),
    [
        (Jsonb([1]), NO_OBJECT.format("array")),
        (Jsonb("x"), NO_OBJECT.format("string")),
        (None, NO_OBJECT.format("null")),
        (Jsonb({"text": "x" * 1_048_576}), TOO_LARGE),
    ],
)
def test_a_context_is_an_object_of_limited_size(tx, context, problem):
    with refuses_event(tx, "context", problem):
        call(tx, "emit", "a", context=context)


def test_a_context_may_have_as_many_bytes_as_a_payload_and_not_one_more(tx):
    fits = {"text": "x" * (1_048_576 - len('{"text": ""}'))}
    call(tx, "emit", "a", context=Jsonb(fits))

    with pytest.raises(psycopg.Error, match="is 1048577 bytes"), tx.transaction():
        call(tx, "emit", "a", context=Jsonb({"text": fits["text"] + "x"}))


def test_a_context_may_be_nested_200_deep_and_not_201(tx):
    def nested(depth: int) -> str:
        return '{"a":' * depth + "1" + "}" * depth

    call(tx, "emit", "a", context=nested(200))
    with refuses_event(tx, "context", "is nested more than 200 deep"):
        call(tx, "emit", "a", context=nested(201))


def test_a_tenant_must_exist(tx):
    with refused(tx, "MS003", "tenant does not exist: 'nobody'", option="tenant"):
        events.emit(tx, tenant="nobody")
    with refused(tx, "MS003", "correlation_id must be at most 500", option="correlation_id"):
        events.emit(tx, correlation_id="x" * 501)


def test_a_refusal_is_translated(tx):
    with pytest.raises(psycopg.Error) as caught, tx.transaction():
        events.emit(tx, "a b")

    error = translate(caught.value)
    assert isinstance(error, errors.InvalidEvent)
    assert error.field == "name"


def test_emitting_tells_dispatchers_once_a_transaction(module_url):
    with (
        psycopg.connect(module_url, autocommit=True) as listener,
        psycopg.connect(module_url) as emitter,
    ):
        listener.execute("listen mainspring")
        for _ in range(3):
            events.emit(emitter)
        emitter.commit()
        heard = [notify.payload for notify in listener.notifies(timeout=5, stop_after=1)]
        assert heard == ["event:"]
        assert [notify.payload for notify in listener.notifies(timeout=0.1)] == []
        emitter.execute("delete from mainspring.events")


@pytest.mark.parametrize("pattern", ["a", "a.b", "a.*", "a.b.*", "*", "ab.*"])
@pytest.mark.parametrize("name", ["a", "a.b", "a.b.c", "ab.c", "a.bc"])
def test_a_pattern_matches_as_in_python(tx, pattern, name):
    assert call(tx, "event_matches", pattern, name) == [matches(pattern, name)]


# Grants


@pytest.fixture(scope="module")
def caller(module_url: str) -> Iterator[sql.Identifier]:
    with role(module_url) as name:
        yield sql.Identifier(name)


def test_a_role_that_may_execute_emit_can_emit_and_nothing_else(tx, caller):
    grants = (
        "grant usage on schema mainspring to {role};"
        " grant execute on function mainspring.emit to {role}"
    )
    tx.execute(sql.SQL(grants).format(role=caller))
    with tx.transaction():
        tx.execute(sql.SQL("set local role {}").format(caller))
        assert events.emit(tx, tenant="acme")
        for statement in ("select from mainspring.events", "select mainspring.replay_event(1)"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege), tx.transaction():
                tx.execute(statement)
        tx.execute("reset role")
    assert count(tx, "events") == 1


def test_a_role_without_a_grant_cannot_emit(tx, caller):
    tx.execute(sql.SQL("set local role {}").format(caller))

    with pytest.raises(psycopg.errors.InsufficientPrivilege), tx.transaction():
        events.emit(tx)


# Dispatching


def plan(event_id: int, trigger_id: int = 1, **facts: Any) -> dict[str, Any]:
    return {
        "event_id": event_id,
        "replay": 0,
        "tenant_id": "default",
        "correlation_id": f"event:{event_id}",
        "trigger_id": trigger_id,
        "trigger_name": f"trigger {trigger_id}",
        "definition": "work",
        "payload": "{}",
        **facts,
    }


def dispatch(tx: psycopg.Connection, *plans: dict[str, Any]) -> list[str]:
    """The outcomes."""
    rows = tx.execute(
        "select outcome from mainspring.dispatch(%s::bigint[], %s)",
        ([each["event_id"] for each in plans], Jsonb(list(plans))),
    )
    return [outcome for (outcome,) in rows.fetchall()]


def test_a_dispatch_enqueues_and_says_so(tx):
    event_id = events.emit(tx)

    facts: dict[str, Any] = {"queue": "fast", "priority": 3, "payload": '{"a": 1}'}
    assert dispatch(tx, plan(event_id, **facts, correlation_id="c")) == ["enqueued"]

    (row,) = events.dispatches(tx, event_id)
    made = job(tx, row["job_id"])
    assert (made["queue"], made["priority"], made["payload"]) == ("fast", 3, {"a": 1})
    assert (made["correlation_id"], made["dedupe_key"]) == ("c", None)
    assert events.event(tx, event_id)["handled_at"] is not None
    assert events.event(tx, event_id)["jobs"] == 1


def test_what_cannot_be_enqueued_is_told_and_does_not_stop_the_others(tx):
    event_id = events.emit(tx)
    plans = [
        plan(event_id, 1, definition="gone"),
        plan(event_id, 2, error="no such path", payload=None),
        plan(event_id, 3, payload="[1]"),
        plan(event_id, 4, payload="no JSON"),
        plan(event_id, 5),
    ]

    assert dispatch(tx, *plans) == [*["failed"] * 4, "enqueued"]

    told = [row["error"] for row in events.dispatches(tx, event_id)]
    assert told[0] == "unknown definition 'gone'"
    assert told[1] == "no such path"
    assert told[2] == "the payload must be a JSON object, not array"
    assert "invalid input syntax for type json" in told[3]
    assert told[4] is None
    row = events.event(tx, event_id)
    assert (row["jobs"], row["failures"], row["last_error"]) == (1, 4, told[0])


def test_what_another_try_may_mend_is_not_held_against_the_event(tx):
    tx.execute("""
        create function busy() returns trigger language plpgsql as
            $$ begin raise exception using errcode = '55P03'; end $$;
        create trigger busy before insert on mainspring.jobs
            for each row execute function busy()
    """)
    event_id = events.emit(tx)

    with pytest.raises(psycopg.errors.LockNotAvailable), tx.transaction():
        dispatch(tx, plan(event_id))
    assert events.event(tx, event_id)["handled_at"] is None


def test_an_equal_payload_inside_the_window_is_a_duplicate_of_the_job(tx):
    first, second, other, outside = (events.emit(tx) for _ in range(4))
    window: dict[str, Any] = {"dedupe_window": "5 minutes"}

    assert dispatch(tx, plan(first, payload='{"a": 1, "b": 2}', **window)) == ["enqueued"]
    assert dispatch(tx, plan(second, payload='{"b": 2, "a": 1}', **window)) == ["duplicate"]
    assert dispatch(tx, plan(other, 2, payload='{"a": 1, "b": 2}', **window)) == ["enqueued"]
    assert dispatch(tx, plan(outside, payload='{"a": 1, "b": 3}', **window)) == ["enqueued"]

    (enqueued,), (duplicate,) = (events.dispatches(tx, each) for each in (first, second))
    assert duplicate["job_id"] == enqueued["job_id"]
    assert events.event(tx, second)["duplicates"] == 1


def test_what_a_trigger_has_made_of_an_event_it_does_not_make_again(tx):
    event_id = events.emit(tx)
    assert dispatch(tx, plan(event_id)) == ["enqueued"]
    tx.execute("update mainspring.events set handled_at = null")

    assert dispatch(tx, plan(event_id), plan(event_id, 2)) == ["enqueued"]

    assert [row["trigger_id"] for row in events.dispatches(tx, event_id)] == [1, 2]
    assert len(events.jobs(tx)) == 2


# Replaying


def handled_event(tx: psycopg.Connection, **options: Any) -> int:
    event_id = events.emit(tx, **options)
    tx.execute("update mainspring.events set handled_at = now()")
    return event_id


def test_a_replay_lets_a_handled_event_wait_again(tx):
    event_id = handled_event(tx)

    assert call(tx, "replay_event", event_id) == [1]

    row = events.event(tx, event_id)
    assert (row["handled_at"], row["replays"]) == (None, 1)


def test_a_replay_that_went_well_makes_good_for_a_failure(tx):
    event_id = events.emit(tx)
    dispatch(tx, plan(event_id, error="no", payload=None), plan(event_id, 2))
    call(tx, "replay_event", event_id)
    assert events.event(tx, event_id)["failures"] == 1

    dispatch(tx, plan(event_id, replay=1))

    row = events.event(tx, event_id)
    assert (row["jobs"], row["failures"], row["last_error"]) == (2, 0, None)
    assert events.outcomes(tx, event_id) == ["failed", "enqueued", "enqueued"]


def test_what_cannot_be_replayed_is_refused(tx):
    waiting = events.emit(tx)
    with refused(tx, "MS063", "has not been handled yet", event_id=waiting):
        call(tx, "replay_event", waiting)
    with refused(tx, "MS062", "there is no event 999", event_id=999):
        call(tx, "replay_event", 999)
    event_id = handled_event(tx, tenant="acme")
    with refused(tx, "MS062", f"there is no event {event_id}", event_id=event_id):
        call(tx, "replay_event", event_id)


def test_a_replay_is_for_a_trigger_that_matches_and_is_enabled(tx):
    event_id = handled_event(tx)
    events.insert_trigger(tx, "resync")
    events.insert_trigger(tx, "other", event="list.*")
    events.insert_trigger(tx, "off", is_enabled=False)
    with refused(tx, "MS064", "there is no trigger 'gone'", name="gone"):
        call(tx, "replay_event", event_id, trigger="gone")
    with refused(tx, "MS003", "'other' is for 'list.*', which does not match", option="trigger"):
        call(tx, "replay_event", event_id, trigger="other")
    with refused(tx, "MS003", "'off' is disabled", option="trigger"):
        call(tx, "replay_event", event_id, trigger="off")

    assert call(tx, "replay_event", event_id, trigger="resync") == [1]


# Rows that cannot be


@pytest.mark.parametrize(
    "values",
    [
        "1, 1, null, now(), 0, 'enqueued', 't', null",
        "1, 1, 7, now(), 0, 'failed', 't', 'no'",
        "1, 1, null, now(), 0, 'failed', 't', null",
        "1, 1, 7, now(), 0, 'done', 't', null",
    ],
)
def test_a_dispatch_has_a_job_or_an_error(tx, values):
    tx.execute(
        "insert into mainspring.events (event_id, tenant_id, name, context)"
        " values (1, 'default', 'a', '{}')"
    )
    with pytest.raises(psycopg.errors.CheckViolation), tx.transaction():
        tx.execute(f"insert into mainspring.dispatches values ({values})".encode())


def test_events_of_a_tenant_are_its_own(tx):
    insert_tenant(tx, "beta")
    event_id = handled_event(tx, tenant="beta")

    with refused(tx, "MS062", "there is no event", event_id=event_id):
        call(tx, "replay_event", event_id, tenant="acme")
