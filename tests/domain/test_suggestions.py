"""Suggestions: a name close to what was typed, or nothing."""

from mainspring.domain.suggestions import closest, did_you_mean

KNOWN = {"concurrency": 1, "priority": 2, "queue": 3}


def test_the_closest_known_name_is_suggested():
    assert closest("priorty", KNOWN) == "priority"
    assert did_you_mean("priorty", KNOWN) == "; did you mean priority?"


def test_nothing_is_suggested_where_no_name_is_close():
    assert closest("colour", KNOWN) is None
    assert did_you_mean("colour", KNOWN) == ""


def test_names_may_come_in_any_collection():
    assert closest("quue", iter(KNOWN)) == "queue"
    assert closest("queue", ()) is None
