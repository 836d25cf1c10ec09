"""Errors that keep coming: a few lines, and then a count."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from mainspring.telemetry.repeats import Repeats


class Clock:
    """A clock that stands until it is moved on, and then calls what is due."""

    def __init__(self) -> None:
        self.now = 100.0
        self._calls: list[tuple[float, Callable[[], None]]] = []

    def __call__(self) -> float:
        return self.now

    def later(self, seconds: float, call: Callable[[], None]) -> None:
        self._calls.append((self.now + seconds, call))

    def move(self, seconds: float) -> None:
        self.now += seconds
        due = [call for at, call in self._calls if at <= self.now]
        self._calls = [each for each in self._calls if each[0] > self.now]
        for call in due:
            call()


@dataclass
class Log:
    """Repeats by a clock that stands still, and the lines that they let pass."""

    clock: Clock = field(default_factory=Clock)
    lines: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.repeats = Repeats(self._write, clock=self.clock, later=self.clock.later)

    def _write(self, name: str, facts: Mapping[str, Any]) -> None:
        self.lines.append({"event": name, **facts})

    def fail(self, count: int, error: str = "ValueError: no", **facts: Any) -> None:
        for number in range(count):
            given = {"definition": "work", "job_id": number, "error": error, **facts}
            if self.repeats.admit("attempt_failed", given):
                self._write("attempt_failed", given)


MOST = Repeats.MOST_LINES
TRACE = 'ValueError: {}\n\n  File "a.py", line {}, in work\n    raise\n'


def test_a_few_errors_of_one_cause_are_lines_of_their_own():
    log = Log()
    log.fail(MOST)
    log.clock.move(1)

    assert len(log.lines) == MOST


def test_more_within_a_second_are_counted():
    log = Log()
    log.fail(MOST + 1234, TRACE.format("no luck", 7), attempt=3)
    log.clock.move(0.99)
    assert len(log.lines) == MOST

    log.clock.move(0.01)

    assert log.lines[MOST:] == [
        {
            "event": "attempt_failed",
            "definition": "work",
            "error": "ValueError: no luck",
            "repeated": 1234,
            "note": "and 1,234 more like it in the last second",
        }
    ]


def test_the_next_second_begins_anew():
    log = Log()
    for _ in range(3):
        log.fail(MOST + 1)
        log.clock.move(1)

    assert len(log.lines) == 3 * (MOST + 1)
    assert [line["repeated"] for line in log.lines if "repeated" in line] == [1, 1, 1]


@pytest.mark.parametrize(
    ("error", "facts"),
    [
        ("KeyError: no", {}),
        (TRACE.format("no", 8), {}),
        (TRACE.format("no", 7), {"definition": "other"}),
    ],
    ids=["kind", "place", "definition"],
)
def test_another_cause_has_lines_of_its_own(error, facts):
    log = Log()
    log.fail(MOST + 5, TRACE.format("no", 7))
    log.fail(1, error, **facts)

    assert log.lines[-1]["error"] == error


def test_one_cause_may_say_something_else_each_time():
    log = Log()
    for number in range(MOST + 5):
        log.fail(1, TRACE.format(f"no luck with {number}", 7))

    assert len(log.lines) == MOST


def test_very_many_causes_count_as_one():
    log = Log()
    for number in range(5000):
        log.fail(1, f"Error{number}: no")
    log.clock.move(1)
    log.fail(1, "Error: later")

    most = Repeats.MOST_CAUSES + MOST
    assert len(log.lines) == most + 2
    assert log.lines[most]["repeated"] == 5000 - most
