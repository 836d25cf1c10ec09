"""What signs of life say: how far a clock is off, who leads, which roles are missing."""

from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from mainspring.domain.processes import Process, ProcessKind, leader_of, missing_kinds, read_clock

WORKER, SCHEDULER, SERVER = ProcessKind


@dataclass
class Seen:
    kind: ProcessKind
    is_alive: bool


def scheduler(process_id: int, *, leads: bool, is_alive: bool = True) -> Process:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    row = {
        "process_id": process_id,
        "kind": SCHEDULER,
        "name": "a:1",
        "host": "a",
        "pid": 1,
        "version": "1",
        "schema_number": 1,
        "started_at": at,
        "seen_at": at,
        "expires_at": at,
        "is_alive": is_alive,
        "clock_offset_ms": 0,
        "round_trip_ms": 1.0,
        "facts": {"leads": leads},
        "running": None,
    }
    return Process.of(row)


@pytest.mark.parametrize(
    ("sent_at", "round_trip", "database_at", "offset_ms"),
    [
        (100.0, 0.2, 100.1, 0),
        (100.0, 0.2, 100.0, 100),
        (100.0, 0.2, 100.2, -100),
        (100.0, 0.0, 99.0, 1000),
        (0.0, 0.0, 1_795_000_000.0, -1_795_000_000_000),
    ],
)
def test_an_offset_is_local_time_less_the_databases_at_the_middle_of_the_round_trip(
    sent_at, round_trip, database_at, offset_ms
):
    clock = read_clock(sent_at, database_at=database_at, round_trip=round_trip)

    assert clock.offset_ms == offset_ms
    assert clock.round_trip_ms == round_trip * 1000


def test_the_newest_living_scheduler_that_leads_is_the_leader():
    processes = [
        scheduler(4, leads=True, is_alive=False),
        scheduler(3, leads=False),
        scheduler(1, leads=True),
        scheduler(2, leads=True),
    ]

    leader = leader_of(processes)

    assert leader is not None
    assert leader.id == 2
    assert leader_of(processes[:2]) is None


@pytest.mark.parametrize(
    ("processes", "required", "missing"),
    [
        ([], [WORKER, SCHEDULER], [WORKER, SCHEDULER]),
        ([Seen(WORKER, True)], [WORKER, SCHEDULER], [SCHEDULER]),
        ([Seen(WORKER, False), Seen(WORKER, True)], [WORKER], []),
        ([Seen(WORKER, True), Seen(SERVER, False)], [WORKER], [SERVER]),
        ([Seen(WORKER, True)], [WORKER], []),
    ],
)
def test_a_role_is_missing_if_it_is_required_or_was_there_and_none_is_alive(
    processes, required, missing
):
    assert missing_kinds(processes, required) == missing
