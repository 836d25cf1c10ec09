"""Lists of every shape, for properties."""

from hypothesis import strategies as st

from mainspring.cli.columns import Columns

_KINDS = ("whole", "dropped", "text", "both")
_LONGEST = (3, 12, 24, 60, 300)


@st.composite
def listings(draw: st.DrawFn) -> tuple[Columns, dict[str, list[int]]]:
    """Columns of every kind, and the widths of the values in some rows."""
    names = tuple(f"C{number}" for number in range(draw(st.integers(2, 9))))
    kinds = {name: draw(st.sampled_from(_KINDS)) for name in names}
    kinds[names[0]] = "whole"
    dropped = [name for name in names if kinds[name] in ("dropped", "both")]
    columns = Columns(
        names=names,
        dropped=tuple(draw(st.permutations(dropped))),
        text=tuple(name for name in names if kinds[name] in ("text", "both")),
    )
    rows = draw(st.integers(1, 5))
    longest = {name: draw(st.sampled_from(_LONGEST)) for name in names}
    cells = {
        name: draw(st.lists(st.integers(1, longest[name]), min_size=rows, max_size=rows))
        for name in names
    }
    return columns, cells
