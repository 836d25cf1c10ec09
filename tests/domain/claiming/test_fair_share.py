"""Fair share: whose jobs are claimed, how many, and in which order they start."""

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mainspring.domain.claiming.fair_share import FairShare
from mainspring.domain.claiming.lanes import Lane, ReadyLane

A, B, C = (Lane(100, name, "mail") for name in ("acme", "bell", "core"))
URGENT = Lane(0, "acme", "mail")
Backlog = dict[Lane, list[int]]


def shares_of(weights: Mapping[Lane, int]) -> FairShare:
    shares = FairShare()
    shares.swept([ReadyLane(lane, 1, weight) for lane, weight in weights.items()], {})
    return shares


def backlog_of(counts: Mapping[Lane, int]) -> Backlog:
    return {lane: list(range(count)) for lane, count in counts.items()}


def visit(backlog: Backlog, visits: list[tuple[Lane, int]], places: int) -> Backlog:
    """What the statement does: each lane gives up to its share, all together up to the places."""
    taken: Backlog = {}
    left = places
    for lane, share in visits:
        count = min(share, left, len(backlog.get(lane, [])))
        if count:
            taken[lane], backlog[lane] = backlog[lane][:count], backlog[lane][count:]
        left -= count
    return taken


def claim(
    shares: FairShare, backlog: Backlog, places: int, buffered: Mapping[Lane, int] | None = None
) -> Backlog:
    """What a worker does: visits until there is enough or nothing left."""
    claimed: Backlog = {}
    left = set(backlog)
    while left and places:
        visits = shares.plan(left, places, buffered or {})
        taken = visit(backlog, visits, places)
        left -= set(shares.claimed(visits, counts(taken), places))
        for lane, jobs in taken.items():
            claimed.setdefault(lane, []).extend(jobs)
            places -= len(jobs)
    return claimed


def counts(claimed: Backlog) -> dict[Lane, int]:
    return {lane: len(jobs) for lane, jobs in claimed.items()}


# One lane, and several


def test_a_lane_alone_is_one_visit_that_may_give_everything():
    assert shares_of({A: 5}).plan([A], 1000, {}) == [(A, 1000)]


def test_equal_lanes_get_equal_shares():
    claimed = claim(shares_of({A: 1, B: 1}), backlog_of({A: 100, B: 100}), 10)

    assert counts(claimed) == {A: 5, B: 5}


def test_shares_go_by_weight():
    claimed = claim(shares_of({A: 1, B: 3}), backlog_of({A: 100, B: 100}), 40)

    assert counts(claimed) == {A: 10, B: 30}


def test_weights_that_are_large_and_equal_alternate_one_by_one():
    shares, backlog = shares_of({A: 500, B: 500}), backlog_of({A: 100, B: 100})

    assert [list(claim(shares, backlog, 1)) for _ in range(4)] == [[A], [B], [A], [B]]


def test_a_claim_goes_on_where_the_last_one_stopped():
    lanes = [Lane(100, f"tenant{number}", "mail") for number in range(5)]
    shares, backlog = shares_of(dict.fromkeys(lanes, 1)), backlog_of(dict.fromkeys(lanes, 9))

    first, second, third = (set(claim(shares, backlog, 2)) for _ in range(3))

    assert len(first | second) == 4
    assert first | second | third == set(lanes)


def test_what_a_lane_does_not_use_is_borrowed():
    claimed = claim(shares_of({A: 1, B: 1, C: 1}), backlog_of({A: 100, B: 2, C: 0}), 30)

    assert counts(claimed) == {A: 28, B: 2}


def test_who_borrowed_owes_nothing():
    shares, backlog = shares_of({A: 1, B: 1}), backlog_of({A: 1000, B: 0})
    claim(shares, backlog, 500)

    backlog[B] = list(range(100))
    shares.announced(B, 1, {})

    assert counts(claim(shares, backlog, 20)) == {A: 10, B: 10}


def test_who_stood_idle_has_saved_nothing_up():
    shares, backlog = shares_of({A: 1}), backlog_of({A: 1000})
    claim(shares, backlog, 500)
    shares.swept([ReadyLane(A, 501), ReadyLane(B, 1)], {})
    backlog[B] = list(range(500))

    assert counts(claim(shares, backlog, 20)) == {A: 10, B: 10}


def test_after_a_time_without_work_all_begin_alike():
    shares, backlog = shares_of({A: 1}), backlog_of({A: 500})
    claim(shares, backlog, 1000)
    shares.swept([ReadyLane(A, 1), ReadyLane(B, 1)], {})

    assert counts(claim(shares, backlog_of({A: 99, B: 99}), 20)) == {A: 10, B: 10}


# Priorities, and lanes that were found empty


def test_an_urgent_lane_is_emptied_first():
    claimed = claim(shares_of({A: 1, URGENT: 1}), backlog_of({A: 100, URGENT: 7}), 10)

    assert counts(claimed) == {URGENT: 7, A: 3}


def test_lanes_alone_in_their_priorities_are_one_statement():
    assert shares_of({A: 1, URGENT: 1}).plan([A, URGENT], 10, {}) == [(URGENT, 10), (A, 10)]


def test_no_other_priority_is_visited_while_lanes_share_one():
    late = Lane(500, "acme", "mail")

    visits = shares_of({A: 1, B: 1, late: 1}).plan([A, B, late], 10, {})

    assert visits == [(A, 5), (B, 5)]


def test_lanes_that_are_all_empty_are_asked_in_one_statement():
    assert FairShare().plan([B, A, URGENT], 10, {}) == [(URGENT, 10), (A, 10), (B, 10)]


def test_an_empty_lane_is_asked_for_its_share_before_the_others():
    shares = shares_of({A: 1})

    assert shares.plan([A, B], 10, {}) == [(B, 5), (A, 10)]


def test_a_claim_of_one_place_asks_every_lane_that_was_empty():
    shares, backlog = shares_of({A: 1, B: 1, C: 1}), backlog_of({A: 100, B: 1, C: 1})
    for _ in range(6):
        claim(shares, backlog, 1)

    backlog |= backlog_of({B: 5, C: 5})
    started = [next(iter(claim(shares, backlog, 1))) for _ in range(15)]

    assert {lane: started.count(lane) for lane in (A, B, C)} == {A: 5, B: 5, C: 5}


def test_a_lane_that_gave_less_than_its_share_is_empty():
    shares = shares_of({A: 1, B: 1})

    assert shares.claimed([(A, 5), (B, 5)], {A: 3, B: 5}, 10) == [A]
    assert shares.backlogged == {B}


def test_a_lane_that_was_cut_off_is_not_taken_for_empty():
    shares = shares_of({A: 1, B: 1, C: 1})

    assert shares.claimed([(C, 3), (A, 5), (B, 5)], {C: 3, A: 5, B: 2}, 10) == []
    assert shares.backlogged == {A, B, C}


def test_lanes_that_are_neither_known_nor_buffered_are_forgotten():
    shares = shares_of({A: 1, B: 2, C: 1})

    shares.forget({A}, {B: 1})

    assert set(shares.virtual_times) == set(shares.weights) == {A, B}


# The buffer


def test_a_newcomer_is_claimed_for_first_while_another_holds_many():
    shares, backlog = shares_of({A: 1}), backlog_of({A: 5000})
    claim(shares, backlog, 2000)

    shares.announced(B, 1, {A: 2000})
    backlog[B] = list(range(300))

    assert counts(claim(shares, backlog, 400, {A: 2000})) == {B: 300, A: 100}


def test_a_newcomers_jobs_start_between_those_that_were_claimed_before():
    shares, backlog = shares_of({A: 1}), backlog_of({A: 5000})
    ahead = claim(shares, backlog, 2000)[A]
    shares.announced(B, 1, {A: 2000})
    backlog[B] = list(range(100))
    new = claim(shares, backlog, 100, {A: 2000})

    order = shares.in_order({A: [f"a{n}" for n in ahead], B: [f"b{n}" for n in new[B]]})

    assert order[:4] == ["a0", "b0", "a1", "b1"]
    assert order.index("b99") == 199


def test_urgent_jobs_start_before_all_others():
    assert FairShare().in_order({A: ["a"], URGENT: ["u", "v"], B: ["b"]}) == ["u", "v", "a", "b"]


# Whatever the weights and sizes

weights = st.integers(1, 1000)
lanes = st.dictionaries(
    st.builds(Lane, st.just(100), st.sampled_from("abcdefgh"), st.just("mail")),
    weights,
    min_size=2,
)
sizes = st.lists(st.integers(1, 60), min_size=1, max_size=30)


@given(lanes, sizes)
def test_lanes_that_always_have_work_get_their_share_to_within_a_job(weights, sizes):
    shares, backlog = shares_of(weights), backlog_of(dict.fromkeys(weights, 2000))

    for places in sizes:
        claim(shares, backlog, places)

    had = {lane: (2000 - len(backlog[lane])) / weight for lane, weight in weights.items()}
    for one, weight in weights.items():
        for other, another in weights.items():
            assert had[one] - had[other] <= 1 / weight + 1 / another + 1e-6


@given(lanes, sizes, st.data())
def test_no_lane_waits_longer_than_the_bound(weights, sizes, data):
    shares, backlog = shares_of(weights), backlog_of(dict.fromkeys(weights, 4000))
    mine = data.draw(st.sampled_from(sorted(weights)))
    others = sum(weights.values()) - weights[mine]

    for places in sizes:
        claim(shares, backlog, places)
        gone = {lane: 4000 - len(jobs) for lane, jobs in backlog.items()}
        rest = sum(gone.values()) - gone[mine]
        # The next job of mine is number n; so many of the others may have gone before it.
        bound = (gone[mine] + 1) * others / weights[mine] + len(weights) - 1
        assert rest <= bound + 1e-6


@settings(max_examples=50)
@given(
    st.dictionaries(
        st.builds(Lane, st.sampled_from([0, 100]), st.sampled_from("abcd"), st.just("mail")),
        st.tuples(weights, st.integers(0, 40)),
        min_size=1,
    ),
    st.lists(st.integers(1, 50), min_size=1, max_size=8),
    st.data(),
)
def test_no_place_stays_empty_while_there_is_work_and_priority_is_strict(known, sizes, data):
    shares = shares_of({lane: weight for lane, (weight, _) in known.items()})
    shares.backlogged = set(data.draw(st.lists(st.sampled_from(sorted(known)), unique=True)))
    backlog = backlog_of({lane: size for lane, (_, size) in known.items()})

    for places in sizes:
        there = sum(map(len, backlog.values()))
        claimed = claim(shares, backlog, places)
        assert sum(map(len, claimed.values())) == min(places, there)
        if any(lane.priority == 100 for lane in claimed):
            assert not any(jobs for lane, jobs in backlog.items() if lane.priority == 0)


@given(
    st.dictionaries(
        st.builds(Lane, st.integers(0, 2), st.sampled_from("abc"), st.just("mail")),
        st.tuples(weights, st.integers(1, 30)),
        min_size=1,
    )
)
def test_the_buffer_loses_nothing_and_each_lane_keeps_its_order(known):
    shares = shares_of({lane: weight for lane, (weight, _) in known.items()})
    waiting = {lane: [(lane, n) for n in range(size)] for lane, (_, size) in known.items()}

    order = shares.in_order(waiting)

    assert [lane.priority for lane, _ in order] == sorted(lane.priority for lane, _ in order)
    for lane, jobs in waiting.items():
        assert [job for job in order if job[0] == lane] == jobs
    assert len(order) == sum(map(len, waiting.values()))


@given(weights, weights, st.integers(1, 200), st.integers(0, 2000))
def test_a_newcomer_waits_for_no_more_than_the_bound(weight, other, count, ahead):
    shares = shares_of({A: other})
    claim(shares, backlog_of({A: ahead}), ahead)
    shares.announced(B, weight, {A: ahead})
    shares.claimed([(B, count)], {B: count}, count)

    order = shares.in_order({A: [A] * ahead, B: [B] * count})

    last = max(place for place, lane in enumerate(order) if lane == B)
    assert order[:last].count(A) <= count * other / weight + 1


def test_a_claim_that_gave_nothing_leaves_nobody_waiting_for_ever():
    shares = shares_of({A: 1, B: 1})

    assert claim(shares, {A: [], B: []}, 10) == {}
    assert shares.backlogged == set()


@pytest.mark.parametrize("places", [1, 7, 1000])
def test_a_hundred_lanes_in_any_batch_all_get_the_same(places):
    lanes = [Lane(100, f"tenant{number}", "mail") for number in range(100)]
    shares, backlog = shares_of(dict.fromkeys(lanes, 1)), backlog_of(dict.fromkeys(lanes, 100))
    for _ in range(1000 // places):
        claim(shares, backlog, places)

    had = {100 - len(jobs) for jobs in backlog.values()}
    assert max(had) - min(had) <= 1


def test_what_was_given_back_unstarted_costs_a_lane_nothing():
    shares = shares_of({A: 1, B: 1})
    backlog = backlog_of({A: 100, B: 10})
    taken = claim(shares, backlog, 10)
    assert counts(taken) == {A: 5, B: 5}

    # Only what B had given came back; what A had given has started.
    shares.returned({B: 5})
    backlog[B] = taken[B] + backlog[B]

    assert counts(claim(shares, backlog, 5)) == {B: 5}


# Jobs that wait for limits


def test_without_a_backlog_jobs_of_limits_are_held_to_no_share():
    assert FairShare().limited_shares(["acme"], 10, {}) == (1000, None)


def test_jobs_of_limits_get_the_share_that_their_tenant_would_have():
    shares = shares_of({A: 1, B: 1})

    assert shares.limited_shares(["core"], 30, {}) == (100, {"core": 10})


def test_a_tenant_with_work_of_both_kinds_gives_half_of_its_share_of_each():
    shares = shares_of({A: 1, B: 1})

    given = [(shares.limited_shares(["acme"], 2, {}).shares or {})["acme"] for _ in range(4)]

    assert sorted(given) == [0, 0, 1, 1]


def test_only_the_most_urgent_lanes_hold_jobs_of_limits_back():
    shares = shares_of({URGENT: 1, B: 1, C: 1})

    assert shares.limited_shares(["bell"], 10, {}) == (0, {"bell": 5})


def test_what_jobs_of_limits_took_counts_in_the_next_share():
    shares = shares_of({A: 1})
    shares.claimed_limited({B: 6}, {"bell": 2}, {})
    shares.backlogged.add(A)

    # Six jobs of weight two are worth three of weight one.
    claimed = claim(shares, backlog_of({A: 100}), 3, {B: 6})
    assert counts(claimed) == {A: 3}
    assert shares.virtual_times[B] == shares.virtual_times[A] == 3.0


def test_jobs_of_limits_that_go_back_cost_nothing():
    shares = shares_of({A: 1})
    shares.claimed_limited({B: 6}, {}, {})
    shares.returned_limited({B: 6})

    assert shares.virtual_times[B] == 0.0
    assert B not in shares.backlogged


def single_claims(weight: int, limited_weight: int, *, is_forgetful: bool) -> str:
    """Who gives the job of each of forty claims: a tenant with a backlog or one whose jobs wait for
    limits. A claimer without a buffer sweeps before each of them."""
    shares, given = shares_of({A: weight}), ""
    for _ in range(40):
        if is_forgetful:
            shares.swept([ReadyLane(A, 1, weight)], {})
            shares.forget({A}, {})
        share = (shares.limited_shares(["bell"], 1, {}).shares or {})["bell"]
        if share:
            shares.claimed_limited({B: 1}, {"bell": limited_weight}, {})
        else:
            shares.claimed([(A, 1)], {A: 1}, 1)
        given += "limited " if share else "other "
    return given


@pytest.mark.parametrize("is_forgetful", [True, False])
@pytest.mark.parametrize(("weight", "limited_weight"), [(1, 1), (4, 1), (1, 4), (3, 2)])
def test_single_claims_serve_limited_and_other_jobs_by_weight(weight, limited_weight, is_forgetful):
    given = single_claims(weight, limited_weight, is_forgetful=is_forgetful)

    expected = 40 * limited_weight / (weight + limited_weight)
    assert abs(given.count("limited") - expected) <= 2


@pytest.mark.parametrize("name", ["aaaa", "zzzz"])
def test_whose_jobs_wait_for_limits_is_served_first_whatever_the_name(name):
    shares = shares_of({Lane(100, "mmmm", "default"): 1})

    assert shares.limited_shares([name], 1, {}).shares == {name: 1}


def test_a_tenant_that_waited_for_a_full_limit_has_saved_up_no_more_than_its_weight():
    shares = shares_of({A: 1})
    shares.claimed_limited({B: 1}, {"bell": 2}, {})
    shares.claimed([(A, 500)], {A: 500}, 500)

    assert (shares.limited_shares(["bell"], 100, {}).shares or {})["bell"] <= 2 * 100 / 3 + 2
