"""Rules of events and triggers that stand in Python and in SQL: both give the same verdict."""

import pytest
from psycopg.types.json import Jsonb

from mainspring.domain import events
from mainspring.domain.triggers import Trigger, UnknownPaths, ensure_trigger
from tests.support.agreement import (
    TICK,
    durations,
    either,
    insert,
    numbers,
    python_accepts,
    queues,
    sql_accepts,
    texts,
    words,
)

NAME_PARTS = ["a", "A9", "_", ":", "-", "", ".", "*", " ", "ü", "a\n", "x" * 199]
EVENT_NAMES = sorted(
    {f"{first}{dot}{second}" for first in NAME_PARTS for dot in ("", ".") for second in NAME_PARTS}
)
TRIGGERS = [
    *(*durations("dedupe_window", TICK), *numbers("priority", 0, 1000)),
    *(*texts("name", 200), *either("name", ["a b"], [" ", "\t"])),
    *(*words("unknown_paths", UnknownPaths), *queues()),
    *either("definition", ["work", "x" * 200], ["", " ", "x" * 201]),
    *either("payload", [{}], [[], "x"]),
]


def test_an_event_has_a_name_for_both_or_for_neither(tx):
    found = tx.execute(
        "select name, mainspring.is_event_name(name) from unnest(%s::text[]) as name",
        (EVENT_NAMES,),
    ).fetchall()

    assert dict(found) == {name: events.is_name(name) for name in EVENT_NAMES}


def test_a_pattern_matches_the_same_names_for_both(tx):
    names = ["a", "a.b", "a.b.c", "ab", "b.a"]
    patterns = ["*", "a", "a.*", "a.b", "a.b.*", "a.b.c", "b.*", "ab.*"]
    found = tx.execute(
        "select pattern, name, mainspring.event_matches(pattern, name)"
        "  from unnest(%s::text[]) as pattern, unnest(%s::text[]) as name",
        (patterns, names),
    ).fetchall()

    assert found
    assert {row[:2] for row in found if row[2]} == {
        (pattern, name) for pattern in patterns for name in names if events.matches(pattern, name)
    }


@pytest.mark.parametrize(
    ("row", "verdict"),
    [
        *TRIGGERS,
        *either("event", ["*", "a.*", "a"], ["", ".*", "a.**", "*.a", "a*", "a.*.b", "a "]),
    ],
    ids=str,
)
def test_a_trigger_is_accepted_by_both_or_by_neither(tx, row, verdict):
    trigger = {"name": "paid", "event": "order.paid", "definition": "work", **row}
    columns = {**trigger, "payload": Jsonb(trigger.get("payload", {}))}

    assert python_accepts(lambda: ensure_trigger(Trigger(**trigger))) is verdict
    assert sql_accepts(tx, insert("triggers", columns), columns) is verdict
