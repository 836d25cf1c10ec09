"""What is logged while a test runs."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mainspring import telemetry
from mainspring.telemetry.records import EVENTS_LOGGER, JOB_LOGGER, Fields
from mainspring.telemetry.repeats import Repeats

Line = dict[str, Any]


class _Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[Line] = []

    def emit(self, record: logging.LogRecord) -> None:
        assert isinstance(record.args, tuple)
        (fields,) = record.args
        assert isinstance(fields, Fields)
        self.lines.append({"event": fields.event, "level": record.levelname, **fields.values})


@contextmanager
def captured_lines() -> Iterator[list[Line]]:
    """The events and the lines of handlers, each with its fields, whatever was logged before."""
    logger, handler = logging.getLogger(EVENTS_LOGGER), _Lines()
    before, repeats = logger.level, telemetry._repeats
    telemetry._repeats = Repeats(repeats._write)
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        yield handler.lines
    finally:
        telemetry._repeats = repeats
        logger.setLevel(before)
        logger.removeHandler(handler)


def named(lines: list[Line], event: str) -> list[Line]:
    return [line for line in lines if line["event"] == event]


@contextmanager
def kept_logging() -> Iterator[None]:
    """Whatever sets up logging meanwhile leaves nothing behind."""
    loggers = [logging.getLogger(), logging.getLogger(EVENTS_LOGGER), logging.getLogger(JOB_LOGGER)]
    before = [(each.level, each.propagate, each.disabled, list(each.handlers)) for each in loggers]
    try:
        yield
    finally:
        for logger, (level, propagate, disabled, handlers) in zip(loggers, before, strict=True):
            logger.setLevel(level)
            logger.propagate, logger.disabled, logger.handlers = propagate, disabled, handlers
