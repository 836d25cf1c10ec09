"""Which limit keys are granted now, and which may wait."""

from hypothesis import given
from hypothesis import strategies as st

from mainspring.domain.claiming.freed_places import FreedPlaces
from mainspring.domain.limits import LimitKey

A, B = LimitKey("api", "a", "acme"), LimitKey("api", "b", "acme")


def freed(*keys: LimitKey, places: int = 10) -> FreedPlaces:
    book = FreedPlaces({"api": places})
    book.add(keys, 0.0)
    return book


def test_everything_is_served_at_once_while_jobs_are_short():
    assert freed(A, B, A).take(10, 0.0, has_backlog=False) == [A, B]


def test_where_there_is_a_backlog_a_key_waits_until_half_of_its_places_are_free():
    book = freed(A, A, A, A, B)
    assert book.take(10, 0.0, has_backlog=True) == []

    book.add([A], 0.1)

    assert book.take(10, 0.1, has_backlog=True) == [A]
    assert book.take(10, 0.1, has_backlog=False) == [B]
    assert not book


def test_no_key_waits_longer_than_a_quarter_of_a_second():
    book = freed(A)

    assert book.until_next(0.1, has_backlog=True) == 0.15
    assert book.take(10, 0.25, has_backlog=True) == [A]


def test_a_key_with_few_places_does_not_wait():
    assert freed(A, places=3).take(10, 0.0, has_backlog=True) == [A]


def test_a_limit_that_counts_more_than_keys_now_does_not_wait():
    book = freed(A)
    book.learn(["api"], {})

    assert book.take(10, 0.0, has_backlog=True) == [A]


def test_a_key_with_more_to_let_go_does_not_wait():
    book = freed(B)
    book.add_urgent([A])

    assert book.until_next(0.0, has_backlog=True) == 0.0
    assert book.take(10, 0.0, has_backlog=True) == [A]


def test_no_more_are_taken_than_asked_for_and_the_first_come_first():
    book = freed(A, B)

    assert book.take(1, 0.0, has_backlog=False) == [A]
    assert book.until_next(0.0, has_backlog=False) == 0.0
    assert book.take(1, 0.0, has_backlog=False) == [B]
    assert book.until_next(0.0, has_backlog=False) is None


@given(
    st.lists(st.tuples(st.sampled_from([A, B]), st.floats(0, 0.1)), min_size=1),
    st.integers(1, 20),
    st.booleans(),
)
def test_what_came_free_is_served_once_and_in_time(arrivals, places, has_backlog):
    book = FreedPlaces({"api": places})
    for key, at in sorted(arrivals, key=lambda arrival: arrival[1]):
        book.add([key], at)

    taken = book.take(10, 0.35, has_backlog=has_backlog)

    assert set(taken) == {key for key, _ in arrivals}
    assert len(taken) == len(set(taken))
    assert not book
