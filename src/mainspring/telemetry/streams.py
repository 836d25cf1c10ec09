"""The streams of a process without the secrets of its jobs, whoever writes to them."""

import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast

from mainspring.domain.secrets.redaction import Redactor

# The secrets of what runs now, and of what ran last: a thread may outlive its job.
_running: dict[int, Redactor] = {}
_recent: deque[Redactor] = deque(maxlen=50)


@contextmanager
def hiding(redactor: Redactor) -> Iterator[None]:
    """While the block lasts, and a while longer, the secrets are in nothing that is printed."""
    if not redactor:
        yield
        return
    _running[id(redactor)] = redactor
    try:
        yield
    finally:
        _recent.append(redactor)
        del _running[id(redactor)]


def guard_streams() -> None:
    """Standard output and standard error show no secrets from now on."""
    sys.stdout, sys.stderr = _guarded(sys.stdout), _guarded(sys.stderr)


class _GuardedStream:
    """A stream that redacts what is written to it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        shown = text
        for redactor in (*list(_running.values()), *list(_recent)):
            shown = redactor.line(shown)
        self._stream.write(shown)
        if "\n" in text:
            # Into a file Python would keep pages of what handlers print to itself.
            self._stream.flush()
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _guarded(stream: TextIO) -> TextIO:
    return stream if isinstance(stream, _GuardedStream) else cast("TextIO", _GuardedStream(stream))
