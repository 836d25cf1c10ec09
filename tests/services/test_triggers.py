"""Triggers in Python."""

from datetime import timedelta
from typing import Any

import psycopg
import pytest

from mainspring import Mainspring, UnknownPaths
from mainspring.domain.errors import (
    DuplicateTrigger,
    InputError,
    InvalidEvent,
    InvalidPayload,
    InvalidTemplate,
    InvalidTrigger,
    PayloadTooLarge,
    TriggerNotFound,
    UnknownDefinition,
)
from mainspring.settings import load
from tests.support import events, rows

WINDOW = timedelta(minutes=5)
NO_OBJECT: Any = [1]
RESYNC = {"event": "provider.*", "definition": "send"}


def make(app: Mainspring, name: str = "resync", **fields):
    return app.triggers.create(name, **{**RESYNC, **fields})


def test_a_trigger_is_stored_with_all_it_was_given(app: Mainspring):
    fields: dict[str, Any] = {
        "event": "provider.folder.*",
        "payload": {"size": "{{event.size|default(0)}}"},
        "unknown_paths": "null",
        "dedupe_window": WINDOW,
        "queue": "slow",
        "priority": 5,
    }
    made = make(app, **fields)

    assert app.triggers.get("resync") == made
    assert {name: getattr(made.trigger, name) for name in fields} == fields
    assert made.trigger.unknown_paths is UnknownPaths.NULL
    assert (made.name, made.tenant_id, made.is_enabled) == ("resync", "default", True)
    assert (made.last_dispatched_at, made.last_outcome) == (None, None)


def test_a_job_function_can_stand_for_its_key(app: Mainspring):
    made = make(app, definition=app.functions["send"], enabled=False)

    assert (made.trigger.definition, made.is_enabled) == ("send", False)
    assert app.triggers.update("resync", definition=app.functions["send"]) is not None


def test_an_update_changes_what_it_names_and_none_empties(app: Mainspring):
    make(app, dedupe_window=WINDOW, queue="slow", payload={"a": 1})

    changed = app.triggers.update("resync", dedupe_window=None, event="list.*").trigger

    assert (changed.dedupe_window, changed.event) == (None, "list.*")
    assert (changed.queue, changed.payload) == ("slow", {"a": 1})


def test_triggers_are_listed_by_name_and_by_what_they_match(app: Mainspring):
    make(app, "b")
    make(app, "a", event="*")
    make(app, "c", event="list.created")
    app.triggers.disable("b")

    def names(**filters):
        return [state.name for state in app.triggers.list(**filters)]

    assert names() == ["a", "b", "c"]
    assert names(event="provider.x") == ["a", "b"]
    assert names(event="list.created") == ["a", "c"]
    assert names(enabled=True) == ["a", "c"]
    assert names(after="a", limit=1) == ["b"]
    assert names(definition="gone") == []


def test_a_trigger_is_switched_off_and_on_and_removed(app: Mainspring):
    make(app)

    assert not app.triggers.disable("resync").is_enabled
    assert app.triggers.enable("resync").is_enabled
    app.triggers.delete("resync")
    with pytest.raises(TriggerNotFound):
        app.triggers.get("resync")


def test_a_trigger_belongs_to_its_tenant(app: Mainspring, connection: psycopg.Connection):
    rows.insert_tenant(connection, "acme")
    make(app, tenant_id="acme")

    assert app.triggers.list() == []
    with pytest.raises(TriggerNotFound):
        app.triggers.delete("resync")
    assert app.triggers.get("resync", tenant_id="acme").tenant_id == "acme"


@pytest.mark.parametrize("use", ["get", "enable", "disable", "delete", "test", "update"])
def test_a_name_that_is_misspelt_is_answered_with_the_right_one(app: Mainspring, use):
    make(app)

    with pytest.raises(TriggerNotFound, match="no trigger 'resink'; did you mean 'resync'"):
        getattr(app.triggers, use)("resink")


@pytest.mark.parametrize(
    ("fields", "error", "said"),
    [
        ({"event": "provider*"}, InvalidTrigger, "event: 'provider\\*' must be"),
        ({"definition": "sent"}, UnknownDefinition, "did you mean 'send'"),
        ({"payload": [1]}, InvalidTrigger, "payload: must be a JSON object, not list"),
        ({"payload": {"at": WINDOW}}, InvalidPayload, "'at' is a timedelta"),
        ({"payload": {"a": "x" * 2_000_000}}, PayloadTooLarge, "the limit is"),
        ({"payload": {"a": "{{event.a}}" + "x" * 10_000}}, InvalidTemplate, "10,000 characters"),
        ({"dedupe_window": 300}, InvalidTrigger, "dedupe_window: must be a timedelta"),
        ({"unknown_paths": "no"}, InvalidTrigger, "unknown_paths: must be refuse or null"),
        ({"dedup_window": WINDOW}, InputError, "did you mean dedupe_window"),
        ({"tenant_id": "nobody"}, InputError, "tenant does not exist"),
        ({"enabled": "yes"}, InputError, "enabled must be True or False"),
    ],
)
def test_what_cannot_be_is_refused_by_its_name(app: Mainspring, fields, error, said):
    with pytest.raises(error, match=said):
        make(app, **fields)

    assert app.triggers.list() == []


def test_an_update_is_checked_as_a_whole(app: Mainspring):
    before = make(app)

    for changes in ({"event": "**"}, {"definition": "gone"}, {"payload": {"a": "{{x}}"}}, {"x": 1}):
        with pytest.raises(InputError):
            app.triggers.update("resync", **changes)
    assert app.triggers.get("resync") == before


def test_a_name_can_be_taken_once(app: Mainspring):
    make(app)

    with pytest.raises(DuplicateTrigger, match="trigger 'resync' already exists"):
        make(app)


def test_a_payload_that_the_function_cannot_take_is_refused(app: Mainspring):
    @app.job
    async def sync(folder: str) -> None: ...

    with pytest.raises(InvalidPayload, match="folder"):
        make(app, definition=sync, payload={"fodler": "{{event.folder}}"})
    make(app, definition=sync, payload={"folder": "{{event.folder}}"})
    with pytest.raises(InvalidPayload, match="folder"):
        app.triggers.update("resync", payload={})


# Templates that try to get out


@pytest.mark.parametrize(
    "template",
    [
        "{{7*7}}",
        "{{event()}}",
        "{{event['size']}}",
        "{{ {{event.size}} }}",
        "{{{event.size}}}",
        "{{event.size|safe}}",
        "{{event.size|attr('__class__')}}",
        "{% for x in event %}{{x}}{% endfor %}",
        "{{self}}",
        "{{__import__}}",
        "{{config}}",
        "{{event",
        "{{event.a}}" * 1000,
    ],
)
def test_a_template_that_is_more_than_paths_is_refused(app: Mainspring, template):
    with pytest.raises(InvalidTemplate):
        make(app, payload={"a": template})


@pytest.mark.parametrize(
    "path",
    [
        "event.__class__",
        "event.x.__init__",
        "event.items",
        "event.x.keys",
        "event_name.__class__.__mro__",
        "emitted_at.year",
        "event.__class__.__init__.__globals__",
    ],
)
def test_a_path_looks_into_the_context_and_at_nothing_of_python(app: Mainspring, path):
    make(app, payload={"a": f"{{{{{path}}}}}"})

    with pytest.raises(InvalidTemplate, match=f"there is no '{path}'"):
        app.triggers.test("resync", {"x": {"y": 1}})


def test_what_looks_like_an_attribute_is_a_field_where_the_context_has_it(app: Mainspring):
    make(app, payload={"a": "{{event.__class__}}"})

    assert app.triggers.test("resync", {"__class__": "mine"}) == {"a": "mine"}


def test_a_value_that_looks_like_a_template_stays_text(app: Mainspring):
    make(app, payload={"a": "{{event.a}}"})

    assert app.triggers.test("resync", {"a": "{{event_id}}"}) == {"a": "{{event_id}}"}


# Trying one out


def test_a_trigger_is_tried_without_enqueueing(app: Mainspring, connection: psycopg.Connection):
    make(app, payload={"size": "{{event.size}}", "name": "{{event_name}}", "t": "{{tenant}}"})

    payload = app.triggers.test("resync", {"size": 3}, event="provider.changed")

    assert payload == {"size": 3, "name": "provider.changed", "t": "default"}
    assert (events.jobs(connection), events.dispatches(connection)) == ([], [])


def test_a_trial_fails_as_the_event_would(app: Mainspring, connection: psycopg.Connection):
    make(app, payload={"size": "{{event.size}}"})
    connection.execute(
        """update mainspring.definitions
              set arg_schema = '{"properties": {"size": {"type": "integer"}}}'"""
    )
    with pytest.raises(InvalidTemplate, match=r"there is no 'event.size'"):
        app.triggers.test("resync", {})
    with pytest.raises(InvalidPayload, match="payload/size"):
        app.triggers.test("resync", {"size": "large"})
    with pytest.raises(InvalidEvent, match=r"'list.x' does not match"):
        app.triggers.test("resync", {}, event="list.x")
    with pytest.raises(InvalidEvent, match="context: must be a JSON object"):
        app.triggers.test("resync", NO_OBJECT)


def test_a_trial_holds_to_the_size_of_payloads(database_url: str):
    with Mainspring(settings=load(database_url=database_url, max_payload_bytes=1024)) as app:
        app.job(key="send")(lambda **payload: None)
        make(app, payload={"a": "{{event.a}}", "b": "{{event.a}}"})
        with pytest.raises(InvalidTemplate, match="renders to more than 1,024 characters"):
            app.triggers.test("resync", {"a": "x" * 600})
        with pytest.raises(PayloadTooLarge):
            app.triggers.test("resync", {"a": "\u20ac" * 300})
        with pytest.raises(InvalidEvent, match=r"context: is 1,0.. bytes, the limit is 1,024"):
            app.triggers.test("resync", {"a": "x" * 1020})
