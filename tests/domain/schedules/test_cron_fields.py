"""Each field of an expression: what it may hold, what it becomes, and what H chooses."""

from collections import Counter

import pytest

from mainspring.domain.errors import InvalidSchedule
from mainspring.domain.schedules.cron import parse
from mainspring.domain.schedules.cron_fields import FIELDS, plain, read_field, spread
from tests.support.commands import run_python

PLACES = ["minute", "hour", "day of month", "month", "day of week"]
KEYS = [f"schedule-{number}" for number in range(10_000)]


def field(place: str, text: str, key: str = "") -> str:
    """What an item becomes in a field, the others being stars."""
    texts = [text if each == place else "*" for each in PLACES]
    fields = parse(" ".join(texts), spread_key=key).fields
    assert fields is not None
    return fields.split()[PLACES.index(place)]


def refusal(place: str, text: str) -> str:
    with pytest.raises(InvalidSchedule) as refused:
        field(place, text)
    assert refused.value.field == f"cron {place}"
    return refused.value.problem


@pytest.mark.parametrize(
    ("place", "text", "plain"),
    [
        ("minute", "*", "*"),
        ("minute", "?", "*"),
        ("minute", "*/15", "*/15"),
        ("minute", "?/15", "*/15"),
        ("minute", "05", "5"),
        ("minute", "0-29", "0-29"),
        ("minute", "10-40/10", "10-40/10"),
        ("minute", "5/15", "5-59/15"),
        ("minute", "1,2,5-9,*/20", "1,2,5-9,*/20"),
        ("hour", "9-17", "9-17"),
        ("day of month", "L", "L"),
        ("day of month", "lw", "LW"),
        ("day of month", "1,15,L", "1,15,L"),
        ("month", "jan", "1"),
        ("month", "Mar-MAY", "3-5"),
        ("month", "JAN-DEC/3", "1-12/3"),
        ("day of week", "sun", "0"),
        ("day of week", "7", "7"),
        ("day of week", "MON-FRI", "1-5"),
        ("day of week", "FRI-SUN", "5-7"),
        ("day of week", "SUN-TUE", "0-2"),
        ("day of week", "5L", "5L"),
        ("day of week", "0L,7l", "0L,7L"),
        ("day of week", "MON#1", "1#1"),
        ("day of week", "fri#5,2#2", "5#5,2#2"),
    ],
)
def test_an_item_is_written_in_plain_form(place, text, plain):
    assert field(place, text) == plain


@pytest.mark.parametrize(("text", "plain"), [("5-5/10", "5"), ("59/15", "59"), ("0-9/10", "0")])
def test_a_range_of_one_value_is_that_value(text, plain):
    assert field("minute", text) == plain


@pytest.mark.parametrize(
    ("place", "low", "high"),
    [
        ("minute", 0, 59),
        ("hour", 0, 23),
        ("day of month", 1, 31),
        ("month", 1, 12),
        ("day of week", 0, 7),
    ],
)
def test_a_number_is_within_its_field(place, low, high):
    assert field(place, f"{low}") == f"{low}"
    assert field(place, f"{high}") == f"{high}"
    for text in (f"{high + 1}", f"{low}-{high + 1}", f"{high + 1}/2", f"H({low}-{high + 1})"):
        assert refusal(place, text) == f"{high + 1} is not from {low} to {high}"
    if low:
        assert refusal(place, f"{low - 1}") == f"{low - 1} is not from {low} to {high}"


@pytest.mark.parametrize(
    ("place", "size", "unit"),
    [("minute", 60, "m"), ("hour", 24, "h"), ("day of month", 31, "d")],
)
def test_a_step_is_at_most_the_size_of_its_field(place, size, unit):
    assert field(place, f"*/{size}") == f"*/{size}"
    assert refusal(place, f"*/{size + 1}") == (
        f"*/{size + 1} has a step larger than {size}, which is never reached; "
        f"for a fixed interval write @every {size + 1}{unit}"
    )


@pytest.mark.parametrize(("place", "size"), [("month", 12), ("day of week", 7)])
def test_a_step_over_months_or_weekdays_is_bounded_too(place, size):
    assert field(place, f"*/{size}") == f"*/{size}"
    assert refusal(place, f"*/{size + 1}") == (
        f"*/{size + 1} has a step larger than {size}, which is never reached"
    )


@pytest.mark.parametrize(
    ("place", "text", "problem"),
    [
        ("minute", "30-10", "30-10 runs backwards; write 30-59,0-10 to wrap around"),
        ("hour", "22-6", "22-6 runs backwards; write 22-23,0-6 to wrap around"),
        ("day of week", "5-0", "5-0 runs backwards; write 5-7,0-0 to wrap around"),
        ("minute", "H(5-1)", "5-1 runs backwards; write 5-59,0-1 to wrap around"),
        ("minute", "*/0", "*/0 has a step of zero"),
        ("minute", "1-9/0", "1-9/0 has a step of zero"),
        ("minute", "*/", "the step of */ is not a whole number"),
        ("minute", "*/-5", "the step of */-5 is not a whole number"),
        ("minute", "1-9/2/2", "the step of 1-9/2/2 is not a whole number"),
        ("minute", ",", "an item of the list is empty"),
        ("minute", "1,,2", "an item of the list is empty"),
        ("day of week", "MON#0", "MON#0 asks for week 0 of a month; use 1 to 5"),
        ("day of week", "MON#6", "MON#6 asks for week 6 of a month; use 1 to 5"),
        ("day of week", "8L", "8 is not from 0 to 7"),
        ("day of week", "8#1", "8 is not from 0 to 7"),
    ],
)
def test_a_mistake_is_named(place, text, problem):
    assert refusal(place, text) == problem


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ("minute", "x"),
        ("minute", "-5"),
        ("minute", "5-"),
        ("minute", "1--9"),
        ("minute", "1-2-3"),
        ("minute", "**"),
        ("minute", "*5"),
        ("minute", "+5"),
        ("minute", "1.5"),
        ("minute", "L"),
        ("minute", "MON"),
        ("minute", "HH"),
        ("minute", "H()"),
        ("minute", "H(5)"),
        ("minute", "H-5"),
        ("hour", "0x5"),
        ("day of month", "15W"),
        ("day of month", "L/2"),
        ("day of month", "L-3"),
        ("day of month", "1L"),
        ("day of month", "1#1"),
        ("month", "JANUARY"),
        ("month", "MON"),
        ("day of week", "L"),
        ("day of week", "MONL"),
        ("day of week", "JAN"),
        ("day of week", "MON#1/2"),
        ("day of week", "MON#1-3"),
        ("day of week", "5L-6"),
    ],
)
def test_anything_else_is_refused(place, text):
    problem = refusal(place, text)

    assert any(said in problem for said in ("is not understood; allowed are", "asks for week"))


def test_a_refusal_says_what_the_field_allows():
    assert refusal("day of week", "FOO") == (
        "'FOO' is not understood; allowed are 0 to 7, SUN to SAT, "
        "*, ranges, steps, lists, 5L, MON#1 and H"
    )


def value(place: str, text: str, key: str) -> int:
    """What H chooses, without the cost of reading an expression."""
    kind = FIELDS[PLACES.index(place)]
    return int(plain(spread(kind, read_field(kind, text), key)))


@pytest.mark.parametrize(
    ("place", "text", "low", "high"),
    [
        ("minute", "H", 0, 59),
        ("hour", "H", 0, 23),
        ("day of month", "H", 1, 28),
        ("month", "H", 1, 12),
        ("day of week", "H", 0, 6),
        ("hour", "H(0-5)", 0, 5),
        ("day of week", "H(MON-FRI)", 1, 5),
    ],
)
def test_h_is_spread_evenly_over_its_range(place, text, low, high):
    counts = Counter(value(place, text, key) for key in KEYS)
    even = len(KEYS) / (high - low + 1)

    assert sorted(counts) == list(range(low, high + 1))
    # Six standard deviations of a fair spread, so chance alone would hardly ever do it.
    assert all(abs(count - even) < 6 * even**0.5 for count in counts.values())


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("H/15", {f"{first}-59/15" for first in range(15)}),
        ("H(0-29)/10", {f"{first}-29/10" for first in range(10)}),
    ],
)
def test_h_with_a_step_begins_anywhere_in_the_first_step(text, steps):
    assert {field("minute", text, key) for key in KEYS[:500]} == steps


def test_a_step_longer_than_its_range_still_gives_one_value_of_it():
    chosen = {field("minute", "H(0-5)/10", key) for key in KEYS[:500]}

    assert chosen == {"0", "1", "2", "3", "4", "5"}


def test_h_is_the_same_for_ever():
    """These were chosen when H was made; a change would move every schedule that uses it."""
    assert parse("H H H H H", spread_key="nightly report").fields == "4 4 28 3 0"
    assert parse("H/15 H(0-5) * * *", spread_key="nightly report").fields == "4-59/15 4 * * *"


def test_h_is_the_same_in_another_process():
    code = (
        "from mainspring.domain.schedules.cron import parse;"
        "print(parse('H H H H H', spread_key='nightly report').fields)"
    )
    done = run_python(["-c", code], {})

    assert done.stdout.strip() == parse("H H H H H", spread_key="nightly report").fields


def test_the_fields_are_spread_independently():
    pairs = Counter((value("minute", "H", key) % 4, value("hour", "H", key) % 4) for key in KEYS)

    assert len(pairs) == 16
    assert all(abs(count - 625) < 150 for count in pairs.values())


def test_a_key_may_be_any_text():
    for key in ("", "\0", "Grüße", "\udcff", "x" * 100_000):
        assert 0 <= value("minute", "H", key) <= 59
