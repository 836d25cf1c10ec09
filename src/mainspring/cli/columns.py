"""Which columns of a list fit on a terminal: the rule of every list command.

Where a list does not fit, the first of these that suffices is done:

1. text has a column of at least `TEXT_AT_LEAST` cells; where it is longer, it goes below its row
2. values of more than `MEDIUM` cells that are rare in their column no longer widen it: they are
   whole, and their row continues on the next line
3. all text goes below its row, and the columns are as wide as they were
4. values of more than `MEDIUM` cells no longer widen their column, unless most of them are so long
5. columns are dropped: those wider than `MEDIUM` first, then those wider than `SHORT`, then the
   others, each in the order in which the list names them in `dropped`
6. what is left goes on several lines, the same ones for every row

So ids, states and names are never cut, and a wider terminal never shows less. The latter is why the
order of 5 must not depend on the width of the terminal: a narrow column that comes back wherever a
wide one went would be gone again where there is room for the wide one. Pure, and in terminal cells,
of which a wide character takes two.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

GAP = 2
INDENT = 2
SHORT = 12
MEDIUM = 24
TEXT_AT_LEAST = 40
RARE, HALF = 0.25, 0.5

Cells = Mapping[str, Sequence[int]]
"""The widths of the values of each column that has some."""


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a list, in order.

    `dropped` goes from the first to be dropped to the last, among columns of about the same width.
    The end of both is cut where it is longer than a line. All of these are left out where they
    are empty in all rows, and `varied` where it is the same in all rows.
    """

    names: tuple[str, ...]
    dropped: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    varied: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        unknown = {*self.optional, *self.varied}.difference(self.names)
        if unknown:
            raise ValueError(f"unknown columns: {', '.join(sorted(unknown))}")

    @property
    def optional(self) -> frozenset[str]:
        """What need not be shown whole in its place."""
        return frozenset((*self.dropped, *self.text))


@dataclass(frozen=True, slots=True)
class Place:
    """Where a column is: its line, where it begins there, how wide it is, and where a value begins
    that is wider."""

    line: int
    start: int
    width: int
    start_of_long: int


@dataclass(frozen=True, slots=True)
class Layout:
    """The places of the columns, and the text that goes below each row."""

    places: Mapping[str, Place]
    below: tuple[str, ...] = ()

    @property
    def shown(self) -> frozenset[str]:
        return frozenset((*self.places, *self.below))


def fit(columns: Columns, cells: Cells, available: int) -> Layout:
    """The layout for a terminal of `available` cells."""
    for widths in _attempts(columns, cells):
        if _total(widths) <= available:
            break
    grown = _grow(columns, widths, cells, available)
    below = tuple(name for name in columns.text if _is_below(name, columns, cells, grown))
    beside = {name: width for name, width in grown.items() if name not in below}
    return Layout(_placed(beside, cells, available), below)


def _attempts(columns: Columns, cells: Cells) -> Iterator[dict[str, int]]:
    """The widths of ever fewer columns, from all to those that can never be dropped."""
    whole = _widths(columns, cells, share=0)
    yield whole
    yield _widths(columns, cells, share=RARE)
    narrow = _widths(columns, cells, share=HALF)
    text = {name for name in columns.text if name not in columns.dropped}
    order = _drop_order(columns, narrow)
    for count in range(len(order) + 1):
        gone = {*text, *order[:count]}
        yield {name: width for name, width in whole.items() if name not in gone}
        yield {name: width for name, width in narrow.items() if name not in gone}


def _drop_order(columns: Columns, widths: Mapping[str, int]) -> list[str]:
    present = [name for name in columns.dropped if name in widths]
    return sorted(present, key=lambda name: -bisect_left((SHORT, MEDIUM), widths[name]))


def _widths(columns: Columns, cells: Cells, *, share: float) -> dict[str, int]:
    """How wide the columns have to be where so large a share of their values may be wider."""
    widths = {}
    for name in columns.names:
        if name in columns.text and name in cells:
            widths[name] = min(_width(name, cells[name]), TEXT_AT_LEAST)
        elif name in cells:
            within = [cell for cell in cells[name] if cell <= MEDIUM]
            are_few = len(cells[name]) - len(within) <= share * len(cells[name])
            widths[name] = _width(name, within if are_few else cells[name])
    return widths


def _width(name: str, cells: Sequence[int]) -> int:
    return max([len(name), *cells])


def _grow(
    columns: Columns, widths: Mapping[str, int], cells: Cells, available: int
) -> dict[str, int]:
    """The widths with what is left of the terminal: for long values as far as they then fit, then
    for the text, the first one first."""
    grown = dict(widths)
    text = [name for name in columns.text if name in widths]
    for name in (*(name for name in widths if name not in text), *text):
        most = grown[name] + available - _total(grown)
        if name in text:
            grown[name] = max(grown[name], min(most, _width(name, cells[name])))
        else:
            grown[name] = max([grown[name], *(cell for cell in cells[name] if cell <= most)])
    return grown


def _is_below(name: str, columns: Columns, cells: Cells, widths: Mapping[str, int]) -> bool:
    """Whether the text goes below all rows: it has no column, or most of it does not fit there."""
    if name not in cells or (name not in widths and name in columns.dropped):
        return False
    lengths = [cell for cell in cells[name] if cell]
    return name not in widths or 2 * sum(cell > widths[name] for cell in lengths) > len(lengths)


def _placed(widths: Mapping[str, int], cells: Cells, available: int) -> dict[str, Place]:
    """The columns beside each other, and on the next line where there is no room."""
    placed: dict[str, Place] = {}
    line = start = 0
    for name, width in widths.items():
        if placed and start + width > available:
            line, start = line + 1, INDENT
        is_within = start + _width(name, cells[name]) <= available
        placed[name] = Place(line, start, width, start if is_within else min(start, INDENT))
        start += width + GAP
    return placed


def _total(widths: Mapping[str, int]) -> int:
    return sum(widths.values()) + GAP * (len(widths) - 1)
