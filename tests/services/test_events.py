"""Events in Python: emitted, dispatched, read and replayed."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from psycopg.types.json import Jsonb

from mainspring import DispatchOutcome, Mainspring
from mainspring.domain.errors import (
    ConflictError,
    EventNotFound,
    InputError,
    InvalidEvent,
    InvalidOption,
    TriggerNotFound,
)
from mainspring.testing import drain
from tests.support import events, rows

WINDOW = timedelta(minutes=5)
SIZE = {"size": "{{event.size}}"}


@pytest.fixture
def resync(app: Mainspring) -> Mainspring:
    app.triggers.create("resync", event="provider.*", definition="send", payload=SIZE)
    return app


def emitted(app: Mainspring, context: dict[str, Any] | None = None, **options: Any) -> int:
    """An event that was dispatched."""
    event_id = app.emit("provider.changed", context, **options)
    assert app.events.dispatch() == 1
    return event_id


def outcomes(app: Mainspring, event_id: int) -> list[str]:
    return [str(dispatch.outcome) for dispatch in app.events.get(event_id).dispatches]


# From event to job


def test_an_event_becomes_a_job_that_runs(resync: Mainspring):
    event_id = emitted(resync, {"size": 3})

    event = resync.events.get(event_id)
    (dispatch,) = event.dispatches
    assert (dispatch.trigger, dispatch.replay) == ("resync", 0)
    assert (dispatch.outcome, dispatch.error) == (DispatchOutcome.ENQUEUED, None)
    assert (event.jobs, event.failures, event.context) == (1, 0, {"size": 3})
    assert event.handled_at is not None
    assert event.handled_at >= event.emitted_at > datetime.now(UTC) - WINDOW
    assert drain(resync).succeeded == 1
    job = resync.blocking(resync.jobs.aget(dispatch.job_id or 0))
    assert (job.result, job.correlation_id) == ({"size": 3}, f"event:{event_id}")


def test_an_event_gives_its_jobs_its_own_correlation(resync, connection):
    emitted(resync, {"size": 3}, correlation_id="order-7")

    assert [job["correlation_id"] for job in events.jobs(connection)] == ["order-7"]


def test_queue_and_priority_of_a_trigger_go_before_those_of_the_definition(app, connection):
    fields = {"event": "*", "definition": "send"}
    app.triggers.create("a", **fields, queue="slow", priority=7)
    app.triggers.create("b", **fields)

    emitted(app)

    found = [(job["queue"], job["priority"]) for job in events.jobs(connection)]
    assert found == [("slow", 7), ("default", 100)]


def test_an_event_is_for_the_triggers_of_its_own_tenant_that_match_and_are_enabled(app, connection):
    rows.insert_tenant(connection, "acme")
    triggers: dict[str, dict[str, Any]] = {
        "exact": {"event": "provider.changed"},
        "prefix": {"event": "provider.*"},
        "all": {"event": "*"},
        "other": {"event": "list.*"},
        "off": {"event": "*", "enabled": False},
        "foreign": {"event": "*", "tenant_id": "acme"},
    }
    for name, fields in triggers.items():
        app.triggers.create(name, definition="send", **fields)

    event_id = emitted(app)

    told = {dispatch.trigger for dispatch in app.events.get(event_id).dispatches}
    assert told == {"exact", "prefix", "all"}
    assert len(events.jobs(connection)) == 3


def test_an_event_that_nobody_waits_for_is_handled(app: Mainspring):
    event = app.events.get(emitted(app))

    assert event.handled_at is not None
    assert (event.dispatches, event.jobs) == ((), 0)


def test_jobs_come_in_the_order_of_the_events(resync, connection):
    for size in range(120):
        resync.emit("provider.changed", {"size": size})

    assert resync.events.dispatch() == 120

    assert [job["payload"]["size"] for job in events.jobs(connection)] == list(range(120))


# What goes wrong


def test_a_failure_is_recorded_and_the_other_triggers_still_run(app, connection):
    for name, definition, payload in [
        ("a", "send", {"x": "{{event.gone}}"}),
        ("b", "gone", {}),
        ("c", "checked", {"size": "{{event.size}}"}),
        ("d", "send", SIZE),
        ("e", "send", {"x": "{{event.name|date}}"}),
        ("f", "send", {"x": "{{7*7}}"}),
    ]:
        rows.insert(
            connection,
            "triggers",
            name=name,
            event="*",
            definition=definition,
            payload=Jsonb(payload),
        )
    schema = {"properties": {"size": {"type": "string"}}}
    app.job(key="checked", arg_schema=schema)(lambda size: None)

    event = app.events.get(emitted(app, {"size": 3, "name": "x"}))

    told = {dispatch.trigger: dispatch.error or dispatch.outcome for dispatch in event.dispatches}
    assert told["a"] == "there is no 'event.gone'; add |default(...) if it may be missing"
    assert told["b"] == "unknown definition 'gone'"
    assert told["c"].startswith("payload/size: ")
    assert told["d"] == "enqueued"
    assert told["e"] == "the value of 'event.name' cannot be read as a date"
    assert "expected a name" in told["f"]
    assert (event.jobs, event.failures, event.last_error) == (1, 5, told["a"])


def test_an_inactive_definition_is_a_failure(resync, connection):
    connection.execute("update mainspring.definitions set is_active = false")

    event = resync.events.get(emitted(resync, {"size": 3}))

    assert event.last_error == "definition 'send' is deactivated; activate it first"


def test_a_payload_that_grows_too_large_is_a_failure(app: Mainspring):
    payload = dict.fromkeys("abc", "{{event.text}}")
    app.triggers.create("resync", event="*", definition="send", payload=payload)

    event = app.events.get(emitted(app, {"text": "x" * 500_000}))

    assert "renders to more than 1,048,576 characters" in str(event.last_error)


POISON = [
    '{"size": 1e5000}',
    '{"size": 99999999999999999999999}',
    '{"size": {"a": ' + "[" * 190 + "]" * 190 + "}}",
]


@pytest.mark.parametrize("context", POISON)
def test_an_event_that_cannot_be_used_does_not_hold_up_the_next(resync, connection, context):
    connection.execute("select mainspring.emit('provider.a', %s)", (context,))
    following = resync.emit("provider.b", {"size": 3})

    assert resync.events.dispatch() == 2

    assert outcomes(resync, following) == ["enqueued"]
    poison = resync.events.list()[-1]
    assert poison.handled_at is not None
    assert len(poison.dispatches) == 1


def test_a_number_that_no_payload_can_hold_is_told(resync, connection):
    connection.execute("select mainspring.emit('provider.a', '{\"size\": 1e5000}')")
    resync.events.dispatch()

    (event,) = resync.events.list()
    assert event.context == {"size": Decimal("1e5000")}
    assert "the payload's 'size' is a Decimal, which is not JSON" in str(event.last_error)


def test_a_trigger_tells_of_the_newest_event_of_a_batch(resync: Mainspring):
    for context in ({"size": 3}, {}, {"size": 4}):
        newest = resync.emit("provider.changed", context)
    resync.events.dispatch()

    state = resync.triggers.get("resync")
    assert (state.last_event_id, state.last_outcome) == (newest, DispatchOutcome.ENQUEUED)
    assert state.last_dispatched_at == resync.events.get(newest).handled_at


# Windows


def test_an_equal_payload_inside_the_window_makes_no_job(app, connection):
    app.triggers.create("resync", event="*", definition="send", payload=SIZE, dedupe_window=WINDOW)
    first, second, other = (
        emitted(app, {"size": size, "x": x}) for size, x in ((1, 0), (1, 1), (2, 0))
    )

    (enqueued,), (duplicate,) = (app.events.get(each).dispatches for each in (first, second))
    assert duplicate.outcome is DispatchOutcome.DUPLICATE
    assert duplicate.job_id == enqueued.job_id
    assert outcomes(app, other) == ["enqueued"]
    assert app.events.get(second).duplicates == 1
    assert len(events.jobs(connection)) == 2


def test_the_window_goes_on_after_the_job_and_ends(app, connection):
    app.triggers.create("resync", event="*", definition="send", dedupe_window=WINDOW)
    emitted(app)
    drain(app)
    assert outcomes(app, emitted(app)) == ["duplicate"]

    connection.execute("update mainspring.enqueue_keys set expires_at = now()")

    assert outcomes(app, emitted(app)) == ["enqueued"]


def test_two_triggers_have_windows_of_their_own(app, connection):
    for name in ("a", "b"):
        app.triggers.create(name, event="*", definition="send", dedupe_window=WINDOW)

    assert outcomes(app, emitted(app)) == ["enqueued"] * 2
    assert outcomes(app, emitted(app)) == ["duplicate"] * 2


# Replays


def test_a_replay_runs_all_triggers_again_and_keeps_what_was_before(resync, connection):
    event_id = emitted(resync, {"size": 3})

    assert resync.events.replay(event_id).handled_at is None
    assert resync.events.dispatch() == 1

    event = resync.events.get(event_id)
    assert [(each.replay, each.outcome) for each in event.dispatches] == [
        (0, DispatchOutcome.ENQUEUED),
        (1, DispatchOutcome.ENQUEUED),
    ]
    assert (event.replays, len(events.jobs(connection))) == (1, 2)


def test_a_replay_of_one_trigger_leaves_the_others_alone(app: Mainspring):
    for name in ("a", "b"):
        app.triggers.create(name, event="*", definition="send")
    event_id = emitted(app)

    app.events.replay(event_id, "b")
    app.events.dispatch()

    told = [(each.replay, each.trigger) for each in app.events.get(event_id).dispatches]
    assert told == [(0, "a"), (0, "b"), (1, "b")]


def test_a_replay_mends_what_failed_once_its_cause_is_gone(app: Mainspring):
    app.triggers.create("resync", event="*", definition="send", payload=SIZE)
    event_id = emitted(app, {})
    assert [event.id for event in app.events.list(failed=True)] == [event_id]

    app.triggers.update("resync", unknown_paths="null")
    app.events.replay(event_id, "resync")
    app.events.dispatch()

    assert app.events.list(failed=True) == []
    assert outcomes(app, event_id) == ["failed", "enqueued"]


def test_a_replay_neither_asks_the_window_nor_opens_one(app, connection):
    app.triggers.create("resync", event="*", definition="send", dedupe_window=WINDOW)
    event_id = emitted(app)

    query = "select key, job_id, expires_at from mainspring.enqueue_keys"
    windows = connection.execute(query).fetchall()

    app.events.replay(event_id)
    app.events.dispatch()

    assert outcomes(app, event_id) == ["enqueued", "enqueued"]
    assert connection.execute(query).fetchall() == windows
    assert [job["dedupe_key"] is None for job in events.jobs(connection)] == [False, True]


def test_what_cannot_be_replayed_is_refused(resync: Mainspring):
    waiting = resync.emit("provider.changed", {"size": 3})
    with pytest.raises(ConflictError, match=f"event {waiting} has not been handled yet"):
        resync.events.replay(waiting)
    resync.events.dispatch()
    with pytest.raises(TriggerNotFound, match="did you mean 'resync'"):
        resync.events.replay(waiting, "resink")
    resync.triggers.disable("resync")
    with pytest.raises(InvalidOption, match="trigger 'resync' is disabled; enable it first"):
        resync.events.replay(waiting, "resync")
    with pytest.raises(EventNotFound, match="there is no event 999"):
        resync.events.replay(999)


# Looking


def test_events_are_listed_newest_first_with_filters(resync: Mainspring):
    ids = [resync.emit(name, {"size": 1}) for name in ("provider.a", "provider.b", "list.a")]

    def found(**filters: Any) -> list[int]:
        return [event.id for event in resync.events.list(**filters)]

    assert found() == ids[::-1]
    assert found(name="provider.*") == ids[1::-1]
    assert found(name="list.a") == ids[2:]
    assert found(before=ids[1]) == ids[:1]
    assert found(limit=1) == ids[2:]
    assert found(handled=True) == []
    resync.events.dispatch()
    assert found(handled=True) == ids[::-1]
    assert found(failed=True) == []
    assert found(tenant_id="nobody") == []


def test_an_event_of_another_tenant_is_not_there(resync, connection):
    rows.insert_tenant(connection, "acme")
    event_id = resync.emit("provider.changed", {"size": 3}, tenant_id="acme")

    with pytest.raises(EventNotFound):
        resync.events.get(event_id)
    assert resync.events.get(event_id, tenant_id="acme").tenant_id == "acme"


# Bad input


@pytest.mark.parametrize(
    ("name", "context", "options", "said"),
    [
        ("a b", {}, {}, "name: 'a b' must consist of"),
        (None, {}, {}, "name: None must consist of"),
        ("a", [1], {}, "context: must be a JSON object such as .*, not list"),
        ("a", {"at": datetime.now(UTC)}, {}, "context: 'at' is a datetime, which is not JSON"),
        ("a", {"x": "\x00"}, {}, "context: contains a NUL byte"),
        ("a", {"x": "y" * 2_000_000}, {}, "context: is 2,000,008 bytes, the limit is 1,048,576"),
        ("a", {}, {"tenant_id": "nobody"}, "tenant does not exist"),
        ("a", {}, {"tenant_id": ""}, "tenant_id must not be empty"),
        ("a", {}, {"correlation_id": "x" * 501}, "correlation_id must be at most 500 characters"),
    ],
)
def test_what_cannot_be_emitted_is_refused_by_its_name(
    app, connection, name, context, options, said
):
    with pytest.raises(InputError, match=said):
        app.emit(name, context, **options)

    assert rows.count(connection, "events") == 0


def test_a_filter_that_is_no_pattern_is_refused(app: Mainspring):
    with pytest.raises(InvalidEvent, match="name: 'a b' must be"):
        app.events.list(name="a b")
