"""Tenants: names and what they may take."""

import pytest

from mainspring.domain.errors import InvalidOption
from mainspring.domain.tenants import ensure_max_running, ensure_name, ensure_weight


@pytest.mark.parametrize("name", ["a", "9", "_x", "acme.eu:1@host-2", "a" * 200])
def test_a_name_that_can_be_typed_passes(name):
    ensure_name(name)


@pytest.mark.parametrize("name", ["", "a" * 201, "-a", "a b", "a/b", "ä", "a\n", None, 7])
def test_a_name_that_cannot_is_refused(name):
    with pytest.raises(InvalidOption, match=r"^tenant must start with"):
        ensure_name(name)


@pytest.mark.parametrize("weight", [1, 1000])
def test_a_weight_in_range_passes(weight):
    ensure_weight(weight)


@pytest.mark.parametrize("weight", [0, 1001, -1, 1.5, True, "2", None])
def test_a_weight_out_of_range_is_refused(weight):
    with pytest.raises(InvalidOption, match=r"^weight must be a whole number from 1 to 1000"):
        ensure_weight(weight)


@pytest.mark.parametrize("limit", [None, 0, 1, 2**31 - 1])
def test_a_limit_of_running_jobs_may_be_none_or_zero(limit):
    ensure_max_running(limit)


@pytest.mark.parametrize("limit", [-1, 2**31, 1.0, False, "5"])
def test_any_other_limit_is_refused(limit):
    with pytest.raises(InvalidOption, match=r"^max_running must be a whole number"):
        ensure_max_running(limit)
