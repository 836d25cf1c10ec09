"""Log lines: no token in any, and none of the secrets of what runs."""

import contextlib
import io
import json
import sys
from collections.abc import Iterator

import pytest

from mainspring import telemetry
from mainspring.domain.secrets.redaction import Redactor
from mainspring.telemetry import LogFormat
from mainspring.telemetry.records import MAX_LOG_VALUE
from mainspring.telemetry.repeats import Repeats
from tests.support.log_lines import kept_logging
from tests.support.waiting import wait_until


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    with kept_logging():
        yield


@contextlib.contextmanager
def printing(log_format: LogFormat = LogFormat.JSON) -> Iterator[io.StringIO]:
    """What a process of ours prints; pytest has its own streams from one phase to the next."""
    stream = io.StringIO()
    with contextlib.redirect_stdout(stream), contextlib.redirect_stderr(stream):
        telemetry.configure(log_format)
        yield stream


def test_an_event_shows_no_token():
    with printing() as lines:
        telemetry.event("database_lost", error="no answer from postgres://app:hunter2@db")

    line = json.loads(lines.getvalue())
    assert line["error"] == "no answer from postgres://app:[redacted]@db"


def test_nothing_that_is_printed_has_the_secrets_of_what_runs():
    with printing() as lines, telemetry.hiding(Redactor(["hunter2"])):
        sys.stdout.write("it is hunter2\n")
        sys.stderr.writelines(["hunter2\n", "and hunter2\n"])
        telemetry.event("reloading", note=["hunter2"])

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
    assert "ValueError: [redacted] was wrong" in line["details"]


class Shown:
    def __repr__(self) -> str:
        return "Shown('hunter2')"


def test_a_line_is_not_endless():
    with printing() as lines:
        telemetry.event("reloading", note="x" * MAX_LOG_VALUE)
        telemetry.event("reloading", note="x" * 100 * MAX_LOG_VALUE)

    whole, cut = (json.loads(line)["note"] for line in lines.getvalue().splitlines())
    assert whole == "x" * MAX_LOG_VALUE
    assert cut == f"{whole}... {99 * MAX_LOG_VALUE} characters omitted"


def test_errors_that_keep_coming_are_counted_in_the_log_of_a_process():
    with printing() as lines:
        for number in range(Repeats.MOST_LINES + 7):
            telemetry.event("attempt_failed", definition="flood", error=f"OSError: {number}")
        wait_until(lambda: "and 7 more like it" in lines.getvalue(), what="the count is logged")

    assert len(lines.getvalue().splitlines()) == Repeats.MOST_LINES + 1
