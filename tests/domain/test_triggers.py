"""Triggers: what can be decided about one, and what its template becomes."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from mainspring.domain.errors import InputError, InvalidTemplate, InvalidTrigger
from mainspring.domain.triggers import Occurrence, Trigger, ensure_trigger, render

TRIGGER = Trigger(name="resync", event="provider.*", definition="sync")
TICK = timedelta(microseconds=1)
OCCURRENCE = Occurrence(
    event_id=7,
    name="provider.folder_changed",
    tenant_id="acme",
    emitted_at=datetime(2026, 3, 29, 0, 30, tzinfo=UTC),
    context={"size": 3, "folder": "/a", "tags": ["x"], "none": None, "tenant": "mine"},
)
MEGABYTE = 1024 * 1024


def rendered(payload: object, unknown_paths: str = "refuse") -> object:
    return render(payload, OCCURRENCE.source(MEGABYTE), unknown_paths, largest=MEGABYTE)


@pytest.mark.parametrize(
    "fields",
    [
        {"name": "n" * 200},
        {"payload": {"size": "{{event.size|default(0)}}", "id": "{{event_id}}"}},
        {"dedupe_window": TICK},
        {"dedupe_window": timedelta(days=36_500)},
        {"unknown_paths": "null"},
        {"queue": "q", "priority": 0},
    ],
)
def test_what_can_be_is_taken(fields):
    ensure_trigger(replace(TRIGGER, **fields))


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"name": ""}, "name: must be a string of 1 to 200 characters"),
        ({"name": " "}, "name: must be a string"),
        ({"name": "n" * 201}, "name: must be a string"),
        ({"name": "a\x00"}, "name: must be Unicode text without a NUL byte"),
        ({"name": "a\ud800"}, "name: must be Unicode text"),
        ({"definition": ""}, "definition: must be a string"),
        ({"definition": None}, "definition: must be a string"),
        ({"event": "provider*"}, "event: 'provider\\*' must be an event name"),
        ({"payload": ["x"]}, "payload: must be a JSON object, not list"),
        ({"unknown_paths": "keep"}, "unknown_paths: must be refuse or null, not 'keep'"),
        ({"dedupe_window": 5}, "dedupe_window: must be a timedelta"),
        ({"dedupe_window": timedelta(0)}, "dedupe_window: must be more than 0"),
        ({"dedupe_window": timedelta(days=36_500) + TICK}, "dedupe_window: must be more than 0"),
        ({"queue": ""}, "queue must not be empty"),
        ({"priority": 1001}, "priority must be a whole number"),
        ({"payload": {"a": "{{evnt.size}}"}}, "unknown name 'evnt'; did you mean 'event"),
        ({"payload": {"a": "{{event.size"}}, "expected"),
    ],
)
def test_what_cannot_be_is_refused_by_its_name(fields, said):
    with pytest.raises(InputError, match=said):
        ensure_trigger(replace(TRIGGER, **fields))


def test_a_template_keeps_the_types_of_the_event():
    payload = {
        "size": "{{event.size}}",
        "tags": "{{event.tags}}",
        "none": "{{event.none}}",
        "text": "{{event.folder}} of {{event.size}}",
        "count": "{{event.count|default(0)}}",
        "fixed": [1, True],
    }

    assert rendered(payload) == {
        "size": 3,
        "tags": ["x"],
        "none": None,
        "text": "/a of 3",
        "count": 0,
        "fixed": [1, True],
    }


def test_a_template_knows_the_event_itself():
    payload = {
        "name": "{{event_name}}",
        "id": "{{event_id}}",
        "at": "{{emitted_at}}",
        "tenant": "{{tenant}}",
        "said": "{{event.tenant}}",
    }

    assert rendered(payload) == {
        "name": "provider.folder_changed",
        "id": 7,
        "at": "2026-03-29T00:30:00Z",
        "tenant": "acme",
        "said": "mine",
    }


@pytest.mark.parametrize("path", ["event.gone", "event.folder.x", "event.tags.1", "event.tags.x"])
def test_a_path_that_leads_nowhere_is_refused_or_null(path):
    payload = {"a": f"{{{{{path}}}}}", "b": f"<{{{{{path}|upper}}}}>"}

    with pytest.raises(InvalidTemplate, match=f"there is no '{path}'"):
        rendered(payload)
    assert rendered(payload, "null") == {"a": None, "b": "<>"}


def test_a_default_comes_before_null():
    assert rendered({"a": "{{event.gone|default(1)}}"}, "null") == {"a": 1}


def test_a_payload_may_have_as_many_characters_as_the_limit_says_and_no_more():
    source = replace(OCCURRENCE, context={"text": "x" * 98}).source(MEGABYTE)

    assert len(render({"a": "{{event.text}}"}, source, "refuse", largest=100)["a"]) == 98
    with pytest.raises(InvalidTemplate, match="renders to more than 99 characters"):
        render({"a": "{{event.text}}"}, source, "refuse", largest=99)


def test_the_triggers_of_an_event_have_one_budget():
    source = replace(OCCURRENCE, context={"text": "x" * 1_000_000}).source(MEGABYTE)

    for _ in range(15):
        render({"a": "{{event.text}}"}, source, "refuse", largest=MEGABYTE)
    with pytest.raises(InvalidTemplate, match="read and make more than 16,777,216 characters"):
        render({"a": "{{event.text}}"}, source, "refuse", largest=MEGABYTE)


def test_a_thousand_filters_are_paid_for():
    source = replace(OCCURRENCE, context={"text": "x" * 100_000}).source(MEGABYTE)

    with pytest.raises(InvalidTemplate, match="read and make more than"):
        render({"a": "{{event.text" + "|upper" * 1000 + "}}"}, source, "refuse", largest=MEGABYTE)


def test_a_trigger_that_only_sql_could_write_can_still_be_read():
    broken = Trigger(name="x", event="x", definition="x", payload={"a": "{{7*7}}"})

    with pytest.raises(InvalidTemplate):
        ensure_trigger(broken)
    with pytest.raises(InvalidTrigger):
        ensure_trigger(replace(broken, event="**"))
