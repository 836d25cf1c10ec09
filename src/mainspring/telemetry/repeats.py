"""Errors that keep coming from one place: the first few of a second are lines, the rest a count."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Cause = tuple[str, object, str, str]

# What an event is about, of which each has causes of its own.
_SUBJECTS = ("definition", "schedule", "trigger", "loop", "duty", "connection")


@dataclass(slots=True)
class _Second:
    """What came of one cause within a second, from its first line on."""

    began_at: float
    lines: int = 0
    more: int = 0


class Repeats:
    """Lets the first few lines of a cause pass within a second, and then says how many more there
    were. `later` calls back after so many seconds; by default in a thread."""

    MOST_LINES = 5
    MOST_CAUSES = 200

    def __init__(
        self,
        write: Callable[[str, Mapping[str, Any]], None],
        *,
        clock: Callable[[], float] = time.monotonic,
        later: Callable[[float, Callable[[], None]], None] | None = None,
    ) -> None:
        self._write, self._clock = write, clock
        self._later = _in_a_thread if later is None else later
        self._seconds: dict[Cause, _Second] = {}
        self._lock = threading.Lock()

    def admit(self, name: str, facts: Mapping[str, Any]) -> bool:
        """Whether the event is to become a line."""
        error = facts.get("error", "")
        text = error if isinstance(error, str) else _text(error)
        cause, now = _cause(name, facts, text), self._clock()
        with self._lock:
            cause, second = self._second(cause, now)
            if second.lines < self.MOST_LINES:
                second.lines += 1
                return True
            second.more += 1
            if second.more > 1:
                return False
        shown = {subject: facts[subject] for subject in _SUBJECTS if subject in facts}
        if text:
            shown["error"] = text.partition("\n")[0]
        left = max(second.began_at + 1 - now, 0.0)
        self._later(left, lambda: self._sum_up(cause, shown))
        return False

    def _second(self, cause: Cause, now: float) -> tuple[Cause, _Second]:
        """The second of a cause. If there are too many causes, new ones count as one."""
        second = self._seconds.get(cause)
        if second is None and len(self._seconds) >= self.MOST_CAUSES:
            # In the order in which they began.
            oldest = next(iter(self._seconds))
            if self._is_over(self._seconds[oldest], now):
                del self._seconds[oldest]
            else:
                cause = (cause[0], None, "", "")
                second = self._seconds.get(cause)
        if second is None or self._is_over(second, now):
            self._seconds.pop(cause, None)
            second = self._seconds[cause] = _Second(now)
        return cause, second

    @staticmethod
    def _is_over(second: _Second, now: float) -> bool:
        return now >= second.began_at + 1 and not second.more

    def _sum_up(self, cause: Cause, facts: Mapping[str, Any]) -> None:
        with self._lock:
            more = self._seconds.pop(cause).more
        note = f"and {more:,} more like it in the last second"
        self._write(cause[0], {**facts, "repeated": more, "note": note})


def _cause(name: str, facts: Mapping[str, Any], error: str) -> Cause:
    """The event, what it is about, the kind of the error and the last place in its traceback."""
    kind = error.partition("\n")[0].partition(":")[0][:200]
    place = error.rfind('  File "')
    where = error[place : error.find("\n", place)] if place >= 0 else ""
    subject = next((facts[each] for each in _SUBJECTS if each in facts), None)
    return name, subject, kind, where


def _text(error: object) -> str:
    return f"{type(error).__name__}: {error}" if isinstance(error, BaseException) else str(error)


def _in_a_thread(seconds: float, call: Callable[[], None]) -> None:
    timer = threading.Timer(seconds, call)
    timer.daemon = True
    timer.start()
