"""Which columns of a list fit on a terminal: the rule of every list command.

Where a list does not fit, this is given up, one after the other, until it does:

1. text is cut at its end, down to `TEXT_AT_LEAST` cells
2. values of more than `WHOLE_AT_LEAST` cells no longer widen a column that is never dropped, unless
   most of its values are so long: they are whole, and their row continues on the next line
3. columns are dropped, in the order in which the list names them in `dropped`
4. the text that cannot be dropped goes to a line of its own below its row; then columns that now
   fit come back
5. all columns that may be dropped are, those in `dropped_last` at the end
6. columns get narrower, and more rows continue on the next line

So ids, states and names are never cut. Pure, and in terminal cells, of which a wide character takes
two.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

GAP = 2
TEXT_AT_LEAST = 24
WHOLE_AT_LEAST = 24


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a list, in order. Those that are neither dropped nor `text` are always whole.

    `dropped` goes from the first to be dropped to the last, `dropped_last` follows once the text is
    below. Of `text` the end may be cut. All of these are left out where they are empty in all rows,
    and `varied` where it is the same in all rows.
    """

    names: tuple[str, ...]
    dropped: tuple[str, ...] = ()
    dropped_last: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    varied: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        unknown = {*self.optional, *self.varied}.difference(self.names)
        if unknown:
            raise ValueError(f"unknown columns: {', '.join(sorted(unknown))}")

    @property
    def optional(self) -> frozenset[str]:
        """What need not be shown whole in its place."""
        return frozenset((*self.dropped, *self.dropped_last, *self.text))


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns beside each other with their widths, and the text that goes below each row."""

    widths: Mapping[str, int]
    below: tuple[str, ...] = ()

    @property
    def starts(self) -> Mapping[str, int]:
        """Where each column begins."""
        begins = accumulate((width + GAP for width in self.widths.values()), initial=0)
        return dict(zip(self.widths, begins, strict=False))


def fit(columns: Columns, cells: Mapping[str, Sequence[int]], available: int) -> Layout:
    """The layout for a terminal of `available` cells; `cells` has the widths of the values of each
    column that has some."""
    for widths, below in _attempts(columns, cells):
        shrunk = _shrink(columns.text, widths, available)
        if _total(shrunk) <= available:
            return Layout(shrunk, below)
    return Layout(_squeeze(widths, cells, available), below)


def _attempts(
    columns: Columns, cells: Mapping[str, Sequence[int]]
) -> Iterator[tuple[dict[str, int], tuple[str, ...]]]:
    """Ever less, as widths and what goes below; the last is what can never be dropped."""
    names = [name for name in columns.names if name in cells]
    yield {name: _width(name, cells[name]) for name in names}, ()
    order = [*columns.dropped, *columns.dropped_last]
    kept_text = tuple(name for name in columns.text if name in cells and name not in order)
    narrow = {
        name: _width(name, cells[name]) if name in columns.optional else _narrow(name, cells[name])
        for name in names
    }
    for below, most in ((), len(columns.dropped)), (kept_text, len(order)):
        for count in range(most + 1):
            gone = {*order[:count], *below}
            yield {name: width for name, width in narrow.items() if name not in gone}, below


def _width(name: str, cells: Sequence[int], limit: int | None = None) -> int:
    """Wide enough for the name and all values, or for those within the limit."""
    return max([len(name), *(cell for cell in cells if limit is None or cell <= limit)])


def _narrow(name: str, cells: Sequence[int]) -> int:
    within = [cell for cell in cells if cell <= WHOLE_AT_LEAST]
    return _width(name, cells if 2 * len(within) < len(cells) else within)


def _shrink(text: Sequence[str], widths: Mapping[str, int], available: int) -> dict[str, int]:
    """The widths with the text cut as far as it must and may be, the last one first."""
    shrunk = dict(widths)
    for name in reversed([name for name in text if name in widths]):
        excess = _total(shrunk) - available
        if excess > 0:
            shrunk[name] = max(shrunk[name] - excess, min(shrunk[name], TEXT_AT_LEAST))
    return shrunk


def _squeeze(
    widths: Mapping[str, int], cells: Mapping[str, Sequence[int]], available: int
) -> dict[str, int]:
    """As wide as the terminal allows, and no narrower than the names of the columns."""
    squeezed = dict(widths)
    for limit in range(WHOLE_AT_LEAST - 1, -1, -1):
        if _total(squeezed) <= available:
            break
        squeezed = {name: _width(name, cells[name], limit) for name in widths}
    return squeezed


def _total(widths: Mapping[str, int]) -> int:
    return sum(widths.values()) + GAP * (len(widths) - 1)
