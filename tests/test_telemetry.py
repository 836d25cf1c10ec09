"""Log lines: no token in any, and none of the secrets of what runs."""

import contextlib
import io
import json
import sys
from collections.abc import Iterator

import pytest
import structlog

from mainspring import telemetry
from mainspring.domain.secrets.redaction import Redactor
from mainspring.telemetry import LogFormat


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
