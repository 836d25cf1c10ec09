"""The end of a text that may be endless."""

TAIL_LENGTH = 64 * 1024


class Tail:
    """Keeps the last of what is added, and how much was left out before it."""

    __slots__ = ("_dropped", "_limit", "_parts", "_size")

    def __init__(self, limit: int = TAIL_LENGTH) -> None:
        self._limit = limit
        self._parts: list[str] = []
        self._size = 0
        self._dropped = 0

    def add(self, text: str) -> None:
        self._parts.append(text)
        self._size += len(text)
        if self._size > 2 * self._limit:
            self._trim()

    @property
    def text(self) -> str | None:
        """None if there was nothing."""
        if not self._parts:
            return None
        self._trim()
        (kept,) = self._parts
        return f"... {self._dropped} characters left out ...\n{kept}" if self._dropped else kept

    def _trim(self) -> None:
        """In one go for many additions, so that each character is moved about twice."""
        whole = "".join(self._parts)
        kept = whole[-self._limit :]
        self._dropped += len(whole) - len(kept)
        self._parts, self._size = [kept], len(kept)
