"""Events become log lines here and nowhere else.

    event("worker_started", ...) ─▶ repeats ─▶ records ─▶ logging, logger "mainspring"
    ctx.log.info("...", ...)     ─────────────▶ records ─▶ logging, logger "mainspring.job"

Code says what happened; `catalogue/` is the table of all events, with the level and the fields of
each. Lines go through Python's own `logging`, so whatever an application has set up there, such as
gunicorn, pytest or Sentry, sees them. `logs.py` sets it up for processes of our own. Of errors that
keep coming from one place only the first few of each second become lines (`repeats.py`).
"""

from collections.abc import Iterable
from enum import StrEnum
from types import ModuleType
from typing import Any

from mainspring.domain.secrets.redaction import NO_SECRETS, Redactor
from mainspring.telemetry.repeats import Repeats
from mainspring.telemetry.streams import guard_streams, hiding

__all__ = [
    "IS_STRICT",
    "MOST_IDS",
    "LogFormat",
    "configure",
    "event",
    "first",
    "guard_streams",
    "hiding",
    "logger_for",
]

IS_STRICT = False
"""Whether an event or a field that is not in the table is an error, as it is in our own tests."""

MOST_IDS = 10
"""Ids that a line about many things names."""


class LogFormat(StrEnum):
    """How log lines are written."""

    TEXT = "text"
    JSON = "json"


def event(name: str, /, **facts: Any) -> None:
    """Log an event; the facts become fields of the log line. A warning or an error counts as one of
    its cause, and of these some are only counted. An `error` may be an exception, which is logged
    with its traceback."""
    records = _records or _load()
    if IS_STRICT:
        records.ensure_known(name, facts)
    if not records.is_counted(name, facts) or _repeats.admit(name, facts):
        records.write(name, facts)


def first(ids: Iterable[Any]) -> list[Any]:
    """As many ids as a line about many things names."""
    return [each for each, _ in zip(ids, range(MOST_IDS), strict=False)]


def logger_for(*, redactor: Redactor = NO_SECRETS, **facts: Any) -> Any:
    """A structlog logger for handlers that adds the facts to every line and redacts secrets."""
    return _load().logger_for(facts, redactor)


def configure(
    log_format: LogFormat | None = None, *, level: str | None = None, **process: str
) -> None:
    """Set up log lines for a process of ours; a library user's own set-up is left alone. JSON lines
    have the facts of the process."""
    from mainspring.telemetry import logs  # noqa: PLC0415 - slow to import

    logs.configure(log_format, level=level, process=process)


def _load() -> ModuleType:
    """A short command logs nothing, and need not import what it takes."""
    global _records  # noqa: PLW0603 - loaded by the first event
    from mainspring.telemetry import records  # noqa: PLC0415 - slow to import

    _records = records
    return records


_records: ModuleType | None = None
_repeats = Repeats(lambda name, facts: _load().write(name, facts))
