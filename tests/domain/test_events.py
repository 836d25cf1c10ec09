"""Events: which names there are, and which patterns match them."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainspring.domain.errors import InvalidEvent, InvalidTrigger
from mainspring.domain.events import (
    ensure_name,
    ensure_pattern,
    example_name,
    matches,
    patterns_for,
)

NAMES = ["a", "provider.folder_changed", "Images.ingest:v2-beta.completed", "1.2.3", "a" * 200]
NO_NAMES = ["", ".", "a.", ".a", "a..b", "a b", "a/b", "a\n", "é", "*", "a.*", "a" * 201, None, 7]
PARTS = st.lists(st.sampled_from(["a", "b", "ab", "c-d"]), min_size=1, max_size=4)


@pytest.mark.parametrize("name", NAMES)
def test_parts_with_dots_between_them_are_a_name(name):
    ensure_name(name)


@pytest.mark.parametrize("name", NO_NAMES)
def test_nothing_else_is_a_name(name):
    with pytest.raises(InvalidEvent, match=r"name: .* in parts separated by dots"):
        ensure_name(name)


@pytest.mark.parametrize("pattern", [*NAMES, "*", "a.*", "a.b.*", "a" * 200 + ".*"])
def test_a_name_its_first_parts_and_a_star_are_patterns(pattern):
    ensure_pattern(pattern)


@pytest.mark.parametrize(
    "pattern", ["", "**", "a*", "*.a", "a.*.b", ".*", "a.**", "a..*", "a b.*", "a" * 201, None, 7]
)
def test_nothing_else_is_a_pattern(pattern):
    with pytest.raises(InvalidTrigger, match=r"event: .* such as provider\.\*"):
        ensure_pattern(pattern)


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("a.b", "a.b"),
        ("a.*", "a.b"),
        ("a.*", "a.b.c"),
        ("a.b.*", "a.b.c"),
        ("*", "a"),
        ("*", "a.b"),
    ],
)
def test_a_pattern_matches(pattern, name):
    assert matches(pattern, name)


@pytest.mark.parametrize(
    ("pattern", "name"),
    [("a.b", "a.B"), ("a.b", "a.b.c"), ("a.*", "a"), ("a.*", "ab.c"), ("a.b.*", "a.c.b")],
)
def test_a_pattern_does_not_match(pattern, name):
    assert not matches(pattern, name)


@given(PARTS, PARTS, st.booleans())
def test_looking_up_finds_what_trying_each_pattern_would(of_name, of_pattern, has_star):
    name, first = ".".join(of_name), ".".join(of_pattern)
    pattern = first + ".*" if has_star else first
    tried = re.fullmatch(re.escape(first) + (r"\..+" if has_star else ""), name)

    assert (pattern in patterns_for(name)) == bool(tried)


def test_the_closest_pattern_comes_first():
    assert patterns_for("a.b.c") == ("a.b.c", "a.b.*", "a.*", "*")


@pytest.mark.parametrize("pattern", ["a", "a.b", "a.*", "a.b.*", "*"])
def test_an_example_is_a_name_that_the_pattern_matches(pattern):
    ensure_name(example_name(pattern))
    assert matches(pattern, example_name(pattern))
