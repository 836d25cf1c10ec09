"""PrefetchRate: how far ahead a worker claims."""

import pytest

from mainspring.domain.claiming.prefetch import PrefetchRate


def paced(rate: float, *, most: int = 2000) -> PrefetchRate:
    """A pace that has just measured this many jobs a second."""
    pace = PrefetchRate(most)
    pace.finished(int(rate / 10), 0.1)
    return pace


def test_who_has_finished_nothing_claims_nothing_ahead():
    assert PrefetchRate(2000).ahead() == 0


def test_a_tenth_of_a_second_of_work_is_claimed_ahead():
    assert paced(1000).ahead() == 100


def test_no_more_than_the_limit_is_claimed_ahead():
    assert paced(1_000_000).ahead() == 2000
    assert paced(1_000_000, most=0).ahead() == 0


@pytest.mark.parametrize(("now", "ahead"), [(0.019, 0), (0.02, 100)])
def test_jobs_are_counted_until_a_window_is_full(now, ahead):
    pace = PrefetchRate(2000)
    pace.finished(10, now / 2)
    pace.finished(10, now)

    assert pace.ahead() == ahead


def test_a_faster_rate_counts_at_once_and_a_slower_one_by_half():
    pace = paced(1000)
    pace.finished(400, 0.2)
    assert pace.rate == pytest.approx(4000)
    pace.finished(0, 0.3)
    assert pace.rate == pytest.approx(2000)


def test_a_stall_forgets_the_rate():
    pace = paced(1000)
    pace.stall()

    assert pace.ahead() == 0
