"""Events become log lines here and nowhere else.

Code says what happened (`event("worker_started", ...)`); this module knows how that reads.
"""

import logging
import sys
from collections import deque
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
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
    "loop_failed": logging.ERROR,
    "notification_ignored": logging.WARNING,
    "process_died": logging.WARNING,
    "report_refused": logging.ERROR,
    "runs_timed_out": logging.WARNING,
    "schedule_disabled": logging.ERROR,
    "schedule_failed": logging.WARNING,
    "setting_unknown": logging.WARNING,
    "supervisor_gone": logging.WARNING,
    "trigger_failed": logging.WARNING,
    "worker_stalled": logging.WARNING,
}

_logger: Any = None

# The secrets of what runs now, and of what ran last: a thread may outlive its job.
_running: dict[int, Redactor] = {}
_recent: deque[Redactor] = deque(maxlen=50)


def event(name: str, **facts: Any) -> None:
    """Log an event; the facts become fields of the log line."""
    global _logger  # noqa: PLW0603 - made on first use
    if _logger is None:
        import structlog  # noqa: PLC0415 - slow to import, and a short command logs nothing

        _logger = structlog.get_logger("mainspring")
    _logger.log(_LEVELS.get(name, logging.INFO), name, **facts)


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
    return {
        name: redact_patterns(value) if isinstance(value, str) else value
        for name, value in line.items()
    }


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
