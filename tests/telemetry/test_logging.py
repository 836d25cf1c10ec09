"""Log lines in Python's own logging: what applications and their handlers see of them."""

import contextlib
import io
import json
import logging
import logging.config
import logging.handlers
from collections.abc import Iterator

import pytest

from mainspring import telemetry
from mainspring.domain.secrets.redaction import Redactor
from mainspring.telemetry import LogFormat
from tests.support.log_lines import kept_logging

FAILED = 'ZeroDivisionError: no\n\n  File "a.py", line 7, in work\n    return 1 / 0\n'


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    with kept_logging():
        yield


@contextlib.contextmanager
def standard_error(*own: logging.Handler) -> Iterator[io.StringIO]:
    """Standard error of a process whose app has set up these handlers."""
    logging.getLogger().handlers = list(own)
    with contextlib.redirect_stderr(io.StringIO()) as stream:
        yield stream


# In an application of someone else's


def test_pytest_sees_events_with_their_fields(caplog):
    telemetry.event("job_dead", tenant="acme", job_id=7, definition="send", error=FAILED)

    (record,) = caplog.records
    assert (record.name, record.levelname) == ("mainspring", "ERROR")
    assert (record.event, record.tenant, record.job_id) == ("job_dead", "acme", 7)
    assert record.error == "ZeroDivisionError: no"
    assert record.funcName == "test_pytest_sees_events_with_their_fields"
    assert record.getMessage() == (
        "job_dead tenant=acme job_id=7 definition=send error='ZeroDivisionError: no'\n"
        '  File "a.py", line 7, in work\n    return 1 / 0'
    )


def test_an_exception_is_one_for_handlers_such_as_that_of_sentry(caplog):
    try:
        raise ValueError("no luck")
    except ValueError as error:
        telemetry.event("loop_failed", loop="due", error=error)

    (record,) = caplog.records
    assert record.exc_info[0] is ValueError
    assert record.msg == "loop_failed %s"
    assert record.getMessage() == "loop_failed loop=due error='ValueError: no luck'"


def test_a_library_says_nothing_of_what_is_no_problem(caplog):
    telemetry.event("worker_started", worker=3)
    with caplog.at_level(logging.INFO, "mainspring"):
        telemetry.event("worker_stopped", worker=3)

    assert [record.event for record in caplog.records] == ["worker_stopped"]


def test_a_line_of_a_handler_says_where_it_was_written(caplog):
    log = telemetry.logger_for(job_id=7, tenant="acme", slot=None)
    log.warning("%d%% of %s", 5, "all", name="Bob", level="low")

    (record,) = caplog.records
    assert (record.name, record.funcName) == (
        "mainspring.job",
        "test_a_line_of_a_handler_says_where_it_was_written",
    )
    assert record.getMessage() == "5% of all tenant=acme job_id=7 name=Bob level=low"
    assert (record.name_, record.job_id) == ("Bob", 7)
    assert not hasattr(record, "slot")


def test_an_exception_of_a_job_with_secrets_is_text(caplog):
    log = telemetry.logger_for(job_id=7, redactor=Redactor(["hunter2"]))
    try:
        raise ValueError("hunter2 was wrong")
    except ValueError:
        log.exception("failed with hunter2")

    (record,) = caplog.records
    assert not record.exc_info
    assert "hunter2" not in record.getMessage()
    assert "ValueError: [redacted] was wrong" in record.details


# In a process of ours


def test_lines_go_to_standard_error_as_text():
    with standard_error() as lines:
        telemetry.configure()
        telemetry.event("job_dead", tenant="acme", job_id=7, error=FAILED)

    first, *others = lines.getvalue().splitlines()
    assert "[error    ] job_dead" in first
    assert first.endswith("tenant=acme job_id=7 error='ZeroDivisionError: no'")
    assert others == ['  File "a.py", line 7, in work', "    return 1 / 0"]


def test_an_error_of_several_lines_is_one_line_as_text():
    with standard_error() as lines:
        telemetry.configure()
        telemetry.event("job_dead", job_id=7, error="no such table\n\nLINE 1: select\n    ^")
        telemetry.logger_for(job_id=8).info("one\ntwo", said="three\r\nfour")
        logging.getLogger("shop").warning("five\nsix")

    dead, own, other = lines.getvalue().splitlines()
    assert dead.endswith(r"job_id=7 error='no such table' details='LINE 1: select\n    ^'")
    assert r"one\ntwo" in own
    assert own.endswith(r"job_id=8 said='three\r\nfour'")
    assert r"five\nsix" in other


def test_only_the_traceback_of_an_error_follows_its_line():
    text = FAILED.replace("no\n", "no\nnot at all\n")
    with standard_error() as lines:
        telemetry.configure()
        telemetry.event("job_dead", job_id=7, error=text)

    first, *others = lines.getvalue().splitlines()
    assert first.endswith("error='ZeroDivisionError: no' details='not at all'")
    assert others == ['  File "a.py", line 7, in work', "    return 1 / 0"]


def test_lines_of_other_libraries_look_alike():
    with standard_error() as lines:
        telemetry.configure(LogFormat.JSON, role="worker")
        logging.getLogger("shop").warning("%s is low", "stock")

    line = json.loads(lines.getvalue())
    assert line.pop("at").endswith("Z")
    assert line == {
        "level": "warning",
        "event": "stock is low",
        "role": "worker",
        "logger": "shop",
    }


def test_a_json_line_begins_with_what_all_lines_have():
    with standard_error() as lines:
        telemetry.configure(LogFormat.JSON, role="worker", process="h:1", version="1.0")
        telemetry.logger_for(job_id=7, tenant="acme").info("hi", level="low", at="noon", z=1)

    line = json.loads(lines.getvalue())
    assert list(line) == [
        *("at", "level", "event", "role", "process", "version", "tenant", "job_id", "z")
    ]
    assert line["level"] == "info"


def test_an_app_that_sets_up_logging_gets_the_lines():
    own = logging.handlers.BufferingHandler(100)
    with standard_error(own) as lines:
        telemetry.configure()
        telemetry.event("worker_started", worker=3)

    assert [record.getMessage() for record in own.buffer] == ["worker_started worker=3"]
    assert lines.getvalue() == ""


def test_a_format_that_is_asked_for_is_written_nevertheless():
    own = logging.handlers.BufferingHandler(100)
    with standard_error(own) as lines:
        telemetry.configure(LogFormat.JSON)
        telemetry.event("worker_started", worker=3)

    assert own.buffer == []
    assert json.loads(lines.getvalue())["event"] == "worker_started"


def test_an_app_that_disables_the_loggers_it_does_not_know_disables_none_of_ours():
    with standard_error() as lines:
        logging.config.dictConfig({"version": 1})
        telemetry.configure()
        telemetry.event("worker_started", worker=3)

    assert "worker_started" in lines.getvalue()


@pytest.mark.parametrize(("level", "events"), [("warning", 1), ("info", 2), (None, 1)])
def test_a_level_that_is_asked_for_goes_before_that_of_the_app(level, events):
    with standard_error() as lines:
        logging.getLogger("mainspring").setLevel(logging.WARNING)
        telemetry.configure(level=level)
        telemetry.event("worker_started", worker=3)
        telemetry.event("lease_lost", worker=3)

    assert len(lines.getvalue().splitlines()) == events


def test_setting_it_up_twice_doubles_no_line():
    with standard_error() as lines:
        telemetry.configure()
        telemetry.configure(LogFormat.JSON)
        telemetry.event("worker_started", worker=3)

    assert len(lines.getvalue().splitlines()) == 1


# In our own tests


@pytest.mark.parametrize("facts", [{"oddity": 1}, {"job_id": 7}])
def test_an_event_has_no_fields_but_those_of_the_table(facts):
    with pytest.raises(LookupError, match="worker_started"):
        telemetry.event("worker_started", **facts)


def test_an_event_that_is_not_in_the_table_is_refused():
    with pytest.raises(LookupError, match="telemetry/catalogue"):
        telemetry.event("oddity")
