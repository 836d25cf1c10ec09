"""Values that are read from the columns of a view."""

from dataclasses import dataclass

import pytest

from mainspring.store.rows.records import read_record


@dataclass(frozen=True)
class Place:
    name: str
    size: int


def test_a_column_of_a_newer_release_is_left_out():
    assert read_record(Place, {"name": "here", "size": 3, "colour": "red"}) == Place("here", 3)


def test_a_missing_column_is_an_error():
    with pytest.raises(KeyError, match="size"):
        read_record(Place, {"name": "here"})
