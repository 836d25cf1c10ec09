"""What counts as waiting, and both sides of every bound."""

from dataclasses import replace

import pytest

from chaos.histories import (
    RECONNECT_SECONDS,
    Attempt,
    Availability,
    Event,
    History,
    Hold,
    Job,
    Slot,
    Worker,
)
from chaos.waits import BOUNDS, HEAVY, LEASE_SECONDS, LONGEST_RUN_SECONDS, Wait, late, waits

END = 200.0
ALWAYS = [(0.0, END)]
A, B = 1, 2
JOB = Job(1, "plain", "succeeded", None, 7, ready_at=10.0, finished_at=190.0)


def worker(number, up=ALWAYS, queues=("default",)):
    return Worker(f"worker-{number}", frozenset(queues), frozenset({number}), up)


def history(*jobs, starts=None, **facts):
    """Of jobs that started at `starts`; two workers and a scheduler are there all the time."""
    facts.setdefault("availability", Availability([worker(A), worker(B)], schedulers=[ALWAYS]))
    attempts = [Attempt(job_id, 1, "succeeded", at, at) for job_id, at in (starts or {}).items()]
    return History({}, set(), jobs, attempts, [], ended_at=END, **facts)


def seconds(kind, past):
    (wait,) = [each for each in waits(past) if each.kind == kind]
    return pytest.approx(wait.seconds)


def with_workers(*workers, away=()):
    return Availability(workers, schedulers=[ALWAYS], database_away=away)


def _parents(end):
    parent = replace(JOB, job_id=2, ready_at=9.0, finished_at=10.0)
    child = replace(JOB, definition="step", ready_at=1.0, parents=(2,))
    return history(parent, child, starts={1: end, 2: 9.0})


def _approval(end):
    job = replace(JOB, definition="approved", ready_at=1.0, approved_at=10.0)
    return history(job, starts={1: end})


def _recovered(end):
    broken = with_workers(worker(A, [(0.0, 10.0)]), worker(B))
    holds = [Hold(1, A, 9.0, end), Hold(1, B, end)]
    job = replace(JOB, ready_at=9.0)
    return history(job, starts={1: 9.0}, holds=holds, availability=broken)


def _suspect(end):
    broken = with_workers(worker(A, [(0.0, 9.0)]), worker(B))
    holds = [Hold(1, A, 8.0, 9.5, fence=1), Hold(1, B, 10.0, fence=2)]
    past = history(replace(JOB, ready_at=8.0), holds=holds, availability=broken)
    lost, good = Attempt(1, 1, "lost", 8.0, 9.5), Attempt(1, 2, "succeeded", end, end)
    return replace(past, attempts=[lost, good])


def _retried(end):
    return history(JOB, starts={1: 10.0}, holds=[Hold(1, A, 10.0, 10.0), Hold(1, B, end)])


def _limit(end):
    return history(replace(JOB, definition="limited"), holds=[Hold(1, A, end)])


# A history for each kind in which only that wait lasted, from 10 s to the end that is given.
HISTORIES = {
    "ready": lambda end: history(JOB, starts={1: end}),
    "delayed": lambda end: history(replace(JOB, is_delayed=True), starts={1: end}),
    "backlog": lambda end: history(replace(JOB, tenant=HEAVY), starts={1: end}),
    "approval": _approval,
    "parents": _parents,
    "retried": _retried,
    "recovered": _recovered,
    "suspect": _suspect,
    "limit": _limit,
    "slot": lambda end: history(slots=[Slot(10.0, end, "enqueued")]),
    "event": lambda end: history(events=[Event(1, 10.0, end)]),
}


@pytest.mark.parametrize("kind", BOUNDS)
def test_a_wait_just_under_its_bound_passes(kind):
    found = waits(HISTORIES[kind](10.0 + BOUNDS[kind] - 0.1))

    assert kind in {wait.kind for wait in found}
    assert late(found) == []


@pytest.mark.parametrize("kind", BOUNDS)
def test_a_wait_just_over_its_bound_is_late(kind):
    (violation,) = late(waits(HISTORIES[kind](10.0 + BOUNDS[kind] + 0.1)))

    assert violation.promise == "liveness"


def test_what_was_late_is_told_with_its_times():
    (violation,) = late([Wait("ready", "job 1", 10.0, 110.0, 100.0)])

    assert violation.text.startswith("job 1 waited 100.0 s (enqueued → started), at most")
    assert violation.text.endswith("from 10.0 s to 110.0 s")


def test_a_fault_of_one_worker_excuses_nothing_while_another_is_live():
    often = [(float(at), at + 1.0) for at in range(0, 200, 2)]
    past = history(JOB, starts={1: 110.0}, availability=with_workers(worker(A, often), worker(B)))

    assert seconds("ready", past) == 100.0


def test_time_without_a_worker_of_the_queue_is_excused_and_the_rest_adds_up():
    ups = [(0.0, 12.0), (40.0, 43.0), (60.0, END)]
    past = history(JOB, starts={1: 61.0}, availability=with_workers(worker(A, ups)))

    assert seconds("ready", past) == 2.0 + 3.0 + 1.0


def test_a_live_worker_of_another_queue_does_not_serve():
    others = with_workers(worker(A, [(0.0, 12.0)]), worker(B, queues=("far",)))
    past = history(JOB, starts={1: 50.0}, availability=others)

    assert seconds("ready", past) == 2.0


def test_time_without_the_database_is_excused_with_the_time_to_connect_again():
    away = with_workers(worker(A), away=[(20.0, 30.0)])
    past = history(JOB, starts={1: 50.0}, availability=away)

    assert seconds("ready", past) == 40.0 - 10.0 - RECONNECT_SECONDS


def test_a_worker_that_broke_excuses_its_own_job_until_it_is_released():
    """10 enqueued, 11 claimed by A, 12 broken, 15 released, 17 started by B."""
    broken = with_workers(worker(A, [(0.0, 12.0)]), worker(B))
    holds = [Hold(1, A, 11.0, 15.0), Hold(1, B, 17.0)]
    past = history(JOB, starts={1: 17.0}, holds=holds, availability=broken)

    assert seconds("ready", past) == 2.0 + 2.0
    assert seconds("recovered", past) == 5.0


def test_what_a_worker_survived_did_not_take_its_job():
    """A is blocked from 12 to 13 and killed at 40."""
    broken = with_workers(worker(A, [(0.0, 12.0), (13.0, 40.0)]), worker(B))
    holds = [Hold(1, A, 11.0, 43.0), Hold(1, B, 44.0)]
    past = history(JOB, starts={1: 11.0}, holds=holds, availability=broken)

    assert seconds("recovered", past) == 4.0


def test_a_worker_that_is_live_does_not_excuse_the_job_it_holds():
    past = history(JOB, starts={1: 50.0}, holds=[Hold(1, A, 11.0)])

    assert seconds("ready", past) == 40.0


def test_a_job_that_never_started_waits_until_the_end():
    past = history(replace(JOB, state="queued", finished_at=None))

    assert seconds("ready", past) == END - 10.0


def test_a_job_that_a_broken_worker_keeps_waits_until_the_end():
    broken = with_workers(worker(A, [(0.0, 50.0)]), worker(B))
    job = replace(JOB, state="running", finished_at=None)
    past = history(job, starts={1: 11.0}, holds=[Hold(1, A, 11.0)], availability=broken)

    assert seconds("recovered", past) == END - 50.0


def test_a_suspect_that_is_put_back_waits_on():
    past = HISTORIES["suspect"](40.0)
    lost, held = past.holds
    put_back = replace(held, released_at=20.0, fence=5)
    past.holds = [lost, put_back, replace(held, claimed_at=21.0)]

    assert seconds("suspect", past) == 30.0


def test_a_suspect_that_is_lost_again_waited_until_its_last_run_can_have_begun():
    past = HISTORIES["suspect"](40.0)
    lost, held = past.holds
    past.holds = [lost, replace(held, released_at=30.0)]
    past.attempts = [past.attempts[0], Attempt(1, 2, "lost", 10.0, 30.0)]

    assert seconds("suspect", past) == 20.0 - LONGEST_RUN_SECONDS


def test_a_job_whose_parents_have_not_ended_does_not_wait_for_them_yet():
    parent = replace(JOB, job_id=2, finished_at=None)
    past = history(parent, replace(JOB, parents=(2,)), starts={2: 10.0})

    assert "parents" not in {wait.kind for wait in waits(past)}


def limited(*holds):
    jobs = [
        replace(JOB, job_id=hold.job_id, definition="limited", finished_at=hold.claimed_at + 10.0)
        for hold in holds
    ]
    return history(*jobs, holds=holds)


def test_a_limit_that_is_full_keeps_nobody_waiting():
    past = limited(Hold(1, A, 10.0), Hold(2, A, 10.0), Hold(3, A, 20.0))

    assert "limit" not in {wait.kind for wait in waits(past)}


def test_a_free_place_counts_from_one_claim_to_the_next():
    past = limited(Hold(1, A, 13.0), Hold(2, A, 15.0), Hold(3, A, 25.0))

    found = [wait.seconds for wait in waits(past) if wait.kind == "limit"]

    assert found == pytest.approx([3.0, 2.0, 2.0])


def test_a_place_that_a_dead_worker_has_is_free_after_its_lease():
    broken = with_workers(worker(A, [(0.0, 12.0)]), worker(B))
    dead = replace(JOB, definition="keyed", key="k", finished_at=100.0)
    past = history(
        dead,
        replace(dead, job_id=2),
        holds=[Hold(1, A, 10.0, 50.0), Hold(1, B, 60.0), Hold(2, B, 50.0)],
        availability=broken,
    )

    longest = max(wait.seconds for wait in waits(past) if wait.kind == "limit")

    assert longest == pytest.approx(50.0 - 12.0 - LEASE_SECONDS - 2)


def test_a_key_waits_for_its_own_place_only():
    one = replace(JOB, definition="keyed", key="a", finished_at=100.0)
    other = replace(one, job_id=2, key="b")
    past = history(one, other, holds=[Hold(1, A, 10.0), Hold(2, A, 30.0)])

    (wait,) = [each for each in waits(past) if each.kind == "limit"]

    assert wait.what == "limit keyed of key b"
    assert wait.seconds == pytest.approx(20.0)


@pytest.mark.parametrize(
    "facts", [{"slots": [Slot(10.0, 60.0, "enqueued")]}, {"events": [Event(1, 10.0, 60.0)]}]
)
def test_slots_and_events_are_excused_while_no_scheduler_is_live(facts):
    one, other = [(0.0, 12.0)], [(11.0, 15.0), (59.0, END)]
    past = history(availability=Availability(schedulers=[one, other]), **facts)

    (wait,) = waits(past)

    assert wait.seconds == pytest.approx(5.0 + 1.0)


def test_an_event_that_nobody_dispatched_waits_until_the_end():
    assert seconds("event", history(events=[Event(1, 10.0, None)])) == END - 10.0
