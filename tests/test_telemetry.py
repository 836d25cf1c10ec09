"""Log lines: no token in any, and none of the secrets of what runs."""

import contextlib
import io
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
import structlog

from mainspring import telemetry
from mainspring.domain.secrets.redaction import Redactor
from mainspring.telemetry import LogFormat
from tests.support.waiting import wait_until


@pytest.fixture(autouse=True)
def _fresh_logger(monkeypatch: pytest.MonkeyPatch) -> None:
    """A logger keeps the set-up that its first line had."""
    monkeypatch.setattr(telemetry, "_logger", structlog.get_logger("mainspring"))


@contextlib.contextmanager
def printing() -> Iterator[io.StringIO]:
    """What a process of ours prints; pytest has its own streams from one phase to the next."""
    stream, before = io.StringIO(), structlog.get_config()
    with contextlib.redirect_stdout(stream), contextlib.redirect_stderr(stream):
        telemetry.configure(LogFormat.JSON)
        try:
            yield stream
        finally:
            structlog.configure(**before)


def test_an_event_shows_no_token():
    with printing() as lines:
        telemetry.event("database_lost", error="no answer from postgres://app:hunter2@db", tries=3)

    line = json.loads(lines.getvalue())
    assert line["error"] == "no answer from postgres://app:[redacted]@db"
    assert line["tries"] == 3


def test_nothing_that_is_printed_has_the_secrets_of_what_runs():
    with printing() as lines, telemetry.hiding(Redactor(["hunter2"])):
        sys.stdout.write("it is hunter2\n")
        sys.stderr.writelines(["hunter2\n", "and hunter2\n"])
        telemetry.event("odd", fact=["hunter2"])

    assert "hunter2" not in lines.getvalue()
    assert lines.getvalue().startswith("it is [redacted]\n[redacted]\nand [redacted]\n")


def test_a_thread_that_outlives_its_job_prints_no_secret():
    with telemetry.hiding(Redactor(["hunter2"])):
        pass
    with printing() as lines:
        sys.stdout.write("late hunter2\n")

    assert lines.getvalue() == "late [redacted]\n"


def test_a_stream_is_guarded_once():
    with printing():
        guarded = sys.stdout
        telemetry.configure(LogFormat.JSON)

        assert sys.stdout is guarded


def test_the_logger_of_a_job_shows_none_of_its_secrets():
    with printing() as lines:
        log = telemetry.logger_for(job_id=7, redactor=Redactor(["hunter2"]))
        try:
            raise ValueError("hunter2 was wrong")
        except ValueError:
            log.exception("failed with hunter2", given={"word": "hunter2"}, object=Shown())

    line = json.loads(lines.getvalue())
    assert "hunter2" not in lines.getvalue()
    assert (line["job_id"], line["event"]) == (7, "failed with [redacted]")
    assert "ValueError: [redacted] was wrong" in line["exception"]


class Shown:
    def __repr__(self) -> str:
        return "Shown('hunter2')"


# Errors that keep coming


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
        self.repeats = telemetry.Repeats(self._write, clock=self.clock, later=self.clock.later)

    def _write(self, name: str, facts: Mapping[str, Any]) -> None:
        self.lines.append({"event": name, **facts})

    def fail(self, count: int, error: str = "ValueError: no", **facts: Any) -> None:
        for number in range(count):
            given = {"definition": "work", "job_id": number, "error": error, **facts}
            if self.repeats.admit("attempt_failed", given):
                self._write("attempt_failed", given)


MOST = telemetry.Repeats.MOST_LINES
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

    most = telemetry.Repeats.MOST_CAUSES + MOST
    assert len(log.lines) == most + 2
    assert log.lines[most]["repeated"] == 5000 - most


def test_errors_that_keep_coming_are_counted_in_the_log_of_a_process():
    with printing() as lines:
        for number in range(MOST + 7):
            telemetry.event("attempt_failed", definition="flood", error=f"OSError: {number}")
        wait_until(lambda: "and 7 more like it" in lines.getvalue(), what="the count is logged")

    assert len(lines.getvalue().splitlines()) == MOST + 1


def test_a_line_is_not_endless():
    with printing() as lines:
        telemetry.event("odd", fact="x" * telemetry.MAX_LOG_VALUE)
        telemetry.event("odd", fact="x" * 100 * telemetry.MAX_LOG_VALUE)

    whole, cut = (json.loads(line)["fact"] for line in lines.getvalue().splitlines())
    assert whole == "x" * telemetry.MAX_LOG_VALUE
    assert cut == f"{whole}... {99 * telemetry.MAX_LOG_VALUE} characters omitted"
