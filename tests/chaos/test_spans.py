"""Sets of instants."""

from chaos import spans

INFINITY = float("inf")


def test_union_joins_what_overlaps_or_touches():
    assert spans.union([(4, 5), (1, 2), (2, 3), (2.5, 2.7)]) == [(1, 3), (4, 5)]


def test_union_drops_what_is_empty():
    assert spans.union([(2, 2), (3, 1)]) == []


def test_common_is_what_both_have():
    assert spans.common([(0, 4), (6, 9)], [(3, 7), (8, 20)]) == [(3, 4), (6, 7), (8, 9)]


def test_without_cuts_holes():
    assert spans.without([(0, 10)], [(2, 3), (9, 12)]) == [(0, 2), (3, 9)]


def test_gaps_reach_to_both_ends():
    assert spans.gaps([(1, 2)]) == [(-INFINITY, 1), (2, INFINITY)]


def test_within_an_empty_span_is_nothing():
    assert spans.within([(0, 10)], 5, 5) == []


def test_busy_needs_so_many_at_once():
    assert spans.busy([(0, 4), (2, 6), (5, 8)], 2) == [(2, 4), (5, 6)]
    assert spans.busy([(0, 4), (2, 6), (5, 8)], 3) == []


def test_busy_goes_on_when_one_ends_as_another_begins():
    assert spans.busy([(0, 4), (4, 6)], 1) == [(0, 6)]
