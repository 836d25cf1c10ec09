"""What is logged while a test runs."""

import logging
from collections.abc import Iterator, Mapping
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
    before, repeats, write = logger.level, telemetry._repeats, telemetry._repeats._write
    telemetry._repeats = Repeats(write)
    # A second that began before would be summed up among the lines of this test.
    repeats._write = _write_nothing
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        yield handler.lines
    finally:
        telemetry._repeats, repeats._write = repeats, write
        logger.setLevel(before)
        logger.removeHandler(handler)


def _write_nothing(name: str, facts: Mapping[str, Any]) -> None:
    pass


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
