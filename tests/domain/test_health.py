"""When a process is healthy and what hinders it."""

import math

import pytest

from mainspring.domain.health import Pulse, Vitals, hindered, unhealthy
from mainspring.domain.processes import ProcessKind


@pytest.mark.parametrize(
    ("rest", "silent", "is_late"),
    [
        (2.0, 6.0, False),
        (2.0, 6.1, True),
        (0.1, 3.0, False),
        (0.1, 3.1, True),
        (math.inf, 1e9, False),
    ],
)
def test_what_goes_round_is_late_after_three_rests_of_a_second_or_more(rest, silent, is_late):
    assert (Pulse("x", 100.0, rest).silence(100.0 + silent) is not None) is is_late


def test_what_waits_for_the_database_is_healthy():
    pulse = Pulse("claim loop", 0.0, 1.0, awaits_database=True)

    assert unhealthy([Vitals((pulse,))], 1000.0) == []


def test_reasons_name_the_role_and_what_is_late():
    vitals = [
        Vitals((Pulse("event loop", 0.0, 1.0),)),
        Vitals((Pulse("claim loop", 2.0, 1.0),), ("stopping",), ProcessKind.WORKER),
    ]

    assert unhealthy(vitals, 10.0) == [
        "no pass of the event loop for 10 s",
        "worker: no pass of the claim loop for 8 s",
    ]
    assert hindered(vitals) == ["worker: stopping"]
