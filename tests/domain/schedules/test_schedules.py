"""Schedules as a person decides them: what is refused, and under which name."""

from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mainspring.domain.errors import InvalidSchedule, InvalidTemplate
from mainspring.domain.schedules.calendars import Calendar, WhenClosed
from mainspring.domain.schedules.cron import DstFold, DstGap
from mainspring.domain.schedules.model import (
    FIELD_NAMES,
    TEMPLATE_NAMES,
    ScheduleSpec,
    ensure_fields,
    ensure_spec,
)
from mainspring.domain.schedules.slots import CatchUp, Misfires
from mainspring.domain.schedules.timing import Timing, next_slot
from mainspring.domain.types import LONGEST_DELAY

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
TICK = timedelta(microseconds=1)
SECOND = timedelta(seconds=1)
DAILY = ScheduleSpec(name="nightly", definition="tidy", cron="0 2 * * *")
GAUGE = replace(DAILY, gauge_sql="select 1", gauge_lower=1, gauge_upper=2)


def refusal(spec: ScheduleSpec) -> InvalidSchedule:
    with pytest.raises(InvalidSchedule) as refused:
        ensure_spec(spec)
    return refused.value


def changed(**changes: Any) -> ScheduleSpec:
    return replace(DAILY, **changes)


def test_the_defaults_are_accepted():
    ensure_spec(DAILY)


@pytest.mark.parametrize(
    "field",
    [
        "name",
        "definition",
        "queue",
        "launcher",
        "condition_sql",
        "gauge_sql",
        "condition_role",
    ],
)
@pytest.mark.parametrize("text", ["", " \t\n"])
def test_a_text_that_says_nothing_is_refused(field, text):
    assert str(refusal(changed(**{field: text}))) == f"{field}: must not be empty"


def test_a_name_has_200_characters_at_most():
    ensure_spec(changed(name="ü" * 200))

    assert str(refusal(changed(name="ü" * 201))) == "name: must have at most 200 characters"


@pytest.mark.parametrize("queue", ["a,b", " a"])
def test_a_queue_that_no_worker_could_name_is_refused(queue):
    assert refusal(changed(queue=queue)).field == "queue"


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ("dst_gap", "run_after, skip"),
        ("dst_fold", "once, both"),
        ("catch_up", "none, latest, all"),
        ("overlap", "skip, queue, replace"),
    ],
)
def test_an_unknown_word_is_answered_with_those_that_there_are(field, words):
    found = refusal(changed(**{field: "sometimes"}))

    assert str(found) == f"{field}: must be one of {words}, not 'sometimes'"
    for word in words.split(", "):
        ensure_spec(changed(**{field: word}))


@pytest.mark.parametrize(
    ("field", "lowest", "highest"),
    [
        ("priority", 0, 1000),
        ("max_attempts", 1, 1000),
        ("catch_up_limit", 1, 10_000),
        ("max_running", 1, 1000),
        ("max_retries", 1, 1000),
    ],
)
def test_a_number_out_of_its_range_is_refused(field, lowest, highest):
    ensure_spec(changed(**{field: lowest}))
    ensure_spec(changed(**{field: highest}))

    for number in (lowest - 1, highest + 1):
        found = refusal(changed(**{field: number}))
        assert str(found) == f"{field}: must be from {lowest} to {highest}, not {number}"


@pytest.mark.parametrize(
    ("field", "shortest", "longest", "said"),
    [
        ("jitter", timedelta(0), LONGEST_DELAY, "36,500 days"),
        ("misfire_grace", timedelta(0), LONGEST_DELAY, "36,500 days"),
        ("catch_up_max_age", SECOND, LONGEST_DELAY, "36,500 days"),
        ("run_timeout", SECOND, LONGEST_DELAY, "36,500 days"),
        ("condition_timeout", SECOND / 1000, timedelta(days=1), "1 day"),
    ],
)
def test_a_duration_out_of_its_range_is_refused(field, shortest, longest, said):
    ensure_spec(changed(**{field: shortest}))
    ensure_spec(changed(**{field: longest}))

    assert "or more, not" in refusal(changed(**{field: shortest - TICK})).problem
    too_long = refusal(changed(**{field: longest + TICK}))
    assert too_long.field == field
    assert too_long.problem.startswith(f"must be {said} or less, not ")


@pytest.mark.parametrize(
    ("field", "changes"),
    [
        ("timing", {"cron": None}),
        ("timing", {"every": SECOND}),
        ("timing", {"at": NOON}),
        ("cron minute", {"cron": "60 2 * * *"}),
        ("cron", {"cron": "0 0 31 2 *"}),
        ("every", {"cron": None, "every": SECOND - TICK}),
        ("every", {"cron": None, "every": LONGEST_DELAY + TICK}),
        ("zone", {"zone": "Mars/Olympus"}),
        ("zone", {"zone": ""}),
        ("calendar", {"calendar": {"weekend": True}}),
        ("calendar", {"calendar": "DE"}),
        ("starts_at", {"starts_at": NOON.replace(tzinfo=None)}),
        ("ends_at", {"starts_at": NOON, "ends_at": NOON}),
        ("timing", {"starts_at": NOON, "ends_at": NOON + SECOND}),
    ],
)
def test_a_timing_is_refused_by_the_part_that_is_wrong(field, changes):
    assert refusal(changed(**changes)).field == field


@pytest.mark.parametrize(
    "changes",
    [
        {"cron": None, "every": SECOND},
        {"cron": None, "at": NOON},
        {"starts_at": NOON, "ends_at": NOON + timedelta(days=1)},
        {"calendar": {}},
    ],
)
def test_a_timing_that_can_be_due_is_accepted(changes):
    ensure_spec(changed(**changes))


@pytest.mark.parametrize(
    "conditions",
    [
        {"launcher": "Sweep", "condition_sql": "select true"},
        {"launcher": "Sweep", "gauge_sql": "select 1", "gauge_lower": 1, "gauge_upper": 2},
        {"condition_sql": "select 1", "gauge_sql": "select 1"},
        {"launcher": "Sweep", "condition_sql": "select 1", "gauge_sql": "select 1"},
    ],
)
def test_a_schedule_has_one_condition_at_most(conditions):
    assert str(refusal(changed(**conditions))) == (
        "condition: give at most one of launcher, condition_sql and gauge_sql"
    )


@pytest.mark.parametrize(
    ("field", "changes"),
    [
        ("gauge", {"gauge_lower": None}),
        ("gauge", {"gauge_upper": None}),
        ("gauge", {"gauge_lower": None, "gauge_upper": None}),
        ("gauge", {"gauge_upper": float("inf")}),
        ("gauge", {"gauge_lower": float("nan")}),
        ("gauge_lower", {"gauge_lower": 2.001}),
        ("gauge_sql", {"gauge_sql": None}),
        ("gauge_sql", {"gauge_sql": None, "gauge_lower": None}),
    ],
)
def test_a_gauge_needs_its_statement_and_both_thresholds(field, changes):
    ensure_spec(GAUGE)

    assert refusal(replace(GAUGE, **changes)).field == field


def test_the_thresholds_of_a_gauge_may_be_equal():
    ensure_spec(replace(GAUGE, gauge_lower=2, gauge_upper=2))


@pytest.mark.parametrize("payload", [None, [], "{}", 7])
def test_a_payload_that_is_no_object_is_refused(payload):
    assert str(refusal(changed(payload=payload))) == "payload: must be a JSON object"


@pytest.mark.parametrize("name", sorted(TEMPLATE_NAMES))
def test_a_payload_may_refer_to_the_slot_and_its_schedule(name):
    ensure_spec(changed(payload={"deep": [{"value": f"{{{{{name}}}}}"}]}))


def test_a_payload_that_refers_to_what_there_is_not_is_refused():
    with pytest.raises(InvalidTemplate, match=r"'slotat'.*slot_at"):
        ensure_spec(changed(payload={"day": "{{slotat}}"}))


def test_a_field_that_there_is_not_is_refused_with_a_guess():
    ensure_fields(dict.fromkeys(FIELD_NAMES))

    with pytest.raises(
        InvalidSchedule, match=r"^catchup: is not a field .*; did you mean catch_up\?"
    ):
        ensure_fields({"name": "x", "catchup": "all"})
    with pytest.raises(InvalidSchedule, match=r"^xyzzy: is not a field of a schedule$"):
        ensure_fields({"xyzzy": 1})


def test_every_part_of_a_timing_is_taken_from_the_schedule():
    spec = ScheduleSpec(
        name="nightly",
        definition="tidy",
        cron="H 2 * * *",
        zone="Europe/Berlin",
        dst_gap="skip",  # type: ignore[arg-type]  # as plain SQL and JSON give it
        dst_fold=DstFold.BOTH,
        calendar={"weekends": True, "when_closed": "next"},
        starts_at=NOON,
        ends_at=NOON + SECOND,
    )

    assert spec.timing == Timing(
        cron="H 2 * * *",
        zone="Europe/Berlin",
        gap=DstGap.SKIP,
        fold=DstFold.BOTH,
        calendar=Calendar(weekends=frozenset({6, 7}), when_closed=WhenClosed.NEXT),
        starts_at=NOON,
        ends_at=NOON + SECOND,
        spread_key="nightly",
    )
    assert isinstance(spec.timing.gap, DstGap)


@pytest.mark.parametrize(("field", "value"), [("every", SECOND), ("at", NOON)])
def test_an_interval_and_a_date_are_taken_from_the_schedule(field, value):
    assert getattr(changed(cron=None, **{field: value}).timing, field) == value


def test_no_part_of_a_timing_but_the_anchor_is_forgotten():
    """A part that is added to a timing must be added to the schedule, or here."""
    taken = {"gap": "dst_gap", "fold": "dst_fold", "spread_key": "name"}
    parts = {taken.get(part.name, part.name) for part in fields(Timing)}

    assert parts - set(FIELD_NAMES) == {"anchor_at"}


def test_two_schedules_with_the_same_spread_expression_are_due_at_different_times():
    slots = {next_slot(changed(name=name, cron="H H * * *").timing, NOON) for name in "abcde"}

    assert len(slots) > 3


def test_misfires_are_taken_from_the_schedule():
    spec = changed(
        misfire_grace=SECOND,
        catch_up="all",
        catch_up_limit=7,
        catch_up_max_age=timedelta(days=1),
    )

    assert spec.misfires == Misfires(SECOND, CatchUp.ALL, 7, timedelta(days=1))
    assert spec.misfires.catch_up is CatchUp.ALL


def test_the_defaults_of_a_schedule_are_those_of_misfires():
    assert DAILY.misfires == Misfires()
