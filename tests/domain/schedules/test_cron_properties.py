"""Rules that hold in every zone, and everything against brute force around every change."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from itertools import islice, pairwise, takewhile
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mainspring.domain.errors import InvalidSchedule
from mainspring.domain.schedules.cron import Cron, DstFold, DstGap, explain, next_after, parse
from tests.domain.schedules import clocks
from tests.domain.schedules.clocks import AROUND, DAY, MINUTE, SINCE, UNTIL, ZONES, Change, Rule

SIGNS = "0123456789*/,-?#=()@LWH \tMONFRISUTJADEVYadehilmnrsvy"
SECOND = timedelta(seconds=1)

thorough = settings(max_examples=60, deadline=None, derandomize=True)
zones = st.sampled_from(ZONES).map(ZoneInfo)
instants = st.datetimes(
    SINCE.replace(tzinfo=None), UNTIL.replace(tzinfo=None), timezones=st.just(UTC)
)
times = st.builds(time, st.integers(0, 23), st.integers(0, 59))
gaps = st.sampled_from(DstGap)
folds = st.sampled_from(DstFold)


@pytest.fixture(scope="module", autouse=True)
def _every_change() -> None:
    """Read before anything is drawn: Hypothesis counts it as a slow draw on a busy machine."""
    for name in ZONES:
        clocks.changes(name)


@st.composite
def changes(draw: st.DrawFn) -> Change:
    name = draw(st.sampled_from(ZONES).filter(clocks.changes))
    return draw(st.sampled_from(clocks.changes(name)))


@st.composite
def items(draw: st.DrawFn, low: int, high: int) -> tuple[str, frozenset[int]]:
    """An item of a field and the values it is to match."""
    first = draw(st.integers(low, high))
    last, step = draw(st.integers(first, high)), draw(st.integers(1, high - max(low, 1) + 1))
    choices = {
        "*": range(low, high + 1),
        f"*/{step}": range(low, high + 1, step),
        f"{first}": range(first, first + 1),
        f"{first}-{last}": range(first, last + 1),
        f"{first}-{last}/{step}": range(first, last + 1, step),
        f"{first}/{step}": range(first, high + 1, step),
    }
    text = draw(st.sampled_from(list(choices)))
    return text, frozenset(choices[text])


@st.composite
def fields(draw: st.DrawFn, low: int, high: int) -> tuple[str, frozenset[int]]:
    chosen = draw(st.lists(items(low, high), min_size=1, max_size=3))
    values = frozenset(value for _, each in chosen for value in each)
    return ",".join(text for text, _ in chosen), values


@st.composite
def rules(draw: st.DrawFn) -> Rule:
    minute, minutes = draw(fields(0, 59))
    hour, hours = draw(fields(0, 23))
    day, days = draw(st.just(("*", frozenset(range(1, 32)))) | fields(1, 31))
    weekday, weekdays = draw(st.just(("*", frozenset(range(8)))) | fields(0, 7))
    weekdays = frozenset(value or 7 for value in weekdays)
    return Rule(f"{minute} {hour} {day} * {weekday}", minutes, hours, days, weekdays)


def fires(cron: Cron, zone: ZoneInfo, after: datetime, **policies: Any) -> Iterator[datetime]:
    fire = next_after(cron, zone, after, **policies)
    while fire is not None:
        yield fire
        fire = next_after(cron, zone, fire, **policies)


def daily(at: time) -> Cron:
    return parse(f"{at.minute} {at.hour} * * *")


@given(rules(), zones, instants, gaps, folds)
@thorough
def test_fires_strictly_increase(rule, zone, after, gap, fold):
    found = list(islice(fires(parse(rule.text), zone, after, gap=gap, fold=fold), 20))

    assert all(earlier < later for earlier, later in pairwise([after, *found]))


def due_day(fire: datetime, zone: ZoneInfo, at: time) -> date:
    """The day whose fire this is; fails unless it is shown then, or was skipped just before."""
    local_time = fire.astimezone(zone).replace(tzinfo=None)
    if local_time.time() == at:
        return local_time.date()
    skipped = (fire - SECOND).astimezone(zone).replace(tzinfo=None, microsecond=0) + SECOND
    (day,) = (
        day
        for day in {skipped.date(), local_time.date()}
        if skipped <= datetime.combine(day, at) < local_time
    )
    return day


@given(zones, times, instants)
@thorough
def test_every_local_day_has_exactly_one_fire_of_a_daily_time(zone, at, after):
    """Neither twice in the fold nor lost in the gap."""
    days = [due_day(fire, zone, at) for fire in islice(fires(daily(at), zone, after), 400)]

    assert days == [days[0] + number * DAY for number in range(400)]
    first = datetime.combine(days[0], at, tzinfo=zone).astimezone(UTC)
    assert after < first <= after + 26 * 60 * MINUTE


@given(rules(), changes(), gaps, folds, st.integers(0, 27 * 3600))
@thorough
def test_around_every_change_fires_are_what_brute_force_finds(rule, change, gap, fold, seconds):
    cron, start, end = parse(rule.text), change.at - AROUND, change.at + AROUND
    expected = list(
        clocks.brute_force(
            rule, change, skips_gap=gap is DstGap.SKIP, repeats_fold=fold is DstFold.BOTH
        )
    )

    found = fires(cron, change.zone, start - SECOND, gap=gap, fold=fold)
    assert list(takewhile(lambda fire: fire < end, found)) == expected
    after = start + seconds * SECOND
    left = [fire for fire in expected if fire > after]
    if left:
        assert next_after(cron, change.zone, after, gap=gap, fold=fold) == left[0]


def times_at(change: Change) -> set[time]:
    """The last minute before the gap or the fold, its first, a middle, its last, and the next."""
    first, end = change.edges
    middle = first + (end - first) // 2
    return {local_time.time() for local_time in (first - MINUTE, first, middle, end - MINUTE, end)}


def expected_around(change: Change, at: time) -> tuple[list[datetime], list[datetime]]:
    """Fires of a daily time around a change: by default, and with SKIP and BOTH."""
    first, _ = change.edges
    by_default, as_shown = set(), set()
    for day in (-1, 0, 1):
        shown = change.showings(datetime.combine(first.date() + day * DAY, at))
        by_default.add(shown[0] if shown else change.at)
        as_shown.update(shown)
    return sorted(by_default), sorted(as_shown)


@pytest.mark.parametrize("letter", sorted({name[0] for name in clocks.distinct()}))
def test_no_zone_loses_or_doubles_a_daily_time_at_any_of_its_changes(letter):
    both = {"gap": DstGap.SKIP, "fold": DstFold.BOTH}
    names = [name for name in clocks.distinct() if name[0] == letter]
    for change in (each for name in names for each in clocks.changes(name)):
        for at in times_at(change):
            by_default, as_shown = expected_around(change, at)
            for expected, policies in ((by_default, {}), (as_shown, both)):
                found = fires(daily(at), change.zone, expected[0] - SECOND, **policies)
                assert list(islice(found, len(expected))) == expected, (change, at, policies)


def test_every_zone_was_looked_at_and_its_changes_were_found():
    assert len(ZONES) > 400
    kinds = {(change.after > change.before) for change in clocks.changes("Europe/London")}
    assert (len(clocks.changes("Europe/London")), kinds) == (20, {True, False})
    assert clocks.changes("Asia/Kolkata") == []


@given(st.text(SIGNS, max_size=40) | st.lists(st.text(SIGNS, max_size=8), max_size=7).map(" ".join))
@settings(thorough, max_examples=1000)
def test_any_text_is_read_or_refused(text):
    try:
        cron = parse(text, spread_key="x")
    except InvalidSchedule:
        return
    assert cron.fields is None or parse(cron.fields).fields == cron.fields


@given(rules())
@thorough
def test_every_expression_has_a_sentence(rule):
    sentence = explain(rule.text)

    assert sentence[0].isupper()
    assert "  " not in sentence
    assert ",," not in sentence
