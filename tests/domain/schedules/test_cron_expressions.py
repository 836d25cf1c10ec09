"""What is an expression and what is not, and what the refusal says."""

import time
from datetime import timedelta
from typing import Any

import pytest

from mainspring.domain.errors import InvalidSchedule
from mainspring.domain.schedules.cron import parse

DAY = timedelta(days=1)


def refusal(text: Any) -> str:
    with pytest.raises(InvalidSchedule) as refused:
        parse(text)
    return str(refused.value)


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("@hourly", "0 * * * *"),
        ("@daily", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        ("@weekly", "0 0 * * 0"),
        ("@monthly", "0 0 1 * *"),
        ("@yearly", "0 0 1 1 *"),
        ("@ANNUALLY", "0 0 1 1 *"),
    ],
)
def test_a_name_stands_for_five_fields(text, fields):
    assert (parse(text).text, parse(text).fields, parse(text).every) == (text, fields, None)


@pytest.mark.parametrize("text", ["30\t2 * * *", "  30 2 * * * \t", "30   2\t \t* * *"])
def test_blanks_and_tabs_may_stand_around_and_between_the_fields(text):
    assert (parse(text).text, parse(text).fields) == (text, "30 2 * * *")


@pytest.mark.parametrize(
    ("text", "every"),
    [
        ("@every 90s", timedelta(seconds=90)),
        ("@every 1h30m", timedelta(minutes=90)),
        ("@every\t2d", 2 * DAY),
        ("@EVERY 1D1H1M1S", timedelta(days=1, hours=1, minutes=1, seconds=1)),
        ("@every 1s", timedelta(seconds=1)),
        ("@every 366d", 366 * DAY),
    ],
)
def test_every_gives_an_interval(text, every):
    expression = parse(text)

    assert (expression.every, expression.fields) == (every, None)
    assert not expression.is_fixed_time


@pytest.mark.parametrize("duration", ["0s", "367d", "366d1s", f"{'9' * 150}d"])
def test_an_interval_is_from_a_second_to_366_days(duration):
    assert refusal(f"@every {duration}") == f"cron: @every {duration} is not from 1s to 366d"


@pytest.mark.parametrize("rest", ["", " 90", " s", " 5m1h", " 1.5h", " -1h", " 500ms", " 1h 30m"])
def test_every_needs_a_duration(rest):
    said = "cron: @every needs a duration in d, h, m and s, such as 1h30m"

    assert refusal(f"@every{rest}") == said


@pytest.mark.parametrize(
    ("text", "is_fixed_time"),
    [
        ("30 2 * * *", True),
        ("0,30 2-4 * * *", True),
        ("H H * * *", True),
        ("30 * * * *", False),
        ("30 */2 * * *", False),
        ("*/5 2 * * *", False),
        ("? 2 * * *", False),
    ],
)
def test_a_time_is_fixed_if_neither_minute_nor_hour_starts_with_a_star(text, is_fixed_time):
    assert parse(text).is_fixed_time is is_fixed_time


FIVE = "cron: five fields are needed (minute hour day month weekday)"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "cron: is empty; five fields are needed (minute hour day month weekday), or @daily"),
        ("* * * *", f"{FIVE}, not '* * * *'"),
        ("* * * * * * *", f"{FIVE}, not '* * * * * * *'"),
        ("0 * * * * *", f"{FIVE}, not '0 * * * * *'; for seconds use @every, such as @every 90s"),
        ("daily", f"{FIVE}, not 'daily'; did you mean @daily?"),
        ("@dayly", "cron: there is no @dayly; did you mean @daily?"),
        ("@daily *", "cron: nothing may follow @daily"),
        ("CRON_TZ=UTC 0 0 * * *", "cron: CRON_TZ=UTC is not supported here; set zone instead"),
        ("TZ=UTC 0 0 * * *", "cron: TZ=UTC is not supported here; set zone instead"),
    ],
)
def test_what_is_no_expression_is_refused_in_words(text, said):
    assert refusal(text) == said


def test_blanks_alone_are_empty_too():
    assert refusal(" \t ") == refusal("")


def test_an_unknown_name_is_told_which_there_are():
    names = "@hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually and @every"

    assert refusal("@reboot") == f"cron: there is no @reboot; there are {names}"


@pytest.mark.parametrize(
    "text",
    [
        "0 0 30 2 *",
        "0 0 31 2,4 *",
        "0 0 31 4-6/2,9,11 *",
        "0 0 */30 2 MON#2",
        "0 0 */10 2 MON#5",
        "0 0 H(30-31) 2 *",
    ],
)
def test_what_never_matches_is_refused(text):
    assert refusal(text) == f"cron: {text!r} never matches; there is no such date"


@pytest.mark.parametrize(
    "text", ["0 0 29 2 *", "0 0 30 4 *", "0 0 31 2,3 *", "0 0 30 2 1", "0 0 * 2 MON#5"]
)
def test_what_matches_seldom_is_accepted(text):
    assert parse(text).fields


@pytest.mark.parametrize(
    ("sign", "shown"),
    [
        ("\0", r"'\x00'"),
        ("\n", r"'\n'"),
        ("\r", r"'\r'"),
        ("\x7f", r"'\x7f'"),
        ("\N{NO-BREAK SPACE}", r"'\xa0'"),
        ("\N{FULLWIDTH DIGIT FIVE}", r"'\uff15'"),
        ("\N{ARABIC-INDIC DIGIT FIVE}", r"'\u0665'"),
        ("\udcff", r"'\udcff'"),
    ],
    ids=ascii,
)
def test_only_printable_ascii_is_read(sign, shown):
    for text in (f"0 0 * * {sign}", f"{sign} 0 * * *", f"0 0 * * *{sign}"):
        assert refusal(text) == f"cron: the character {shown} is not allowed"


def test_a_text_may_have_200_characters_and_not_201():
    text = "0 0 * * *"

    assert parse(text.ljust(200)).fields == text
    assert refusal(text.ljust(201)) == "cron: is 201 characters long; 200 are allowed"


def test_a_field_may_have_60_items_and_not_61():
    assert parse(f"{','.join('1' * 60)} * * * *").fields
    assert refusal(f"{','.join('1' * 61)} * * * *") == (
        "cron minute: the list has 61 items; 60 are allowed"
    )


@pytest.mark.parametrize("value", [None, 5, b"* * * * *", ["* * * * *"]])
def test_what_is_not_text_is_refused(value):
    assert refusal(value) == f"cron: must be a string, not {type(value).__name__}"


@pytest.mark.parametrize(
    "bomb",
    [
        "1--100000000 * * * *",
        "0-100000000 * * * *",
        "*/100000000 * * * *",
        f"{'9' * 190} * * * *",
        f"*/{'9' * 180} * * * *",
        f"{10**4000} * * * *",
        "," * 10_000,
        "*," * 90 + "* * * * *",
        f"@every {'9' * 190}d",
        f"@every {'1d' * 90}",
        "0 0 * * " + "#" * 190,
        "0 0 * * " + "MON#" * 45,
        "H" * 190 + " * * * *",
        "H(" * 90 + " * * * *",
        "\0" * 1_000_000,
    ],
    ids=lambda bomb: bomb[:16],
)
def test_a_parser_bomb_is_refused_at_once(bomb):
    started = time.process_time()

    assert len(refusal(bomb)) < 500
    assert time.process_time() - started < 0.05


def test_reading_a_text_again_gives_the_same_object():
    assert parse("17 4 * * *") is parse("17 4 * * *")
    assert parse("17 4 * * *", spread_key="a") is parse("17 4 * * *", spread_key="b")
