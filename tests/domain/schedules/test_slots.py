"""Plans: which of the slots that are due fire, which are let go, and what comes next."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise, takewhile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mainspring.domain.schedules.calendars import Calendar, WhenClosed
from mainspring.domain.schedules.slots import (
    CatchUp,
    Misfires,
    Plan,
    PlannedSlot,
    SlotOutcome,
    plan,
)
from mainspring.domain.schedules.timing import Timing, next_slot, slots_after
from mainspring.domain.types import SlotTrigger

NONE, LATEST, ALL = CatchUp
ENQUEUED, MISSED, COALESCED = SlotOutcome.ENQUEUED, SlotOutcome.MISSED, SlotOutcome.COALESCED
ON_TIME, CATCH_UP = SlotTrigger.SCHEDULER, SlotTrigger.CATCH_UP
HOURLY = Timing(cron="0 * * * *")
MINUTELY = Timing(cron="* * * * *")
DUE = datetime(2026, 3, 2, 12, tzinfo=UTC)
TICK = timedelta(microseconds=1)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
GRACE = Misfires().grace

thorough = settings(max_examples=100, deadline=None, derandomize=True)


def outcomes(planned: Plan) -> list[SlotOutcome]:
    return [slot.outcome for slot in planned.slots]


def fired(planned: Plan) -> list[datetime]:
    return [slot.at for slot in planned.slots if slot.outcome is ENQUEUED]


def slots_until(timing: Timing, after: datetime, now: datetime) -> list[datetime]:
    return list(takewhile(lambda slot: slot <= now, slots_after(timing, after)))


def late_by(count: int) -> datetime:
    """When so many hourly slots have been missed before one that is due right now."""
    return DUE + count * HOUR


# One slot


@pytest.mark.parametrize("catch_up", CatchUp)
@pytest.mark.parametrize("lateness", [timedelta(0), TICK, GRACE])
def test_a_slot_within_the_grace_fires_under_every_policy(catch_up, lateness):
    planned = plan(HOURLY, Misfires(catch_up=catch_up), DUE, now=DUE + lateness)

    assert planned == Plan((PlannedSlot(DUE, ENQUEUED, ON_TIME),), DUE + HOUR)
    assert planned.is_plain


@pytest.mark.parametrize("catch_up", [LATEST, ALL])
def test_a_slot_beyond_the_grace_is_caught_up_on(catch_up):
    planned = plan(HOURLY, Misfires(catch_up=catch_up), DUE, now=DUE + GRACE + TICK)

    assert planned == Plan((PlannedSlot(DUE, ENQUEUED, CATCH_UP),), DUE + HOUR)
    assert not planned.is_plain


def test_a_slot_beyond_the_grace_is_missed_without_catch_up():
    planned = plan(HOURLY, Misfires(catch_up=NONE), DUE, now=DUE + GRACE + TICK)

    reason = "no scheduler ran in time (catch_up = none)"
    assert planned == Plan((PlannedSlot(DUE, MISSED, reason=reason),), DUE + HOUR)
    assert not planned.is_plain


def test_the_grace_may_be_nothing():
    strict = Misfires(grace=timedelta(0), catch_up=NONE)

    assert outcomes(plan(HOURLY, strict, DUE, now=DUE)) == [ENQUEUED]
    assert outcomes(plan(HOURLY, strict, DUE, now=DUE + TICK)) == [MISSED]


@pytest.mark.parametrize("catch_up", CatchUp)
@pytest.mark.parametrize("ahead", [TICK, HOUR, 400 * DAY])
def test_a_clock_that_was_put_back_changes_nothing(catch_up, ahead):
    planned = plan(HOURLY, Misfires(catch_up=catch_up), DUE, now=DUE - ahead)

    assert planned == Plan((PlannedSlot(DUE, ENQUEUED, ON_TIME),), DUE + HOUR)


def test_the_last_slot_has_none_after_it():
    assert plan(Timing(at=DUE), Misfires(), DUE, now=DUE).next_slot_at is None
    ending = Timing(cron="0 * * * *", ends_at=DUE)
    assert plan(ending, Misfires(), DUE, now=DUE + DAY).next_slot_at is None


def test_a_slot_that_is_due_now_is_not_left_for_later():
    planned = plan(HOURLY, Misfires(catch_up=ALL), DUE, now=DUE + HOUR)
    earlier = plan(HOURLY, Misfires(catch_up=ALL), DUE, now=DUE + HOUR - TICK)

    assert (fired(planned), planned.next_slot_at) == ([DUE, DUE + HOUR], DUE + 2 * HOUR)
    assert (fired(earlier), earlier.next_slot_at) == ([DUE], DUE + HOUR)


# Several slots


@pytest.mark.parametrize("count", [1, 5])
def test_without_catch_up_only_the_slot_on_time_fires(count):
    planned = plan(HOURLY, Misfires(catch_up=NONE), DUE, now=late_by(count) + GRACE)

    assert outcomes(planned) == [*[MISSED] * count, ENQUEUED]
    assert planned.slots[-1] == PlannedSlot(late_by(count), ENQUEUED, ON_TIME, missed=count)
    assert planned.next_slot_at == late_by(count + 1)


@pytest.mark.parametrize("count", [1, 5])
def test_without_catch_up_nothing_fires_when_the_last_is_late(count):
    planned = plan(HOURLY, Misfires(catch_up=NONE), DUE, now=late_by(count) + GRACE + TICK)

    assert outcomes(planned) == [MISSED] * (count + 1)
    assert planned.next_slot_at == late_by(count + 1)


@pytest.mark.parametrize("count", [1, 5])
@pytest.mark.parametrize(("lateness", "trigger"), [(GRACE, ON_TIME), (GRACE + TICK, CATCH_UP)])
def test_the_latest_slot_stands_for_those_before_it(count, lateness, trigger):
    planned = plan(HOURLY, Misfires(catch_up=LATEST), DUE, now=late_by(count) + lateness)

    assert outcomes(planned) == [*[COALESCED] * count, ENQUEUED]
    assert planned.slots[-1] == PlannedSlot(late_by(count), ENQUEUED, trigger, missed=count)
    assert planned.slots[0].reason == "a later slot was due as well and ran instead"


@pytest.mark.parametrize("count", [1, 5])
def test_all_slots_fire_one_after_the_other(count):
    planned = plan(HOURLY, Misfires(catch_up=ALL), DUE, now=late_by(count))

    assert fired(planned) == [late_by(number) for number in range(count + 1)]
    assert [slot.trigger for slot in planned.slots] == [*[CATCH_UP] * count, ON_TIME]
    assert {slot.missed for slot in planned.slots} == {0}


@pytest.mark.parametrize(("limit", "missed"), [(7, 0), (6, 0), (5, 1), (1, 5)])
def test_all_slots_fire_up_to_the_limit_the_newest_first(limit, missed):
    planned = plan(HOURLY, Misfires(catch_up=ALL, limit=limit), DUE, now=late_by(5))

    assert outcomes(planned) == [*[MISSED] * missed, *[ENQUEUED] * (6 - missed)]
    assert [slot.missed for slot in planned.slots] == [0, 0, 0, 0, 0, missed]
    assert all("catch_up_limit" in (slot.reason or "") for slot in planned.slots[:missed])


@pytest.mark.parametrize(
    ("catch_up", "max_age", "expected"),
    [
        (ALL, 2 * HOUR, [MISSED, ENQUEUED, ENQUEUED, ENQUEUED]),
        (ALL, 2 * HOUR - TICK, [MISSED, MISSED, ENQUEUED, ENQUEUED]),
        (ALL, TICK, [MISSED, MISSED, MISSED, ENQUEUED]),
        (LATEST, TICK, [COALESCED, COALESCED, COALESCED, ENQUEUED]),
    ],
)
def test_a_slot_older_than_the_maximum_age_does_not_fire(catch_up, max_age, expected):
    """The last slot is due right now, so it fires however small the age is."""
    misfires = Misfires(catch_up=catch_up, max_age=max_age)

    assert outcomes(plan(HOURLY, misfires, DUE, now=late_by(3))) == expected


@pytest.mark.parametrize("catch_up", [LATEST, ALL])
@pytest.mark.parametrize(
    ("lateness", "expected"), [(5 * MINUTE, ENQUEUED), (5 * MINUTE + TICK, MISSED)]
)
def test_where_every_slot_is_too_old_all_are_missed(catch_up, lateness, expected):
    misfires = Misfires(catch_up=catch_up, max_age=5 * MINUTE)

    planned = plan(HOURLY, misfires, DUE, now=DUE + HOUR + lateness)

    assert planned.slots[-1].outcome is expected
    assert expected is ENQUEUED or "catch_up_max_age" in (planned.slots[-1].reason or "")


@pytest.mark.parametrize("catch_up", [LATEST, ALL])
@pytest.mark.parametrize(("lateness", "expected"), [(HOUR, ENQUEUED), (HOUR + TICK, MISSED)])
def test_the_grace_goes_beyond_a_maximum_age_that_is_shorter(catch_up, lateness, expected):
    misfires = Misfires(grace=HOUR, catch_up=catch_up, max_age=MINUTE)

    planned = plan(Timing(cron="0 12 * * *"), misfires, DUE, now=DUE + lateness)

    assert outcomes(planned) == [expected]


def test_a_slot_that_no_timing_names_is_planned_like_any_other():
    """After a failure the next try is at an instant of its own."""
    retry = DUE + 17 * MINUTE

    planned = plan(HOURLY, Misfires(catch_up=ALL), retry, now=DUE + 2 * HOUR)

    assert fired(planned) == [retry, DUE + HOUR, DUE + 2 * HOUR]
    assert planned.next_slot_at == DUE + 3 * HOUR


@pytest.mark.parametrize(
    ("catch_up", "count", "in_line"),
    [(ALL, 0, False), (ALL, 1, True), (ALL, 5, True), (LATEST, 5, False), (NONE, 5, False)],
)
def test_slots_that_fire_together_run_in_line(catch_up, count, in_line):
    planned = plan(HOURLY, Misfires(catch_up=catch_up), DUE, now=late_by(count))

    assert planned.runs_in_line is in_line
    assert planned.is_plain is (count == 0)


def test_two_slots_on_time_are_not_plain():
    patient = Misfires(catch_up=ALL, grace=DAY)

    planned = plan(HOURLY, patient, DUE, now=late_by(1))

    assert {(slot.outcome, slot.trigger) for slot in planned.slots} == {(ENQUEUED, ON_TIME)}
    assert not planned.is_plain


# Long outages


@pytest.mark.parametrize("catch_up", CatchUp)
@pytest.mark.parametrize("timing", [MINUTELY, Timing(every=MINUTE, anchor_at=DUE)])
def test_a_year_of_minutes_is_planned_in_a_thousand_rows(catch_up, timing):
    now = DUE + 365 * DAY

    planned = plan(timing, Misfires(catch_up=catch_up), DUE, now=now)

    assert [slot.at for slot in planned.slots] == [
        now - number * MINUTE for number in range(999, -1, -1)
    ]
    assert planned.slots[-1].missed == pytest.approx(365 * 1440 - len(fired(planned)), abs=5)
    assert planned.next_slot_at == now + MINUTE


@pytest.mark.parametrize("outage", [1998, 1999, 2000, 2001, 4000])
def test_an_outage_is_counted_to_the_slot_around_the_length_at_which_it_is_estimated(outage):
    planned = plan(MINUTELY, Misfires(), DUE, now=DUE + outage * MINUTE)

    assert planned.slots[-1] == PlannedSlot(DUE + outage * MINUTE, ENQUEUED, ON_TIME, outage)
    assert len(planned.slots) == 1000


@pytest.mark.parametrize(("limit", "minutes"), [(1500, 1700), (5000, 4400), (5000, 9000)])
def test_the_limit_is_kept_to_however_long_the_outage_was(limit, minutes):
    misfires = Misfires(catch_up=ALL, limit=limit)

    planned = plan(MINUTELY, misfires, DUE, now=DUE + minutes * MINUTE)

    assert len(fired(planned)) == min(limit, minutes + 1)


def test_a_long_outage_of_an_interval_without_an_anchor_keeps_the_rhythm_of_what_was_due():
    planned = plan(Timing(every=7 * MINUTE), Misfires(), DUE, now=DUE + 100 * DAY)

    assert {(slot.at - DUE) % (7 * MINUTE) for slot in planned.slots} == {timedelta(0)}


@pytest.mark.parametrize("hours", [0, 30, 60, 90, 120])
def test_an_outage_that_ends_where_nothing_is_due_comes_to_the_newest_slot(hours):
    """Minutely in office hours; from Friday evening on there is nothing for days."""
    office = Timing(cron="* 9-16 * * 1-5")
    friday = datetime(2026, 5, 29, 17, tzinfo=UTC)
    now = friday + hours * HOUR

    planned = plan(office, Misfires(catch_up=LATEST), datetime(2026, 1, 5, 9, tzinfo=UTC), now=now)

    assert len(fired(planned)) == 1
    assert planned.slots[-1].at == slots_until(office, now - 6 * DAY, now)[-1]
    assert planned.next_slot_at is not None
    assert planned.next_slot_at > now


def test_an_outage_is_counted_where_all_that_was_due_is_long_ago():
    in_january = Timing(cron="* * 1-5 1 *")
    start = datetime(2026, 1, 1, tzinfo=UTC)

    planned = plan(in_january, Misfires(), start, now=start + 300 * DAY)

    assert planned.slots[-1].at == start + 5 * DAY - MINUTE
    assert planned.slots[-1].missed == 5 * 1440 - 1
    assert planned.next_slot_at == datetime(2027, 1, 1, tzinfo=UTC)


# Whatever is planned


calendars = st.none() | st.builds(
    Calendar,
    weekends=st.frozensets(st.integers(1, 7), max_size=4),
    when_closed=st.sampled_from(WhenClosed),
)
crons = st.sampled_from(
    ["*/7 * * * *", "13,40 */5 * * *", "30 2 * * *", "0 9-17 * * 1-5", "0 0 1 * *"]
)
timings = st.builds(
    Timing,
    cron=crons,
    calendar=calendars,
    zone=st.sampled_from(["UTC", "Europe/Berlin"]),
    ends_at=st.none() | st.just(DUE + 10 * DAY),
) | st.builds(
    Timing,
    every=st.timedeltas(7 * MINUTE, 3 * DAY),
    calendar=calendars,
    anchor_at=st.just(DUE - 5 * HOUR),
)
policies = st.builds(
    Misfires,
    grace=st.sampled_from([timedelta(0), MINUTE, DAY]),
    catch_up=st.sampled_from(CatchUp),
    limit=st.sampled_from([1, 3, 100, 1200]),
    max_age=st.none() | st.sampled_from([MINUTE, HOUR, 10 * DAY]),
)
outages = st.timedeltas(timedelta(0), HOUR) | st.timedeltas(timedelta(0), 20 * DAY)


@given(timings, policies, outages)
@thorough
def test_planned_slots_are_those_of_the_timing_each_once_and_in_order(timing, misfires, outage):
    due = next_slot(timing, DUE) or DUE
    now = due + outage

    planned = plan(timing, misfires, due, now=now)

    found = [slot.at for slot in planned.slots]
    assert found
    assert all(earlier < later for earlier, later in pairwise(found))
    assert found == [due, *slots_until(timing, due, now)][-len(found) :]
    assert len(found) <= max(1000, misfires.limit)


@given(timings, policies, outages)
@thorough
def test_what_comes_next_is_the_first_slot_after_now(timing, misfires, outage):
    due = next_slot(timing, DUE) or DUE
    now = due + outage

    planned = plan(timing, misfires, due, now=now)

    assert planned.next_slot_at == next_slot(timing, now)


@given(timings, policies, st.lists(outages, min_size=1, max_size=5))
@thorough
def test_no_slot_is_planned_again_however_often_plans_follow_each_other(timing, misfires, pauses):
    due, now, found = next_slot(timing, DUE), DUE, []
    for pause in pauses:
        if due is None:
            break
        now = max(now, due) + pause
        planned = plan(timing, misfires, due, now=now)
        found += [slot.at for slot in planned.slots]
        due = planned.next_slot_at

    assert all(earlier < later for earlier, later in pairwise(found))


@given(timings, policies, outages)
@thorough
def test_what_fires_and_what_is_missed_add_up(timing, misfires, outage):
    due = next_slot(timing, DUE) or DUE
    planned = plan(timing, misfires, due, now=due + outage)
    total = 1 + len(slots_until(timing, due, due + outage))

    if fired(planned):
        counted = len(fired(planned)) + planned.slots[-1].missed
        assert counted == total if total < 2000 else counted == pytest.approx(total, rel=0.5)
    assert len(fired(planned)) <= {NONE: 1, LATEST: 1, ALL: misfires.limit}[misfires.catch_up]
