"""Shape of the SQL: functions stay small and commented, lines short, and all is written alike."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median, quantiles

import psycopg
import pytest

from mainspring.db import migrate
from tests.support.sql_text import SqlFunction, functions, statements, without_literals

SQL = Path(__file__).parents[2] / "src" / "mainspring" / "sql"
# The dump is PostgreSQL's.
FILES = sorted(path for path in SQL.rglob("*.sql") if path.name != "schema.sql")
FOLDERS = {"internal", "public", "triggers"}

LONGEST_FUNCTION = 60
LONGEST_LINE = 100
LARGEST_MEDIAN = 20
LARGEST_P90 = 45

# Those of PostgreSQL that the code uses and that nothing of ours is called.
KEYWORDS = re.compile(
    r"\b(SELECT|INSERT|UPDATE|DELETE|FROM|WHERE|JOIN|LATERAL|UNION|ORDER BY|GROUP BY|RETURNING|"
    r"CREATE|REPLACE|FUNCTION|RETURNS?|LANGUAGE|DECLARE|BEGIN|END|LOOP|PERFORM|CASE|WHEN|THEN|"
    r"ELSE|ELSIF|EXISTS|COALESCE|BETWEEN|DISTINCT|NULL|TRUE|FALSE|AND|OR|NOT|IN|IS)\b"
)
# Says nothing about the statement: it asks for what the statement does not use.
SELECTS_ONE = re.compile(r"exists\s*\(\s*select\s+(1|\*|null)\b", re.IGNORECASE)
SECURITY = re.compile(r"\bsecurity definer\b")
SEARCH_PATH = re.compile(r"\bset search_path = pg_catalog\b")

Check = Callable[[str], Iterator[str]]


def name_of(path: Path) -> str:
    return path.relative_to(SQL).as_posix()


def long_lines(text: str) -> Iterator[str]:
    for number, line in enumerate(text.splitlines(), start=1):
        if len(line) > LONGEST_LINE:
            yield f"line {number} has {len(line)} characters"


def long_functions(text: str) -> Iterator[str]:
    for function in functions(text):
        if function.lines > LONGEST_FUNCTION:
            yield f"{function.name} has {function.lines} lines"


def bare_functions(text: str) -> Iterator[str]:
    for function in functions(text):
        if not function.is_commented:
            yield f"{function.name} has no comment"


def untidy_lines(text: str) -> Iterator[str]:
    for number, line in enumerate(text.splitlines(), start=1):
        if "\t" in line:
            yield f"line {number} has a tab"
        if line != line.rstrip():
            yield f"line {number} ends in spaces"
    if not text.endswith("\n") or text.endswith("\n\n"):
        yield "does not end in one line break"


def shouted_keywords(text: str) -> Iterator[str]:
    for number, line in enumerate(without_literals(text).splitlines(), start=1):
        if found := KEYWORDS.search(line):
            yield f"line {number}: {found.group()} is not in lower case"


def selects_of_one(text: str) -> Iterator[str]:
    for found in SELECTS_ONE.finditer(without_literals(text)):
        yield f"{found.group()}: write `exists (select from ...`"


def unsafe_definers(text: str) -> Iterator[str]:
    """Whoever calls them must not choose what the names in them stand for."""
    for each in statements(text):
        head = each.text.partition("$$")[0]
        if SECURITY.search(head) and not SEARCH_PATH.search(head):
            yield f"line {each.line}: security definer without a search_path"


CHECKS: list[Check] = [
    *(long_lines, long_functions, bare_functions, untidy_lines, shouted_keywords),
    *(selects_of_one, unsafe_definers),
]


@pytest.mark.parametrize("check", CHECKS)
def test_every_file_keeps_its_shape(check: Check):
    found = {name_of(path): list(check(path.read_text())) for path in FILES}

    assert found
    assert {name: problems for name, problems in found.items() if problems} == {}


def measured() -> list[SqlFunction]:
    return [
        function
        for path in FILES
        if path.parent.name in FOLDERS
        for function in functions(path.read_text())
    ]


def test_functions_are_short_on_the_whole():
    lengths = [function.lines for function in measured()]

    assert median(lengths) <= LARGEST_MEDIAN
    assert quantiles(lengths, n=10)[-1] <= LARGEST_P90


def test_every_function_of_the_files_is_measured():
    created = re.compile(r"^create or replace function", re.MULTILINE)
    for path in FILES:
        text = path.read_text()
        assert len(functions(text)) >= len(created.findall(text)), path


# The checks themselves

BARE = "create or replace function mainspring.f()\nlanguage plpgsql\nas $$\n"
HEAD = f"-- Says why.\n{BARE}"


def test_a_function_may_have_60_lines_and_not_61():
    assert list(long_functions(HEAD + "x;\n" * 56 + "$$;\n")) == []
    assert list(long_functions(HEAD + "x;\n" * 57 + "$$;\n")) == ["f has 61 lines"]


def test_a_line_may_have_100_characters_and_not_101():
    assert list(long_lines("-- " + "ü" * 97)) == []
    assert list(long_lines("-- " + "ü" * 98)) == ["line 1 has 101 characters"]


@pytest.mark.parametrize(
    ("text", "is_commented"),
    [
        (f"{HEAD}$$;\n", True),
        (f"-- Of the file.\n\n{BARE}$$;\n", False),
        (f"{BARE}$$;\ncomment on function mainspring.f is 'why';\n", True),
        (f"{BARE}-- inside;\n$$;\n", False),
    ],
)
def test_a_comment_stands_right_above_or_is_stored(text, is_commented):
    assert list(bare_functions(text)) == ([] if is_commented else ["f has no comment"])


def test_a_semicolon_in_a_body_a_text_or_a_comment_ends_nothing():
    text = "-- a;\nselect ';', \"b;\" /* c; */ from $x$ d; $$ e; $x$;\nselect 1;\n"

    assert [(each.line, each.lines) for each in statements(text)] == [(2, 1), (3, 1)]


@pytest.mark.parametrize(
    ("check", "text"),
    [
        (untidy_lines, "select\t1;\n"),
        (untidy_lines, "select 1; \n"),
        (untidy_lines, "select 1;"),
        (shouted_keywords, "SELECT 1;\n"),
        (shouted_keywords, "create function f() as $$ begin PERFORM 1; end $$;\n"),
        (selects_of_one, "select exists (select 1 from t);\n"),
        (unsafe_definers, "create function f() security definer as $$ $$;\n"),
    ],
)
def test_what_is_written_otherwise_is_noticed(check, text):
    assert len(list(check(text))) == 1


@pytest.mark.parametrize(
    "text", ["-- SELECT is a word.\nselect 'AND', \"IS\";\n", "select exists (select from t);\n"]
)
def test_what_is_written_like_the_rest_passes(text):
    assert [problem for check in CHECKS for problem in check(text)] == []


# What PostgreSQL itself finds


def test_no_variable_hides_another(connection):
    connection.execute("set plpgsql.extra_errors = 'shadowed_variables'")

    with connection.transaction(force_rollback=True):
        for script in migrate.functions():
            connection.execute(script)


def test_a_variable_that_hides_another_is_noticed(connection):
    connection.execute("set plpgsql.extra_errors = 'shadowed_variables'")

    with pytest.raises(psycopg.Error, match='variable "f1" shadows'):
        connection.execute(
            "create function pg_temp.f(f1 integer) returns void language plpgsql"
            " as $$ declare f1 integer; begin end $$"
        )
