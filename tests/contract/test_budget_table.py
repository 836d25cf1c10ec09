"""The table of budgets: every row is tried, sorted, and names what sets it."""

import ast
import re
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.budgets.cases import CASES, ELSEWHERE

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "budgets.md"
SOURCE = ROOT / "src" / "mainspring"
PLACE = re.compile(r"(?:`(?P<name>\w+)` in )?`(?P<file>[\w/]+\.(?:py|sql))`")


class Row(NamedTuple):
    """One input and its limit."""

    input: str
    limit: str
    over: str
    place: str


def rows() -> list[Row]:
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    start = next(number for number, line in enumerate(lines) if line.startswith("| input |"))
    cells = [[cell.strip() for cell in line[1:-1].split("|")] for line in lines[start + 1 :]]
    return [Row(*row) for row in cells if len(row) == len(Row._fields)]


def test_there_is_one_table_sorted_by_input():
    inputs = [row.input for row in rows()]

    assert PAGE.read_text().count("| input |") == 1
    assert inputs == sorted(set(inputs), key=lambda name: name.replace("`", "").lower())


def test_every_row_has_a_test_and_every_test_a_row():
    tried = {case.row for case in CASES} | ELSEWHERE.keys()

    assert {row.input for row in rows()} == tried


@pytest.mark.parametrize("node", ELSEWHERE.values())
def test_a_test_elsewhere_is_there(node: str):
    path, _, name = node.partition("::")
    tree = ast.parse((ROOT / path).read_text())

    assert name in {
        each.name for each in tree.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
    }


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.input)
def test_a_row_names_what_sets_it(row: Row):
    places = list(PLACE.finditer(row.place))

    assert places or "[settings]" in row.place
    for place in places:
        file = SOURCE / place["file"]
        assert file.is_file(), place["file"]
        if place["name"]:
            assert re.search(rf"\b{place['name']}\b", file.read_text()), place[0]
