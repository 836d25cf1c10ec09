"""Events become log lines here and nowhere else.

Code says what happened (`event("worker_started", ...)`); this module knows how that reads. Of
errors that keep coming from one place only the first few of each second become lines of their own.
"""

import logging
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TextIO, cast

from mainspring.domain.secrets.redaction import NO_SECRETS, Redactor, redact_patterns


class LogFormat(StrEnum):
    """How log lines are written."""

    TEXT = "text"
    JSON = "json"


_LEVELS: dict[str, int] = {
    "attempt_failed": logging.WARNING,
    "check_failed": logging.ERROR,
    "claim_failed": logging.WARNING,
    "cleanup_failed": logging.WARNING,
    "database_lost": logging.WARNING,
    "embedded_server_failed": logging.ERROR,
    "embedded_server_lost": logging.WARNING,
    "event_failed": logging.ERROR,
    "handler_abandoned": logging.WARNING,
    "handler_unknown": logging.WARNING,
    "job_dead": logging.ERROR,
    "job_parked": logging.ERROR,
    "job_recovered": logging.WARNING,
    "late_report_refused": logging.WARNING,
    "lease_lost": logging.ERROR,
    "limit_key_set_aside": logging.ERROR,
    "loop_failed": logging.ERROR,
    "notification_ignored": logging.WARNING,
    "output_refused": logging.ERROR,
    "process_died": logging.WARNING,
    "progress_refused": logging.ERROR,
    "report_refused": logging.ERROR,
    "row_set_aside": logging.ERROR,
    "runs_timed_out": logging.WARNING,
    "schedule_disabled": logging.ERROR,
    "schedule_failed": logging.WARNING,
    "setting_unknown": logging.WARNING,
    "supervisor_gone": logging.WARNING,
    "suspect_died": logging.WARNING,
    "suspect_unreachable": logging.WARNING,
    "trigger_failed": logging.WARNING,
    "worker_stalled": logging.WARNING,
}

MAX_LOG_VALUE = 20_000
"""Characters of one value of a log line; what is longer is cut."""

_OURS = ("level", "timestamp")
_logger: Any = None

# The secrets of what runs now, and of what ran last: a thread may outlive its job.
_running: dict[int, Redactor] = {}
_recent: deque[Redactor] = deque(maxlen=50)


def event(name: str, **facts: Any) -> None:
    """Log an event; the facts become fields of the log line. One with an error counts as one of
    its cause, and of these some are only counted."""
    if "error" not in facts or _repeats.admit(name, facts):
        _write(name, facts)


def _write(name: str, facts: Mapping[str, Any]) -> None:
    global _logger  # noqa: PLW0603 - made on first use
    if _logger is None:
        import structlog  # noqa: PLC0415 - slow to import, and a short command logs nothing

        _logger = structlog.get_logger("mainspring")
    _logger.log(_LEVELS.get(name, logging.INFO), name, **facts)


Cause = tuple[str, object, str, str]

# What an event is about, of which each has causes of its own.
_SUBJECTS = ("definition", "schedule", "trigger", "loop", "check", "connection")


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
        cause, now = _cause(name, facts), self._clock()
        with self._lock:
            cause, second = self._second(cause, now)
            if second.lines < self.MOST_LINES:
                second.lines += 1
                return True
            second.more += 1
            if second.more > 1:
                return False
        shown = {subject: facts[subject] for subject in _SUBJECTS if subject in facts}
        shown["error"] = str(facts["error"]).partition("\n")[0]
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


def _cause(name: str, facts: Mapping[str, Any]) -> Cause:
    """The event, what it is about, the kind of the error and the last place in its traceback."""
    error = str(facts["error"])
    kind = error.partition("\n")[0].partition(":")[0][:200]
    place = error.rfind('  File "')
    where = error[place : error.find("\n", place)] if place >= 0 else ""
    subject = next((facts[each] for each in _SUBJECTS if each in facts), None)
    return name, subject, kind, where


def _in_a_thread(seconds: float, call: Callable[[], None]) -> None:
    timer = threading.Timer(seconds, call)
    timer.daemon = True
    timer.start()


_repeats = Repeats(_write)


def logger_for(*, redactor: Redactor = NO_SECRETS, **facts: Any) -> Any:
    """A logger for handlers that adds the facts to every line and redacts secrets."""
    import structlog  # noqa: PLC0415 - slow to import

    if not redactor:
        return structlog.get_logger("mainspring.job").bind(**facts)

    def redact(_: Any, __: str, line: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        return {name: _shown(value, redactor) for name, value in line.items()}

    *before, renderer = structlog.get_config()["processors"]
    processors = [*before, structlog.processors.format_exc_info, redact, renderer]
    factory = structlog.get_config()["logger_factory"]
    return structlog.wrap_logger(factory("mainspring.job"), processors=processors).bind(**facts)


def _shown(value: Any, redactor: Redactor) -> Any:
    is_json = value is None or isinstance(value, str | int | float | list | tuple | dict)
    return redactor.value(value) if is_json else redactor.text(repr(value))


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


class _GuardedStream:
    """A stream of the process without the secrets of its jobs, whoever writes to it."""

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


def _guard(stream: TextIO) -> TextIO:
    return stream if isinstance(stream, _GuardedStream) else cast("TextIO", _GuardedStream(stream))


def _redact_patterns(_: Any, __: str, line: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    return {name: _bounded(name, value) for name, value in line.items()}


def _bounded(name: str, value: Any) -> Any:
    """A value of a log line without secrets, and without what would make the line too long."""
    if not isinstance(value, str) or name in _OURS:
        return value
    if len(value) <= MAX_LOG_VALUE:
        return redact_patterns(value)
    shown = redact_patterns(value[:MAX_LOG_VALUE])
    return f"{shown}... {len(value) - MAX_LOG_VALUE} characters omitted"


def configure(log_format: LogFormat = LogFormat.TEXT, *, level: int = logging.INFO) -> None:
    """Set up log lines for a process of ours; a library user's own set-up is left alone."""
    import structlog  # noqa: PLC0415 - slow to import

    sys.stdout, sys.stderr = _guard(sys.stdout), _guard(sys.stderr)
    renderer: Any = (
        structlog.processors.JSONRenderer()
        if log_format is LogFormat.JSON
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            _redact_patterns,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
