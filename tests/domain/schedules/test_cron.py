"""When an expression fires: fixed cases around the changes of real clocks."""

import time
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise

import pytest

from mainspring.domain.schedules.cron import DstFold, DstGap, dst_note, find_zone, next_after, parse

NEW_YORK = "America/New_York"  # 2026: gap 03-08 02:00 to 03:00, fold 11-01 02:00 to 01:00
LORD_HOWE = "Australia/Lord_Howe"  # 2026: fold 04-05 02:00 to 01:30, gap 10-04 02:00 to 02:30


def fires(text, zone_name, after, **policies):
    zone, expression = find_zone(zone_name), parse(text)
    fire = next_after(expression, zone, datetime.fromisoformat(after), **policies)
    while fire is not None:
        assert fire.tzinfo is UTC
        yield fire
        fire = next_after(expression, zone, fire, **policies)


def local(text, zone_name, after, *, count=3, **policies):
    """The next fires as the zone's clock shows them, with its offset."""
    zone = find_zone(zone_name)
    found = islice(fires(text, zone_name, after, **policies), count)
    return [fire.astimezone(zone).strftime("%m-%d %H:%M%z") for fire in found]


def test_a_fixed_time_keeps_its_hour_through_the_changes():
    assert local("0 9 * * *", NEW_YORK, "2026-03-07T12:00Z", count=2) == [
        "03-07 09:00-0500",
        "03-08 09:00-0400",
    ]
    assert local("0 9 * * *", NEW_YORK, "2026-10-31T12:00Z", count=2) == [
        "10-31 09:00-0400",
        "11-01 09:00-0500",
    ]


@pytest.mark.parametrize("zone_name", ["UTC", "Asia/Kolkata"])
def test_a_zone_without_changes_fires_every_24_hours(zone_name):
    found = list(islice(fires("30 2 * * *", zone_name, "2026-03-01T00:00Z"), 365))

    assert {later - earlier for earlier, later in pairwise(found)} == {timedelta(days=1)}
    assert found[0].astimezone(find_zone(zone_name)).strftime("%H:%M") == "02:30"


@pytest.mark.parametrize(
    ("zone_name", "time", "after", "expected"),
    [
        (NEW_YORK, "30 2", "2026-03-08T00:00Z", "03-08 03:00-0400"),
        ("Europe/London", "15 1", "2026-03-28T12:00Z", "03-29 02:00+0100"),
        (LORD_HOWE, "10 2", "2026-10-03T12:00Z", "10-04 02:30+1100"),
        ("Africa/Cairo", "0 0", "2026-04-23T12:00Z", "04-24 01:00+0300"),
        ("Pacific/Apia", "30 2", "2011-12-30T00:00Z", "12-31 00:00+1400"),
    ],
)
def test_a_fixed_time_in_the_gap_runs_right_after_it(zone_name, time, after, expected):
    assert local(f"{time} * * *", zone_name, after, count=1) == [expected]


def test_a_fixed_time_in_the_gap_runs_once_and_on_the_next_day_as_ever():
    assert local("30 2 * * *", NEW_YORK, "2026-03-08T00:00Z") == [
        "03-08 03:00-0400",
        "03-09 02:30-0400",
        "03-10 02:30-0400",
    ]


def test_a_skipped_day_runs_right_after_the_gap_and_the_day_after_it_as_ever():
    assert local("30 2 * * *", "Pacific/Apia", "2011-12-29T00:00Z", count=4) == [
        "12-29 02:30-1000",
        "12-31 00:00+1400",
        "12-31 02:30+1400",
        "01-01 02:30+1400",
    ]


def test_several_times_in_one_gap_and_the_minute_after_it_are_one_fire():
    assert local("0,20,40 2-3 * * *", NEW_YORK, "2026-03-08T00:00Z") == [
        "03-08 03:00-0400",
        "03-08 03:20-0400",
        "03-08 03:40-0400",
    ]


def test_the_last_minute_before_the_gap_and_the_first_after_it_are_not_moved():
    assert local("59 1 * * *", NEW_YORK, "2026-03-08T00:00Z", count=1) == ["03-08 01:59-0500"]
    assert local("0 3 * * *", NEW_YORK, "2026-03-08T00:00Z", count=1) == ["03-08 03:00-0400"]


def test_the_gap_can_be_skipped():
    assert local("30 2 * * *", NEW_YORK, "2026-03-07T12:00Z", count=1, gap=DstGap.SKIP) == [
        "03-09 02:30-0400"
    ]


def test_skipping_the_gap_leaves_the_first_minute_after_it():
    assert local("0 2,3 * * *", NEW_YORK, "2026-03-08T00:00Z", count=2, gap=DstGap.SKIP) == [
        "03-08 03:00-0400",
        "03-09 02:00-0400",
    ]


@pytest.mark.parametrize(
    ("zone_name", "time", "after", "expected"),
    [
        (NEW_YORK, "30 1", "2026-11-01T00:00Z", ["11-01 01:30-0400", "11-02 01:30-0500"]),
        ("Europe/London", "0 1", "2026-10-24T12:00Z", ["10-25 01:00+0100", "10-26 01:00+0000"]),
        (LORD_HOWE, "45 1", "2026-04-04T12:00Z", ["04-05 01:45+1100", "04-06 01:45+1030"]),
        ("Africa/Cairo", "30 23", "2026-10-29T12:00Z", ["10-29 23:30+0300", "10-30 23:30+0200"]),
    ],
)
def test_a_fixed_time_in_the_fold_runs_the_first_time(zone_name, time, after, expected):
    assert local(f"{time} * * *", zone_name, after, count=2) == expected


def test_both_showings_of_the_fold_can_be_asked_for():
    assert local("15,45 1 * * *", NEW_YORK, "2026-11-01T00:00Z", count=5, fold=DstFold.BOTH) == [
        "11-01 01:15-0400",
        "11-01 01:45-0400",
        "11-01 01:15-0500",
        "11-01 01:45-0500",
        "11-02 01:15-0500",
    ]


def test_asking_for_both_leaves_the_minutes_around_the_fold_alone():
    assert local("59 0 * * *", NEW_YORK, "2026-11-01T00:00Z", count=2, fold=DstFold.BOTH) == [
        "11-01 00:59-0400",
        "11-02 00:59-0500",
    ]
    assert local("0 2 * * *", NEW_YORK, "2026-11-01T00:00Z", count=2, fold=DstFold.BOTH) == [
        "11-01 02:00-0500",
        "11-02 02:00-0500",
    ]


def test_a_start_inside_the_second_showing_never_looks_back():
    assert local("30 1 * * *", NEW_YORK, "2026-11-01T06:15Z", count=1) == ["11-02 01:30-0500"]


def test_a_start_inside_the_first_showing_sees_all_that_is_to_come():
    after = "2026-11-01T05:40Z"

    assert local("30 1 * * *", NEW_YORK, after, count=1) == ["11-02 01:30-0500"]
    assert local("30 1 * * *", NEW_YORK, after, count=1, fold=DstFold.BOTH) == ["11-01 01:30-0500"]
    assert local("50 1 * * *", NEW_YORK, after, count=1) == ["11-01 01:50-0400"]


def test_the_showings_of_a_wall_are_told_apart_however_the_start_is_given():
    zone, expression = find_zone(NEW_YORK), parse("30 1 * * *")
    local_time = datetime(2026, 11, 1, 1, 20, tzinfo=zone)

    first = next_after(expression, zone, local_time)
    assert first == datetime(2026, 11, 1, 5, 30, tzinfo=UTC)
    second = next_after(expression, zone, local_time.replace(fold=1))
    assert second == datetime(2026, 11, 2, 6, 30, tzinfo=UTC)


def test_a_wildcard_hour_keeps_its_rhythm_through_the_fold():
    found = islice(fires("*/30 * * * *", NEW_YORK, "2026-11-01T04:45Z"), 6)

    assert " ".join(f"{fire:%H:%M}" for fire in found) == "05:00 05:30 06:00 06:30 07:00 07:30"


def test_a_wildcard_hour_keeps_its_rhythm_through_the_gap():
    assert local("0 */2 * * *", NEW_YORK, "2026-03-08T04:30Z") == [
        "03-08 00:00-0500",
        "03-08 04:00-0400",
        "03-08 06:00-0400",
    ]


def test_a_wildcard_minute_in_the_gap_is_nothing_that_could_be_moved():
    assert local("*/30 2 * * *", NEW_YORK, "2026-03-08T00:00Z", count=1) == ["03-09 02:00-0400"]


def test_a_wildcard_hour_follows_a_shift_of_half_an_hour():
    assert local("0 * * * *", LORD_HOWE, "2026-04-04T13:30Z") == [
        "04-05 01:00+1100",
        "04-05 02:00+1030",
        "04-05 03:00+1030",
    ]
    assert local("0 */2 * * *", LORD_HOWE, "2026-04-04T13:30Z", count=2) == [
        "04-05 02:00+1030",
        "04-05 04:00+1030",
    ]
    assert local("15 */1 * * *", LORD_HOWE, "2026-10-03T14:00Z") == [
        "10-04 01:15+1030",
        "10-04 03:15+1100",
        "10-04 04:15+1100",
    ]


def test_the_policies_do_not_touch_a_wildcard():
    after = "2026-11-01T05:40Z"

    assert local("*/30 * * * *", NEW_YORK, after, fold=DstFold.ONCE) == local(
        "*/30 * * * *", NEW_YORK, after, fold=DstFold.BOTH
    )
    assert local("*/30 2 * * *", NEW_YORK, "2026-03-08T00:00Z", gap=DstGap.RUN_AFTER) == local(
        "*/30 2 * * *", NEW_YORK, "2026-03-08T00:00Z", gap=DstGap.SKIP
    )


def test_a_fire_is_strictly_later_than_the_start():
    def first(after):
        return next(fires("30 2 * * *", "UTC", after)).isoformat()

    assert first("2026-05-01T02:29:59.999999Z") == "2026-05-01T02:30:00+00:00"
    assert first("2026-05-01T02:30:00Z") == "2026-05-02T02:30:00+00:00"
    assert first("2026-05-01T02:30:00.000001Z") == "2026-05-02T02:30:00+00:00"


def test_asking_again_within_a_second_costs_next_to_nothing():
    zone, expression = find_zone(NEW_YORK), parse("17 4 * * *")
    start = datetime(2026, 5, 1, tzinfo=UTC)

    def cost(step):
        began = time.process_time()
        for number in range(1000):
            next_after(expression, zone, start + number * step)
        return time.process_time() - began

    assert cost(timedelta(microseconds=1)) < cost(timedelta(seconds=1)) / 3


def test_a_start_needs_a_time_zone():
    with pytest.raises(ValueError, match="after must have a time zone"):
        next_after(parse("* * * * *"), find_zone("UTC"), datetime.fromisoformat("2026-05-01"))


def test_every_counts_from_the_anchor_whatever_the_clock_does():
    zone, anchor = find_zone(NEW_YORK), datetime(2026, 3, 8, 6, 0, 0, 7, tzinfo=UTC)
    hour, tick = timedelta(hours=1), timedelta(microseconds=1)

    def first(after):
        return next_after(parse("@every 1h"), zone, after, anchor=anchor)

    assert first(anchor) == anchor + hour
    assert first(anchor + hour - tick) == anchor + hour
    assert first(anchor + hour) == anchor + 2 * hour
    assert first(anchor + 5000 * hour + tick) == anchor + 5001 * hour


def test_every_begins_with_an_anchor_that_is_to_come():
    anchor = datetime(2026, 3, 8, tzinfo=UTC)
    after = anchor - timedelta(days=3)

    assert next_after(parse("@every 1h"), find_zone("UTC"), after, anchor=anchor) == anchor


def test_every_without_an_anchor_counts_from_the_start():
    after = datetime(2026, 3, 8, 0, 0, 1, tzinfo=UTC)

    assert next_after(parse("@every 90s"), find_zone("UTC"), after) == after + timedelta(seconds=90)


def test_the_29th_of_february_waits_for_a_leap_year_even_over_2100():
    assert next(fires("0 0 29 2 *", "UTC", "2026-01-01T00:00Z")).year == 2028
    assert next(fires("0 0 29 2 *", "UTC", "2096-03-01T00:00Z")).year == 2104
    assert next(fires("0 0 29 2 */7", "UTC", "2088-03-01T00:00Z")).year == 2128


@pytest.mark.parametrize("text", ["0 0 1 1 *", "@every 365d"])
def test_after_the_last_year_there_is_no_fire(text):
    after = datetime(9999, 6, 1, tzinfo=UTC)

    for name in ("UTC", NEW_YORK, "Asia/Tokyo"):
        assert next_after(parse(text), find_zone(name), after) is None
        assert next_after(parse(text), find_zone(name), datetime.max.replace(tzinfo=UTC)) is None


def test_a_time_that_always_falls_into_the_gap_never_fires_when_gaps_are_skipped():
    """New York changes on the second Sunday of March, so 02:30 on it has not been since 2007."""
    text = "30 2 * 3 SUN#2"

    assert local(text, NEW_YORK, "2026-01-01T00:00Z", gap=DstGap.SKIP) == []
    assert local(text, NEW_YORK, "2026-01-01T00:00Z", count=1) == ["03-08 03:00-0400"]


def note(text, zone_name, fire):
    return dst_note(parse(text), find_zone(zone_name), datetime.fromisoformat(fire))


def test_a_note_tells_of_a_time_that_was_moved():
    said = "02:30 does not exist on this day; runs right after the gap"

    assert note("30 2 * * *", NEW_YORK, "2026-03-08T07:00Z") == said
    assert note("30 2 * * *", NEW_YORK, "2026-03-09T06:30Z") is None


def test_a_note_is_the_same_however_the_fire_is_given():
    zone, expression = find_zone(NEW_YORK), parse("30 1,2 * * *")

    for fire in ("2026-03-08T07:00Z", "2026-11-01T05:30Z", "2026-11-01T06:30Z"):
        instant = datetime.fromisoformat(fire)
        said = dst_note(expression, zone, instant)
        assert said
        assert dst_note(expression, zone, instant.astimezone(zone)) == said


def test_a_note_names_the_day_if_it_is_another():
    said = "2011-12-30 02:30 does not exist; runs right after the gap"

    assert note("30 2 * * *", "Pacific/Apia", "2011-12-30T10:00Z") == said


def test_a_note_tells_the_showings_of_a_wall_apart():
    said = "01:30 occurs twice on this day; this is the"

    assert note("30 1 * * *", NEW_YORK, "2026-11-01T05:30Z") == f"{said} first"
    assert note("*/30 * * * *", NEW_YORK, "2026-11-01T06:30Z") == f"{said} second"
    assert note("*/30 * * * *", NEW_YORK, "2026-11-01T07:00Z") is None


def test_there_is_no_note_on_what_was_not_moved():
    assert note("0 2,3 * * *", NEW_YORK, "2026-03-08T07:00Z") is None
    assert note("*/30 * * * *", NEW_YORK, "2026-03-08T07:00Z") is None
    assert note("0 4 * * *", NEW_YORK, "2026-03-08T07:00Z") is None
    assert note("@every 1h", NEW_YORK, "2026-11-01T05:30Z") is None
