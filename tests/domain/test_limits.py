"""Limits: how rates are written, and what is refused."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainspring.domain.definitions import Definition
from mainspring.domain.errors import InvalidDefinition, InvalidOption
from mainspring.domain.limits import Limit, Rate, ensure_limit_by

SECOND = timedelta(seconds=1)


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("100/minute", Rate(100, 60 * SECOND)),
        ("5/s", Rate(5, SECOND)),
        ("5 / sec", Rate(5, SECOND)),
        ("1/h", Rate(1, 3600 * SECOND)),
        ("2/days", Rate(2, 86400 * SECOND)),
        ("10/30s", Rate(10, 30 * SECOND)),
        ("10/0.5s", Rate(10, SECOND / 2)),
        ("7/2 Minutes", Rate(7, 120 * SECOND)),
    ],
)
def test_a_rate_is_a_count_and_a_period(text, rate):
    assert Rate.parse(text) == rate


@pytest.mark.parametrize(
    "text", ["", "100", "minute", "0/minute", "5/0s", "-1/s", "5/fortnight", "1/s/s", "9" * 40, 5]
)
def test_what_is_no_rate_is_refused_with_an_example(text):
    with pytest.raises(InvalidOption, match="rate must be written like 100/minute"):
        Rate.parse(text)


@given(st.integers(1, 10**6), st.integers(1, 10**9))
def test_a_rate_reads_what_it_writes(count, microseconds):
    rate = Rate(count, timedelta(microseconds=microseconds))

    assert Rate.parse(str(rate)) == rate


@pytest.mark.parametrize("name", ["", "a b", "1st", "x" * 201, "a;b", None])
def test_a_limit_has_a_name_that_can_be_typed(name):
    with pytest.raises(InvalidOption, match="limit must start with a letter"):
        Limit(name)


@pytest.mark.parametrize("value", [-1, 1.5, True, "3", 10**10])
def test_a_concurrency_is_a_whole_number(value):
    with pytest.raises(InvalidOption, match="concurrency must be a whole number, 0 or more"):
        Limit("a", concurrency=value)


def test_nothing_at_all_may_be_allowed():
    assert Limit("a", concurrency=0).concurrency == 0


def test_a_burst_of_none_is_refused():
    with pytest.raises(InvalidOption, match="burst must be a whole number, 1 or more"):
        Limit("a", burst=0)


@pytest.mark.parametrize("path", ["", ".", "a..b", "a.", "x" * 201, 7])
def test_a_key_is_a_path_into_the_payload(path):
    with pytest.raises(InvalidOption, match="limit_by must be a field of the payload"):
        ensure_limit_by(path)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"limit": "openai", "concurrency": 1}, "limit names a shared limit"),
        ({"limit_by": "user_id"}, "limit_by needs concurrency"),
        ({"burst": 3, "concurrency": 1}, "burst needs a rate"),
        ({"rate": "often"}, "rate must be written like"),
        ({"limit": "a b"}, "limit must start with a letter"),
        ({"approvals_needed": -1}, "approvals_needed must be a whole number from 0 to 100"),
        ({"approvals_needed": 101}, "approvals_needed must be a whole number from 0 to 100"),
        ({"approvers": ("ann",)}, "approvals_needed must be 1 or more"),
        ({"approvals_needed": 1, "approvers": "ann"}, "approvers must be a list of names"),
        ({"approvals_needed": 1, "approval_expiry": timedelta(0)}, "approval_expiry must be"),
    ],
)
def test_a_definition_whose_waits_contradict_each_other_is_refused(fields, problem):
    with pytest.raises(InvalidDefinition, match=f"work: {problem}"):
        Definition("work", **fields)


def test_a_definition_may_share_a_limit_by_a_key():
    definition = Definition("work", limit="openai", limit_by="to.host")

    assert (definition.limit, definition.limit_by) == ("openai", "to.host")
