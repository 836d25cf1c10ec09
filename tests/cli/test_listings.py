"""What a list prints at which width."""

from collections.abc import Sequence
from io import StringIO

from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from mainspring.cli.columns import Columns
from mainspring.cli.listings import Rows
from tests.support.listings import listings

FLOWS = Columns(names=("FLOW", "NAME", "JOBS", "NOTE"), dropped=("JOBS",), text=("NOTE",))
WIDTHS = st.integers(40, 250)


def printed(columns: Columns, rows: Sequence[Sequence[str]], width: int) -> str:
    out = StringIO()
    console = Console(file=out, width=width, force_terminal=True, color_system=None, soft_wrap=True)
    console.print(Rows(columns, rows))
    return out.getvalue()


def value(name: str, row: int, length: int) -> str:
    """A text of this length, unlike any other as far as it is long enough."""
    return f"{name}r{row}".ljust(length, "-")[: length - 1] + "."


def visible(text: str, output: str) -> int:
    """How much of a text is printed, counted from its beginning."""
    return next(size for size in range(len(text), -1, -1) if text[:size] in output)


def test_long_text_goes_below_its_row_and_short_text_stays_beside():
    rows = [["17", "nightly", "120", "x" * 90], ["16", "pair", "2", "1 running"]]

    assert printed(FLOWS, rows, 70).splitlines() == [
        "FLOW  NAME     JOBS  NOTE",
        "17    nightly  120",
        f"  {'x' * 67}…",
        "16    pair     2     1 running",
    ]


def test_the_lines_of_a_row_are_the_same_for_all_rows():
    columns = Columns(names=("ID", "TENANT", "DEFINITION"))
    rows = [["1", "t" * 30, "d" * 30], ["2", "acme", "hello"], ["3", "u" * 30, "e" * 30]]

    assert printed(columns, rows, 40).splitlines() == [
        *("ID  TENANT", "  DEFINITION"),
        *(f"1   {'t' * 30}", f"  {'d' * 30}"),
        *("2   acme", "  hello"),
        *(f"3   {'u' * 30}", f"  {'e' * 30}"),
    ]


def test_a_long_value_is_whole_and_its_row_continues_on_the_next_line():
    columns = Columns(names=("ID", "DEFINITION", "TRY"))
    rows = [["1", "d" * 40, "3"], ["2", "hello", "1"], ["3", "work", "1"], ["4", "work", "2"]]

    assert printed(columns, rows, 45).splitlines()[:4] == [
        "ID  DEFINITION  TRY",
        f"1   {'d' * 40}",
        "                3",
        "2   hello       1",
    ]


@given(listings(), WIDTHS, WIDTHS)
@settings(deadline=None)
def test_nothing_is_cut_but_text_and_a_wider_terminal_shows_no_less_of_it(listing, one, other):
    columns, cells = listing
    count = len(cells[columns.names[0]])
    rows = [[value(name, row, cells[name][row]) for name in columns.names] for row in range(count)]
    narrow, wide = (printed(columns, rows, width) for width in sorted((one, other)))

    for row in rows:
        for name, text in zip(columns.names, row, strict=True):
            if name not in columns.optional:
                assert text in narrow
            if name in columns.text or text in narrow:
                assert visible(text, narrow) <= visible(text, wide)
