"""Log records: what is logged, redacted and bounded, on its way into Python's `logging`.

A record has a message that reads well wherever it is printed, and every field as an attribute, so
that handlers and formatters of other programs can use both.
"""

import logging
import re
import sys
from collections.abc import Mapping, MutableMapping
from datetime import datetime
from typing import Any

from mainspring.domain.secrets.redaction import Redactor, redact_patterns
from mainspring.telemetry.catalogue import ensure_known, level_of
from mainspring.telemetry.events import WARNING, in_order

__all__ = ["ensure_known", "is_counted", "logger_for", "write"]

MAX_LOG_VALUE = 20_000
"""Characters of one value of a log line; what is longer is cut."""

EVENTS_LOGGER, JOB_LOGGER = "mainspring", "mainspring.job"

# Names that logging uses for itself.
_TAKEN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}
# The first line of one, as Python writes it.
_TRACEBACK = re.compile(r'^ *(\+ Exception Group )?Traceback \(|^  File "', re.MULTILINE)
# Who logs, seen from the method of the standard logger: through `event`, and through structlog.
_CALLER_OF_EVENT, _CALLER_OF_STRUCTLOG = 3, 4


class Fields:
    """The fields of a line, as the argument of its message."""

    __slots__ = ("event", "values")

    def __init__(self, event: str, values: Mapping[str, Any]) -> None:
        self.event, self.values = event, values

    def __str__(self) -> str:
        line, traceback = part_traceback(self.values)
        said = " ".join(f"{name}={_shown(value)}" for name, value in line.items())
        return f"{said}\n{traceback}" if traceback else said


def part_traceback(values: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """What belongs on the line, other details included, and the traceback that follows it."""
    line = dict(values)
    details = str(line.pop("details", ""))
    start = _TRACEBACK.search(details)
    others, traceback = (
        (details[: start.start()], details[start.start() :]) if start else (details, "")
    )
    if others.strip():
        line["details"] = others.strip("\n")
    return line, traceback


def is_counted(name: str, facts: Mapping[str, Any]) -> bool:
    """Whether the event counts as one of its cause."""
    return "error" in facts or level_of(name) >= WARNING


def write(name: str, facts: Mapping[str, Any]) -> None:
    """Log an event."""
    logger, level = logging.getLogger(EVENTS_LOGGER), level_of(name)
    if logger.isEnabledFor(level):
        error = facts.get("error")
        arguments, options = _record(name, {**_context(), **_split(facts)})
        if isinstance(error, BaseException):
            options["exc_info"] = (type(error), error, error.__traceback__)
        logger.log(level, *arguments, **options, stacklevel=_CALLER_OF_EVENT)


def logger_for(facts: Mapping[str, Any], redactor: Redactor) -> Any:
    """A structlog logger that adds the facts to every line and redacts secrets."""
    import structlog  # noqa: PLC0415 - slow to import

    def redact(_: Any, __: str, line: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        return {name: _without_secrets(value, redactor) for name, value in line.items()}

    processors: list[Any] = [
        structlog.stdlib.filter_by_level,
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.PositionalArgumentsFormatter(),
    ]
    if redactor:
        # As text, because handlers of other programs show an exception as it is.
        processors += [structlog.processors.format_exc_info, redact]
    return structlog.wrap_logger(
        logging.getLogger(JOB_LOGGER),
        processors=[*processors, _to_record],
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    ).bind(**in_order(facts))


def _to_record(
    _: Any, __: str, line: MutableMapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The last processor of a logger for handlers."""
    event, exception = str(line.pop("event")), line.pop("exc_info", None)
    if (traceback := line.pop("exception", None)) is not None:
        line["details"] = traceback
    arguments, options = _record(_bounded(event), line)
    return arguments, {**options, "exc_info": exception, "stacklevel": _CALLER_OF_STRUCTLOG}


def _record(name: str, facts: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a logging method."""
    values = {key: _bounded(value) for key, value in in_order(facts).items()}
    extra = {f"{key}_" if key in _TAKEN else key: value for key, value in values.items()}
    message = f"{name.replace('%', '%%')}{' ' if values else ''}%s"
    return (message, Fields(name, values)), {"extra": {"event": name, **extra}}


def _split(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The first line of an error as it, and the others as its details."""
    error = facts.get("error")
    if isinstance(error, BaseException):
        return {**facts, "error": one_line(error)}
    if not isinstance(error, str) or "\n" not in error.strip():
        return dict(facts)
    said, _, details = error.strip().partition("\n")
    return {**facts, "error": said, "details": details.strip("\n")}


def one_line(error: BaseException) -> str:
    said = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def _context() -> Mapping[str, Any]:
    """What an application has bound to its structlog lines."""
    known = sys.modules.get("structlog.contextvars")
    return {} if known is None else known.get_contextvars()


def _bounded(value: Any) -> Any:
    """A value of a log line without secrets, and without what would make the line too long."""
    if isinstance(value, datetime):
        return value.isoformat()
    if not isinstance(value, str):
        return value
    if len(value) <= MAX_LOG_VALUE:
        return redact_patterns(str(value))
    shown = redact_patterns(value[:MAX_LOG_VALUE])
    return f"{shown}... {len(value) - MAX_LOG_VALUE} characters omitted"


def _without_secrets(value: Any, redactor: Redactor) -> Any:
    is_json = value is None or isinstance(value, str | int | float | list | tuple | dict)
    return redactor.value(value) if is_json else redactor.text(repr(value))


def _shown(value: Any) -> str:
    """As it is if that is one word."""
    text = str(value)
    is_word = text != "" and not any(each.isspace() or each in "='\"" for each in text)
    return text if is_word or not isinstance(value, str) else repr(text)
