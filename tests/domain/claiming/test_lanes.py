"""Lanes: where a claim starts, and when it looks below."""

import pytest

from mainspring.domain.claiming.lanes import (
    Lane,
    LaneBook,
    NamedJobs,
    ReadyLane,
    parse_named_jobs,
    parse_ready_lane,
)

A = Lane(100, "acme", "mail")
B = Lane(100, "zeta", "mail")
URGENT = Lane(0, "zeta", "mail")


def swept(*lanes: tuple[Lane, int], cost: float = 0.0) -> LaneBook:
    book = LaneBook()
    book.swept([ReadyLane(*lane) for lane in lanes], now=100.0, cost=cost)
    return book


def test_lanes_come_by_priority_then_tenant_then_queue():
    book = swept((B, 1), (A, 1), (URGENT, 1))

    assert sorted(book.marks) == [URGENT, A, B]


def test_a_sweep_marks_a_lane_just_before_its_first_job():
    assert swept((A, 7)).marks == {A: 6}


def test_a_claim_raises_the_mark_of_its_lane_and_never_lowers_it():
    book = swept((A, 7), (B, 3))
    book.claimed(A, 9)
    book.claimed(A, 8)

    assert book.marks == {A: 9, B: 2}


def test_a_lane_that_was_not_known_is_marked_too():
    book = LaneBook()
    book.claimed(A, 5)

    assert book.marks == {A: 5}


def test_a_sweep_sets_a_mark_back_to_what_appeared_below_it():
    book = swept((A, 7))
    book.claimed(A, 50)
    book.swept([ReadyLane(A, 20)], now=101.0, cost=0.0)

    assert book.marks == {A: 19}


def test_lanes_that_ran_dry_are_kept_but_not_without_end():
    book = swept(*((Lane(number, "acme", "mail"), 1) for number in range(100)))
    book.swept([ReadyLane(A, 1)], now=101.0, cost=0.0)

    assert len(book.marks) == 33
    assert Lane(99, "acme", "mail") in book.marks
    assert Lane(0, "acme", "mail") not in book.marks


def test_who_knows_no_lane_sweeps_at_once():
    assert LaneBook().is_sweep_due(0.0, is_busy=True)


@pytest.mark.parametrize(("now", "is_due"), [(100.99, False), (101.0, True)])
def test_a_busy_worker_sweeps_every_second(now, is_due):
    assert swept((A, 1)).is_sweep_due(now, is_busy=True) is is_due


def test_a_worker_that_ran_dry_sweeps_whenever_it_looks():
    assert swept((A, 1)).is_sweep_due(100.0, is_busy=False)


@pytest.mark.parametrize("is_busy", [True, False])
@pytest.mark.parametrize(("now", "is_due"), [(101.59, False), (101.61, True)])
def test_a_slow_sweep_is_followed_by_forty_times_its_duration(is_busy, now, is_due):
    assert swept((A, 1), cost=0.04).is_sweep_due(now, is_busy=is_busy) is is_due


def test_the_rest_before_a_sweep_is_never_negative():
    book = swept((A, 1), cost=0.04)

    assert book.until_sweep(101.0) == pytest.approx(0.6)
    assert book.until_sweep(200.0) == 0.0


@pytest.mark.parametrize(("first", "mark"), [(20, 9), (10, 9), (5, 4)])
def test_a_lane_that_is_announced_is_looked_at_from_there_or_from_where_it_was(first, mark):
    book = swept((A, 10))
    book.announced(ReadyLane(A, first))
    book.announced(ReadyLane(B, 30))

    assert book.marks == {A: mark, B: 29}


def test_a_busy_worker_in_a_hurry_sweeps_at_once_and_once():
    book = swept((A, 1))
    book.hurry()
    assert book.is_sweep_due(100.1, is_busy=True)

    book.swept([ReadyLane(A, 1)], now=100.1, cost=0.0)
    assert not book.is_sweep_due(100.2, is_busy=True)


def test_a_hurry_does_not_shorten_the_rest_after_a_slow_sweep():
    book = swept((A, 1), cost=0.04)
    book.hurry()

    assert not book.is_sweep_due(101.5, is_busy=True)


def test_news_of_a_lane_are_read():
    assert parse_ready_lane('["mail", 100, "acme", 7, 3]') == ReadyLane(A, 7, 3)


@pytest.mark.parametrize(
    "text",
    [
        *("", "nonsense", "7", "[]", "{}", "[" * 8000, '["mail", 100, "acme", 7]'),
        *('["mail", 100, "acme", 7, 0]', '["mail", 100, "acme", 7, 1001]'),
        *('["mail", -1, "acme", 7, 1]', '["mail", 1001, "acme", 7, 1]'),
        *('["mail", 100, "acme", 0, 1]', '["mail", 100, "acme", 1e30, 1]'),
        *('["mail", 100, "acme", 9223372036854775808, 1]', '["mail", true, "acme", 7, 1]'),
        *('["", 100, "acme", 7, 1]', '["mail", 100, "a\\u0000", 7, 1]'),
        *('["mail", 100, "\\ud800", 7, 1]', '[7, 100, "acme", 7, 1]'),
    ],
)
def test_what_is_no_news_is_passed_over(text):
    assert parse_ready_lane(text) is None


# Named jobs


def test_a_job_below_the_mark_is_looked_for_by_itself():
    book = LaneBook(marks={A: 100})

    book.name(A, [7, 9])

    assert book.marks == {A: 100}
    assert [span[:2] for span in book.spans(A, 5)] == [(6, 7), (8, 9), (100, 2**63 - 1)]
    assert [span.share for span in book.spans(A, 5)] == [1, 1, 5]


def test_a_job_behind_the_mark_is_found_anyway():
    book = LaneBook(marks={A: 100})

    book.name(A, [100, 101])

    assert [span.until for span in book.spans(A, 5)[:-1]] == [100]


def test_a_lane_that_was_not_known_is_looked_at_behind_what_was_named():
    book = LaneBook()

    book.name(A, [7, 9])

    assert book.marks == {A: 9}
    assert list(book.named[A]) == [7, 9]


def test_a_named_job_is_looked_for_until_it_was_found_or_is_gone():
    book = LaneBook(marks={A: 100})
    book.name(A, [7, 9])

    book.looked(A, 7)
    assert list(book.named[A]) == [9]
    book.looked(A, 9)
    assert book.named == {}


def test_no_more_jobs_are_remembered_than_a_sweep_is_worth():
    book = LaneBook(marks={A: 10**9})

    book.name(A, range(1, 20_000))

    assert len(book.named[A]) == 10_000
    assert len(book.spans(A, 1)) == 501


def test_named_jobs_are_read_from_a_notification():
    found = parse_named_jobs('["mail", 100, "acme", 3, [7, 9]]')

    assert found == NamedJobs(Lane(100, "acme", "mail"), [7, 9], 3)


@pytest.mark.parametrize(
    "text",
    [
        *("", "boo", "[]", "7", "null", '["mail", 100, "acme", 3, []]'),
        *('["mail", 100, "acme", 3, 7]', '["mail", 100, "acme", 3, ["x"]]'),
        *('["mail", 100, "acme", 3, [0]]', '["mail", 100, "acme", 0, [1]]'),
        *('["mail", 100, "acme", 3, [true]]', '["mail", 100, "\\u0000", 3, [1]]'),
        *('["mail", 100, "acme", 3, [9223372036854775808]]', "[" * 100_000),
    ],
)
def test_a_notification_that_names_no_jobs_is_ignored(text):
    assert parse_named_jobs(text) is None


# Floors


def test_a_slow_sweep_makes_the_next_look_above_the_marks_and_at_once():
    book = swept((A, 7), cost=3.0)

    assert book.is_dear
    assert book.floors == [(A, 6)]
    assert book.is_sweep_due(100.0, is_busy=False)
    assert not swept((A, 7), cost=0.04).is_dear


def test_a_sweep_above_the_marks_lowers_none_of_them():
    book = swept((A, 7), cost=3.0)
    book.claimed(A, 50)

    book.swept_above([ReadyLane(A, 60), ReadyLane(B, 9)], now=200.0, cost=0.01)

    assert book.marks == {A: 50, B: 8}
    assert not book.is_sweep_due(200.3, is_busy=False)
    assert book.is_sweep_due(200.5, is_busy=False)


def test_floors_are_taken_over_by_who_knows_nothing():
    book, busy = LaneBook(), LaneBook(marks={A: 9})
    for each in (book, busy):
        each.restore({A: 5, B: 6}, 3.0)

    assert (book.marks, book.is_dear) == ({A: 5, B: 6}, True)
    assert (busy.marks, busy.is_dear) == ({A: 9}, False)
