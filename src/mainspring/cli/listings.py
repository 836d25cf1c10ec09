"""Lists: fitted to a terminal by the rule in `columns`, or tab-separated and complete in a pipe."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Generic, NamedTuple, TypeVar

from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment
from rich.text import Text

from mainspring.cli.columns import GAP, INDENT, Columns, Layout, Place, fit
from mainspring.cli.times import relative, span

T = TypeVar("T")

_NAMED = 3
# A control character would move the cursor, or end the row; one for one, so that styles stay.
_CONTROLS = (*range(32), *range(127, 160))
NO_CONTROLS = dict.fromkeys(_CONTROLS, "\N{REPLACEMENT CHARACTER}") | {ord("\t"): " "}
_ESCAPES = str.maketrans({"\t": "\\t", "\n": "\\n", "\r": "\\r"})


class Shown(NamedTuple):
    """A cell that is short on a terminal and complete in a pipe."""

    text: Text | str
    whole: str


Cell = str | Text | int | datetime | timedelta | Shown | None
"""An instant is relative on a terminal and in UTC in a pipe; a duration is in seconds there."""


@dataclass(frozen=True, slots=True)
class Listing(Generic[T]):
    """The columns of a list, and the cells of one of its rows in the same order."""

    columns: Columns
    cells: Callable[[T], Sequence[Cell]]

    def __call__(self, items: Sequence[T]) -> "Rows":
        return Rows(self.columns, [self.cells(item) for item in items])


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a list, to be printed."""

    columns: Columns
    cells: Sequence[Sequence[Cell]]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if is_piped(console):
            for line in self._separated():
                yield Segment(f"{line}\n")
        else:
            yield from self._fitted(options.max_width)

    def _separated(self) -> Iterator[str]:
        yield "\t".join(self.columns.names)
        for row in self.cells:
            yield "\t".join(escaped(_whole(cell)) for cell in row)

    def _fitted(self, available: int) -> Iterator[Text]:
        names = self.columns.names
        rows = [dict(zip(names, map(_short, row), strict=True)) for row in self.cells]
        layout = fit(self.columns, self._widths(rows), available)
        header = {name: Text(name, style="dim") for name in layout.places}
        for row in (header, *rows):
            yield from self._lines(row, layout, available)
            if row is not header:
                yield from self._below(row, layout, available)

    def _widths(self, rows: Sequence[Mapping[str, Text]]) -> dict[str, list[int]]:
        values = {name: [row[name] for row in rows] for name in self.columns.names}
        return {
            name: [text.cell_len for text in texts]
            for name, texts in values.items()
            if not self._is_left_out(name, texts)
        }

    def _is_left_out(self, name: str, texts: Sequence[Text]) -> bool:
        if name in self.columns.varied and len({text.plain for text in texts}) == 1:
            return True
        return name in self.columns.optional and not any(texts)

    def _lines(self, row: Mapping[str, Text], layout: Layout, available: int) -> Iterator[Text]:
        """A row; what would touch the next column continues it on the next line."""
        line, number = Text(), 0
        for name, place in layout.places.items():
            text, begins = self._in_place(name, row[name], place, available)
            if line and (place.line > number or (text and line.cell_len > begins - GAP)):
                yield _whole_line(line)
                line = Text()
            number = place.line
            if text:
                line = Text.assemble(line, " " * (begins - line.cell_len), text)
        if line:
            yield _whole_line(line)

    def _below(self, row: Mapping[str, Text], layout: Layout, available: int) -> Iterator[Text]:
        for name in self.columns.text:
            text, place = row[name], layout.places.get(name)
            is_beside = place is not None and text.cell_len <= place.width
            if text and name in layout.shown and not is_beside:
                yield _whole_line(Text.assemble(" " * INDENT, _cut(text, available - INDENT)))

    def _in_place(self, name: str, text: Text, place: Place, available: int) -> tuple[Text, int]:
        """What is printed of a value, and where it begins; long text goes below its row."""
        if text.cell_len <= place.width:
            return text, place.start
        if name in self.columns.text:
            return Text(), place.start
        begins = place.start_of_long
        is_cut = name in self.columns.optional
        return (_cut(text, available - begins) if is_cut else text), begins


def is_piped(console: Console) -> bool:
    """Whether a program reads. FORCE_COLOR makes a terminal of any file, as far as Rich knows."""
    return not console.is_terminal or ("FORCE_COLOR" in os.environ and not console.file.isatty())


def escaped(text: str) -> str:
    """On one line and in one field, whatever it contains."""
    return text.translate(_ESCAPES)


def several(names: Sequence[str]) -> Shown:
    """The first of many names on a terminal, all of them in a pipe."""
    rest = len(names) - _NAMED
    more = f" and {rest:,} more" if rest > 0 else ""
    return Shown(", ".join(names[:_NAMED]) + more, ", ".join(names))


def in_utc(instant: datetime) -> str:
    return instant.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _cut(text: Text, width: int) -> Text:
    cut = text.copy()
    cut.truncate(width, overflow="ellipsis")
    return cut


def _whole_line(line: Text) -> Text:
    line.no_wrap, line.overflow = True, "ignore"
    return line


def _short(cell: Cell) -> Text:
    """A cell as a person reads it: its first line."""
    text = cell.text if isinstance(cell, Shown) else cell
    shown = text.copy() if isinstance(text, Text) else Text(_words(text))
    end = shown.plain.find("\n")
    if end >= 0:
        shown.right_crop(len(shown.plain) - end)
    shown.plain = shown.plain.translate(NO_CONTROLS)
    return shown


def _words(cell: str | int | datetime | timedelta | None) -> str:
    match cell:
        case datetime():
            return relative(cell)
        case timedelta():
            return span(cell)
        case int():
            return f"{cell:,}"
    return cell or ""


def _whole(cell: Cell) -> str:
    """A cell as a program reads it."""
    match cell:
        case Shown():
            return cell.whole
        case Text():
            return cell.plain
        case datetime():
            return in_utc(cell)
        case timedelta():
            return f"{round(cell.total_seconds(), 6):.15g}"
        case None:
            return ""
    return str(cell)
