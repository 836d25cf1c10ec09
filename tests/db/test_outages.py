"""An outage of the database: one event when it begins, one when it is over."""

import psycopg
import pytest

from mainspring.db.outages import Outages, is_outage
from mainspring.domain.errors.database import DatabaseUnreachable
from tests.support.log_lines import captured_lines

URL = "postgresql://app:secret@db.test/jobs"
AWAY = psycopg.OperationalError("server closed the connection unexpectedly\nmore")


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def outages(clock: Clock) -> Outages:
    return Outages(clock)


def said(lines: list[dict[str, object]]) -> list[tuple[object, object]]:
    return [(line["event"], line["connection"]) for line in lines]


def test_an_outage_is_two_events_however_many_connections_it_ends(outages, clock):
    with captured_lines() as lines:
        outages.broken(URL, "claim", AWAY, connected_at=10)
        outages.broken(URL, "finish", AWAY, connected_at=20)
        outages.unreachable(f"{URL}?options=-c%20jit%3Doff", "listen", AWAY)
        clock.now += 12.5
        outages.answers(URL, "listen")
        outages.answers(URL, "claim")

    assert said(lines) == [("database_lost", "claim"), ("database_back", "listen")]
    assert lines[0]["error"] == "server closed the connection unexpectedly"
    assert lines[1]["seconds"] == 12.5


@pytest.mark.parametrize(
    ("connected_at", "event"), [(99, "connection_replaced"), (101, "database_lost")]
)
def test_a_connection_from_before_its_end_is_part_of_it(outages, clock, connected_at, event):
    outages.unreachable(URL, "claim", AWAY)
    outages.answers(URL, "claim")
    clock.now += 3600
    with captured_lines() as lines:
        outages.broken(URL, "pruning", AWAY, connected_at=connected_at)

    assert said(lines) == [(event, "pruning")]


def test_each_database_has_outages_of_its_own(outages):
    other = "postgresql://app:secret@db.test/reports"
    with captured_lines() as lines:
        outages.unreachable(URL, "claim", AWAY)
        outages.answers(other, "claim")
        outages.unreachable(other, "claim", AWAY)
        outages.answers(URL, "claim")

    assert [line["event"] for line in lines] == ["database_lost"] * 2 + ["database_back"]


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (AWAY, True),
        (DatabaseUnreachable("cannot connect"), True),
        (psycopg.errors.AdminShutdown(), True),
        (psycopg.errors.CannotConnectNow(), True),
        (psycopg.errors.DiskFull(), False),
        (psycopg.errors.QueryCanceled(), False),
        (psycopg.errors.UndefinedTable(), False),
        (ValueError(), False),
    ],
)
def test_what_is_an_outage(error, expected):
    assert is_outage(error) is expected
