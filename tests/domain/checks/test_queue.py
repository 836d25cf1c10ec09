"""The queue: both sides of every bound."""

from dataclasses import replace

import pytest

from mainspring.domain.batches import Aside
from mainspring.domain.checks import queue
from mainspring.domain.checks.queue import LiveWorker, Losses, Orphans, StuckWait, Unhandled

WORKER = LiveWorker("w", "h1", "1.0", 0.0)


def severities(found) -> list[str]:
    return [str(each.severity) for each in found]


@pytest.mark.parametrize(("count", "expected"), [(0, []), (1, ["warning"])])
def test_running_jobs_need_a_worker(count, expected):
    assert severities(queue.orphans(Orphans(count, 7))) == expected


@pytest.mark.parametrize("wait", ["time", "turn", "parents", "handler"])
@pytest.mark.parametrize(
    ("seconds", "workers", "expected"),
    [(30, 1, []), (31, 1, ["critical"]), (30, 0, []), (31, 0, ["warning"])],
)
def test_a_wait_may_end_half_a_minute_late(wait, seconds, workers, expected):
    stuck = StuckWait(wait, 1, 7, seconds)

    assert severities(queue.stuck_waits([stuck], [], workers)) == expected


def test_a_job_that_is_set_aside_is_found():
    aside = Aside("promote", key=7, tries=3, seconds_left=9.0, reason="index row too large")

    (found,) = queue.stuck_waits([], [aside], 1)

    assert found.fact == "job 7 was set aside by promote 3 times: index row too large"


@pytest.mark.parametrize(("count", "expected"), [(0, []), (1, ["note"]), (2, [])])
def test_one_worker_is_noted(count, expected):
    assert severities(queue.unserved([], [WORKER] * count)) == expected


@pytest.mark.parametrize(("seconds", "expected"), [(300, []), (301, ["warning"])])
def test_jobs_may_wait_five_minutes_for_a_deployment(seconds, expected):
    assert severities(queue.unhandled([Unhandled("send", 1, seconds)])) == expected


@pytest.mark.parametrize(
    ("lost", "late", "expected"), [(0, 0, []), (1, 0, ["warning"]), (0, 1, ["warning"])]
)
def test_lost_and_late_attempts_are_found(lost, late, expected):
    assert severities(queue.losses(Losses(lost, late))) == expected


@pytest.mark.parametrize(("seconds", "expected"), [(86_400, []), (86_401, ["warning"])])
def test_versions_may_differ_for_a_day(seconds, expected):
    workers = [
        replace(WORKER, seconds=1e6),
        LiveWorker("v", "h2", "1.1", seconds),
        LiveWorker("u", "h2", "1.1", 1.0),
    ]

    assert severities(queue.versions(workers)) == expected


def test_one_host_for_all_workers_is_noted():
    assert severities(queue.versions([WORKER, WORKER])) == ["note"]
    assert queue.versions([WORKER]) == []
