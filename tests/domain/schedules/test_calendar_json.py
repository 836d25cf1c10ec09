"""Calendars as JSON: read, written, and what is refused."""

import json
from datetime import date, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mainspring.domain.errors import InvalidSchedule
from mainspring.domain.schedules.calendars import (
    Blackout,
    Calendar,
    WhenClosed,
    from_json,
    to_json,
    why_closed,
)

WEEKENDS = frozenset({6, 7})
FIRST_DAY = date(2026, 1, 1)
FULL = {
    "weekends": ["fri", "sat"],
    "country": "DE",
    "subdivision": "BY",
    "dates": ["2026-12-24", "2026-12-31"],
    "workdays": ["2026-05-01"],
    "blackouts": [{"from": "2026-12-20T00:00:00", "to": "2027-01-05T06:30:00", "label": "freeze"}],
    "when_closed": "next",
}


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


def day(text: str) -> date:
    return date.fromisoformat(text)


def blackout(start: str, end: str, label: str = "freeze") -> Calendar:
    return Calendar(blackouts=(Blackout(at(start), at(end), label),))


def test_a_calendar_is_read_from_json_key_by_key():
    assert from_json(FULL) == Calendar(
        weekends=frozenset({5, 6}),
        country="DE",
        subdivision="BY",
        dates=frozenset({day("2026-12-24"), day("2026-12-31")}),
        workdays=frozenset({day("2026-05-01")}),
        blackouts=(Blackout(at("2026-12-20"), at("2027-01-05T06:30"), "freeze"),),
        when_closed=WhenClosed.NEXT,
    )


@pytest.mark.parametrize(
    ("weekends", "found"), [(True, {6, 7}), (False, set()), ([], set()), (["sun", "mon"], {1, 7})]
)
def test_weekends_are_true_false_or_names(weekends, found):
    assert from_json({"weekends": weekends}).weekends == found


@pytest.mark.parametrize("data", [{}, dict.fromkeys(FULL), {"dates": [], "blackouts": []}])
def test_what_is_left_out_or_null_has_its_default(data):
    assert from_json(data) == Calendar()


@pytest.mark.parametrize("data", [FULL, {"weekends": True, "when_closed": "skip"}])
def test_a_calendar_is_written_as_it_was_read(data):
    assert to_json(from_json(data)) == data


def test_an_empty_calendar_is_written_without_the_keys_that_say_nothing():
    assert to_json(Calendar()) == {"when_closed": "skip"}


BLACKOUTS = st.builds(
    lambda ends, label: Blackout(min(ends), max(ends), label),
    st.sets(st.datetimes(), min_size=2, max_size=2),
    st.from_regex(r"[a-zä ]{1,20}", fullmatch=True),
)


# The first holidays of a country take longer than an example may.
@settings(deadline=None)
@given(
    st.builds(
        Calendar,
        weekends=st.frozensets(st.integers(1, 7)),
        country=st.sampled_from(["DE", "US", None]),
        dates=st.frozensets(st.dates(), max_size=5),
        workdays=st.frozensets(st.dates(), max_size=5),
        blackouts=st.lists(BLACKOUTS, max_size=3).map(tuple),
        when_closed=st.sampled_from(WhenClosed),
    )
)
def test_what_is_written_reads_back_the_same(calendar):
    assert from_json(json.loads(json.dumps(to_json(calendar)))) == calendar


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (None, "it must be an object, not None"),
        ([], "it must be an object"),
        ({"weekend": True}, "unknown key 'weekend'; did you mean 'weekends'"),
        ({"zzz": 1}, "the keys are weekends, country, subdivision, dates, workdays, blackouts"),
        ({"weekends": "sat"}, "weekends must be true, false or a list of mon, tue"),
        ({"weekends": ["sat", "saturday"]}, "'saturday' is not one of them"),
        ({"weekends": [6]}, "6 is not one of them"),
        ({"weekends": [{}]}, "{} is not one of them"),
        ({"country": 49}, "country must be a string, not 49"),
        ({"subdivision": ["BY"], "country": "DE"}, "subdivision must be a string"),
        ({"subdivision": "BY"}, "subdivision needs a country"),
        ({"dates": "2026-12-24"}, "dates must be a list"),
        ({"dates": ["24.12.2026"]}, "dates must be written like 2026-12-24, not '24.12.2026'"),
        ({"dates": ["20261224"]}, "dates must be written like"),
        ({"dates": ["2026-W52-4"]}, "dates must be written like"),
        ({"dates": ["2026-02-29"]}, "dates must be written like"),
        ({"dates": [20261224]}, "dates must be written like"),
        ({"workdays": [None]}, "workdays must be written like"),
        ({"workdays": {"2026-12-24": 1}}, "workdays must be a list"),
        ({"blackouts": {}}, "blackouts must be a list"),
        ({"blackouts": ["2026"]}, "a blackout must be an object"),
        ({"when_closed": "before"}, "when_closed must be skip, next, previous, not 'before'"),
        ({"when_closed": []}, "when_closed must be"),
    ],
)
def test_what_is_wrong_in_json_is_named(data, problem):
    with pytest.raises(InvalidSchedule, match=problem) as refused:
        from_json(data)

    assert refused.value.field == "calendar"


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ({"from": "2026-01-01"}, "a blackout needs 'to'"),
        ({"to": "2026-01-01"}, "a blackout needs 'from'"),
        ({"form": "2026-01-01"}, "unknown key 'form'; did you mean 'from'"),
        ({"from": "soon", "to": "2026-01-01"}, "'from' of a blackout must be written like"),
        ({"from": 1, "to": "2026-01-01"}, "from must be a string"),
        ({"from": "2026-01-01", "to": "2026-01-01"}, "must begin before it ends"),
        ({"from": "2026-01-02", "to": "2026-01-01"}, "must begin before it ends"),
        ({"from": "2026-01-01T00:00Z", "to": "2026-01-02"}, "without an offset"),
        ({"from": "2026-01-01", "to": "2026-01-02T00:00+01:00"}, "without an offset"),
        ({"from": "2026-01-01", "to": "2026-01-02", "label": 5}, "label must be a string"),
        ({"from": "2026-01-01", "to": "2026-01-02", "label": ""}, "1 to 200 printable"),
        ({"from": "2026-01-01", "to": "2026-01-02", "label": "a\0"}, "1 to 200 printable"),
    ],
)
def test_what_is_wrong_in_a_blackout_is_named(data, problem):
    with pytest.raises(InvalidSchedule, match=problem):
        from_json({"blackouts": [data]})


def test_a_label_may_have_200_characters_and_not_201():
    longest = blackout("2026-01-01", "2026-01-02", "a" * 200)
    assert why_closed(longest, at("2026-01-01")) == "a" * 200

    with pytest.raises(InvalidSchedule, match="1 to 200 printable"):
        blackout("2026-01-01", "2026-01-02", "a" * 201)


@pytest.mark.parametrize(
    ("country", "hint"),
    [
        ("GR3", "there is no country 'GR3'; did you mean 'GR'"),
        ("de", "did you mean 'DE'"),
        ("UK", "did you mean 'GB'"),
        ("USA", "did you mean 'US'"),
        ("germny", "did you mean 'DE'"),
        ("United States", "did you mean 'US'"),
        ("XX", "there is no country 'XX'; give a two-letter code such as DE, FR or US"),
        ("", "there is no country ''"),
        ("NYSE", "there is no country 'NYSE'"),
        ("country_holidays", "there is no country 'country_holidays'"),
        ("x" * 1_000_000, "there is no country 'xxx"),
    ],
)
def test_an_unknown_country_is_refused_with_a_guess(country, hint):
    with pytest.raises(InvalidSchedule) as refused:
        Calendar(country=country)

    assert hint in str(refused.value)
    assert len(str(refused.value)) < 200


@pytest.mark.parametrize(
    ("country", "subdivision", "problem"),
    [
        ("DE", "XX", "Germany has no subdivision 'XX'; it has Augsburg, BB, BE, BW, BY"),
        ("DE", "Bayern", "'Bayern'; did you mean 'BY'? it has Augsburg"),
        ("US", "ca", "United States has no subdivision 'ca'; did you mean 'CA'"),
        ("MC", "X", "Monaco has no subdivisions; remove 'X'"),
        ("DE", "", "Germany has no subdivision ''"),
    ],
)
def test_an_unknown_subdivision_is_refused_with_those_there_are(country, subdivision, problem):
    with pytest.raises(InvalidSchedule) as refused:
        Calendar(country=country, subdivision=subdivision)

    assert problem in str(refused.value)


def test_of_very_many_subdivisions_the_first_sixty_are_shown():
    with pytest.raises(InvalidSchedule, match=r"Italy has no subdivision .* and others") as refused:
        Calendar(country="IT", subdivision="x" * 1_000_000)

    assert str(refused.value).count(", ") == 59


@pytest.mark.parametrize("weekday", [0, 8])
def test_a_weekday_out_of_range_is_refused(weekday):
    with pytest.raises(InvalidSchedule, match=f"ISO weekdays 1 to 7, not \\[{weekday}\\]"):
        Calendar(weekends=frozenset({weekday}))


@pytest.mark.parametrize("key", ["dates", "workdays"])
def test_a_calendar_may_hold_1000_dates_and_not_1001(key):
    dates = [(FIRST_DAY + timedelta(days=n)).isoformat() for n in range(1001)]
    assert to_json(from_json({key: dates[:1000]}))[key] == dates[:1000]

    with pytest.raises(InvalidSchedule, match=f"{key} may contain at most 1,000, not 1,001"):
        from_json({key: dates})


def test_a_calendar_may_hold_200_blackouts_and_not_201():
    one = {"from": "2026-01-01", "to": "2026-01-02"}
    assert len(from_json({"blackouts": [one] * 200}).blackouts) == 200

    with pytest.raises(InvalidSchedule, match="blackouts may contain at most 200, not 201"):
        from_json({"blackouts": [one] * 201})
