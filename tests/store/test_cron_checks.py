"""Cron expressions at the SQL door: refused exactly where Python refuses them, in its words."""

import json
import time
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mainspring.domain.errors import InvalidSchedule
from mainspring.domain.schedules.cron import parse
from mainspring.domain.schedules.cron_expressions import NAMED
from tests.support.rows import refused
from tests.support.schedules import insert_schedule

Refusal = tuple[str, str]
CHECK = "select mainspring.check_cron(%s, %s)"
SIGNS = "0123456789*/,-?#=()@LWH \tMONFRISUTJADEVYadehilmnrsvy_"
LIMITS = [(0, 59), (0, 23), (1, 31), (1, 12), (0, 7)]
KEYS = ["", "nightly report", "Grüße"]
SPECIALS = [
    [],
    [],
    ["L", "LW"],
    ["feb", "APR-jun", "2", "2"],
    ["MON", "fri-SUN", "sun-TUE", "5L", "0L", "mon#1", "SAT#5", "7#5"],
]

thorough = settings(max_examples=300, deadline=None, derandomize=True)


@pytest.fixture(scope="module")
def server(module_url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(module_url, autocommit=True) as connection:
        yield connection


def python_refusal(text: str, key: str = "") -> Refusal | None:
    try:
        parse(text, spread_key=key)
    except InvalidSchedule as error:
        return error.field, error.problem
    return None


def sql_refusal(server: psycopg.Connection, text: str, key: str = "") -> Refusal | None:
    try:
        server.execute(CHECK, (text, key))
    except psycopg.Error as error:
        return _read(error)
    return None


def _read(error: psycopg.Error) -> Refusal:
    assert error.sqlstate == "MS041", error
    facts = json.loads(error.diag.message_detail or "")
    assert error.diag.message_primary == f"{facts['field']}: {facts['problem']}"
    return facts["field"], facts["problem"]


def field_of(refusal: Refusal | None) -> str | None:
    return refusal and refusal[0]


def item(place: int) -> st.SearchStrategy[str]:
    low, high = LIMITS[place]
    number = st.integers(low, high)
    step = st.integers(1, high)
    span = st.tuples(number, number).map(sorted).map(lambda ends: f"{ends[0]}-{ends[1]}")
    base = st.sampled_from(["*", "?", "H"]) | number.map(str) | span | span.map("H({})".format)
    stepped = st.builds("{}/{}".format, base, step)
    return base | stepped | st.sampled_from(SPECIALS[place] or ["*"])


def field(place: int) -> st.SearchStrategy[str]:
    return st.lists(item(place), min_size=1, max_size=3).map(",".join)


expressions = st.tuples(*map(field, range(5))).map(" ".join)


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """An expression with a few letters put in, taken out or replaced."""
    text = draw(expressions)
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, len(text)))
        taken = draw(st.integers(0, 1))
        text = text[:place] + draw(st.sampled_from([*SIGNS, ""])) + text[place + taken :]
    return text


@given(expressions, st.sampled_from(KEYS))
@thorough
def test_an_expression_is_accepted_or_refused_as_in_python(server, text, key):
    assert sql_refusal(server, text, key) == python_refusal(text, key)


@given(mutated(), st.sampled_from(KEYS))
@thorough
def test_a_mistyped_expression_is_refused_in_the_same_field_as_in_python(server, text, key):
    assert field_of(sql_refusal(server, text, key)) == field_of(python_refusal(text, key))


@given(st.text(SIGNS, max_size=30) | st.text(SIGNS, max_size=20).map("@{}".format))
@thorough
def test_any_other_text_is_refused_in_the_same_field_as_in_python(server, text):
    assert field_of(sql_refusal(server, text)) == field_of(python_refusal(text))


@pytest.mark.parametrize(
    "text",
    [
        *NAMED,
        "@DAILY",
        " @hourly\t",
        "@every 1s",
        "@every 366d",
        "@EVERY 1D1H1M1S",
        "* * * * *",
        "? ? ? ? ?",
        " 30   2\t* * * ",
        "0 0 L * *",
        "0 0 lw * *",
        "0 0 29 2 *",
        "0 0 30 2 1",
        "0 0 31 2,3 *",
        "0 0 * 2 MON#5",
        "0 0 ? feb 5l",
        "0 0 */24 JAN 5L",
        "H H(0-5) H/7 H(JAN-JUN) H(MON-FRI)",
        "0 0 * * * ".ljust(200),
        f"{','.join('1' * 60)} * * * *",
        "007 * * * *",
        "59 23 31 * 7",
        "00 00 1 * MON-FRI",
        "*/59 * * * 0",
        "*/60 * * * *",
    ],
)
def test_an_expression_is_accepted(server, text):
    assert python_refusal(text) is None
    assert sql_refusal(server, text) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \t ",
        "* * * *",
        "* * * * * *",
        "* * * * * * *",
        "daily",
        "Daily",
        "@reboot",
        "@daily *",
        "@every",
        "@every 90",
        "@every s",
        "@every 5m1h",
        "@every 1.5h",
        "@every 1h 30m",
        "@every 0s",
        "@every 366d1s",
        f"@every {'9' * 150}d",
        "CRON_TZ=UTC 0 0 * * *",
        "tz=Europe/Berlin 0 0 * * *",
        "0 0 * * * ".ljust(201),
        "," * 10_000,
        f"{','.join('1' * 61)} * * * *",
        f"{'9' * 190} * * * *",
        f"*/{'9' * 180} * * * *",
        "60 * * * *",
        "* 24 * * *",
        "* * 0 * *",
        "* * 32 * *",
        "* * * 13 *",
        "* * * * 8",
        "* * * * 8L",
        "* * * * 8#1",
        "x * * * *",
        "* * JAN * *",
        "* * * MON *",
        "* * * * FRIL",
        "1L * * * *",
        "* L * * *",
        "* * * * L",
        "* * 15W * *",
        "* * * * MON#0",
        "* * * * MON#6",
        "* * * * MON#1-3",
        "* * * * MON#",
        "*/0 * * * *",
        "*/61 * * * *",
        "* */25 * * *",
        "* * */32 * *",
        "* * * */13 *",
        "* * * * */8",
        "*/ * * * *",
        "*/-5 * * * *",
        "1-9/2/2 * * * *",
        "30-10 * * * *",
        "* 22-6 * * *",
        "* * * * 5-0",
        "H(5-1) * * * *",
        "H() * * * *",
        "H(5) * * * *",
        "HH * * * *",
        "1--5 * * * *",
        "-5 * * * *",
        ", * * * *",
        "1,,2 * * * *",
        "** * * * *",
        "0 0 30 2 *",
        "0 0 31 2,4 *",
        "0 0 31 4-6/2,9,11 *",
        "0 0 */30 2 MON#2",
        "0 0 */10 2 MON#5",
        "0 0 LW * */6",
        "0 0 */23 JAN 5L",
        "0 0 H(30-31) 2 *",
    ],
    ids=lambda text: text[:24].strip() or "blank",
)
def test_a_refusal_has_the_field_and_the_words_of_python(server, text):
    assert python_refusal(text) is not None
    assert sql_refusal(server, text) == python_refusal(text)


def test_an_unknown_name_is_told_which_there_are(server):
    names = "@hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually and @every"

    assert sql_refusal(server, "@dayly") == ("cron", f"there is no @dayly; there are {names}")


@pytest.mark.parametrize(
    ("sign", "shown"),
    [("\n", "\\x0a"), ("\x7f", "\\x7f"), ("\xa0", "\\xa0"), ("\uff15", "\\uff15")],
)
def test_only_printable_ascii_is_read(server, sign, shown):
    expected = ("cron", f"the character '{shown}' is not allowed")

    for text in (f"0 0 * * {sign}", f"{sign} 0 * * *", f"0 0 * * *{sign}"):
        assert field_of(python_refusal(text)) == "cron"
        assert sql_refusal(server, text) == expected


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        # 29 February comes, 30 and 31 February do not.
        ("0 0 H(29-31) 2 *", {"cron", None}),
        ("0 0 H(29-31)/2 2 *", {"cron", None}),
        ("0 0 31 H *", {"cron", None}),
        ("0 0 */30 2 H", {None}),
        ("0 0 H 2 *", {None}),
    ],
)
def test_h_is_chosen_as_in_python(server, text, fields):
    verdicts = {key: sql_refusal(server, text, key) for key in map(str, range(40))}

    assert verdicts == {key: python_refusal(text, key) for key in verdicts}
    assert {field_of(verdict) for verdict in verdicts.values()} == fields


def test_the_name_of_a_schedule_is_what_h_is_chosen_by(tx):
    text = "0 0 H(29-31) 2 *"
    fine = next(name for name in map(str, range(30)) if not python_refusal(text, name))
    wrong = next(name for name in map(str, range(30)) if python_refusal(text, name))

    insert_schedule(tx, fine, cron=text)
    problem = f"'{text}' never matches; there is no such date"
    with refused(tx, "MS041", "never matches", field="cron", problem=problem):
        insert_schedule(tx, wrong, cron=text)


@pytest.mark.parametrize(
    "bomb",
    ["1--100000000 * * * *", "0-100000000 * * * *", "*," * 90 + "* * * * *", "x" * 1_000_000],
    ids=lambda bomb: bomb[:12],
)
def test_a_parser_bomb_is_refused_at_once(server, bomb):
    started = time.monotonic()

    refusal: Any = sql_refusal(server, bomb)

    assert len(refusal[1]) < 200
    assert time.monotonic() - started < 1
