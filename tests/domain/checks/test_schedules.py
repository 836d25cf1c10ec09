"""Schedules and triggers: both sides of every bound."""

from datetime import UTC, datetime

import pytest

from mainspring.domain.checks import schedules
from mainspring.domain.checks.schedules import (
    BrokenSchedule,
    FailingTrigger,
    Herd,
    LongRun,
    Overdue,
    UnhandledEvents,
)

CALM = UnhandledEvents(0, 0.0)
AT = datetime(2026, 1, 31, 12, tzinfo=UTC)


def severities(found) -> list[str]:
    return [str(each.severity) for each in found]


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(60, []), (61, ["warning"]), (600, ["warning"]), (601, ["critical"])],
)
def test_a_schedule_may_be_a_minute_late(seconds, expected):
    assert severities(schedules.overdue(Overdue(1, "s", "acme", seconds))) == expected
    assert schedules.overdue(None) == []


@pytest.mark.parametrize(
    ("fault", "command"),
    [("disabled", "enable"), ("definition", "show"), ("unsuccessful", "show")],
)
def test_the_advice_for_a_broken_schedule_is_a_command(fault, command):
    (found,) = schedules.broken([BrokenSchedule("s", "acme", fault, "x")])

    assert found.advice == f"mainspring schedules {command} s --tenant acme"


def test_a_name_is_one_word_of_the_command():
    (found,) = schedules.broken([BrokenSchedule("x; rm -rf ~", "acme", "disabled", "failed")])

    assert found.advice == "mainspring schedules enable 'x; rm -rf ~' --tenant acme"


@pytest.mark.parametrize(
    ("count", "places", "expected"),
    [(10, 0, []), (11, 0, ["note"]), (20, 20, []), (21, 20, ["note"])],
)
def test_as_many_schedules_at_once_as_there_are_places_are_fine(count, places, expected):
    assert severities(schedules.herds([Herd(AT, count, places)])) == expected


@pytest.mark.parametrize(
    ("seconds", "runs", "expected"),
    [(60, 9, []), (61, 9, ["warning"]), (61, 3, []), (61, 4, ["warning"])],
)
def test_a_run_may_take_as_long_as_its_interval(seconds, runs, expected):
    assert severities(schedules.long_runs([LongRun("s", "acme", seconds, 60, runs)])) == expected


@pytest.mark.parametrize(("seconds", "expected"), [(60, []), (61, ["warning"])])
def test_an_event_may_wait_for_a_minute(seconds, expected):
    assert severities(schedules.events(UnhandledEvents(1, seconds), [])) == expected


@pytest.mark.parametrize(("failed", "expected"), [(2, []), (3, ["warning"])])
def test_a_trigger_may_fail_twice(failed, expected):
    trigger = FailingTrigger("t", "acme", failed, "no such path")

    assert severities(schedules.events(CALM, [trigger])) == expected
