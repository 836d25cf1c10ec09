"""Kinds of values: whatever a program hands over, the field that is wrong is named."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from mainspring.domain.errors import InvalidSchedule
from mainspring.domain.schedules.fields import _KINDS, NULLABLE, ScheduleFields, ensure_kinds
from mainspring.domain.schedules.model import _ELSEWHERE, FIELD_NAMES

NOON = datetime(2026, 3, 8, 12, tzinfo=UTC)
RIGHT = {
    "name": "nightly",
    "enabled": False,
    "every": timedelta(minutes=5),
    "at": NOON,
    "payload": {"a": 1},
    "priority": 5,
    "gauge_lower": 1,
    "gauge_upper": 2.5,
}
WRONG = {
    "name": (7, "must be a string, not int"),
    "cron": (["* * * * *"], "must be a string, not list"),
    "zone": (timedelta(hours=1), "must be a string, not timedelta"),
    "catch_up": (True, "must be none, latest or all, not bool$"),
    "overlap": (1, "must be skip, queue or replace, not int$"),
    "every": (300, r"must be a timedelta, such as timedelta\(minutes=5\), not int"),
    "jitter": ("5m", "must be a timedelta, .* not str"),
    "at": ("2026-03-08", "must be a datetime with a time zone, .* not str"),
    "paused_until": (NOON.replace(tzinfo=None), "must be a datetime with .*; this one has none"),
    "payload": ("{}", "must be a dict, not str"),
    "calendar": ([], "must be a dict, not list"),
    "max_running": (1.5, "must be a whole number, not float"),
    "max_retries": (True, "must be a whole number, not bool"),
    "gauge_upper": ("5", "must be a number, not str"),
    "gauge_lower": (False, "must be a number, not bool"),
    "enabled": (1, "must be True or False, not int"),
    "description": ("a\0b", "contains a NUL byte"),
    "queue": ("\ud800", "contains a lone surrogate"),
}


@pytest.mark.parametrize("field", RIGHT)
def test_a_value_of_the_right_kind_passes(field):
    ensure_kinds({field: RIGHT[field]})


@pytest.mark.parametrize("field", WRONG)
def test_a_value_of_the_wrong_kind_is_refused(field):
    value, problem = WRONG[field]

    with pytest.raises(InvalidSchedule, match=f"^{field}: {problem}") as refused:
        ensure_kinds({field: value})
    assert refused.value.field == field


@pytest.mark.parametrize("field", sorted(NULLABLE))
def test_what_a_schedule_need_not_have_may_be_none(field):
    ensure_kinds({field: None})


@pytest.mark.parametrize("field", sorted({*FIELD_NAMES} - NULLABLE))
def test_what_a_schedule_must_have_may_not_be_none(field):
    with pytest.raises(InvalidSchedule, match=f"^{field}: must have a value"):
        ensure_kinds({field: None})


def test_a_zone_object_is_refused_with_the_name_that_it_has():
    problem = r"^zone: must be a name such as 'Europe/Berlin'; pass zone.key$"
    with pytest.raises(InvalidSchedule, match=problem):
        ensure_kinds({"zone": ZoneInfo("Europe/Berlin")})


@pytest.mark.parametrize(
    ("field", "known"),
    [
        ("max_instances", "max_running"),
        ("coalesce", "catch_up"),
        ("misfire_grace_time", "misfire_grace"),
        ("timezone", "zone"),
    ],
)
def test_a_field_of_another_scheduler_is_refused_with_ours(field, known):
    with pytest.raises(InvalidSchedule, match=f"^{field}: is not a field of .*; use {known}$"):
        ensure_kinds({field: 1})


@pytest.mark.parametrize("known", sorted(_ELSEWHERE.values()))
def test_what_is_proposed_is_a_field(known):
    assert known in FIELD_NAMES


def test_a_field_that_there_is_not_is_refused_with_the_one_that_was_meant():
    with pytest.raises(InvalidSchedule, match=r"zome: is not a field .* did you mean zone"):
        ensure_kinds({"zome": "UTC"})


def test_an_editor_knows_every_field():
    known = {*ScheduleFields.__annotations__, "name", "definition", "tenant_id"}

    assert known == set(FIELD_NAMES)
    assert _KINDS.keys() < known
