"""The rules by which `make chaos` judges a history: each finds what breaks it."""

from dataclasses import replace
from typing import Any

import pytest

from chaos.checks import violations
from chaos.histories import Attempt, Effect, Event, History, Job, Slot

JOB = Job(1, "once", "succeeded", None, 7, ready_at=1.0, finished_at=2.0)
CHILD = Job(2, "step", "succeeded", None, 8, ready_at=1.0, finished_at=4.0, parents=(1,))
TICK = Job(3, "tick", "succeeded", None, None, ready_at=5.0, finished_at=5.5)
GOOD = History(
    committed={7: "once", 8: "step"},
    rolled_back={9},
    jobs=[JOB, CHILD, TICK],
    attempts=[
        Attempt(1, 10, "lost", 1.0, 1.5),
        Attempt(1, 11, "succeeded", 1.6, 2.0),
        Attempt(2, 12, "succeeded", 2.5, 4.0),
        Attempt(3, 13, "succeeded", 5.1, 5.5),
    ],
    effects=[Effect(1)],
    slots=[Slot(5.0, 5.0, "enqueued", 3), Slot(6.0, 6.0, "coalesced")],
    events=[Event(20, 1.0, 1.1)],
    tenants={7: "default", 8: "default"},
    most_limited=2,
    most_keyed=1,
)


def broken(**changes: Any) -> list[str]:
    return [f"{each.promise}: {each.text}" for each in violations(replace(GOOD, **changes))]


def with_job(job: Job) -> list[Job]:
    return [job, *(other for other in GOOD.jobs if other.job_id != job.job_id)]


def test_a_history_in_which_nothing_went_wrong_passes():
    assert violations(GOOD) == []


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"committed": {7: "once", 8: "step", 99: "plain"}}, "1: plain 99 was committed"),
        ({"committed": {7: "flow", 8: "step"}}, "1: flow 7 was committed and has 1 jobs, not 4"),
        ({"rolled_back": {7}}, "1: operation 7 was rolled back and has 1 jobs"),
        ({"jobs": with_job(replace(TICK, state="queued", waits_for="limit"))}, "2, 6: job 3"),
        ({"jobs": with_job(replace(TICK, state="dead_letter"))}, "2, 6: job 3"),
        ({"attempts": [GOOD.attempts[0], *GOOD.attempts[2:]]}, "2: job 1 succeeded 0 times"),
        (
            {"attempts": [*GOOD.attempts, Attempt(1, 14, "succeeded", 3.0, 3.1)]},
            "2: job 1 succeeded 2 times",
        ),
        (
            {"attempts": [*GOOD.attempts, Attempt(1, 14, "lost", 3.0, 3.1)]},
            "2: job 1: an older lease reported success",
        ),
        ({"effects": []}, "4: job 1 has 0 effects"),
        ({"effects": [Effect(1), Effect(1)]}, "4: job 1 has 2 effects"),
        (
            {"slots": [Slot(5.0, 5.0, "enqueued", 3), Slot(6.0, 6.0, "enqueued", 3)]},
            "3: job 3 belongs to 2 slots",
        ),
        ({"slots": []}, "3: 1 jobs of the schedule for 0 slots"),
        (
            {"slots": [Slot(5.0, 5.0, "enqueued", 3), Slot(7.0, 7.0, "missed")]},
            "3, 6: no slot between",
        ),
        ({"events": [Event(21, 1.0, None)]}, "6: event 21 was never dispatched"),
        ({"events": [Event(20, 1.0, 1.1, jobs=2)]}, "2: event 20 has 2 jobs"),
        ({"most_limited": 3}, "limits: 3 ran under a limit of 2"),
        ({"most_keyed": 2}, "limits: 2 ran under a limit of 1"),
        ({"jobs": with_job(replace(JOB, finished_at=3.0))}, "flows: job 2 started before"),
        ({"tenants": {7: "other"}}, "5: job 1 of tenant other belongs to default"),
        ({"effects": [Effect(1, "other")]}, "5: job 1 of tenant default ran for other"),
        ({"looks": 0}, "5, 6: the light tenant was never shown a job"),
        ({"crashes": {"server": 2}}, "6: server ended by itself 2 times"),
        ({"leaks": ["tenant other saw job 1"]}, "5: tenant other saw job 1"),
    ],
)
def test_what_breaks_a_promise_is_found(changes, found):
    assert any(text.startswith(found) for text in broken(**changes)), broken(**changes)
