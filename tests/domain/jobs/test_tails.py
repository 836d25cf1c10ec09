from hypothesis import given
from hypothesis import strategies as st

from mainspring.domain.jobs.tails import Tail


def test_nothing_added_is_no_text():
    assert Tail().text is None


def test_a_short_text_is_kept_whole():
    tail = Tail(10)
    tail.add("one ")
    tail.add("two")

    assert tail.text == "one two"


def test_of_a_long_text_the_end_is_kept_and_the_rest_counted():
    tail = Tail(4)
    tail.add("abcdef")
    tail.add("gh")

    assert tail.text == "... 4 characters omitted ...\nefgh"


@given(st.lists(st.text(max_size=30)), st.integers(1, 20), st.integers(0, 5))
def test_the_tail_is_that_of_the_whole_however_it_came(parts, limit, looks):
    tail = Tail(limit)
    for number, part in enumerate(parts):
        tail.add(part)
        if number < looks:
            assert tail.text is not None
    whole = "".join(parts)

    text = tail.text or ""
    assert text.endswith(whole[-limit:])
    assert len(text) <= limit + 60
    if len(whole) > limit:
        assert f" {len(whole) - limit} characters" in text
