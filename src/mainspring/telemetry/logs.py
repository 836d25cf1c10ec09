"""Log lines of our own processes: where they go, and how they look.

    events, ctx.log ─▶ logger "mainspring" ─▶ root logger ─▶ our handler: text or JSON
                                                  └────────▶ or the handlers of the app

If the app sets up handlers of its own for the root logger, they get everything. If a format is
asked for, our handler writes it nevertheless, and theirs do not get it a second time.
"""

import logging
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, TextIO

from mainspring.domain.secrets.redaction import redact_patterns
from mainspring.telemetry import LogFormat, guard_streams
from mainspring.telemetry.records import EVENTS_LOGGER, JOB_LOGGER, Fields, part_traceback


def configure(
    log_format: LogFormat | None, *, level: str | None, process: Mapping[str, str]
) -> None:
    """May be called again, for example after the app was imported. Without a level, one that the
    app has set stays."""
    guard_streams()
    own, root = logging.getLogger(EVENTS_LOGGER), logging.getLogger()
    for logger in (own, logging.getLogger(JOB_LOGGER)):
        logger.disabled = False  # As logging.config leaves loggers that it does not know.
    if level is not None or own.level == logging.NOTSET:
        own.setLevel((level or "info").upper())
    for logger in (own, root):
        for handler in [each for each in logger.handlers if isinstance(each, _Handler)]:
            logger.removeHandler(handler)
    own.propagate = log_format is None or not root.handlers
    if not root.handlers:
        root.addHandler(_Handler(log_format or LogFormat.TEXT, process))
    elif log_format is not None:
        own.addHandler(_Handler(log_format, process))


class _Handler(logging.StreamHandler[TextIO]):
    """Writes to whatever standard error is at the time."""

    def __init__(self, log_format: LogFormat, process: Mapping[str, str]) -> None:
        super().__init__(sys.stderr)
        is_json = log_format is LogFormat.JSON
        self.setFormatter(JsonLines(process) if is_json else TextLines())

    def emit(self, record: logging.LogRecord) -> None:
        self.stream = sys.stderr
        super().emit(record)


class TextLines(logging.Formatter):
    """For people: one line, with line breaks escaped, then the lines of a traceback."""

    def __init__(self) -> None:
        import structlog  # noqa: PLC0415 - slow to import

        super().__init__()
        self._render = structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), sort_keys=False)

    def format(self, record: logging.LogRecord) -> str:
        facts, traceback = part_traceback(_facts(record))
        ours = {"timestamp": _at(record), "level": _level(record)}
        line = str(self._render(None, "", {**facts, **ours}))
        line = line.replace("\n", "\\n").replace("\r", "\\r")
        return f"{line}\n{traceback}" if traceback else line


class JsonLines(logging.Formatter):
    """For programs: a JSON object a line."""

    def __init__(self, process: Mapping[str, str]) -> None:
        import structlog  # noqa: PLC0415 - slow to import

        super().__init__()
        self._render = structlog.processors.JSONRenderer(ensure_ascii=False)
        self._process = process

    def format(self, record: logging.LogRecord) -> str:
        facts = _facts(record)
        ours = {"at": _at(record), "level": _level(record), "event": facts.pop("event")}
        # First in the line, and not what someone else means by these names.
        return str(self._render(None, "", {**ours, **self._process, **facts, **ours}))


def _facts(record: logging.LogRecord) -> dict[str, Any]:
    """What a record says, of ours or of another library."""
    said = record.args[0] if isinstance(record.args, tuple) and record.args else None
    if isinstance(said, Fields):
        facts: dict[str, Any] = {"event": said.event, **said.values}
    else:
        facts = {"event": redact_patterns(record.getMessage()), "logger": record.name}
    if record.exc_info and record.exc_info[0] is not None:
        facts["details"] = redact_patterns(logging.Formatter().formatException(record.exc_info))
    return facts


def _level(record: logging.LogRecord) -> str:
    return record.levelname.lower()


def _at(record: logging.LogRecord) -> str:
    instant = datetime.fromtimestamp(record.created, UTC)
    return instant.isoformat(timespec="microseconds").replace("+00:00", "Z")
