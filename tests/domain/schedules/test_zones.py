"""Time zones by name."""

from typing import Any
from zoneinfo import ZoneInfo

import pytest

from mainspring.domain.errors import InvalidSchedule
from mainspring.domain.schedules.zones import find_zone
from tests.domain.schedules.clocks import ZONES


def refusal(name: Any) -> str:
    with pytest.raises(InvalidSchedule) as refused:
        find_zone(name)
    assert refused.value.field == "zone"
    return refused.value.problem


def test_every_zone_of_the_database_is_found():
    assert [find_zone(name).key for name in ZONES] == ZONES
    assert find_zone("Europe/Berlin") is ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("Europe/Berln", "Europe/Berlin"),
        ("europe/berlin", "Europe/Berlin"),
        ("New York", "America/New_York"),
        ("kolkata", "Asia/Kolkata"),
        ("utc", "UTC"),
    ],
)
def test_a_mistyped_name_gets_the_nearest_one(name, meant):
    assert refusal(name) == f"there is no time zone {name!r}; did you mean {meant!r}?"


@pytest.mark.parametrize(
    "name", ["", ".", "..", "America", "../UTC", "/UTC", "UTC\0", "\udcff"], ids=ascii
)
def test_what_is_no_zone_is_refused(name):
    assert refusal(name).startswith(f"there is no time zone {name!r}; ")


@pytest.mark.parametrize("name", ["localtime", "posixrules", "Factory", "posix/UTC", "right/UTC"])
def test_a_file_beside_the_zones_is_no_zone(name):
    assert refusal(name).startswith(f"there is no time zone {name!r}; ")


def test_a_long_name_is_refused_in_few_words():
    assert len(refusal("Europe/Berlin" * 100_000)) < 200


@pytest.mark.parametrize("name", [None, 5, b"UTC", ["UTC"]])
def test_what_is_not_text_is_refused(name):
    assert refusal(name) == f"must be a string, not {type(name).__name__}"
