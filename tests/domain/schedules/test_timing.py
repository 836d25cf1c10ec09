"""When a schedule is due: cron, interval or date, between its first and its last day."""

from datetime import UTC, datetime, timedelta, timezone
from itertools import islice
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mainspring.domain.errors import InvalidSchedule
from mainspring.domain.schedules.calendars import Calendar, WhenClosed
from mainspring.domain.schedules.cron import DstFold, DstGap
from mainspring.domain.schedules.timing import (
    Timing,
    ensure_timing,
    first_slot,
    next_slot,
    preview,
    slots_after,
    slots_between,
)

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)  # a Monday
TICK = timedelta(microseconds=1)
SECOND = timedelta(seconds=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
NEW_YORK = ZoneInfo("America/New_York")  # 2026: gap 03-08 02:00 to 03:00, fold 11-01 02:00 to 01:00
WEEKEND = frozenset({6, 7})
NEVER = frozenset(range(1, 8))

thorough = settings(max_examples=200, deadline=None, derandomize=True)
instants = st.integers(-10_000, 40_000).map(lambda hours: NOON + hours * HOUR + 37 * SECOND)
intervals = st.timedeltas(SECOND, 366 * DAY)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


def texts(timing: Timing, after: str, count: int = 3) -> list[str]:
    found = islice(slots_after(timing, at(after)), count)
    return [f"{slot:%m-%d %H:%M}" for slot in found]


# Cron


def test_cron_is_due_at_the_wall_time_of_its_zone():
    timing = Timing(cron="0 2 * * *", zone="America/New_York")

    assert texts(timing, "2026-03-06T12:00Z") == ["03-07 07:00", "03-08 07:00", "03-09 06:00"]


def test_a_slot_is_to_come_up_to_its_instant_and_not_after_itself():
    timing = Timing(cron="0 12 * * *")

    assert next_slot(timing, NOON) == NOON + DAY
    assert next_slot(timing, NOON - TICK) == NOON
    assert next_slot(timing, NOON + DAY - TICK) == NOON + DAY


def test_the_gap_policy_is_passed_on():
    timing = Timing(cron="30 2 8 3 *", zone="America/New_York")

    assert texts(timing, "2026-01-01T00:00Z", 1) == ["03-08 07:00"]
    skipping = Timing(cron="30 2 8 3 *", zone="America/New_York", gap=DstGap.SKIP)
    assert next_slot(skipping, at("2026-01-01T00:00Z")) == at("2027-03-08T07:30Z")


def test_the_fold_policy_is_passed_on():
    once = Timing(cron="30 1 * * *", zone="America/New_York")
    both = Timing(cron="30 1 * * *", zone="America/New_York", fold=DstFold.BOTH)

    assert texts(once, "2026-11-01T00:00Z", 2) == ["11-01 05:30", "11-02 06:30"]
    assert texts(both, "2026-11-01T00:00Z", 2) == ["11-01 05:30", "11-01 06:30"]


def test_the_spread_key_spreads():
    minutes = {
        next_slot(Timing(cron="H 3 * * *", spread_key=f"nightly {number}"), NOON)
        for number in range(100)
    }

    assert len(minutes) > 30


@pytest.mark.parametrize("fold", [0, 1])
def test_the_two_showings_of_a_wall_are_not_taken_for_each_other(fold):
    """Python takes them for equal, which must not confuse a comparison or a cache."""
    after = datetime(2026, 11, 1, 1, 30, tzinfo=NEW_YORK, fold=fold)
    timing = Timing(cron="*/30 * * * *", zone="America/New_York")

    assert next_slot(timing, after) == after.astimezone(UTC) + HOUR / 2


def test_every_slot_is_in_utc():
    east = timezone(timedelta(hours=9))
    for timing in (
        Timing(cron="* * * * *", zone="Asia/Tokyo"),
        Timing(every=HOUR, anchor_at=NOON.astimezone(east)),
        Timing(at=(NOON + DAY).astimezone(east)),
    ):
        slot = next_slot(timing, NOON.astimezone(east))
        assert slot is not None
        assert slot.tzinfo is UTC


# Intervals


@given(intervals, instants, instants)
@thorough
def test_an_interval_never_drifts_from_its_anchor(every, anchor, after):
    slot = next_slot(Timing(every=every, anchor_at=anchor), after)

    assert slot is not None
    assert (slot - anchor) % every == timedelta(0)
    assert slot == anchor if after < anchor else after < slot <= after + every


@given(intervals, instants, st.integers(0, 1000))
@thorough
def test_an_exact_multiple_of_an_interval_is_a_slot_and_not_due_after_itself(every, anchor, number):
    timing, multiple = Timing(every=every, anchor_at=anchor), anchor + number * every

    assert next_slot(timing, multiple - TICK) == multiple
    assert next_slot(timing, multiple) == multiple + every


@pytest.mark.parametrize("every", [SECOND, 90 * SECOND, 7 * HOUR, 366 * DAY])
def test_an_interval_keeps_its_length_from_slot_to_slot(every):
    timing = Timing(every=every, anchor_at=NOON)

    found = list(islice(slots_after(timing, NOON), 100))

    assert found == [NOON + number * every for number in range(1, 101)]


@pytest.mark.parametrize("start", [NOON - 1000 * HOUR, NOON, NOON + 1000 * HOUR])
def test_an_interval_counts_from_its_start_whenever_it_was_made(start):
    timing = Timing(every=7 * HOUR, starts_at=start, anchor_at=NOON + SECOND)

    assert next_slot(timing, start - DAY) == start
    assert next_slot(timing, start) == start + 7 * HOUR
    assert next_slot(timing, start + 700 * HOUR) == start + 707 * HOUR


def test_an_interval_without_an_anchor_counts_from_where_it_is_asked():
    assert list(islice(slots_after(Timing(every=7 * HOUR), NOON), 2)) == [
        NOON + 7 * HOUR,
        NOON + 14 * HOUR,
    ]


def test_an_interval_without_an_anchor_keeps_its_rhythm_over_closed_days():
    timing = Timing(every=7 * HOUR, calendar=Calendar(weekends=WEEKEND))

    found = list(islice(slots_after(timing, NOON), 100))

    assert {(slot - NOON) % (7 * HOUR) for slot in found} == {timedelta(0)}


@pytest.mark.parametrize("timing", [Timing(every=90 * SECOND), Timing(cron="@every 90s")])
def test_both_ways_to_write_an_interval_count_from_the_same_anchor(timing):
    anchored = Timing(timing.cron, timing.every, anchor_at=NOON)
    started = Timing(timing.cron, timing.every, starts_at=NOON + SECOND, anchor_at=NOON)

    assert next_slot(anchored, NOON + 100 * SECOND) == NOON + 180 * SECOND
    assert next_slot(started, NOON + 100 * SECOND) == NOON + 181 * SECOND


def test_there_is_no_slot_beyond_the_years_of_a_datetime():
    last_day = datetime(9999, 12, 31, tzinfo=UTC)

    assert next_slot(Timing(every=366 * DAY, anchor_at=NOON), last_day) is None
    assert next_slot(Timing(cron="0 0 * * *"), last_day) is None
    assert next_slot(Timing(every=DAY, calendar=Calendar(weekends=WEEKEND)), last_day) is None


# Dates


def test_a_date_is_due_once():
    timing = Timing(at=NOON)

    assert next_slot(timing, NOON - 400 * DAY) == NOON
    assert next_slot(timing, NOON - TICK) == NOON
    assert next_slot(timing, NOON) is None


def test_a_date_that_has_passed_is_the_first_slot():
    assert first_slot(Timing(at=NOON), NOON + 1000 * DAY) == NOON
    assert first_slot(Timing(at=NOON), NOON - 1000 * DAY) == NOON


def test_the_first_slot_of_what_comes_again_is_later_than_where_it_counts_from():
    assert first_slot(Timing(cron="0 12 * * *"), NOON) == NOON + DAY


@pytest.mark.parametrize(
    ("when_closed", "slot"),
    [
        (WhenClosed.SKIP, None),
        (WhenClosed.NEXT, "2026-03-09T12:00Z"),
        (WhenClosed.PREVIOUS, "2026-03-06T12:00Z"),
    ],
)
@pytest.mark.parametrize("base", ["2026-01-01T00:00Z", "2026-03-07T00:00Z", "2027-01-01T00:00Z"])
def test_a_date_on_a_closed_day_is_moved_too(when_closed, slot, base):
    timing = Timing(
        at=at("2026-03-07T12:00Z"), calendar=Calendar(weekends=WEEKEND, when_closed=when_closed)
    )

    assert first_slot(timing, at(base)) == (slot and at(slot))


# First and last


def test_a_slot_at_the_start_is_due_and_one_before_it_is_not():
    timing = Timing(cron="0 12 * * *", starts_at=NOON)

    assert next_slot(timing, NOON - 100 * DAY) == NOON
    later = Timing(cron="0 12 * * *", starts_at=NOON + TICK)
    assert next_slot(later, NOON - 100 * DAY) == NOON + DAY


def test_a_start_that_has_passed_changes_nothing():
    assert next_slot(Timing(cron="0 12 * * *", starts_at=NOON - 100 * DAY), NOON) == NOON + DAY


def test_a_slot_at_the_end_is_due_and_one_after_it_is_not():
    assert next_slot(Timing(cron="0 12 * * *", ends_at=NOON), NOON - DAY) == NOON
    assert next_slot(Timing(cron="0 12 * * *", ends_at=NOON - TICK), NOON - DAY) is None
    assert next_slot(Timing(cron="0 12 * * *", ends_at=NOON), NOON) is None


def test_the_first_and_the_last_day_hold_for_slots_as_they_were_moved():
    monday = Calendar(weekends=WEEKEND, when_closed=WhenClosed.NEXT)
    timing = Timing(cron="0 12 * * 6", calendar=monday, starts_at=at("2026-03-08T00:00Z"))

    assert texts(timing, "2026-03-01T00:00Z", 1) == ["03-09 12:00"]
    ending = Timing(cron="0 12 * * 6", calendar=monday, ends_at=at("2026-03-08T00:00Z"))
    assert next_slot(ending, at("2026-03-03T00:00Z")) is None


@pytest.mark.parametrize("fold", [0, 1])
def test_a_last_day_within_the_fold_means_the_showing_that_was_given(fold):
    ends_at = datetime(2026, 11, 1, 1, 30, tzinfo=NEW_YORK, fold=fold)
    timing = Timing(every=HOUR, anchor_at=at("2026-11-01T00:30Z"), ends_at=ends_at)

    *_, last = slots_after(timing, at("2026-11-01T00:00Z"))

    assert last == at("2026-11-01T05:30Z") + fold * HOUR


# Preview


def test_a_preview_tells_local_time_and_what_the_clock_did():
    timing = Timing(cron="30 2 * * *", zone="America/New_York")

    first, second = preview(timing, at("2026-03-07T12:00Z"), 2)

    assert (first.at, f"{first.local:%H:%M%z}") == (at("2026-03-08T07:00Z"), "03:00-0400")
    assert first.note == "02:30 does not exist on this day; runs right after the gap"
    assert (f"{second.local:%H:%M%z}", second.note) == ("02:30-0400", None)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_preview_holds_as_many_as_asked(count):
    assert len(preview(Timing(cron="* * * * *"), NOON, count)) == count


def test_a_preview_holds_fewer_where_slots_end():
    timing = Timing(every=DAY, starts_at=NOON, ends_at=NOON + DAY, zone="Asia/Tokyo")

    assert [(fire.local.hour, fire.note) for fire in preview(timing, NOON - DAY, 10)] == [
        (21, None),
        (21, None),
    ]


# Ranges


def test_both_ends_of_a_range_are_in_it():
    timing = Timing(cron="0 12 * * *")

    assert slots_between(timing, NOON, NOON + DAY, limit=10) == [NOON, NOON + DAY]
    assert slots_between(timing, NOON + TICK, NOON + 2 * DAY - TICK, limit=10) == [NOON + DAY]
    assert slots_between(timing, NOON, NOON, limit=10) == [NOON]


def test_a_range_holds_no_more_than_the_limit():
    timing = Timing(cron="0 12 * * *")

    assert len(slots_between(timing, NOON, NOON + 4 * DAY, limit=5)) == 5
    with pytest.raises(InvalidSchedule, match=r"^range: contains more than 5 slots"):
        slots_between(timing, NOON, NOON + 5 * DAY, limit=5)


def test_a_range_that_ends_before_it_starts_is_refused():
    with pytest.raises(InvalidSchedule, match=r"^range: ends before it starts"):
        slots_between(Timing(every=HOUR), NOON, NOON - TICK, limit=5)


# What is refused


@pytest.mark.parametrize(
    ("field", "timing"),
    [
        ("timing", Timing()),
        ("timing", Timing(cron="* * * * *", every=HOUR)),
        ("timing", Timing(cron="* * * * *", every=HOUR, at=NOON)),
        ("zone", Timing(every=HOUR, zone="Europe/Bärlin")),
        ("cron minute", Timing(cron="61 * * * *")),
        ("cron", Timing(cron="0 0 30 2 *")),
        ("every", Timing(every=SECOND - TICK)),
        ("every", Timing(every=timedelta(0))),
        ("at", Timing(at=NOON.replace(tzinfo=None))),
        ("starts_at", Timing(every=HOUR, starts_at=NOON.replace(tzinfo=None))),
        ("ends_at", Timing(every=HOUR, ends_at=NOON.replace(tzinfo=None))),
        ("ends_at", Timing(every=HOUR, starts_at=NOON, ends_at=NOON)),
        ("ends_at", Timing(every=HOUR, starts_at=NOON, ends_at=NOON - DAY)),
    ],
)
def test_a_refusal_names_the_part_that_is_wrong(field, timing):
    with pytest.raises(InvalidSchedule) as refused:
        ensure_timing(timing)

    assert refused.value.field == field


@pytest.mark.parametrize(
    "timing",
    [
        Timing(cron="H 0 29 2 *", spread_key="leap", zone="Europe/Berlin"),
        Timing(every=SECOND),
        Timing(at=NOON - 1000 * DAY),
        Timing(every=HOUR, starts_at=NOON, ends_at=NOON + TICK),
        Timing(at=NOON, starts_at=NOON, ends_at=NOON + TICK),
        Timing(cron="* * * * *", starts_at=datetime.min.replace(tzinfo=UTC)),
        Timing(cron="* * * * *", ends_at=datetime.max.replace(tzinfo=UTC)),
    ],
)
def test_what_can_be_due_is_not_refused(timing):
    ensure_timing(timing)


@pytest.mark.parametrize(
    ("field", "timing"),
    [
        ("at", Timing(at=NOON, starts_at=NOON + TICK)),
        ("at", Timing(at=NOON, ends_at=NOON - TICK)),
        ("at", Timing(at=NOON + 5 * DAY, calendar=Calendar(weekends=WEEKEND))),
        ("timing", Timing(cron="0 0 1 6 *", starts_at=NOON, ends_at=NOON + DAY)),
        ("timing", Timing(cron="0 0 * * *", starts_at=NOON, calendar=Calendar(weekends=NEVER))),
    ],
)
def test_what_can_never_be_due_is_refused(field, timing):
    with pytest.raises(InvalidSchedule) as refused:
        ensure_timing(timing)

    assert refused.value.field == field


def test_a_preview_looks_a_century_ahead_and_no_farther():
    fires = preview(Timing(cron="0 0 29 2 *"), NOON, 1000)

    assert len(fires) == 24
    assert fires[-1].at - NOON <= timedelta(days=36_525)
    assert len(preview(Timing(cron="0 0 29 2 *"), datetime(9990, 1, 1, tzinfo=UTC), 1000)) <= 3
