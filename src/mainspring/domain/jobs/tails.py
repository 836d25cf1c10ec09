"""The end of a text that may be endless."""

from collections.abc import Callable

TAIL_LENGTH = 64 * 1024

# What may be shown of a text from a place on.
Show = Callable[[str, int], str]


class Tail:
    """Keeps the last of what is added, and how much was left out before it. A margin is kept
    besides, which is not shown: it tells what the first of it belongs to."""

    __slots__ = ("_dropped", "_limit", "_margin", "_parts", "_size")

    def __init__(self, limit: int = TAIL_LENGTH, *, margin: int = 0) -> None:
        self._limit, self._margin = limit, margin
        self._parts: list[str] = []
        self._size = 0
        self._dropped = 0

    def add(self, text: str) -> None:
        self._parts.append(text)
        self._size += len(text)
        if self._size > 2 * self._limit + self._margin:
            self._trim()

    @property
    def is_empty(self) -> bool:
        return not self._parts

    @property
    def text(self) -> str | None:
        """None if there was nothing."""
        return self.shown(lambda text, start: text[start:])

    def shown(self, show: Show) -> str | None:
        if not self._parts:
            return None
        self._trim()
        (kept,) = self._parts
        start = max(len(kept) - self._limit, 0)
        text, left_out = show(kept, start), self._dropped + start
        return f"... {left_out} characters omitted ...\n{text}" if left_out else text

    def _trim(self) -> None:
        """In one go for many additions, so that each character is moved about twice."""
        whole = "".join(self._parts)
        kept = whole[-self._limit - self._margin :]
        self._dropped += len(whole) - len(kept)
        self._parts, self._size = [kept], len(kept)
