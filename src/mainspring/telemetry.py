"""Events become log lines here and nowhere else.

Code says what happened (`event("worker_started", ...)`); this module knows how that reads.
"""

import logging
import sys
from enum import StrEnum
from typing import Any

import structlog


class LogFormat(StrEnum):
    """How log lines are written."""

    TEXT = "text"
    JSON = "json"


_LEVELS: dict[str, int] = {
    "attempt_failed": logging.WARNING,
    "check_failed": logging.ERROR,
    "claim_failed": logging.WARNING,
    "database_lost": logging.WARNING,
    "handler_abandoned": logging.WARNING,
    "handler_unknown": logging.WARNING,
    "job_dead": logging.ERROR,
    "job_parked": logging.ERROR,
    "job_recovered": logging.WARNING,
    "late_report_refused": logging.WARNING,
    "lease_lost": logging.ERROR,
    "loop_failed": logging.ERROR,
    "process_died": logging.WARNING,
    "runs_timed_out": logging.WARNING,
    "schedule_disabled": logging.ERROR,
    "schedule_failed": logging.WARNING,
    "trigger_failed": logging.WARNING,
}

_logger = structlog.get_logger("mainspring")


def event(name: str, **facts: Any) -> None:
    """Say that something happened; the facts become fields of the log line."""
    _logger.log(_LEVELS.get(name, logging.INFO), name, **facts)


def logger_for(**facts: Any) -> Any:
    """A logger for handlers whose every line carries the facts."""
    return structlog.get_logger("mainspring.job").bind(**facts)


def configure(log_format: LogFormat = LogFormat.TEXT, *, level: int = logging.INFO) -> None:
    """Set up log lines for a process of ours; a library user's own set-up is left alone."""
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
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
