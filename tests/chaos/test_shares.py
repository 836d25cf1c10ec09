"""Fair share, as `make chaos` judges it."""

from chaos.histories import Availability, History, Hold, Job, Worker
from chaos.shares import LIGHT, most_before, starved
from chaos.waits import HEAVY

MOST = int(most_before(1, 1))
WORKERS = Availability([Worker("worker", frozenset({"default"}), frozenset({1}), [(0.0, 99.0)])])


def past(heavy, *, ready_at=10.0, definition="plain"):
    """So many jobs of the heavy tenant are claimed while one of the light one waits."""
    light = Job(0, definition, "succeeded", None, 1, ready_at, 90.0, tenant=LIGHT)
    others = [
        Job(number, "bulk", "succeeded", None, 2, 1.0, 90.0, tenant=HEAVY)
        for number in range(1, heavy + 1)
    ]
    holds = [Hold(0, 1, 80.0), *(Hold(job.job_id, 1, 50.0) for job in others)]
    return History({}, set(), [light, *others], [], [], holds, ended_at=99.0, availability=WORKERS)


def test_a_light_tenant_may_let_its_share_of_the_heavy_one_go_first():
    assert starved(past(MOST)) == []


def test_a_light_tenant_that_lets_more_go_first_is_starved():
    (violation,) = starved(past(MOST + 1))

    assert violation.text.startswith(f"{MOST + 1} jobs of the heavy tenant started before job 0")


def test_what_started_before_the_job_was_ready_does_not_count():
    assert starved(past(MOST + 1, ready_at=60.0)) == []


def test_each_worker_and_each_ready_job_adds_to_the_bound():
    assert most_before(1, 3) == 3 * most_before(1, 1)
    assert most_before(2, 1) == most_before(1, 1) + 2
