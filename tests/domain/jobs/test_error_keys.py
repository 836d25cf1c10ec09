"""Error keys: the same for one error, whatever its values are; another for another error."""

import uuid
from string import ascii_letters
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainspring.domain.jobs.error_keys import (
    SAMPLE_LENGTH,
    normalize,
    summarize,
    summarize_end,
)
from mainspring.domain.types import AttemptStatus

FRAME = '\n\n  File "{file}", line {line}, in {function}\n    raise ValueError\n'
VALUES = st.one_of(
    st.integers().map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(str),
    st.uuids().map(str),
    st.binary(min_size=4, max_size=40).map(bytes.hex),
    st.integers(min_value=0).map(hex),
    st.text(max_size=50).map(repr),
    st.datetimes().map(lambda at: at.isoformat()),
    st.lists(st.text(ascii_letters, min_size=1), min_size=2).map(
        lambda parts: "/" + "/".join(parts)
    ),
)


def key(error: str) -> str:
    return summarize(error).key


@given(VALUES, VALUES)
def test_values_make_no_difference(one: str, other: str):
    assert key(f"ValueError: got {one} of it") == key(f"ValueError: got {other} of it")


@given(st.text(max_size=5000))
def test_any_text_has_a_key_and_a_sample_of_one_line(error: str):
    found = summarize(error)

    assert len(found.key) == 12
    assert int(found.key, 16) >= 0
    assert len(found.sample) <= SAMPLE_LENGTH
    assert "\n" not in found.sample


@given(st.text(ascii_letters, min_size=1), st.text(ascii_letters, min_size=1))
def test_types_make_a_difference(one: str, other: str):
    assert (key(f"{one}1: broken") == key(f"{other}1: broken")) == (one == other)


@pytest.mark.parametrize(
    ("message", "normalized"),
    [
        ("user 'ann' has 3 files", "user # has # files"),
        ('key "a\\"b" is missing', "key # is missing"),
        ("can't open 'it\\'s'", "can't open #"),
        ("no file /home/ann/a.txt, sorry", "no file #, sorry"),
        ("no file C:\\ann\\a.txt here", "no file # here"),
        ("GET https://a.example/b?c=1 failed", "GET # failed"),
        ("lost 550e8400-e29b-41d4-a716-446655440000", "lost #"),
        ("object at 0x7f3a and deadbeef", "object at # and #"),
        ("abcdefab-abcd-abcd-abcd-abcdefabcdef", "#"),
        ("(id)=(5)", "(id)=(#)"),
        ("-1.5e-7 at 10.0.0.1:5432", "# at #"),
        ("nothing to replace here", "nothing to replace here"),
    ],
)
def test_what_is_replaced(message: str, normalized: str):
    assert normalize(message) == normalized


def test_where_a_value_is_cut_makes_no_difference():
    assert key(f"ValueError: '{'x' * 10}' is wrong") == key(f"ValueError: '{'x' * 900}' is wrong")
    assert key(f"ValueError: '{'x' * 3000}") == key(f"ValueError: '{'x' * 4000}")


def test_the_place_is_the_innermost_function_and_its_file():
    def at(**place: object) -> str:
        known = {"file": "/srv/a.py", "line": 1, "function": "send", **place}
        return key("ValueError: broken" + FRAME.format(**known))

    assert at() == at(line=900) == at(file="/other/folder/a.py")
    assert len({at(), at(function="save"), at(file="/srv/b.py"), key("ValueError: broken")}) == 4


def test_the_type_counts_and_the_rest_of_the_lines_do_not():
    assert key("psycopg.Error: no\nDETAIL: a") == key("psycopg.Error: no\nDETAIL: b")
    assert key("KeyError: no") != key("LookupError: no") != key("no")
    assert key("MyError1") != key("MyError2")


def test_of_a_traceback_of_python_the_last_line_counts():
    error = 'Traceback (most recent call last):\n  File "/a.py", line 3, in f\n    g()\nKeyError: 7'

    assert summarize(error).sample == "KeyError: 7"
    assert key(error) == key(error.replace("7", "8"))
    assert key(error) != key(error.replace("KeyError", "ValueError"))


def test_only_attempts_that_failed_have_a_key():
    found = {status for status in AttemptStatus if summarize_end(status, "broken")}

    assert found == {AttemptStatus.FAILED, AttemptStatus.TIMEOUT, AttemptStatus.LOST}
    timed_out = summarize_end(AttemptStatus.TIMEOUT, None)
    assert timed_out is not None
    assert timed_out.sample == "timeout"


@pytest.mark.parametrize(
    "part", ["a-", "'a", "''", "a'", "1-", "--", "//", "f-", '"', "`", "\\", "' ", "a b", "a.", "~"]
)
def test_no_text_takes_long(part: str):
    began = process_time()
    summarize(f"ValueError: {uuid.uuid4()} " + part * 5000)

    assert process_time() - began < 0.1
