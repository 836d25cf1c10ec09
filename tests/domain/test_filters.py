"""The values of filters, and pages of lists that are read in parts."""

import pytest

from mainspring.domain.errors import InvalidOption
from mainspring.domain.filters import MOST_VALUES, texts, words
from mainspring.domain.jobs.filters import JobFilter
from mainspring.domain.pages import merge_pages
from mainspring.domain.types import JobState


def test_a_filter_takes_one_value_several_or_none():
    assert texts("queue", None) == ()
    assert texts("queue", "mail") == ("mail",)
    assert texts("queue", ["mail", "bulk", "mail"]) == ("mail", "bulk")
    assert words("state", {"queued"}, JobState) == (JobState.QUEUED,)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"state": "runing"}, "state must be one of .*, not 'runing'; did you mean running"),
        ({"state": 7}, "state must be a string or a list, not int"),
        ({"queue": [7]}, "queue must be a string, not int"),
        ({"queue": [""]}, "queue must not be empty"),
        ({"created_after": "now"}, "created_after must be a datetime"),
    ],
)
def test_a_wrong_value_is_named(given, problem):
    with pytest.raises(InvalidOption, match=problem):
        JobFilter.of(**given)


def test_a_filter_has_a_bounded_number_of_values():
    many = [f"q{number}" for number in range(MOST_VALUES)]

    assert len(texts("queue", many)) == MOST_VALUES
    with pytest.raises(InvalidOption, match="queue can have at most 50 values, not 51"):
        texts("queue", [*many, "one more"])


def merged(*pages: tuple[list[int], int | None], limit: int = 10) -> tuple[list[int], int | None]:
    return merge_pages(pages, lambda number: number, limit)


def test_pages_are_merged_newest_first():
    assert merged(([9, 7], None), ([8, 1], None)) == ([9, 8, 7, 1], None)
    assert merged(([9, 7], None), ([8, 1], None), limit=3) == ([9, 8, 7], 7)
    assert merged(([9, 7], None), ([8, 1], None), limit=4) == ([9, 8, 7, 1], None)


def test_what_a_page_has_not_reached_is_left_to_the_next():
    assert merged(([9, 7], 7), ([8, 1], None)) == ([9, 8, 7], 7)
    assert merged(([9], 6), ([8, 3], 3)) == ([9, 8], 6)
    assert merged(([], 6), ([], None)) == ([], 6)


def test_a_job_that_moves_between_two_pages_is_listed_once():
    assert merged(([9, 7], None), ([7], None)) == ([9, 7], None)
