"""Pages of lists that several statements read, newest first."""

from collections.abc import Callable, Sequence
from typing import TypeVar

Item = TypeVar("Item")
Id = TypeVar("Id", bound=int)


def merge_pages(
    pages: Sequence[tuple[Sequence[Item], Id | None]], id_of: Callable[[Item], Id], limit: int
) -> tuple[list[Item], Id | None]:
    """One page of many, each with the id that it goes on before, None at its end. A page says
    nothing of what comes after that id, so the one that reaches the least far ends the whole."""
    edges = [edge for _, edge in pages if edge is not None]
    reached = max(edges) if edges else None
    found = {id_of(item): item for items, _ in pages for item in items}
    ids = sorted((each for each in found if reached is None or each >= reached), reverse=True)
    if len(ids) > limit:
        return [found[each] for each in ids[:limit]], ids[limit - 1]
    return [found[each] for each in ids], reached
