"""Every list command, on terminals of four widths and in a pipe, with long and realistic rows.

Lists are found by looking at the commands and modules, so a new one is held to this without being
named here.
"""

import inspect
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from datetime import UTC, date, datetime, timedelta
from enum import Enum
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType, NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints
from zoneinfo import ZoneInfo

import pytest
from pydantic import BaseModel
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from mainspring import cli
from mainspring.cli.listings import Listing, Shown
from mainspring.cli.main import command as mainspring
from tests.support.warm import ROOT

REFERENCE = ROOT / "docs" / "reference" / "cli.md"
WIDTHS = (60, 80, 120, 200)
MODULES = sorted(path.stem for path in Path(cli.__file__).parent.glob("[!_]*.py"))
ID = 9_223_372_036_854_775_807
LONG = {
    "name": "nightly-invoice-export-to-the-accounting-department-of-北海道支社",
    "definition": "reports.generate_monthly_invoice_overview_for_all_customers",
    "zone": "America/Argentina/ComodRivadavia",
    "cron": "0,5,10,15,20,25,30,35,40,45,50,55 6-18 1-7,15-21 1-11/2 mon-fri",
    "last_error": "could not connect to server 接続が拒否されました (10.0.0.7:5432)\n\ttraceback",
    "waits_for": "limit",
    "retry_count": 2,
}
SPECIAL = {"ScheduleModel": {"every": None, "at": None}}


def listings() -> Mapping[str, Listing[Any]]:
    """All lists of the command line, by where they are found first."""
    found: dict[int, tuple[str, Listing[Any]]] = {}
    for module in MODULES:
        for name, value in vars(import_module(f"mainspring.cli.{module}")).items():
            if isinstance(value, Listing):
                found.setdefault(id(value), (f"{module}.{name}", value))
    return dict(found.values())


def commands(group: Any = mainspring, path: str = "") -> Iterator[tuple[str, Any]]:
    for name, each in group.commands.items():
        if hasattr(each, "commands"):
            yield from commands(each, f"{path} {name}")
        else:
            yield f"{path} {name}".strip(), each


LISTINGS = listings()
LIST_COMMANDS = {path: each for path, each in commands() if path.split()[-1] == "list"}


def listings_of(function: Any, seen: set[Any]) -> list[Listing[Any]]:
    """The lists that a function, or one of ours that it calls, names."""
    function = inspect.unwrap(function)
    if not isinstance(function, FunctionType) or function in seen:
        return []
    seen.add(function)
    found = [function.__globals__.get(name) for name in function.__code__.co_names]
    modules = [each for each in found if isinstance(each, ModuleType)]
    found += [getattr(each, name, None) for each in modules for name in function.__code__.co_names]
    ours = [each for each in found if getattr(each, "__module__", "").startswith("mainspring.cli")]
    named = [each for each in found if isinstance(each, Listing)]
    return named + [each for called in ours for each in listings_of(called, seen)]


@pytest.mark.parametrize("path", sorted(LIST_COMMANDS))
def test_a_list_command_declares_its_columns_and_the_reference_says_which_are_dropped(path):
    listings = listings_of(LIST_COMMANDS[path].callback, set())
    assert listings, "declare a Listing, and print it"

    columns = listings[0].columns
    order = ", ".join(columns.dropped) or "none"
    always = ", ".join(name for name in columns.names if name not in columns.optional)
    assert f"| `{path}` | {always} | {order} |" in REFERENCE.read_text("utf-8")


def test_only_facts_are_drawn_without_declared_columns():
    folder = Path(cli.__file__).parent
    drawn = {path.stem for path in folder.glob("*.py") if "rich.table" in path.read_text("utf-8")}

    assert drawn == {"output"}


def rows(listing: Listing[Any]) -> list[Any]:
    hint = next(iter(get_type_hints(listing.cells).values()))
    return [make(hint, "", is_long=True), make(hint, "", is_long=False)]


def make(hint: Any, name: str, *, is_long: bool) -> Any:  # noqa: C901, PLR0911 - one line a kind
    """A value of this type, as long as they get or as short."""
    if is_long and name in LONG:
        return LONG[name]
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        chosen = [each for each in arguments if (each is NoneType) is not is_long]
        return make((chosen or arguments)[0], name, is_long=is_long)
    if origin is Annotated or hasattr(hint, "__supertype__"):
        return make(getattr(hint, "__supertype__", None) or arguments[0], name, is_long=is_long)
    if hint is NoneType:
        return None
    if origin is Literal:
        return max(arguments, key=len)
    if origin is tuple and ... not in arguments:
        return tuple(make(each, name, is_long=is_long) for each in arguments)
    if origin in (list, tuple, Sequence):
        return [make(arguments[0], name, is_long=is_long)] * (5 if is_long else 0)
    if origin in (dict, Mapping):
        is_enum = inspect.isclass(arguments[0]) and issubclass(arguments[0], Enum)
        keys = list(arguments[0]) if is_enum else ["a", "b"]
        return {key: make(arguments[1], name, is_long=is_long) for key in keys}
    if hint is Any or not inspect.isclass(hint):
        return {"customer": "x" * 60} if is_long else {}
    if issubclass(hint, Enum):
        return max(hint, key=lambda each: len(str(each)))
    if issubclass(hint, BaseModel):
        hints = get_type_hints(hint)
        filled = {key: hints[key] for key in hint.model_fields}
        special = SPECIAL.get(hint.__name__, {})
        return hint.model_construct(**{**_filled(filled, is_long=is_long), **special})
    if is_dataclass(hint) or hasattr(hint, "_fields"):
        return hint(**_filled(get_type_hints(hint), is_long=is_long))
    return plain(hint, is_long=is_long)


def _filled(hints: Mapping[str, Any], *, is_long: bool) -> dict[str, Any]:
    return {name: make(hint, name, is_long=is_long) for name, hint in hints.items()}


def plain(hint: type, *, is_long: bool) -> Any:
    values: dict[type, tuple[Any, Any]] = {
        bool: (False, True),
        int: (1, ID),
        float: (0.1, 1234.5678),
        datetime: (datetime(2026, 5, 6, tzinfo=UTC), datetime(2026, 3, 8, 2, 30, tzinfo=UTC)),
        date: (date(2026, 5, 6), date(2026, 12, 31)),
        timedelta: (timedelta(0), timedelta(days=3, seconds=1)),
        ZoneInfo: (ZoneInfo("UTC"), ZoneInfo("UTC")),
        str: ("a", "a long text about 日本語 that nobody would call a name, on and on"),
        dict: ({}, {"customer": "x" * 60}),
    }
    pairs = [pair for kind, pair in values.items() if issubclass(hint, kind)]
    assert pairs, f"{hint} needs a value here"
    return pairs[0][is_long]


def printed(listing: Listing[Any], width: int | None) -> list[str]:
    file = io.StringIO()
    console = Console(
        file=file, width=width, force_terminal=width is not None, color_system=None, soft_wrap=True
    )
    console.print(listing(rows(listing)))
    return file.getvalue().splitlines()


def text_of(cell: Any) -> str:
    """What must be seen of a cell; times change while they are looked at."""
    shown = cell.text if isinstance(cell, Shown) else cell
    words = shown.plain if isinstance(shown, Text) else shown
    return words.partition("\n")[0] if isinstance(words, str) else ""


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", sorted(LISTINGS))
def test_a_list_shows_what_matters_whole_at_every_width(name, width):
    listing = LISTINGS[name]
    lines = printed(listing, width)
    kept = [each for each in listing.columns.names if each not in listing.columns.optional]

    assert kept, "at least the name or the id is always shown"
    assert [each for each in lines[0].split("  ") if each.strip() in kept]
    whole = [
        text_of(cell)
        for row in rows(listing)
        for column, cell in zip(listing.columns.names, listing.cells(row), strict=True)
        if column in kept
    ]
    body = "\n".join(lines[1:])
    assert [text for text in whole if text not in body] == []
    longest = max(map(cell_len, whole)) + 2
    assert [line for line in lines if cell_len(line) > max(width, longest)] == []
    assert [line for line in lines if line != line.rstrip() or not line] == []


@pytest.mark.parametrize("name", sorted(LISTINGS))
def test_a_list_in_a_pipe_is_tab_separated_and_complete(name):
    listing = LISTINGS[name]
    header, *lines = printed(listing, None)

    assert header.split("\t") == list(listing.columns.names)
    assert [len(line.split("\t")) for line in lines] == [len(listing.columns.names)] * 2
    assert "…" not in "".join(lines)
    assert not [word for line in lines for word in line.split("\t") if word.endswith(" ago")]
