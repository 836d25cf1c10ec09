"""Places that other workers may use: who is notified, and who waits for whom."""

from mainspring.domain.claiming.elsewhere import Elsewhere
from mainspring.domain.limits import LimitKey

OWN = LimitKey("own", "", "default")
SHARED = LimitKey("shared", "", "default")


def knowing(*limits: str) -> Elsewhere:
    """A scan has found that jobs of other queues wait for these limits."""
    elsewhere = Elsewhere()
    elsewhere.scanned(limits)
    elsewhere.scan_ended()
    return elsewhere


def test_a_place_that_nobody_else_waits_for_is_served_at_once():
    assert list(knowing("shared").freed([OWN], 1.0, is_full=False)) == [OWN]


def test_a_shared_place_is_announced_and_left_alone_for_a_moment():
    elsewhere = knowing("shared")

    assert list(elsewhere.freed([SHARED], 1.0, is_full=False)) == []
    assert elsewhere.take_announced(1.0, is_full=False) == [SHARED]
    assert elsewhere.take_left_alone(1.01) == []
    assert elsewhere.take_left_alone(1.06) == [SHARED]
    assert elsewhere.take_left_alone(1.06) == []


def test_a_place_left_alone_in_vain_is_not_left_alone_again_for_a_second():
    elsewhere = knowing("shared")
    elsewhere.freed([SHARED], 1.0, is_full=False)
    elsewhere.take_left_alone(1.06)
    elsewhere.claimed({"shared"}, 1.06)

    assert list(elsewhere.freed([SHARED], 2.0, is_full=False)) == [SHARED]
    assert list(elsewhere.freed([SHARED], 2.1, is_full=False)) == []


def test_a_place_that_another_worker_took_is_left_alone_the_next_time():
    elsewhere = knowing("shared")
    elsewhere.freed([SHARED], 1.0, is_full=False)
    elsewhere.take_left_alone(1.06)
    elsewhere.claimed(set(), 1.06)
    elsewhere.claimed({"shared"}, 1.1)

    assert list(elsewhere.freed([SHARED], 1.2, is_full=False)) == []


def test_what_a_full_worker_cannot_use_is_announced():
    elsewhere = knowing()
    elsewhere.freed([OWN], 1.0, is_full=True)

    assert elsewhere.take_announced(1.01, is_full=True) == []
    assert elsewhere.take_announced(1.03, is_full=True) == [OWN]
    assert elsewhere.take_announced(2.0, is_full=True) == []


def test_what_was_looked_at_is_not_announced():
    elsewhere = knowing()
    elsewhere.freed([OWN], 1.0, is_full=True)
    elsewhere.taken([OWN])

    assert elsewhere.take_announced(1.03, is_full=True) == []


def test_a_limit_that_no_other_queue_waits_for_any_more_is_forgotten():
    elsewhere = knowing("shared")
    elsewhere.scan_ended()

    assert list(elsewhere.freed([SHARED], 1.0, is_full=False)) == [SHARED]
