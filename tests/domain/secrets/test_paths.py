"""Where payloads hold secrets, and what becomes of those."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainspring.domain.secrets.paths import REDACTED, changed_at, redact, secret_paths, secrets_in
from tests.support.secret_schemas import CORPUS, MARKED, of

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc*"), inner, max_size=3)
    ),
    max_leaves=12,
)
PATHS = st.lists(st.lists(st.sampled_from("abc*"), min_size=1, max_size=3).map(tuple), max_size=3)


@pytest.mark.parametrize("name", CORPUS)
def test_marked_fields_are_found_wherever_they_are(name):
    schema, paths = CORPUS[name]

    assert set(secret_paths(schema)) == paths


def test_no_schema_marks_nothing():
    assert secret_paths(None) == ()


def test_no_path_is_below_another():
    schema = {"allOf": [of(a=of(b=MARKED)), of(a=MARKED)]}

    assert secret_paths(schema) == (("a",),)


def test_what_is_at_a_path_is_redacted_and_the_rest_stays():
    payload = {"user": "ada", "logins": [{"word": "hunter2", "at": 1}, {"at": 2}]}

    shown = redact(payload, (("logins", "*", "word"),))

    assert shown == {"user": "ada", "logins": [{"word": REDACTED, "at": 1}, {"at": 2}]}
    assert payload["logins"] == [{"word": "hunter2", "at": 1}, {"at": 2}]


@pytest.mark.parametrize("value", [0, False, "", [], {}, {"a": 1}])
def test_any_value_is_redacted_as_a_whole(value):
    assert redact({"a": value}, (("a",),)) == {"a": REDACTED}


def test_null_is_no_secret():
    assert redact({"a": None}, (("a",),)) == {"a": None}


def test_a_path_that_leads_nowhere_changes_nothing():
    payload = {"a": "text", "b": [1]}

    assert redact(payload, (("a", "b"), ("b", "c"), ("c",))) == payload


def test_secrets_are_the_texts_and_numbers_at_the_paths():
    payload = {"a": {"deep": ["hunter2", 123456, True, None, 1.25]}, "b": "plain text"}

    assert secrets_in(payload, (("a",),)) == {"hunter2", "123456", "1.25"}


def test_a_secret_of_four_characters_counts_and_one_of_three_does_not():
    assert secrets_in({"a": "abcd", "b": "abc"}, (("*",),)) == {"abcd"}


def test_names_inside_a_secret_are_secrets_unless_they_are_plain_words():
    payload = {"tokens": {"hunter2": True, "a-b-c": 1, "user_name": 2, "x1": 3}, "n4me": 4}

    assert secrets_in(payload, (("tokens",),)) == {"hunter2", "a-b-c"}


def test_what_is_encrypted_is_not_looked_into():
    encrypted = {"a": {"$mainspring": "encrypted", "value": "xyz"}}

    assert redact(encrypted, (("*", "*"),)) == encrypted


@given(JSON, PATHS)
def test_only_what_is_at_a_path_changes(value, paths):
    places = []

    def note(part: Any, place: Any) -> Any:
        places.append(place)
        return part

    assert changed_at(value, tuple(paths), note) == value
    assert all(_leads(place, paths) for place in places)


def _leads(place: Any, paths: list[tuple[str, ...]]) -> bool:
    return any(
        len(path) == len(place)
        and all(step in ("*", part) for step, part in zip(path, place, strict=True))
        for path in paths
    )
